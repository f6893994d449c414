"""Read the graph of the values of one step from the rows of its computations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hlo_inspect.graph.slices import rendezvous
from hlo_inspect.graph.value_graph import (
    COLLECTIVE,
    KINDS,
    MOVES,
    PRODUCT,
    SCALAR,
    BodyTemplate,
    BodyTemplates,
    CallFrame,
    SlicedValue,
    Value,
    ValueGraph,
    are_nodes,
    is_computing,
    nodes_in,
)
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.opcodes import ASYNC_ENDS, ELEMENTWISE, STARTING_COLLECTIVES, TABLE, is_marker, opcodes_that_are
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape

MAX_COPIES = 3
"""Read each call of a computation until this multiple of the module's rows is read."""
MAX_DEPTH = 400


def read_values(views: Views, computation: str) -> ValueGraph:
    """Read the values of one run of a computation whose parameters are the inputs."""
    reader = _ValueReader(views)
    reader.read(computation)
    return reader.graph


class _ValueReader:
    def __init__(self, views: Views) -> None:
        self.graph = ValueGraph()
        self._views = views
        self._templates = BodyTemplates(views.classes)
        self._left = MAX_COPIES * views.row_count + 1000
        self._stack: list[CallFrame] = []
        self._open_names: set[str] = set()
        self._targets: dict[str, tuple[bool, bool]] = {}
        self._sends: dict[str, int] = {}  # the nodes of sends and recvs, by the name of the place where they meet
        self._receives: list[tuple[str, int]] = []

    def read(self, computation: str) -> None:
        self._enter(computation, None, None)
        while self._stack:
            frame = self._stack[-1]
            if self._advance(frame):
                self._leave(frame)
        self._join_sends()

    # -- calls ----------------------------------------------------------------------------------------------------------

    def _enter(self, name: str, arguments: Sequence[Value] | None, caller: tuple[int, int] | None) -> bool:
        """Start a call. Return False if it is undefined, recursive, too deep or exceeds the limit of rows."""
        computation = self._views.computations.get(name)
        if computation is None or name in self._open_names or len(self._stack) >= MAX_DEPTH:
            return False
        if len(computation.rows) > self._left:
            self.graph.is_whole = False
            return False
        self._left -= len(computation.rows)
        self._stack.append(self._new_frame(name, arguments, caller))
        self._open_names.add(name)
        return True

    def _copy(self, name: str, arguments: Sequence[Value], caller: tuple[int, int]) -> CallFrame | None:
        """Make a call from the template of its computation. Return None if there is none or a limit is reached."""
        if not are_nodes(arguments) or name in self._open_names or len(self._stack) >= MAX_DEPTH:
            return None
        template = self._templates.find(name, len(arguments))
        if template is None or len(template.values) > self._left:
            return None
        self._left -= len(template.values)
        frame = self._new_frame(name, arguments, caller, template)
        self.graph.add_body(frame, template, arguments)
        return frame

    def _new_frame(
        self,
        name: str,
        arguments: Sequence[Value] | None,
        caller: tuple[int, int] | None,
        template: BodyTemplate | None = None,
    ) -> CallFrame:
        graph = self.graph
        values: list[Value] = [] if template is not None else [None] * len(self._views.for_computation(name).rows)
        frame = CallFrame(len(graph.frames), name, self._views, arguments, caller, template, len(graph.operands), values)
        graph.frames.append(frame)
        graph.frames_by_name.setdefault(name, []).append(frame)
        if caller is not None:
            graph.frames[caller[0]].called.setdefault(caller[1], []).append(frame.number)
        return frame

    def _leave(self, frame: CallFrame) -> None:
        self._stack.pop()
        self._open_names.discard(frame.name)
        frame.stop = len(self.graph.operands)
        self._templates.learn(frame, self.graph)
        if self._stack:
            self._stack[-1].results.append(frame.returned)

    def _advance(self, frame: CallFrame) -> bool:
        """Read on to the next call. Return True at the end of the computation."""
        view, values = frame.view, frame.values
        opcodes = view.opcodes
        graph = self.graph
        all_operands, kinds, frames, rows = graph.operands, graph.kinds, graph.frame_of, graph.row_of
        number, count = frame.number, len(opcodes)
        operand_rows = view.operand_rows
        row = frame.row
        while row < count:
            if frame.pending is not None:
                if not self._start_next_call(frame, row):
                    return False
                row += 1
                frame.row = row
                continue
            opcode = opcodes[row]
            method = _METHODS.get(opcode)
            if method is not None:
                frame.row = row
                values[row] = method(self, frame, row)
                if frame.pending is None:
                    row += 1
                continue
            made_of: list[int] = []
            for source in operand_rows(row):
                value = values[source] if source is not None else None
                if type(value) is int:
                    made_of.append(value)
                elif value is not None and source is not None:
                    made_of += graph.whole(frame, value, source)
            values[row] = len(all_operands)
            all_operands.append(made_of)
            kinds.append(KINDS.get(opcode, 0))
            frames.append(number)
            rows.append(row)
            row += 1
        return True

    def _start_next_call(self, frame: CallFrame, row: int) -> bool:
        """Start the next call of the instruction. Return True if all are done; its value is then set."""
        pending = frame.pending or []
        while len(frame.results) < len(pending):
            name, arguments = pending[len(frame.results)]
            if self._enter(name, arguments, (frame.number, row)):
                return False
            frame.results.append(self.graph.new(frame, row, self.graph.made_of(frame, row)))  # not read: one node
        results, frame.pending, frame.results = frame.results, None, []
        opcode = frame.view.opcodes[row]
        if opcode == "while":
            self._close_loop(frame.values[row], results[0])
        elif opcode == "conditional":
            frame.values[row] = self._merge_branches(frame, row, results)
        else:
            frame.values[row] = results[0]
        return True

    # -- values that are passed on --------------------------------------------------------------------------------------

    def _parameter(self, frame: CallFrame, row: int) -> Value:
        if frame.arguments is None:
            return self.graph.new_inputs(frame, row, frame.view.shapes[row])
        number = frame.view.parameter_number(row)
        return frame.arguments[number] if number is not None and number < len(frame.arguments) else None

    def _get_element(self, frame: CallFrame, row: int) -> Value:
        view = frame.view
        whole, number = frame.operand(row, 0), view.element_number(row)
        if not isinstance(whole, tuple):
            return whole
        return whole[number] if number is not None and number < len(whole) else None

    def _tuple(self, frame: CallFrame, row: int) -> Value:
        return tuple(frame.operands(row))

    def _pass_operands(self, frame: CallFrame, row: int) -> Value:
        values = frame.operands(row)
        return values[0] if len(values) == 1 else tuple(values)

    def _pass_first_operand(self, frame: CallFrame, row: int) -> Value:
        return frame.operand(row, 0)

    def _bitcast(self, frame: CallFrame, row: int) -> Value:
        value = self._pass_first_operand(frame, row)
        if isinstance(value, SlicedValue):
            shape = frame.view.shapes[row]
            if not isinstance(shape, ArrayShape) or shape.dimensions[:1] != (value.stop,):
                if value.joined is None:
                    value.joined = self.graph.new(frame, row, list(value.nodes), MOVES)
                return value.joined
        return value

    # -- calls, loops and branches --------------------------------------------------------------------------------------

    def _call(self, frame: CallFrame, row: int) -> Value:
        """Call the computation of a fusion, a call, or the start of an asynchronous computation."""
        printed = frame.view.printed_fusions.get(row)
        if printed is not None:
            name: str | None = printed[1]
        else:
            name = next((callee.name for callee in frame.view.called_at(row) if callee.role in {"run", "fused"}), None)
        if name is None:
            return self._make_node(frame, row)
        arguments = frame.operands(row)
        copied = self._copy(name, arguments, (frame.number, row))
        if copied is None:
            frame.pending = [(name, arguments)]
            return None
        return copied.returned

    def _while(self, frame: CallFrame, row: int) -> Value:
        body = [callee.name for callee in frame.view.called_at(row) if callee.role == "body"]
        initial = self._pass_first_operand(frame, row)
        if not body:
            return self._make_node(frame, row)
        if isinstance(initial, tuple):
            state: Value = tuple([self.graph.new(frame, row, nodes_in(value), MOVES) for value in initial])
        else:
            state = self.graph.new(frame, row, nodes_in(initial), MOVES)
        frame.pending = [(body[0], (state,))]
        return state

    def _close_loop(self, state: Value, result: Value) -> None:
        """Add the result of the body to the operands of the loop's state."""
        operands = self.graph.operands
        self.graph.is_ordered = False
        if isinstance(state, tuple) and isinstance(result, tuple):
            for element, new in zip(state, result, strict=False):
                if isinstance(element, int) and new != element:
                    operands[element] += nodes_in(new)
            return
        for element in nodes_in(state):
            operands[element] += self.graph.whole(self._stack[-1], result, None)

    def _conditional(self, frame: CallFrame, row: int) -> Value:
        names = [(callee.attribute, callee.name) for callee in frame.view.called_at(row) if callee.role == "branch"]
        arguments = frame.operands(row)
        if not names or len(arguments) != len(names) + 1:
            return self._make_node(frame, row)
        frame.pending = [(name, (argument,)) for (_, name), argument in zip(names, arguments[1:], strict=True)]
        return None

    def _merge_branches(self, frame: CallFrame, row: int, results: Sequence[Value]) -> Value:
        """Return the value of a conditional. Each element is made of the branches' elements and of the condition."""
        chosen = nodes_in(frame.operand(row, 0))
        tuples = [result for result in results if isinstance(result, tuple)]
        if len(tuples) == len(results) and len({len(result) for result in tuples}) == 1:
            return tuple(
                [
                    self.graph.new(frame, row, chosen + [node for element in elements for node in nodes_in(element)], MOVES)
                    for elements in zip(*tuples, strict=True)
                ]
            )
        return self.graph.new(frame, row, chosen + [node for result in results for node in nodes_in(result)], MOVES)

    # -- operations -----------------------------------------------------------------------------------------------------

    def _make_node(self, frame: CallFrame, row: int) -> Value:
        """Make one node of the whole operands."""
        return self.graph.new(frame, row, self.graph.made_of(frame, row), KINDS.get(frame.view.opcodes[row], 0))

    def _make_parts(self, frame: CallFrame, row: int) -> Value:
        """Make one node for each part if all sliced operands have the same parts; else one node for the whole."""
        view, values = frame.view, frame.values
        made_of: list[int] = []
        parts: list[SlicedValue] = []
        for source in view.operand_rows(row):
            value = values[source] if source is not None else None
            if type(value) is int:
                made_of.append(value)
            elif isinstance(value, SlicedValue):
                parts.append(value)
            elif value is not None:
                return self._make_node(frame, row)
        kind = KINDS.get(view.opcodes[row], 0)
        if not parts:
            return self.graph.new(frame, row, made_of, kind)
        first, size = parts[0], sum(len(array.nodes) for array in parts)
        shape = view.shapes[row]
        fits = isinstance(shape, ArrayShape) and shape.dimensions[:1] == (first.stop,)
        if not fits or any(array.starts != first.starts for array in parts) or size > self._left:
            return self._make_node(frame, row)
        self._left -= size
        columns = zip(*(array.nodes for array in parts), strict=True)
        nodes = [self.graph.new(frame, row, [*made_of, *column], kind) for column in columns]
        return SlicedValue(first.starts, nodes, first.stop)

    def _concatenate(self, frame: CallFrame, row: int) -> Value:
        view = frame.view
        values = frame.operands(row)
        is_array = len(values) > 1 and isinstance(view.shapes[row], ArrayShape)
        if not is_array or view.instruction_at(row).attr("dimensions") != (0,):
            return self._make_node(frame, row)
        starts, nodes, start = [], [], 0
        for number, (value, source) in enumerate(zip(values, view.operand_rows(row), strict=True)):
            operand = view.operand_shape(row, number)
            size = operand.dimensions[0] if isinstance(operand, ArrayShape) and operand.dimensions else None
            if size is None:
                return self._make_node(frame, row)
            starts.append(start)
            nodes.append(self.graph.new(frame, row, self.graph.whole(frame, value, source), MOVES))
            start += size
        return SlicedValue(starts, nodes, start)

    def _slice(self, frame: CallFrame, row: int) -> Value:
        whole = self._pass_first_operand(frame, row)
        ranges = frame.view.instruction_at(row).attr("slice") if isinstance(whole, SlicedValue) else None
        if not isinstance(whole, SlicedValue) or not ranges:
            return self._make_node(frame, row)
        low, high = ranges[0].start, ranges[0].limit
        return self.graph.new(frame, row, whole.overlapping(low, high), MOVES)

    def _collective(self, frame: CallFrame, row: int) -> Value:
        """Make a node for each operand, because a combined collective stands for several collectives."""
        view = frame.view
        is_wrapper = TABLE[view.opcodes[row]].is_wrapper or view.opcodes[row] == "async-start"
        if is_wrapper and view.called_at(row):
            return self._call(frame, row)
        if len(view.operand_rows(row)) == 1:
            return self._make_parts(frame, row)
        values = frame.operands(row)
        if "slice_sizes" in view.rows[row][3] or not values:  # a permute in place has offsets as operands
            return self._make_node(frame, row)
        kind, sources = KINDS.get(view.opcodes[row], 0), zip(values, view.operand_rows(row), strict=True)
        return tuple([self.graph.new(frame, row, self.graph.whole(frame, value, source), kind) for value, source in sources])

    def _custom_call(self, frame: CallFrame, row: int) -> Value:
        target = frame.view.instruction_at(row).attr("custom_call_target") or ""
        marks = self._targets.get(target)
        if marks is None:
            marks = self._targets[target] = (is_marker(target), is_computing(target))
        if marks[0] and frame.view.operand_rows(row):
            return self._pass_operands(frame, row)
        return self.graph.new(frame, row, self.graph.made_of(frame, row), PRODUCT if marks[1] else 0)

    def _dot(self, frame: CallFrame, row: int) -> Value:
        """Make a node of a dot: a product, unless an operand is a scalar that only scales the other."""
        view = frame.view
        is_scaled = any(map(_is_scalar, view.operand_shapes(row)))
        kind = 0 if is_scaled else PRODUCT | (SCALAR if _is_scalar(view.shapes[row]) else 0)
        return self.graph.new(frame, row, self.graph.made_of(frame, row), kind)

    # -- send and recv: TPU slices exchange arrays over the network of their hosts by such pairs ---------------------------

    def _send(self, frame: CallFrame, row: int) -> Value:
        node = self.graph.new(frame, row, nodes_in(self._pass_first_operand(frame, row)), COLLECTIVE | MOVES)
        meeting = rendezvous(frame.view.instruction_at(row))
        if meeting:
            self._sends[meeting] = node
        return node

    def _recv(self, frame: CallFrame, row: int) -> Value:
        node = self.graph.new(frame, row, [], COLLECTIVE | MOVES)
        self._receives.append((rendezvous(frame.view.instruction_at(row)), node))
        return node

    def _join_sends(self) -> None:
        """Add the array that a send sends to the operands of the array that its recv receives."""
        for meeting, node in self._receives:
            sent = self._sends.get(meeting)
            if sent is not None:
                self.graph.operands[node].append(sent)
                self.graph.is_ordered = self.graph.is_ordered and sent < node


def _is_scalar(shape: Shape | None) -> bool:
    return isinstance(shape, ArrayShape) and not shape.dimensions


_STARTS = tuple(name for name, info in TABLE.items() if info.half == "start" and not info.collective)
_COLLECTIVES = STARTING_COLLECTIVES - opcodes_that_are("exchange", "point-to-point")

_METHODS: dict[str, Callable[[_ValueReader, CallFrame, int], Value]] = {
    **dict.fromkeys(_STARTS, _ValueReader._call),
    **dict.fromkeys(ASYNC_ENDS, _ValueReader._pass_first_operand),
    **dict.fromkeys(_COLLECTIVES, _ValueReader._collective),
    "copy-start": _ValueReader._make_node,
    "dot": _ValueReader._dot,
    "add-dependency": _ValueReader._pass_first_operand,
    "after-all": lambda reader, frame, row: None,
    "domain": _ValueReader._pass_first_operand,
    "bitcast": _ValueReader._bitcast,
    "parameter": _ValueReader._parameter,
    "get-tuple-element": _ValueReader._get_element,
    "tuple": _ValueReader._tuple,
    "opt-barrier": _ValueReader._pass_operands,
    "fusion": _ValueReader._call,
    "call": _ValueReader._call,
    "while": _ValueReader._while,
    "conditional": _ValueReader._conditional,
    "concatenate": _ValueReader._concatenate,
    "slice": _ValueReader._slice,
    "custom-call": _ValueReader._custom_call,
    "send": _ValueReader._send,
    "recv": _ValueReader._recv,
}
for _name in ELEMENTWISE:
    _METHODS.setdefault(_name, _ValueReader._make_parts)
