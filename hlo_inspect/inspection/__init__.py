"""A run: opens inputs, runs passes on each module, and finds findings; also in several processes.

Imports passes, differences, analyses, readers and the data of reports; no renderer and no `checks`.
"""
