"""Files that simulators and viewers read, each written from the plan of a step, from rows by layer, or from timed actions.

Imports `export.plan`; never the reverse.
"""
