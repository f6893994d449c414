"""Updates of weights: optimizers, their constants and learning rates, recognized by arithmetic alone.

Imports `hlo` and `graph`. Other packages import `overview` only.
"""
