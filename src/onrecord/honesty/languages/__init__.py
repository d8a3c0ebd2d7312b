"""The languages of commentary, as data: templates, templates of the status, and words for what is one of a few."""
