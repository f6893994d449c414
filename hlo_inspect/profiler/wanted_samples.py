"""The samples of a recorded profile that a request asks for."""

from __future__ import annotations

from typing import NamedTuple


class WantedSamples(NamedTuple):
    """The samples to measure: all but the first `skip` runs of every program. `timeline` keeps the executions of one."""

    skip: int = 0
    timeline: bool = False


ALL_SAMPLES = WantedSamples()
