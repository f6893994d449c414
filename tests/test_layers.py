"""Direction of imports: text, meaning, questions, output. A layer may import only the layers that the table names."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import hlo_inspect

PACKAGE = Path(hlo_inspect.__file__).parent
ROOT = "hlo_inspect"

# part of the package -> the parts before it that it may import; its own modules it may always
LAYERS: dict[str, tuple[str, ...]] = {
    "figure": (),
    "lazy_pattern": (),
    "errors": (),
    "user_patterns": ("errors",),
    "remote_listings": (),
    "remote_servers": (),
    "remote_files": ("errors", "remote_listings", "remote_servers"),
    "atomic_files": ("errors", "remote_files"),
    "request": ("errors", "remote_servers"),
    "version": (),
    "registry": (),
    "configs": ("errors",),
    "config_files": (),
    "toml_configs": ("errors", "configs", "config_files"),
    "native": (),
    "hlo": ("errors", "remote_files", "native"),
    "profiler": ("errors", "hlo"),
    "workloads": ("errors", "hlo"),
    "worker_process": (),
    "xla_worker": ("worker_process",),
    "xla": ("errors", "hlo", "profiler", "worker_process", "xla_worker"),
    "graph": ("errors", "native", "hlo"),
    "optimizer": ("errors", "hlo", "graph"),
    "analysis": ("errors", "request", "configs", "hlo", "profiler", "graph", "optimizer"),
    "report.rows_on_demand": (),
    "report.displayable": (),
    "report.table": ("errors", "report.rows_on_demand", "report.displayable"),  # lazy rows, until a report makes them
    "report.table_spec": ("report.rows_on_demand", "report.table"),
    "report.model": ("errors", "report.table", "report.displayable"),
    "report.finding_groups": ("report.model",),
    "report.rule_page": ("errors", "report.model"),
    "report.units": ("errors", "report.model", "report.table"),
    "report.facts": ("errors", "report.model", "report.table"),
    "report.faults": ("errors", "report.model", "report.table"),
    "findings": (
        "errors",
        "registry",
        "configs",
        "hlo",
        "workloads",
        "graph",
        "optimizer",
        "analysis",
        "report.model",
        "report.rule_page",
        "report.table",
        "report.units",
    ),
    "export": ("errors", "atomic_files", "request", "hlo", "workloads", "graph", "analysis"),
    "passes": (
        "errors",
        "registry",
        "configs",
        "hlo",
        "profiler",
        "workloads",
        "graph",
        "optimizer",
        "analysis",
        "export",
        "findings",
        "report.model",
        "report.table",
        "report.units",
        "report.table_spec",
    ),
    "compare": (
        "errors",
        "version",
        "hlo",
        "workloads",
        "export",
        "graph",
        "optimizer",
        "analysis",
        "findings",
        "passes",
        "report.model",
        "report.table",
        "report.table_spec",
        "report.units",
        "report.facts",
    ),
    "report.cells": ("errors", "report.model", "report.table", "report.units"),
    "report.filters": ("errors", "user_patterns", "report.model", "report.table", "report.units", "report.cells"),
    "checks": (
        "errors",
        "request",
        "configs",
        "toml_configs",
        "hlo",
        "findings",
        "passes",
        "compare",
        "report.model",
        "report.finding_groups",
        "report.rule_page",
        "report.table",
        "report.table_spec",
        "report.units",
        "report.facts",
        "report.faults",
        "report.cells",
        "report.filters",
    ),
    "report": (
        "errors",
        "version",
        "report.model",
        "report.finding_groups",
        "report.rule_page",
        "report.table",
        "report.table_spec",
        "report.units",
        "report.facts",
        "report.faults",
        "report.cells",
        "report.filters",
    ),
    "compiler": ("errors", "worker_process", "hlo", "analysis"),
    "remedies": ("errors", "hlo", "graph", "analysis", "compiler", "report.model", "report.table", "report.table_spec"),
    "inspection": (
        "errors",
        "user_patterns",
        "worker_process",
        "compiler",
        "remedies",
        "version",
        "export",
        "request",
        "remote_servers",
        "hlo",
        "profiler",
        "workloads",
        "xla",
        "graph",
        "analysis",
        "findings",
        "passes",
        "compare",
        "report.model",
        "report.table",
        "report.table_spec",
        "report.facts",
    ),
    "bisection": (
        "errors",
        "request",
        "compiler",
        "hlo",
        "passes",
        "checks",
        "inspection",
        "report.model",
        "report.table",
        "report.table_spec",
        "report.units",
        "report.facts",
    ),
    "api": ("errors", "request", "hlo", "passes", "inspection", "report.model", "report.table", "report.displayable", "report"),
    "api_compile": ("errors", "request", "worker_process", "compiler", "inspection", "report.model"),
    "fleet": (
        "errors",
        "remote_files",
        "atomic_files",
        "request",
        "version",
        "configs",
        "hlo",
        "analysis",
        "passes",
        "inspection",
        "report.model",
        "report.table",
        "report.table_spec",
        "report.facts",
    ),
    "watching": (
        "errors",
        "request",
        "worker_process",
        "hlo",
        "profiler",
        "xla",
        "xla_worker",
        "passes",
        "compare",
        "checks",
        "inspection",
        "fleet",
        "report",
        "report.model",
        "report.table",
        "report.units",
    ),
    "api_watch": ("errors", "request", "checks", "watching"),
    "": ("errors", "version", "api", "api_compile", "api_watch", "report.model", "report.table"),
    "testing": (
        "errors",
        "atomic_files",
        "request",
        "hlo",
        "passes",
        "findings",
        "checks",
        "report",
        "report.model",
        "report.table",
        "report.facts",
        "inspection",
        "api",
        "api_watch",
    ),
    "agents": ("errors", "worker_process", "remote_files", "version", "configs", "config_files"),
    "cli": (
        "errors",
        "worker_process",
        "compiler",
        "atomic_files",
        "remote_files",
        "remote_servers",
        "request",
        "version",
        "native",
        "configs",
        "config_files",
        "passes",
        "findings",
        "compare",
        "checks",
        "report",
        "report.units",
        "report.model",
        "report.table",
        "report.facts",
        "report.faults",
        "inspection",
        "bisection",
        "fleet",
        "agents",
        "api",
    ),
    "__main__": ("cli",),
}

OPEN_TO_ALL = frozenset({"lazy_pattern", "figure"})

FACES = {"optimizer": "hlo_inspect.optimizer.overview"}
"""Public module of each part that hides its other modules."""

# A module or folder of `analysis` may import those of its own group and of the groups before it.
ANALYSIS: tuple[tuple[str, ...], ...] = (
    ("provenance", "hardware", "hardware_figures", "target_files", "tpu_marks"),
    ("devices", "collectives"),  # the mesh is found from the groups of collectives, which are of devices
    ("loop_copies", "host_callbacks", "merged_recomputation", "named_gradients", "fusion_contents", "state_savings"),
    ("cost",),
    ("phases",),
    ("memory",),
    ("time",),
    ("program", "alpa_costs", "compiler_warnings", "lowered_shardings", "reshards"),
    ("module_analyses",),
    ("program_outline",),
    ("context",),
    ("pass_history",),
)

# the same of the modules and folders of `hlo`
HLO: tuple[tuple[str, ...], ...] = (
    ("tokens", "opcodes", "wants", "columns"),
    ("collective_kinds", "values"),
    ("rows", "instruction"),
    ("module",),
    ("malformed_rows",),
    ("read",),
    ("pasted",),
    ("input", "settings"),
)

# third-party package -> the parts that may import it when they are imported themselves
AT_ONCE = {"click": ("cli",), "yaml": ("configs",), "pytest": ("testing",)}
WHEN_USED = {
    *("aiohttp", "distributed", "duckdb", "fsspec", "jax", "jinja2", "markupsafe", "numpy", "pandas", "pygraphviz", "rich"),
    *("anyio", "compression", "mcp", "zstandard"),  # `compression` is in the library of Python 3.14
}

MODULES = {
    ".".join((ROOT, *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

EXPLORER = ("errors", "request", "hlo", "graph", "analysis", "passes", "report.table", "report.units", "report", "inspection")
"""Layers that the extension of Model Explorer may import. Nothing imports the extension."""
EXPLORER_MODULES = {f"{ROOT}_explorer.{path.stem}": path for path in sorted(PACKAGE.with_name(f"{ROOT}_explorer").glob("*.py"))}


def layer_of(module: str) -> str:
    """Return the layer of the table that a module belongs to."""
    inside = module.removeprefix(ROOT).removeprefix(".")
    return inside if inside in LAYERS else inside.partition(".")[0]


def group_member(package: str, module: str) -> str:
    """Return the module or folder of a package that a module belongs to; empty if it is outside of the package."""
    inside = module.removeprefix(f"{ROOT}.{package}")
    return inside[1:].partition(".")[0] if module.startswith(f"{ROOT}.{package}.") else ""


def runs_later(node: ast.AST) -> bool:
    """Return True for a function, whose body runs later, and for a block that only type checkers read."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
        isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )


@cache
def imports(module: str) -> tuple[tuple[str, bool], ...]:
    """Return the imports of a module, each with True if it happens when the module is imported."""
    tree = ast.parse((MODULES | EXPLORER_MODULES)[module].read_text(encoding="utf-8"))
    late = {id(inner) for node in ast.walk(tree) if runs_later(node) for inner in ast.walk(node)}
    imported = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported += [(alias.name, id(node) not in late) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports by a relative name"
            of_module = [f"{node.module}.{alias.name}" for alias in node.names]
            imported += [(name if name in MODULES else str(node.module), id(node) not in late) for name in of_module]
    return tuple(dict.fromkeys(imported))


@cache
def internal_imports(module: str) -> tuple[str, ...]:
    return tuple(name for name, _ in imports(module) if name.partition(".")[0] == ROOT)


def packages_of(module: str) -> Iterator[str]:
    """Yield the packages that a module is in."""
    parts = module.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def test_every_module_has_a_layer() -> None:
    assert {module for module in MODULES if layer_of(module) not in LAYERS} == set()
    for package, order in (("analysis", ANALYSIS), ("hlo", HLO)):
        assert {group_member(package, module) for module in MODULES} - {""} == {name for group in order for name in group}
    assert {layer for layer in LAYERS if not any(layer_of(module) == layer for module in MODULES)} == set()


def test_a_layer_may_import_only_earlier_layers() -> None:
    order = list(LAYERS)
    assert all(order.index(before) < order.index(layer) for layer, allowed in LAYERS.items() for before in allowed)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_its_allowed_layers(layer: str) -> None:
    wrong = {
        (module, name)
        for module in MODULES
        if layer_of(module) == layer
        for name in internal_imports(module)
        if layer_of(name) not in {layer, *OPEN_TO_ALL, *LAYERS[layer]}
    }
    assert wrong == set()


def test_the_extension_of_model_explorer_imports_only_its_allowed_layers() -> None:
    """Its graphs are made without Model Explorer."""
    assert all(layer in LAYERS for layer in EXPLORER)
    layers = {layer_of(name) for module in EXPLORER_MODULES for name in internal_imports(module)}
    assert layers - OPEN_TO_ALL == {*EXPLORER}
    importing = {module for module in EXPLORER_MODULES for name, _ in imports(module) if name.startswith("model_explorer")}
    assert importing == {"hlo_inspect_explorer.main"}


@pytest.mark.parametrize("layer", FACES)
def test_other_layers_import_only_the_public_module_of_a_layer(layer: str) -> None:
    reached = {
        name for module in MODULES if layer_of(module) != layer for name in internal_imports(module) if layer_of(name) == layer
    }
    assert reached == {FACES[layer]}


@pytest.mark.parametrize(("package", "order"), [("analysis", ANALYSIS), ("hlo", HLO)])
def test_imports_within_a_package_go_one_way(package: str, order: tuple[tuple[str, ...], ...]) -> None:
    group = {name: number for number, names in enumerate(order) for name in names}
    wrong = {
        (module, name)
        for module in MODULES
        for name in internal_imports(module)
        if (user := group_member(package, module)) and (used := group_member(package, name)) and group[user] < group[used]
    }
    assert wrong == set()


def test_imports_have_no_cycles() -> None:
    """Imports in functions and imports for type checkers count too.

    A package stands for its `__init__`, which runs before its modules.
    """

    def imported(module: str) -> set[str]:
        names = {name for name in internal_imports(module) if name in MODULES}
        packages = {package for name in names for package in packages_of(name)}
        return (names | packages) - {module, *packages_of(module)} | (names & set(packages_of(module)))

    graph = {module: imported(module) for module in MODULES}

    def reached(start: str) -> set[str]:
        modules: set[str] = set()
        todo = list(graph[start])
        while todo:
            module = todo.pop()
            if module not in modules:
                modules.add(module)
                todo += graph[module]
        return modules

    assert {module for module in MODULES if module in reached(module)} == set()


def test_no_two_classes_have_the_same_name() -> None:
    classes = Counter(
        node.name
        for path in MODULES.values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in classes.items() if count > 1} == set()


def test_libraries_are_imported_only_by_their_layers_or_lazily() -> None:
    wrong = set()
    for module in MODULES:
        for name, at_once in imports(module):
            top = name.partition(".")[0]
            if top == ROOT or top in sys.stdlib_module_names:
                continue
            if not (layer_of(module) in AT_ONCE.get(top, ()) or (not at_once and top in WHEN_USED)):
                wrong.add((module, name))
    assert wrong == set()


@pytest.mark.parametrize(
    ("module", "absent"),
    [("hlo_inspect", {"click", "rich", "yaml"}), ("hlo_inspect.cli.main", {"rich", "yaml"})],
)
def test_importing_the_package_does_not_import_libraries_yet(module: str, absent: set[str]) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    path = {"PYTHONPATH": str(PACKAGE.parent)}
    loaded = subprocess.run(
        [sys.executable, "-c", program], env=path, capture_output=True, text=True, check=True
    ).stdout.split()
    assert module in loaded
    assert absent.intersection(loaded) == set()
