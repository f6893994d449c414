"""Expressions in short form, for people."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.normal import Forms, Monomial, Sum

MAX_LENGTH = 400


_KINDS = {"opaque": "x", "value": "v"}


def text(forms: Forms, form: Sum, depth: int = 6) -> str:
    """A sum as one line; what lies deeper than `depth` is an ellipsis."""
    if not form:
        return "0"
    if depth == 0:
        return "…"
    parts = []
    for monomial, value in list(form.items())[:12]:
        factors = _factors(forms, monomial, depth)
        parts.append(f"{value:.6g}" if not factors else factors if value == 1.0 else f"{value:.6g}*{factors}")
    if len(form) > len(parts):
        parts.append("…")
    line = " + ".join(parts)
    return line if len(line) <= MAX_LENGTH else line[: MAX_LENGTH - 1] + "…"


def _factors(forms: Forms, monomial: Monomial, depth: int) -> str:
    return "*".join(_atom(forms, atom, depth) + ("" if exponent == 1.0 else f"**{exponent:g}") for atom, exponent in monomial)


def _atom(forms: Forms, number: int, depth: int) -> str:
    atom = forms.atoms[number]
    if atom.node is not None:
        source = forms.graph.sources.get(atom.node)
        if source is not None:
            return f"p{source[1]}" + "".join(f".{i}" for i in source[2])
        return f"{_KINDS.get(atom.op, atom.op)}#{number}"
    inner = ", ".join(text(forms, part, depth - 1) for part in atom.parts)
    if atom.op == "sum":
        return f"({inner})"
    name = f"{atom.op}.{atom.attribute}" if isinstance(atom.attribute, str) and atom.op == "compare" else atom.op
    return f"{name}({inner})"
