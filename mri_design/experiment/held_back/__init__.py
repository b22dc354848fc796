"""Lines held back from an inference judge it: the model of the phase, the bias of the mean, the error bars."""
