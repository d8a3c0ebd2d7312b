"""Windows: which part of a long conversation a request shows."""
