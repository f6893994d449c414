"""Modules without their names: fingerprints of instructions and computations, and a text in canonical names."""
