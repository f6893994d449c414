"""Programs without the choices of autotuning."""

from __future__ import annotations

from hlo_inspect.graph.canonical.canonical_module import CanonicalModule
from hlo_inspect.graph.canonical.spelling import sorted_config, without_workspace
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants

GEMM = """\
HloModule m, is_scheduled=true

ENTRY e {{
  %p = f32[8,8]{{1,0}} parameter(0)
  %g = (f32[8,8]{{1,0}}, s8[{workspace}]{{0}}) custom-call(%p, %p), custom_call_target="{target}", backend_config={config}
  ROOT %r = f32[8,8]{{1,0}} get-tuple-element(%g), index=0
}}
"""
CONFIG = '{"queue":"0","gemm_backend_config":{"alpha":1,"selected_algorithm":"4"}}'


def program(*, tuning: bool = False, **parts: str) -> str:
    text = GEMM.format(**({"workspace": "64", "target": "__cublas$gemm", "config": CONFIG} | parts))
    module = next(iter(read_modules(open_source(text), Wants(graph=True))))
    return CanonicalModule(module, Views(module.computations), tuning=tuning).program


def test_the_chosen_algorithm_does_not_count() -> None:
    other = CONFIG.replace('"4"', '"13"')
    assert program() == program(config=other) == program(workspace="4096")
    assert len({program(tuning=True, config=config) for config in (CONFIG, other)}) == 2


def test_the_order_of_keys_never_counts() -> None:
    other = '{"gemm_backend_config":{"selected_algorithm":"4","alpha":1},"queue":"0"}'
    quoted, other_quoted = (f'"{config}"'.replace('"', r"\"")[1:-2] + '"' for config in (CONFIG, other))
    for tuning in (True, False):
        assert program(tuning=tuning) == program(tuning=tuning, config=other)
        assert program(tuning=tuning, config=quoted) == program(tuning=tuning, config=other_quoted)


def test_the_order_of_a_list_and_the_values_count() -> None:
    configs = ('{"a":[1,2],"b":{}}', '{"a":[2,1],"b":{}}', '{"a":[1,2],"b":[]}', '{"a":[1,"2"],"b":{}}')
    assert len({program(tuning=True, config=config) for config in configs}) == len(configs)


def test_the_rest_counts() -> None:
    other = CONFIG.replace('"alpha":1', '"alpha":2')
    assert program() not in (program(config=other), program(target="__cublas$lt$matmul"), program(target="mine"))
    assert program(target="mine", workspace="4096") != program(target="mine")


def test_other_texts_stay() -> None:
    deep = "{" * 100
    for text in ('"opaque"', "{not json}", deep, "{1: 2}", '{"a":"}'):
        assert sorted_config(text, tuning=False) == sorted_config(text) == text
    assert without_workspace("(f32[8]{0}, s8[64]{0})", '"mine"') == "(f32[8]{0}, s8[64]{0})"
