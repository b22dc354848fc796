"""The command line: a file per verb, arguments in and an exit code out."""
