"""The time of one run of a program on an accelerator: bounds, which nothing can beat, and estimates of a model."""
