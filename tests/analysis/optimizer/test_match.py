"""Which sites are weights, whatever things are called and in whatever order they stand."""

from __future__ import annotations

import random
import re

import pytest

from tests.analysis.optimizer.reading import DATA, STAGES, changed, facts_of, overview_of, report_of, rules_of, text_of
from tests.analysis.optimizer.step import ADAM, DESCENT, step_of

DEFINITION = re.compile(r"^\s+(?:ROOT )?%?([A-Za-z_][\w.\-]*) = ", re.MULTILINE)
LINE = re.compile(r"^(\s+(?:ROOT )?%?)([A-Za-z_][\w.\-]*)( = .*? [a-z][a-z0-9\-]*\()(.*)$")
HEADER = re.compile(r"^(ENTRY )?(%?)([A-Za-z_][\w.\-]*) .*\{$")
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\w.\-])[A-Za-z_][\w.\-]*(?![\w.\-=])')


def renamed(text: str, seed: int) -> str:
    """Every instruction and computation under a random name."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    names = DEFINITION.findall(text) + [match[3] for line in text.splitlines() if (match := HEADER.match(line))]
    new = {name: f"z{n}_{chance.randrange(10**6)}" for n, name in enumerate(dict.fromkeys(names)) if name != "HloModule"}

    def line(old: str) -> str:
        match = LINE.match(old)
        if match is not None:
            rest = WORD.sub(lambda word: new.get(word[0], word[0]), match[4])
            return f"{match[1]}{new[match[2]]}{match[3]}{rest}"
        match = HEADER.match(old)
        if match is None or old.startswith("HloModule"):
            return old
        return f"{match[1] or ''}{match[2]}{new[match[3]]} {{"

    return "\n".join(map(line, text.split("\n")))


def reordered(text: str, seed: int) -> str:
    """The instructions of each computation in a random order in which operands come first."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    done: list[str] = []
    block: dict[str, str] = {}
    for line in text.split("\n"):
        match = LINE.match(line)
        if match is not None:
            block[match[2]] = line
            continue
        waiting = {
            name: {w for w in WORD.findall(one.split(" = ", 1)[1]) if w in block and w != name} for name, one in block.items()
        }
        while waiting:
            ready = [name for name, needs in waiting.items() if not needs & waiting.keys()]
            chosen = chance.choice(ready)
            done.append(block[chosen])
            del waiting[chosen]
        block = {}
        done.append(line)
    return "\n".join(done)


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.after.hlo")))
def test_names_and_order_decide_nothing(name: str) -> None:
    text = text_of(name)
    assert facts_of(reordered(renamed(text, 1), 2)) == facts_of(text)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", ["accumulator", "average", "batch_norm", "cache", "euler", "gru", "residual", "velocity"])
def test_other_states_are_no_weights(kind: str, stage: str) -> None:
    assert facts_of(text_of(f"none_{kind}.{stage}")) == {"name": "none", "update_count": 0, "decayed_count": 0}


def test_a_second_moment_without_its_square_makes_that_weight_unknown() -> None:
    text = changed(text_of("adamw_accumulated.before"), r"multiply\((\S+), \1\)", r"abs(\1)", count=1)
    report = report_of(text)
    assert sorted(rules_of(text)) == ["adamw", "unknown"]
    assert report.facts["optimizer.name"] == "mixed"
    assert any(note.startswith("optimizer.name: parameter ") for note in report.notes)


def test_another_decay_in_one_update_shows_in_the_groups() -> None:
    text = text_of("adamw_accumulated.before")
    lines = text.splitlines()
    found = set()
    for place in [n for n, line in enumerate(lines) if "constant(0.9)" in line]:
        edited = "\n".join([*lines[:place], lines[place].replace("0.9", "0.8"), *lines[place + 1 :]]) + "\n"
        report = report_of(edited)
        found.add((report.facts["optimizer.name"], report.facts["optimizer.beta1"], len(report.table("optimizer_groups").rows)))
    assert ("adamw", None, 2) in found


def test_the_old_value_of_a_moment_behind_a_product_is_no_gradient() -> None:
    """What Muon does: the momentum goes through products of matrices, which plain descent has no place for."""
    lines = (
        "a = multiply m1 nine",
        "m = add a g",
        "o = f32[4,4]{1,0} dot(%m, %m), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "u = multiply o rate",
        "new = add w u",
    )
    assert rules_of(step_of(*lines, outputs="new m", states=1)) == ["unknown"]


def test_what_cannot_be_followed_is_no_gradient() -> None:
    assert rules_of(step_of("k = multiply g nobody", "u = multiply k rate", "new = add w u")) == ["unknown"]
    assert rules_of(step_of("u = multiply nobody rate", "new = add w u")) == ["unknown"]


def test_an_average_of_the_weights_is_not_counted() -> None:
    lines = (*DESCENT, "a = multiply m1 nine", "b = multiply new tenth", "e = add a b")
    assert rules_of(step_of(*lines, outputs="new e", states=1)) == ["sgd"]


def test_without_donation() -> None:
    assert rules_of(step_of(*ADAM, outputs="new m v", states=2, donated=False)) == ["adam"]


def test_masters_and_copies() -> None:
    """A copy in 2 bytes beside a master in 4: 8 * 4 + 4 elements."""
    overview = overview_of(text_of("adamw_bf16_master.after"))
    assert [str(row.weight.shape) for row in overview.rows] == ["bf16[4]", "bf16[8,4]"]
    assert overview.bytes_of(row.weight for row in overview.rows) == 36 * 2
    assert overview.bytes_of(row.master for row in overview.rows) == 36 * 4
