"""Which input, within a power, tells most about a linear model with any response."""
