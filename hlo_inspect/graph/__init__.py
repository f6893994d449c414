"""Flow of values: rows and users of a computation, calls, loops, and values followed through both.

Imports `hlo` only.
"""
