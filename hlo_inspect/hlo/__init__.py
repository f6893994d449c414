"""Content of HLO texts: modules, rows, shapes, attributes, and the inputs that hold them.

Imports errors and remote files only. `HLO` of `tests/test_layers.py` orders its modules.
"""
