"""The devices of a program: who takes part in it, the mesh they form, and the values that each of them holds whole.

Imports `analysis.collectives` for the groups that a mesh is found from; not costs, memory or time.
"""
