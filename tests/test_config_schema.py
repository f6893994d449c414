"""The schema in the repository: that of the code, and of one mind with the readers of policies and configurations."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hlo_inspect.checks.config import load_config
from hlo_inspect.checks.needed_passes import passes_for
from hlo_inspect.checks.policy import read_policy
from hlo_inspect.configs import shipped_configs
from hlo_inspect.errors import UsageError
from tests.config_schema import config_schema

FILE = Path(__file__).parents[1] / "configs" / "hlo-inspect.schema.json"

POLICY = """checks:
  collectives.all-to-all.count: 0
  collectives.group_size.8.count: "<= 2"
  collectives.executed_operand_bytes.lower_bound: ">= 1 MiB"
  collectives[kind=all-gather, axis=model].runs: 0
  params[role=weight, donated=no].max(bytes): 0
  optimizer.name: [adamw, lion]
  mesh.shape: known
  custom_calls.target.__cublas$gemm: 4
fail-if: [memory.peak_bytes > +5%]
fail-on: warning
ignore:
  - {rule: HI102, subject: "embed*", reason: kept for the decoder}
"""
CONFIG = """profile = ["h100-sxm", "b200"]
jobs = 2
strict = false
phases = "names"
[check]
policies = ["a.yaml"]
[lint]
select = ["HI2*", "large-constant"]
fail-on = "error"
thresholds = { small-collectives = "4 MiB" }
[[lint.ignores]]
rule = "HI201"
op_name = "*/embed/*"
reason = "stays in f32"
"""


def schema() -> Any:
    return json.loads(FILE.read_text(encoding="utf-8"))


def definition(name: str) -> Any:
    return {**schema(), "anyOf": [{"$ref": f"#/definitions/{name}"}]}


def takes(name: str, document: object) -> bool:
    return bool(jsonschema.Draft7Validator(definition(name)).is_valid(document))


def reads_policy(text: str, folder: Path) -> bool:
    """Return True if the reader of policies takes the text, facts included."""
    path = folder / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        passes_for(read_policy(path))
    except UsageError:
        return False
    return True


def reads_config(text: str, folder: Path) -> bool:
    path = folder / "hlo-inspect.toml"
    path.write_text(text, encoding="utf-8")
    try:
        load_config(str(path))
    except UsageError:
        return False
    return True


def test_the_file_is_that_of_the_code() -> None:
    text = json.dumps(config_schema(), indent=1) + "\n"
    if os.environ.get("HLO_INSPECT_REWRITE_GOLDEN"):
        FILE.write_text(text, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == text
    jsonschema.Draft7Validator.check_schema(schema())


def test_the_shipped_policies_and_the_examples_are_valid(tmp_path: Path) -> None:
    for path in shipped_configs("checks").glob("*.yaml"):
        assert takes("policy", yaml.safe_load(path.read_text(encoding="utf-8"))), path
    assert takes("policy", yaml.safe_load(POLICY))
    assert reads_policy(POLICY, tmp_path)
    assert takes("config", tomllib.loads(CONFIG))
    assert reads_config(CONFIG, tmp_path)
    jsonschema.validate(tomllib.loads(CONFIG), schema())
    jsonschema.validate(yaml.safe_load(POLICY), schema())


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("collectives.all-to-all.count", "collectives.all-to-al.count"),
        ("collectives.group_size.8", "collectives.group_size.0"),
        ("collectives[kind", "colectives[kind"),
        (".max(bytes)", ".most(bytes)"),
        ("checks:", "check:"),
        ("fail-on: warning", "fail-on: warnings"),
        ("rule: HI102", "rule: HI199"),
        (", reason: kept for the decoder", ""),
        ("subject:", "subjekt:"),
        ("mesh.shape: known", "mesh.shape: {a: b}"),
        ("optimizer.name: [adamw, lion]", "optimizer.name: []"),
    ],
)
def test_a_wrong_policy_is_refused_by_schema_and_reader(right: str, wrong: str, tmp_path: Path) -> None:
    text = POLICY.replace(right, wrong)
    assert text != POLICY
    assert not takes("policy", yaml.safe_load(text))
    assert not reads_policy(text, tmp_path)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("jobs = 2", 'jobs = "2"'),
        ("jobs = 2", "jobs = 0"),
        ("jobs = 2", "job = 2"),
        ("strict = false", 'strict = "no"'),
        ('phases = "names"', 'phases = "name"'),
        ("policies =", "policy ="),
        ('policies = ["a.yaml"]', 'policies = "a.yaml"'),
        ('select = ["HI2*"', 'select = ["HI299"'),
        ("small-collectives =", "unused-parameter ="),
        ("small-collectives =", "small-colectives ="),
        ('"4 MiB"', "4"),
        ('fail-on = "error"', 'fail-on = "fatal"'),
        ('rule = "HI201"', 'rule = "HI299"'),
        ('reason = "stays in f32"', 'reason = " "'),
        ("op_name =", "subject ="),
    ],
)
def test_a_wrong_configuration_is_refused_by_schema_and_reader(right: str, wrong: str, tmp_path: Path) -> None:
    text = CONFIG.replace(right, wrong)
    assert text != CONFIG
    assert not takes("config", tomllib.loads(text))
    assert not reads_config(text, tmp_path)
