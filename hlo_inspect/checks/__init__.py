"""Policies, baselines and conditions: assertions on facts, rows, findings and differences.

Imports findings, passes, differences and the data of reports; no renderer and no `inspection`.
"""
