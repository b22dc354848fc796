"""Sites that are likelihoods: of labels, of margins and of counts."""
