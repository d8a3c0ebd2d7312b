"""The command line: one file per command, and the files they share."""
