"""Rules of custom calls with a known cost: a file for each family. XLA's own HloCostAnalysis counts no custom call.

Each family is a table of targets, in old and new spellings, with the rule of their cost. A target in no table is unknown.
"""
