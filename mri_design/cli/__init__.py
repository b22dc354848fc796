"""The command line: verbs about scans, files, studies and a scanner, arguments in and an exit code out."""
