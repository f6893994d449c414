"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# No test is timed: on a loaded machine an example may take longer than it should.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
