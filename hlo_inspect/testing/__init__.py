"""The pytest plugin: the fixture `hlo` with `expect` and `golden`.

Imports `api`, `inspection`, `checks` and renderers; not `cli`.
"""
