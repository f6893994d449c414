"""Many compiles, or many ranks, of one program."""
