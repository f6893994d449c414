"""The JSON schema of policies and of the configuration, made of the lists of facts, options and rules.

`HLO_INSPECT_REWRITE_GOLDEN=1 python -m pytest tests/test_config_schema.py` writes `configs/hlo-inspect.schema.json` anew.
"""

from __future__ import annotations

import re
from typing import Any

from hlo_inspect.checks.config import CONFIGURABLE
from hlo_inspect.findings import RULE_TABLE, RULES, rule_pages
from hlo_inspect.passes import ASSERTABLE_TABLES, all_specs
from hlo_inspect.report.facts import is_family
from hlo_inspect.report.model import SEVERITIES, FactSpec
from hlo_inspect.request import Option

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
SEVERITY: Schema = {"enum": list(SEVERITIES)}
SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}


def config_schema() -> Schema:
    """Return the schema of a policy or a configuration; each is a definition of its own too."""
    rules = [label for page in rule_pages() for label in (page.code, page.name)]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Policies and configuration of hlo-inspect",
        "anyOf": [{"$ref": "#/definitions/policy"}, {"$ref": "#/definitions/config"}],
        "definitions": {
            "expectation": {
                "description": "a value, an expression such as `>= 180 MiB` or `in [0, 8]`, or a list of values",
                "anyOf": [SCALAR, {"type": "array", "items": SCALAR, "minItems": 1}],
            },
            "rule": {"description": "code or name of a rule", "enum": rules},
            "rules": {
                "description": "codes or names of rules; * stands for any text",
                "type": "array",
                "items": {"anyOf": [{"$ref": "#/definitions/rule"}, {"type": "string", "pattern": r"[*?\[]"}]},
            },
            "policy": _closed(
                checks={"description": "expectations by fact or figure of rows", "type": "object", **_facts()},
                **{
                    "fail-if": TEXTS | {"description": "differences from the module of --baseline that fail"},
                    "fail-on": SEVERITY | {"description": "findings of this severity or above fail too"},
                    "ignore": _ignores("subject", "op_name", "source"),
                },
            ),
            "config": _closed(
                **{key: _option(option) for key, option in CONFIGURABLE.items()},
                check=_closed(policies=TEXTS | {"description": "policies that `check` reads, relative to this file"}),
                lint=_closed(
                    select={"$ref": "#/definitions/rules"},
                    ignore={"$ref": "#/definitions/rules"},
                    ignores=_ignores("op_name", "source"),
                    baseline=TEXT | {"description": "accepted findings, relative to this file"},
                    thresholds={
                        "description": "the least stake that a rule reports, such as 4 MiB or 10 GFLOP",
                        **_closed(**dict.fromkeys(_rules_with_thresholds(), TEXT)),
                    },
                    **{"fail-on": SEVERITY | {"description": "exit status 1 if a finding has this severity or a higher one"}},
                ),
            ),
        },
    }


def _closed(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _facts() -> Schema:
    """Return the parts of a schema whose keys are facts and figures of rows."""
    expectation = {"$ref": "#/definitions/expectation"}
    single = [spec for spec in all_specs() if not is_family(spec)]
    return {
        "properties": {spec.name: {"description": spec.meaning, **expectation} for spec in single},
        "patternProperties": {
            **{_pattern(spec): {"description": spec.meaning, **expectation} for spec in all_specs() if is_family(spec)},
            rf"^({'|'.join(re.escape(spec.name) for spec in single if spec.unit not in ('text', 'bool'))})\.lower_bound$": (
                expectation
            ),
            rf"^({'|'.join(ASSERTABLE_TABLES)})\[.*\]\.(count|(sum|max|min)\(\w+\)|\w+)$": {
                "description": "a figure of the rows of a table that meet comparisons",
                **expectation,
            },
        },
        "additionalProperties": False,
    }


def _pattern(spec: FactSpec) -> str:
    """Return the pattern of a family's names, those of lower bounds included."""
    before, placeholder, after = re.split(r"<(\w+)>", spec.name)
    open_member = "[1-9][0-9]*" if placeholder == "n" else ".+"
    member = open_member if spec.members is None else f"({'|'.join(map(re.escape, sorted(spec.members)))})"
    bound = "" if spec.unit in ("text", "bool") else r"(\.lower_bound)?"
    return f"^{re.escape(before)}{member}{re.escape(after)}{bound}$"


def _ignores(*globs: str) -> Schema:
    fields = {"rule": {"$ref": "#/definitions/rule"}, "reason": TEXT | {"pattern": r"\S"}}
    entry = _closed(**fields, **dict.fromkeys(globs, TEXT)) | {"required": ["rule", "reason"]}
    return {"description": "findings that do not count, each with a reason", "type": "array", "items": entry}


def _option(option: Option) -> Schema:
    about = {"description": option.info.help}
    if option.type is bool:
        return about | {"type": "boolean"}
    if option.type is int:
        return about | {"type": "integer", "minimum": option.info.minimum or 0}
    if option.choices:
        return about | {"enum": list(option.choices)}
    return about | ({"anyOf": [TEXT, TEXTS]} if option.is_many else TEXT)


def _rules_with_thresholds() -> list[str]:
    rules = (RULES.load(name) for name in RULE_TABLE)
    return [label for rule in rules if rule.threshold for label in (rule.code, rule.name)]
