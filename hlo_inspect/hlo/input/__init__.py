"""Inputs: files, streams, compression, dump directories, and texts that are no HLO.

Imports all other parts of `hlo`, and remote files.
"""
