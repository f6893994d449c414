"""Modules that JAX compiles in this process, inspected as they are compiled."""
