"""A recorded profile joined with the module of its program."""
