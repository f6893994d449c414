"""Writes large HLO text: a real dump's computations, names and collectives, repeated with renumbered ids.

Each copy has names and channels of its own, so that the text is as valid as the dump. The facts of the text follow from the
dump's counts; they are written beside it as JSON.

    python -m benchmarks.generate DUMP OUTPUT --size 1GB [--one-entry]
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.counts import COMPUTATION, NAME, Counts, Line, count_dump, lines
from hlo_inspect.hlo.input.source import open_source

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}

# Marks that stand in a template behind each name and round each channel; no dump holds these control characters.
_NAME_END = "\x01"
_CHANNEL = re.compile("\x02(\\d+)\x02")

_DEFINED = re.compile(rf"^(?:ENTRY )?%?({NAME}) [^\n]*\{{[ \t]*$|^\s+(?:ROOT )?%?({NAME}) = ", re.ASCII | re.MULTILINE)
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_WORD = re.compile(rf"{_STRING}|channel_id=(?P<channel>\d+)|%?(?P<name>{NAME}+)(?![=(\[])", re.ASCII | re.DOTALL)
_MARKED = re.compile(rf"({NAME}+){_NAME_END}", re.ASCII)
_ENTRY_LINE = re.compile(r"^ENTRY ", re.MULTILINE)
_ROOT = re.compile(r"^(\s+)ROOT ", re.MULTILINE)


class Template:
    """Text to copy: in copy number j each name ends in `.j`, and channels are increased by j × `step`."""

    def __init__(self, text: str, step: int) -> None:
        self.text = text
        self._step = step

    def copy(self, number: int) -> str:
        text = self.text.replace(_NAME_END, f".{number}")
        return _CHANNEL.sub(lambda match: str(int(match[1]) + number * self._step), text)


class Base:
    """A dump taken apart: its header with the tables, the computations before the entry, and the entry."""

    def __init__(self, text: str) -> None:
        self.counts = count_dump(text)
        computations = list(COMPUTATION.finditer(text))
        entry = next((c for c in computations if c[1]), None)
        if entry is None:
            raise ValueError("the dump has no ENTRY computation of the form that XLA prints")
        self.header = text[: computations[0].start()]
        body = lines(entry[3])
        self.parameters = [line for line in body if line.opcode == "parameter"]
        self.root = next(line for line in body if line.root)
        self.sigil = "%" if f"%{self.root.name} = " in entry[3] else ""
        self.entry_name = entry[2]
        names = {name or instruction for name, instruction in _DEFINED.findall(text)}
        channels = [int(channel) for channel in re.findall(r"channel_id=(\d+)", text)]
        self._step = max(channels, default=0) + 1
        self.called = Template("".join(_marked(c[0], names) + "\n" for c in computations if not c[1]), self._step)
        self.entry = Template(_marked(entry[0], names) + "\n", self._step)

    def entry_as_callee(self) -> Template:
        return Template(_ENTRY_LINE.sub("", self.entry.text), self._step)

    def entry_parts(self) -> tuple[str, Template]:
        """First line and parameters of the only entry, as in copy 0, and the lines of the entry that each copy repeats."""
        shared = {line.name for line in self.parameters}
        text = _MARKED.sub(lambda match: f"{match[1]}.0" if match[1] in shared else match[0], self.entry.text)
        first, *body = text.splitlines(keepends=True)
        own = [line for line in body if _is_parameter(line)]
        rest = [line for line in body if not _is_parameter(line) and not line.startswith("}") and line != "\n"]
        return Template(first + "".join(own), self._step).copy(0), Template("".join(rest), self._step)


def _is_parameter(line: str) -> bool:
    return any(instruction.opcode == "parameter" for instruction in lines(line))


def _marked(text: str, names: set[str]) -> str:
    """Return `text` with a mark behind each of `names`, at its definition and its uses, and with channels between marks."""

    def mark(match: re.Match[str]) -> str:
        if match["channel"]:
            return f"channel_id=\x02{match['channel']}\x02"
        return match[0] + _NAME_END if match["name"] in names else match[0]

    return _WORD.sub(mark, text)


def calling_entry(base: Base, copies: int) -> Iterator[str]:
    """Return text whose last computation calls the dump's entry once for each copy."""
    callee = base.entry_as_callee()
    yield base.header
    for number in range(copies):
        yield base.called.copy(number)
        yield callee.copy(number)
    first, *body = base.entry.copy(copies).splitlines(keepends=True)
    yield first + "".join(line for line in body if _is_parameter(line))
    operands = ", ".join(f"{base.sigil}{line.name}.{copies}" for line in _by_number(base.parameters))
    for number in range(copies):
        root = "ROOT " if number == copies - 1 else ""
        target = f"{base.sigil}{base.entry_name}.{number}"
        yield f"  {root}{base.sigil}call.{number} = {base.root.shape} call({operands}), to_apply={target}\n"
    yield "}\n"


def _by_number(parameters: list[Line]) -> list[Line]:
    return sorted(parameters, key=lambda line: int(line.operands))


def one_entry(base: Base, copies: int) -> Iterator[str]:
    """Return text with one entry: the instructions of the dump's entry once for each copy, the parameters once."""
    begin, repeated = base.entry_parts()
    yield base.header
    for number in range(copies):
        yield base.called.copy(number)
    yield begin
    for number in range(copies):
        text = repeated.copy(number)
        yield text if number == copies - 1 else _ROOT.sub(r"\1", text, count=1)
    yield "}\n"


def copies_for(base: Base, size: int) -> int:
    """Return the number of copies that have about `size` bytes."""
    sample = 10 ** len(str(size // (len(base.called.text) + len(base.entry.text)))) // 2
    copy_bytes = len(base.called.copy(sample).encode()) + len(base.entry.copy(sample).encode())
    return max(1, -(-(size - len(base.header)) // copy_bytes))


def expected(counts: Counts, copies: int, *, whole_entry: bool) -> dict[str, int]:
    """Return the facts of the generated text, under the names that reports give them."""
    parameters = Counter(parameter=counts.entry_opcodes["parameter"])
    if whole_entry:  # one set of parameters for all copies
        entry = _times(counts.entry_opcodes - parameters, copies) + parameters
        opcodes = _times(counts.opcodes - parameters, copies) + parameters
        computations = copies * (counts.computations - 1) + 1
    else:  # the dump's entry is called from the new entry, which has parameters too
        entry = parameters + Counter(call=copies)
        opcodes = _times(counts.opcodes, copies) + entry
        computations = copies * counts.computations + 1
    facts = {
        "module.computations": computations,
        "module.instructions": opcodes.total(),
        "module.entry_instructions": entry.total(),
        "params.count": parameters.total(),
        "collectives.count": copies * counts.collectives.total(),
        "collectives.operand_bytes": copies * counts.operand_bytes.total(),
    }
    for kind, count in sorted(counts.collectives.items()):
        facts[f"collectives.{kind}.count"] = copies * count
        facts[f"collectives.{kind}.operand_bytes"] = copies * counts.operand_bytes[kind]
    return facts | {f"opcode.{opcode}": count for opcode, count in sorted(opcodes.items())}


def _times(counts: Counter[str], copies: int) -> Counter[str]:
    return Counter({name: copies * count for name, count in counts.items()})


def generate(base: Base, output: Path, size: int, *, whole_entry: bool) -> None:
    """Write about `size` bytes of text to `output`, copy by copy, and next to it its facts."""
    copies = copies_for(base, size)
    pieces = one_entry(base, copies) if whole_entry else calling_entry(base, copies)
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(pieces)
    facts = expected(base.counts, copies, whole_entry=whole_entry)
    expected_path(output).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def expected_path(output: Path) -> Path:
    """Return the path of the facts of a generated text."""
    return output.with_suffix(".expected.json")


def read_base(path: Path) -> Base:
    """Read the dump at `path`, compressed or not."""
    return Base("".join(open_source(path).pieces()))


def size_in_bytes(text: str) -> int:
    """Parse `1GB`, `100MB`, `64KB` or plain bytes; the units are decimal."""
    number, unit = (text[:-2], UNITS[text[-2:].upper()]) if text[-2:].upper() in UNITS else (text, 1)
    if not number.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 100MB")
    return int(number) * unit


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generate", description="Write large HLO text from a real dump.")
    parser.add_argument("dump", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--size", type=size_in_bytes, default="100MB", help="about how large: 100MB, 1GB (default 100MB)")
    parser.add_argument("--one-entry", action="store_true", help="repeat the entry's instructions in one entry, not as callees")
    arguments = parser.parse_args()
    generate(read_base(arguments.dump), arguments.output, arguments.size, whole_entry=arguments.one_entry)
    print(f"{arguments.output}: {arguments.output.stat().st_size:,} bytes; its facts: {expected_path(arguments.output)}")


if __name__ == "__main__":
    main()
