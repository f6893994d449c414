"""Weights of a step: candidates, proposals of rules, and evidence that the step trains.

Imports `algebra`, `step`, `rules` and what precedes them.
"""
