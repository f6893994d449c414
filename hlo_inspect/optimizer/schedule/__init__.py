"""Learning rates as functions of the number of steps, by name."""
