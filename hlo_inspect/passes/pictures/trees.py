"""Trees as tables: a row for each node with the sums over its leaves, each parent before its children."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.figure import Number, Quantity, add, exact, least
from hlo_inspect.report.table import Column, Table, Unit, Value
from hlo_inspect.report.table_spec import TableSpec

MAX_NODES = 1000
"""At most this many nodes of a tree have a row, beside one in each node for all that is left out of it."""
MAX_DEPTH = 16
"""Deepest level of a tree: deeper nodes are joined into one of this depth."""

Path = tuple[str, ...]


class TreeMeasure(NamedTuple):
    """A figure that nodes have; one that is `bounded` may be known in part."""

    name: str
    unit: Unit
    bounded: bool = False


@dataclass(eq=False, slots=True)
class TreeNode:
    """A node: `label` is the last part of its path, `sums` has one value a measure."""

    label: str
    path: Path
    inside: TreeNode | None
    sums: list[Quantity]
    children: dict[str, TreeNode] = field(default_factory=dict)

    def add(self, amounts: Iterable[Quantity]) -> None:
        """Add the amounts of something inside of the node."""
        self.sums = list(map(add, self.sums, amounts))

    def child(self, label: str) -> TreeNode:
        """Return the child of that label, made if it is missing."""
        node = self.children.get(label)
        if node is None:
            node = self.children[label] = TreeNode(label, (*self.path, label), self, [0] * len(self.sums))
        return node

    @property
    def known(self) -> list[Number]:
        """The known parts of the sums."""
        return list(map(least, self.sums))

    def share(self, root: TreeNode, index: int) -> Value:
        """Return the share of the root's sum, None if one of the two is unknown."""
        part, whole = exact(self.sums[index]), exact(root.sums[index])
        return part / whole if part is not None and whole else None

    def own(self, index: int) -> Value:
        """Return the part of the sum that no child has; never below 0, whatever the sums of times round to."""
        return max(0, least(self.sums[index]) - sum(least(child.sums[index]) for child in self.children.values()))


class _TreeRow(NamedTuple):
    """A node with its number, that of the node around it, and the root of its tree."""

    node: TreeNode
    number: int
    inside: int | None
    path: str
    root: TreeNode


def tree_spec(name: str, title: str, path: str, measures: Sequence[TreeMeasure]) -> TableSpec:
    """Return the specification of a tree.

    `node` is the number of the row and `inside` that of the node around it; the column `path` has the labels from the one
    below the whole to that of the node. For each measure a node has the sum of its children and, in the column
    `<measure>_own`, the part that none of them has; the latter add up to the lower bound of the whole. The column
    `<measure>_share` is the part of the whole.
    """
    return TableSpec(name, title, on_page=False).with_columns(
        Column("node", "number", get=attrgetter("number")),
        Column("inside", "number", optional=True),
        Column("label", get=attrgetter("node.label")),
        Column(path, get=attrgetter("path")),
        *(column for index, measure in enumerate(measures) for column in _columns_of(measure, index)),
    )


def _columns_of(measure: TreeMeasure, index: int) -> Iterator[Column]:
    yield Column(measure.name, measure.unit, bounded=measure.bounded, get=lambda row: row.node.sums[index])
    yield Column(f"{measure.name}_own", measure.unit, get=lambda row: row.node.own(index))
    yield Column(f"{measure.name}_share", "share", optional=True, get=lambda row: row.node.share(row.root, index))


def tree_table(
    spec: TableSpec,
    measures: int,
    leaves: Iterable[tuple[Path, Sequence[Quantity]]],
    *,
    whole: str = "one step",
    separator: str = "/",
    join_chains: bool = False,
) -> Table:
    """Return a table with a row for each node, the first for the `whole`. It has the first `measures` of `spec`.

    The children of a node come by the last measure, the largest first. With `join_chains` a node that is all of the node around
    it is one with it.
    """
    nodes = _tree(whole, measures, leaves)
    if join_chains:
        nodes = _without_chains(nodes)
    numbers: dict[TreeNode | None, int] = dict(zip(nodes, count()))
    rows = [_TreeRow(node, numbers[node], numbers.get(node.inside), separator.join(node.path), nodes[0]) for node in nodes]
    return spec.of(rows, columns=spec.columns[: 4 + 3 * measures])


def _tree(whole: str, measures: int, leaves: Iterable[tuple[Path, Sequence[Quantity]]]) -> list[TreeNode]:
    root = TreeNode(whole, (), None, [0] * measures)
    for path, amounts in leaves:
        node = root
        node.add(amounts)
        for label in path if len(path) <= MAX_DEPTH else (*path[: MAX_DEPTH - 1], "/".join(path[MAX_DEPTH - 1 :])):
            node = node.child(label)
            node.add(amounts)
    nodes = list(_parents_first(root))
    if len(nodes) > MAX_NODES:
        _leave_out_smallest(root, nodes)
        nodes = list(_parents_first(root))
    return nodes


def _parents_first(root: TreeNode) -> Iterator[TreeNode]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        largest_first = sorted(node.children.values(), key=lambda child: (child.known[-1], *child.known), reverse=True)
        waiting += reversed(largest_first)


def _without_chains(nodes: Sequence[TreeNode]) -> list[TreeNode]:
    """Return the nodes, parents first, without those that are all of the node around them, which then has both labels."""
    stands_for: dict[TreeNode, TreeNode] = {}
    kept = []
    for node in nodes:
        around = stands_for.get(node.inside, node.inside) if node.inside is not None else None
        is_all = around is not None and len(around.children) == 1 and node.known == around.known
        if is_all and around is not None and around.inside is not None:
            around.label, around.path, around.children = f"{around.label}/{node.label}", node.path, node.children
            stands_for[node] = around
        else:
            node.inside = around
            kept.append(node)
    return kept


def _leave_out_smallest(root: TreeNode, nodes: Sequence[TreeNode]) -> None:
    """Join, in each node, the children that have the smallest shares of all measures.

    The share of a child is at most that of its parent, so the children of a node that stays out are out too.
    """

    def share(node: TreeNode) -> float:
        return max((part / whole for part, whole in zip(node.known, root.known, strict=True) if whole), default=0.0)

    ranked = sorted(nodes, key=lambda node: (-share(node), len(node.path)))
    kept = set(ranked[:MAX_NODES])
    joined = Counter(node.inside for node in ranked[MAX_NODES:] if node.inside in kept)
    for node in ranked[MAX_NODES:]:
        parent = node.inside
        if parent is not None and parent in joined:
            del parent.children[node.label]
            rest = parent.child(f"({joined[parent]:,} smaller)")
            rest.add(node.sums)
