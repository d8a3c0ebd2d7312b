"""What happened: entries, their bodies, folds over them, and the record as a file."""
