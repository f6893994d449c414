"""Other texts of the same program: other names, and independent lines in another order.

It works on lines as XLA's printers write them, names marked with `%`, and shares no code with the program.
"""

from __future__ import annotations

import random
import re

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_STRING_OR_NAME = re.compile(rf"{_STRING}|%([A-Za-z_][\w.\-]*)", re.ASCII)
_LINE = re.compile(r"^  (?:ROOT )?%([\w.\-]+) = (.*)$", re.ASCII)
_CHANNEL = re.compile(r"channel_id=(\d+)", re.ASCII)
_PREDECESSORS = re.compile(r"control-predecessors=\{([^{}]*)\}", re.ASCII)
_METADATA = re.compile(rf", metadata=\{{(?:[^{{}}\"]|{_STRING}|\{{[^{{}}]*\}})*\}}")


def renamed(text: str, seed: int) -> str:
    """Give each name and each channel a new one, except the names of parameters in signatures."""
    chance = random.Random(seed)  # noqa: S311 - texts, not secrets
    names: dict[str, str] = {}
    channels: dict[str, str] = {}

    def new_name(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        return "%" + names.setdefault(match[1], f"{chance.choice('abxyz')}.{len(names)}.{chance.randint(1, 99)}")

    def new_channel(match: re.Match[str]) -> str:
        return f"channel_id={channels.setdefault(match[1], str(7000 - len(channels)))}"

    return _CHANNEL.sub(new_channel, _STRING_OR_NAME.sub(new_name, text))


def without_metadata(text: str) -> str:
    """Remove the metadata of all instructions."""
    return _METADATA.sub("", text)


def reordered(text: str, seed: int) -> str:
    """Shuffle the lines of each computation, each name still defined before its uses."""
    chance = random.Random(seed)  # noqa: S311 - texts, not secrets
    lines: list[str] = []
    block: list[str] = []
    for line in text.split("\n"):
        if _LINE.match(line):
            block.append(line)
            continue
        lines += _shuffled(block, chance)
        lines.append(line)
        block = []
    return "\n".join(lines + _shuffled(block, chance))


def with_predecessors_reordered(text: str, seed: int) -> str:
    """Shuffle the control predecessors of each line; their order has no meaning."""
    chance = random.Random(seed)  # noqa: S311 - texts, not secrets

    def shuffled(match: re.Match[str]) -> str:
        names = match[1].split(", ")
        return f"control-predecessors={{{', '.join(chance.sample(names, len(names)))}}}"

    return _PREDECESSORS.sub(shuffled, text)


def _shuffled(lines: list[str], chance: random.Random) -> list[str]:
    defined = {_name(line): line for line in lines}
    assert len(defined) == len(lines)
    uses = {
        name: {use for use in _STRING_OR_NAME.findall(line.partition(" = ")[2]) if use in defined}
        for name, line in defined.items()
    }
    users: dict[str, list[str]] = {name: [] for name in defined}
    for name, used in uses.items():
        for use in used:
            users[use].append(name)
    missing = {name: len(used) for name, used in uses.items()}
    ready = [name for name, count in missing.items() if not count]
    order = []
    while ready:
        index = chance.randrange(len(ready))
        ready[index], ready[-1] = ready[-1], ready[index]
        name = ready.pop()
        order.append(defined[name])
        for user in users[name]:
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    assert len(order) == len(lines)
    return order


def _name(line: str) -> str:
    match = _LINE.match(line)
    assert match is not None
    return match[1]
