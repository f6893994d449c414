"""The structure of a declarative pipeline of Jenkins, after its reference page "Pipeline Syntax"."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

SECTIONS = {
    "pipeline": {"agent", "stages", "post", "environment", "options", "parameters", "triggers", "tools"},
    "stages": {"stage"},
    "stage": {"agent", "steps", "post", "environment", "options", "tools", "input", "when", "stages", "parallel", "matrix"},
    "post": {
        "always",
        "changed",
        "fixed",
        "regression",
        "aborted",
        "failure",
        "success",
        "unstable",
        "unsuccessful",
        "cleanup",
    },
    "agent": {"docker", "dockerfile", "label", "node", "kubernetes"},
}
"""Sections that a section may hold."""
REQUIRED = {"pipeline": ("agent", "stages"), "stages": ("stage",), "stage": ("steps",)}
STEPS = {"sh", "stash", "unstash", "junit", "archiveArtifacts", "recordIssues"}
"""Steps of Jenkins, of JUnit and of the plugin Warnings."""
_TOKEN = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|//[^\n]*|[{}\n]|[^'\"{}\n/]+|/")


@dataclass
class PipelineBlock:
    """A section with its braces: name, title in parentheses, statements and inner sections."""

    name: str
    title: str = ""
    statements: list[str] = field(default_factory=list)
    blocks: list[PipelineBlock] = field(default_factory=list)

    def of(self, name: str) -> list[PipelineBlock]:
        return [block for block in self.blocks if block.name == name]

    def shell_lines(self) -> list[str]:
        """Return the command lines of the steps `sh`."""
        return [line.removeprefix("sh ").strip("'") for line in self.statements if line.startswith("sh ")]


def parse_pipeline(text: str) -> PipelineBlock:
    """Read a pipeline. Raise ValueError if a brace is open, or if a section or step stands in a wrong place."""
    root = PipelineBlock("")
    open_blocks, statement = [root], ""
    for token in _TOKEN.findall(text):
        if token.startswith("//"):
            continue
        if token not in {"{", "}", "\n"}:
            statement += token
            continue
        statement = statement.strip()
        if token == "{":
            head = re.fullmatch(r"(\w+)(?:\('([^']*)'\))?", statement)
            if head is None:
                raise ValueError(f"{statement} opens no section")
            open_blocks[-1].blocks.append(PipelineBlock(head[1], head[2] or ""))
            open_blocks.append(open_blocks[-1].blocks[-1])
        else:
            if statement:
                open_blocks[-1].statements.append(statement)
            if token == "}" and len(open_blocks) == 1:
                raise ValueError("a brace closes nothing")
            if token == "}":
                open_blocks.pop()
        statement = ""
    if len(open_blocks) != 1 or [block.name for block in root.blocks] != ["pipeline"]:
        raise ValueError("a brace is open, or the text is no pipeline")
    _check(root.blocks[0])
    return root.blocks[0]


def _check(block: PipelineBlock) -> None:
    names = [inner.name for inner in block.blocks] + [statement.split()[0] for statement in block.statements]
    for name in names:
        if block.name in SECTIONS and name not in SECTIONS[block.name]:
            raise ValueError(f"{block.name} holds {name}")
        if block.name in {"steps", *SECTIONS["post"]} and name not in STEPS:
            raise ValueError(f"{block.name} hold {name}")
    for name in REQUIRED.get(block.name, ()):
        if name not in names:
            raise ValueError(f"{block.name} lacks {name}")
    for inner in block.blocks:
        _check(inner)
