"""Compilers in these tests share their processes."""

from tests.compiler.kept_processes import _closed_at_the_end, kept_processes

__all__ = ["_closed_at_the_end", "kept_processes"]
