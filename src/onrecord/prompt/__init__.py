"""Features that decide what a request shows."""
