"""How right the predictions of a posterior were, where the truth is known."""
