"""What has to be kept of a module for its kernels, collectives among them."""

from __future__ import annotations

from hlo_inspect.analysis import calls
from hlo_inspect.analysis.collectives import OPCODES, RESIZING_OPCODES, TARGETS
from hlo_inspect.hlo.wants import Wants

WANTS = calls.WANTS | Wants(OPCODES, TARGETS, graph=True, checked=True, operands=RESIZING_OPCODES)
