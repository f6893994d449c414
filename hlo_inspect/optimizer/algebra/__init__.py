"""Expressions as sums of products of powers, and the equation of an update.

Imports the values of a step (`optimizer/step`, `dataflow`, `graph`); not `matching`.
"""
