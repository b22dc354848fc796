"""Parts of reports that several verbs share."""
