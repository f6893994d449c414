"""Bisection: the passes, flags or versions of a compiler on which a condition depends."""
