"""The module that Model Explorer loads: an adapter makes graphs of HLO, a provider of node data colours them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from model_explorer import Adapter, AdapterMetadata, NodeDataProvider, NodeDataProviderMetadata, config_editor
from model_explorer import graph_builder as graphs
from model_explorer import node_data_builder as data
from model_explorer.node_data_provider import GetConfigEditorsResult, NodeDataProviderFilter, NodeDataProviderResult

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.hardware import profile_names
from hlo_inspect.analysis.provenance import printed
from hlo_inspect.errors import HloInspectError, printable
from hlo_inspect.figure import Figure, Quantity, least
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.passes.show.show_tables import shape_text
from hlo_inspect.report.formats.graphs import COLORS
from hlo_inspect.report.table import Unit
from hlo_inspect.report.units import format_value
from hlo_inspect.request import Request
from hlo_inspect_explorer.layers import LayeredGraph, Node, find_graphs, node_id

ADAPTER, FIGURES = "hlo_inspect", "hlo_inspect_figures"
ENDINGS = ["hlo", "txt", "log", "gz", "bz2", "xz", "zst"]
_GRADIENT = [data.GradientItem(0, "#fff7ec"), data.GradientItem(0.5, "#fdbb84"), data.GradientItem(1, "#d7301f")]


_Figure = tuple[str, Unit, dict[str, Quantity]]
"""A figure of all runs of each kernel in one step: name, unit, and values by nodes."""


class _Module:
    """A module with its graphs by their ids: its name for the entry, computations below it."""

    def __init__(self, name: str, context: Context) -> None:
        first, *others = find_graphs(context)
        self.name, self.context = name, context
        self.graphs = {name: first, **{f"{name}/{printable(graph.computation)}": graph for graph in others}}
        self._ids = {graph.computation: graph_id for graph_id, graph in self.graphs.items()}
        self.figures = _figures(context)

    def graph(self, name: str) -> graphs.Graph:
        """Return a graph as Model Explorer has it."""
        graph, runs = self.graphs[name], self.context.call_graph.runs
        about = {
            layer: {"computation": printable(computation), "runs": format_value(runs(computation), "count")}
            for layer, computation in [("", graph.computation), *graph.layers.items()]
        }
        return graphs.Graph(name, [self._node(node) for node in graph.nodes], groupNodeAttributes=about)

    def _node(self, node: Node) -> graphs.GraphNode:
        view, row, key = node.view, node.row, node_id(node.view, node.row)
        labels, phase = self.context.labels_of(view, row), self.context.phase_of(view, row)
        texts = {"opcode": view.opcodes[row], "phase": phase, "op_name": labels.op_name, "source": printed(labels.source)}
        texts["line"] = str(view.lines[row])
        texts |= {name: format_value(values[key], unit) for name, unit, values in self.figures if key in values}
        return graphs.GraphNode(
            key,
            printable(view.names[row]),
            node.layer,
            subgraphIds=[self._ids[computation] for computation in node.calls if computation in self._ids],
            attrs=[graphs.KeyValue(name, printable(text)) for name, text in texts.items() if text],
            incomingEdges=[graphs.IncomingEdge(source, targetNodeInputId=str(number)) for number, source in node.edges],
            outputsMetadata=[graphs.MetadataItem("0", [graphs.KeyValue("shape", shape_text(view.shapes[row]))])],
            style=graphs.GraphNodeStyle(borderColor=COLORS[phase][1]),
        )

    def node_data(self, graph: LayeredGraph) -> list[data.GraphNodeData]:
        """Return phases with their colours, and each figure with a gradient: of unknown values the lower bounds but 0."""
        phases = {node_id(node.view, node.row): self.context.phase_of(node.view, node.row) for node in graph.nodes}
        results = {key: data.NodeDataResult(phase, COLORS[phase][0]) for key, phase in phases.items()}
        colored = [data.GraphNodeData(results, "phase")]
        for name, unit, values in self.figures:
            factor, suffix = (1e6, ", µs") if unit == "seconds" else (1, "")
            shown = {k: v for k, v in values.items() if k in phases and (least(v) or not isinstance(v, Figure))}
            suffix += ", lower bounds" if any(isinstance(value, Figure) for value in shown.values()) else ""
            results = {key: data.NodeDataResult(least(value) * factor) for key, value in shown.items()}
            colored.append(data.GraphNodeData(results, name + suffix, gradient=_GRADIENT))
        return colored


def _figures(context: Context) -> list[_Figure]:
    """Return the figures; Model Explorer shows the last one first. Times are those in a scheduled step, else bounds."""
    costings, profile = context.on_machine.costings, context.on_machine.profile
    costs = [(node_id(kernel.view, kernel.row), cost) for kernels, cost in costings for kernel in kernels]
    times = {key: time.bound if time.in_step is None else time.in_step for key, cost in costs if (time := cost.time)}
    figures: list[_Figure] = [
        ("FLOPs", "flops", {key: cost.flops for key, cost in costs}),
        ("bytes", "bytes", {key: cost.size for key, cost in costs}),
    ]
    return figures if profile is None else [*figures, (f"time on {profile.name}", "seconds", times)]


def _read_modules(path: str, profile: str | None = None) -> list[_Module]:
    """Read a file. Names of several modules end with numbers. Raise InputError if it is unreadable or holds none."""
    contexts: list[Context] = []
    with Inspection(Request(passes="top", profile=profile)) as inspection:
        inspection.set_report_sink(lambda _, context: contexts.append(context))
        list(inspection.reports(path))
    numbers = [f" #{number}" if len(contexts) > 1 else "" for number in range(1, len(contexts) + 1)]
    return [_Module(printable(context.module.name) + n, context) for n, context in zip(numbers, contexts, strict=True)]


class HloAdapter(Adapter):  # type: ignore[misc]  # the package has no types
    """Adapter of HLO: a collection of graphs for each module of a file."""

    metadata = AdapterMetadata(ADAPTER, "HLO (hlo-inspect)", "Graphs of XLA's HLO text", fileExts=ENDINGS)

    def convert(self, model_path: str, _settings: object) -> dict[str, object]:
        """Return the graphs of a file. Raise InputError if it is unreadable or holds no module."""
        modules = {module.name: [module.graph(name) for name in module.graphs] for module in _read_modules(model_path)}
        return {"graphCollections": [graphs.GraphCollection(name, content) for name, content in modules.items()]}


class HloFigures(NodeDataProvider):  # type: ignore[misc]
    """Provider of figures as node data, on the hardware profile that the user chooses."""

    metadata = NodeDataProviderMetadata(
        FIGURES, "HLO figures", "Phases; time, bytes, FLOPs", filter=NodeDataProviderFilter(None, [ADAPTER])
    )

    def get_config_editors(self, **_: str) -> object:
        """Return the choice of a hardware profile."""
        options = [config_editor.OptionItem(name, name or "recognized from the dump") for name in ("", *profile_names())]
        editor = config_editor.DropDownConfigEditor(id="profile", label="Hardware profile", defaultValue="", options=options)
        return GetConfigEditorsResult([editor])

    def run(self, *, model_path: str, graph_id: str, config_values: Mapping[str, Any], **_: object) -> object:
        """Return the figures of a graph's nodes, or why there are none."""
        try:
            for module in _read_modules(model_path, config_values.get("profile") or None):
                if graph_id in module.graphs:
                    return NodeDataProviderResult(module.node_data(module.graphs[graph_id]))
        except HloInspectError as error:
            return NodeDataProviderResult(error=str(error))
        return NodeDataProviderResult(error=f"{graph_id} is no graph of {model_path}; open the file again")
