"""The reader: pieces of text to modules, with the instructions that `Wants` names.

Imports modules, rows and values of `hlo`; no inputs.
"""
