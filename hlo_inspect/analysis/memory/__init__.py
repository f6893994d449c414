"""The device memory of a compiled program, from its scheduled text, by the rules of XLA's buffer assignment."""
