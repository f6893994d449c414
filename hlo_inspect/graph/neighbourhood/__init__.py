"""Instructions around one of them: operands, users, paths, and the expressions that fusions compute.

Imports `hlo` and other modules of `graph`.
"""
