"""Tools: what the model may call, how it is declared, and what the model reads of it."""
