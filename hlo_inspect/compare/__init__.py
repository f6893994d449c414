"""Differences of modules, of recorded profiles and of the programs of ranks, and the changes that explain them.

Imports passes, findings, `export`, analyses and the data of reports; not `checks`.
"""
