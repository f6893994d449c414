"""Communication as the program says it: the collectives of a text, how often each runs in a step, and what surrounds it.

Imports the participants of `analysis.devices`; not costs, memory or time.
"""
