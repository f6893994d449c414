"""Attributes without the choices that a compiler measures: autotuning picks another algorithm on each run.

`backend_config` is a JSON object, whose keys have no order. Its choices change speed and rounding, not the program's meaning.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate

from hlo_inspect.lazy_pattern import lazy_pattern

TUNED_ATTRIBUTE = "backend_config"

_TUNED_KEYS = frozenset(
    {
        "selected_algorithm",
        "algorithm",
        "algorithm_id",
        "algo_id",
        "block_level_fusion_config",
        "triton_gemm_config",
        "plan_id",
        "cudnn_plan_id",
        "tuning_knobs",
        "workspace_size",
        "autotune_workspace_size",
        "scratch_bytes",
    }
)
_MAX_DEPTH = 64
_STRING = lazy_pattern(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_LIBRARY_CALL = lazy_pattern(r'"?__(?:cublas|cudnn|hipblaslt|miopen)')
_WORKSPACE = lazy_pattern(r", [su]8\[\d+\](?:\{[^{}]*+\})?\)$", re.ASCII)


def without_tuning(text: str) -> str:
    """Return the text of `backend_config` with sorted keys and without autotuned choices; other texts as they are."""
    depth = max(accumulate(1 if char in "{[" else -1 for char in _STRING.sub("", text) if char in "{}[]"), default=0)
    if depth > _MAX_DEPTH or not text.startswith("{"):
        return text
    try:
        config = json.loads(text)
    except ValueError:
        return text
    return json.dumps(_untuned(config), sort_keys=True, separators=(",", ":"))


def _untuned(value: object) -> object:
    if isinstance(value, dict):
        return {key: _untuned(inner) for key, inner in value.items() if key not in _TUNED_KEYS}
    return [_untuned(inner) for inner in value] if isinstance(value, list) else value


def without_workspace(shape: str, target: str) -> str:
    """Return the shape of a library's call without the size of its workspace, its last result."""
    return _WORKSPACE.sub(", workspace)", shape) if _LIBRARY_CALL.match(target) else shape
