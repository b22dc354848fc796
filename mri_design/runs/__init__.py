"""One folder per verb of the command line: what it computes, and the report that shows it."""
