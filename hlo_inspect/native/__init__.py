"""The native reader: C that splits the text of a module into columns, and the Python that builds and loads it.

`source` is plain C11 without Python in it. `build` compiles it to one library for each platform, and `library` loads that by
ctypes. Without the library, or with `HLO_INSPECT_NATIVE=0`, the readers in Python read everything. They also read what the
native one refuses, so that messages about a text are theirs alone.
"""
