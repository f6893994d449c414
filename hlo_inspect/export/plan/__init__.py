"""The plan of one step: the module unrolled into nodes with edges, groups of devices and phases; writes no files."""
