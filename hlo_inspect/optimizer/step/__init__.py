"""A step as arrays: outputs that succeed inputs, products of matrices, inputs behind a value.

Imports `dataflow` and `graph` of `optimizer`; not `algebra`.
"""
