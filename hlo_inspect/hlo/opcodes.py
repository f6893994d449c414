"""The opcodes of HLO text (one row of `_ROWS` each), sets of opcodes, and the custom calls that do no work.

The opcodes come from `HLO_OPCODE_LIST` (xla/hlo/ir/hlo_opcode.h) and its older versions. The kinds of attribute values are in
`values`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, cast, get_args

Role = Literal["run", "body", "condition", "branch", "fused", "applied", "custom"]
"""The role of a computation for its caller.

A computation can run once, as the body or the condition of a loop, or as a branch. It can also be fused into one kernel,
applied to elements (or to the values that a collective reduces), or run by a custom call.
"""

CalleeAttribute = Literal[
    "body", "branch_computations", "called_computations", "calls", "condition", "false_computation", "scatter",
    "select", "to_apply", "true_computation",
]  # fmt: skip
"""Attributes that name computations."""

AsyncHalf = Literal["", "start", "update", "done"]

Result = Literal["same", "element", "packing", "move", "part", "computed"]
"""The relation of a result to the operands. The result of an asynchronous start is the result of the whole operation.

* `same`: the value of the first operand, in another type, layout, shape or memory.
* `element`: an element of a tuple; `packing`: a tuple of all operands.
* `move`: all elements of the operands, in other places or more than once.
* `part`: elements of the first operand, all or some of them, in other places or on another device; `pad` adds a constant.
* `computed`: anything else.
"""

Trait = Literal[
    "flop",  # works element by element (`HloInstruction::IsOpElementwise`), and XLA counts one FLOP for each
    "transcendental",  # works element by element, and XLA counts one transcendental for each
    "elementwise",  # works element by element, and XLA counts nothing for it
    "commutative",  # has two operands whose order does not matter (`HloOpcodeIsBinaryCommutative`)
    "sum",  # adds its operands, with a sign
    "scale",  # multiplies or divides
    "choice",  # picks one of its operands for each element
    "product",  # sums products over dimensions: layers of a network, and the parts of their gradients
    "library",  # runs a routine of a library: a solver or a transform
    "reduction",  # reduces over elements, or over devices
    "marker",  # marks or orders values and computes nothing
    "device-number",  # returns the number of the device that runs the program
    "relayout",  # keeps the elements: in another order, shape or memory
    "block",  # copies whole blocks of memory
    "update",  # writes into its first operand
    "cheap",  # costs nothing if several fusions repeat it
    "collective",  # is one of `COLLECTIVE_KINDS`
    "point-to-point",  # is one of `POINT_TO_POINT`
    "global-ids",  # can have use_global_device_ids
    "resized",  # is a collective whose operands and result can differ in size
    "pairs",  # names senders and receivers (`source_target_pairs`) instead of groups
    "exchange",  # sends each device of the group another part of its operand
]  # fmt: skip

Sends = Literal["2(n-1)/n", "n-1", "(n-1)/n", "1", "<=1", "?"]
"""The bytes that one device of a group of n sends, by its operand bytes; `<=1` is an upper bound, `?` unknown.

A bandwidth-optimal algorithm sends as much: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
workstations", 2009. The bus-bandwidth factors in the PERFORMANCE.md of NVIDIA's nccl-tests are the same.
"""

Whole = Literal["operand", "result", "both", "?"]
"""The whole array of a collective: operand, result or both of a device; the other one is a part for each device of a group."""

_ROWS = """
# opcode           operands  result    traits, callees, spellings

# element by element: of one operand
abs                       1  computed  flop
acos                      1  computed  transcendental
acosh                     1  computed  transcendental
asin                      1  computed  transcendental
asinh                     1  computed  transcendental
atanh                     1  computed  transcendental
bitcast-convert           1  computed  flop
cbrt                      1  computed  transcendental
ceil                      1  computed  flop
convert                   1  same      flop
copy                      1  same      elementwise relayout block
cosh                      1  computed  transcendental
cosine                    1  computed  transcendental
count-leading-zeros       1  computed  flop
erf                       1  computed  transcendental
exponential               1  computed  transcendental written=exp
exponential-minus-one     1  computed  transcendental written=expm1
floor                     1  computed  flop
imag                      1  computed  flop
is-finite                 1  computed  flop
log                       1  computed  transcendental
log-plus-one              1  computed  transcendental written=log1p
logistic                  1  computed  transcendental
negate                    1  computed  flop sum
not                       1  computed  flop
popcnt                    1  computed  flop
real                      1  computed  flop
reduce-precision          1  same      flop
round-nearest-afz         1  computed  flop
round-nearest-even        1  computed  flop
rsqrt                     1  computed  transcendental
sign                      1  computed  flop
sine                      1  computed  transcendental
sinh                      1  computed  transcendental
sqrt                      1  computed  transcendental
tan                       1  computed  transcendental
tanh                      1  computed  transcendental
# element by element: of two or three operands
add                       2  computed  flop commutative sum written=+
and                       2  computed  flop commutative written=&
atan2                     2  computed  transcendental
clamp                     3  computed  flop choice
compare                   2  computed  flop
complex                   2  computed  flop
divide                    2  computed  flop scale written=/
maximum                   2  computed  flop commutative choice written=max
minimum                   2  computed  flop commutative choice written=min
mulhi                     2  computed  flop commutative
multiply                  2  computed  flop commutative scale written=*
or                        2  computed  flop commutative written=|
power                     2  computed  transcendental written=**
remainder                 2  computed  flop written=%
select                    3  computed  flop choice
shift-left                2  computed  flop
shift-right-arithmetic    2  computed  flop
shift-right-logical       2  computed  flop
stochastic-convert        2  computed  flop
subtract                  2  computed  flop sum written=-
xor                       2  computed  flop commutative written=^
# elements in another shape or place, parts of arrays, tuples
bitcast                   1  same      relayout cheap
broadcast                 1  move      cheap
concatenate               *  move      block
copy-done                 1  same
copy-start                1  same
dynamic-reshape           *  computed
dynamic-slice             *  part      block
dynamic-update-slice      *  move      block update
gather                    2  part
get-dimension-size        1  computed
get-tuple-element         1  element   cheap
pad                       2  part
reshape                   1  same      relayout cheap
reverse                   1  part
set-dimension-size        2  computed
slice                     1  part      block
transpose                 1  move      relayout
tuple                     *  packing   cheap
# without operands: inputs, numbers of devices, random numbers
constant                  0  computed  cheap
iota                      0  computed  cheap
parameter                 0  computed  cheap
partition-id              0  computed  device-number
replica-id                0  computed  device-number
rng                       *  computed
rng-bit-generator         *  computed
rng-get-and-update-state  0  computed
# marks on values, order of instructions
add-dependency            2  same      marker
after-all                 *  computed  marker
domain                    1  same      marker
opt-barrier               1  same      marker
trace                     1  computed
# collectives
all-reduce                *  computed  collective reduction global-ids to_apply=applied sends=2(n-1)/n whole=both
all-reduce-start          *  computed  collective reduction global-ids to_apply=applied
all-reduce-done           1  same      collective
cross-replica-sum         *  computed  collective reduction global-ids to_apply=applied now=all-reduce
all-gather                *  move      collective global-ids resized sends=n-1 whole=result
all-gather-start          *  move      collective global-ids resized
all-gather-done           1  same      collective
reduce-scatter            *  computed  collective reduction global-ids resized to_apply=applied sends=(n-1)/n whole=operand
all-reduce-scatter        *  computed  collective reduction global-ids resized to_apply=applied now=reduce-scatter
all-to-all                *  part      collective exchange sends=(n-1)/n whole=both
collective-permute        *  part      collective resized pairs sends=1 whole=both
collective-permute-start  *  part      collective resized pairs
collective-permute-done   1  same      collective
collective-broadcast      *  part      collective sends=1 whole=both
collective-reduce         *  computed  collective reduction global-ids to_apply=applied sends=1 whole=both
ragged-all-to-all         *  move      collective resized exchange sends=<=1
send                      2  computed  point-to-point
send-done                 1  computed  point-to-point
recv                      1  computed  point-to-point resized
recv-done                 1  same      point-to-point
# the host
infeed                    1  computed
outfeed                   2  computed
# calls of computations, and asynchronous halves of calls
async-done                1  same
async-start               *  computed  calls=run
async-update              *  same
call                      *  computed  to_apply=run
conditional               *  computed  true_computation=branch false_computation=branch branch_computations=branch
custom-call               *  computed  called_computations=custom calls=custom to_apply=custom
fusion                    *  computed  calls=fused
map                       *  computed  to_apply=applied
reduce                    *  computed  reduction to_apply=applied
reduce-window             *  computed  reduction to_apply=applied
scan                      *  computed  to_apply=applied
scatter                   *  computed  update to_apply=applied
select-and-scatter        3  computed  select=applied scatter=applied
sort                      *  computed  to_apply=applied
while                     1  computed  body=body condition=condition
# products, library routines, and opcodes of older versions
batch-norm-grad           5  computed
batch-norm-inference      5  computed
batch-norm-training       3  computed
bitcast-move              1  computed
cholesky                  1  computed  library
convolution               2  computed  product
dot                       *  computed  product
fft                       1  computed  library
ragged-dot                3  computed  product
scaled-dot                4  computed  product
topk                      1  computed
triangular-solve          2  computed  library
tuple-select              3  computed
"""
"""Rows of an opcode, the number of its operands (`*` if that varies), its result and its traits.

Attributes by which it calls computations follow, each with the role of these. `written=` is its spelling in formulas, `now=`
its current name. The row of a kind of collective has its `sends=` and `whole=`; `collective_kinds` has the formulas.
Collectives stand in the order in which reports list them.
"""


class Opcode(NamedTuple):
    """An opcode, or the short spelling of an asynchronous opcode (`reduce-scatter-start`).

    `operands`: their number, None if it varies. A `parameter` and a `constant` have none, because their parentheses hold a
    literal. `callees`: the attributes that name computations, each with its role.
    `collective`: the kind of collective that it is, starts or ends, such as `all-reduce` for `all-reduce-done`. Other opcodes
    have none, nor does `async-start`, whose computation holds the kind.
    `base`: the opcode without its asynchronous suffix `half`. `is_wrapper`: True for a short spelling. It means an
    `async-start`, `-update` or `-done` of a computation that holds only a `base`.
    `sends`, `whole`: the bytes and the whole array of a kind of collective; `?` for other opcodes.
    """

    name: str
    operands: int | None
    result: Result
    traits: frozenset[Trait]
    callees: Mapping[CalleeAttribute, Role]
    written: str
    collective: str
    base: str
    half: AsyncHalf
    is_wrapper: bool
    sends: Sends = "?"
    whole: Whole = "?"


_HALVES: tuple[AsyncHalf, ...] = ("start", "update", "done")
_SUFFIXES = tuple(f"-{half}" for half in _HALVES)
_OF_COLLECTIVES: frozenset[Trait] = frozenset({"collective", "point-to-point"})


def base_opcode(opcode: str) -> str:
    """Return the opcode without an asynchronous suffix: `all-gather` for `all-gather-start`."""
    return opcode.rpartition("-")[0] if opcode.endswith(_SUFFIXES) else opcode


def _records() -> Iterator[Opcode]:
    for line in _ROWS.splitlines():
        if not line or line.startswith("#"):
            continue
        name, operands, result, *words = line.split()
        base = base_opcode(name)
        values = dict(word.split("=", 1) for word in words if "=" in word)
        written, today = values.pop("written", name), values.pop("now", base)
        sends, whole = values.pop("sends", "?"), values.pop("whole", "?")
        traits = cast("frozenset[Trait]", frozenset(word for word in words if "=" not in word))
        yield Opcode(
            name,
            operands=None if operands == "*" else int(operands),
            result=cast("Result", result),
            traits=traits,
            callees=cast("dict[CalleeAttribute, Role]", values),
            written=written,
            collective=today if traits & _OF_COLLECTIVES else "",
            base=base,
            half=cast("AsyncHalf", name[len(base) + 1 :]),
            is_wrapper=False,
            sends=cast("Sends", sends),
            whole=cast("Whole", whole),
        )


def _short_spellings(opcodes: Mapping[str, Opcode]) -> Iterator[Opcode]:
    """Yield the spellings of asynchronous computations that hold one instruction.

    An opcode with its own start and done has no short spelling.
    """
    native = {opcode.base for opcode in opcodes.values() if opcode.half}
    for wrapped in opcodes.values():
        if wrapped.half or wrapped.name in native:
            continue
        for half in _HALVES:
            is_start = half == "start"
            yield Opcode(
                f"{wrapped.name}-{half}",
                operands={"start": wrapped.operands, "done": 1}.get(half),
                result=wrapped.result if is_start else "same",
                traits=wrapped.traits if is_start and wrapped.collective else frozenset(),
                callees=wrapped.callees if is_start else {},
                written=f"{wrapped.name}-{half}",
                collective=wrapped.collective,
                base=wrapped.base,
                half=half,
                is_wrapper=True,
            )


_BY_NAME = {opcode.name: opcode for opcode in _records()}

OPCODES = frozenset(_BY_NAME)
"""The opcodes of all versions, without short spellings of asynchronous opcodes."""

TABLE: Mapping[str, Opcode] = _BY_NAME | {opcode.name: opcode for opcode in _short_spellings(_BY_NAME)}
"""Every opcode that XLA has or had, short spellings of asynchronous opcodes included."""


_WITH_TRAITS = [opcode for opcode in TABLE.values() if opcode.traits]
_CALLING = [opcode for opcode in TABLE.values() if opcode.callees]


def opcodes_that_are(*traits: Trait) -> frozenset[str]:
    """Return the opcodes with one of these traits. Among short spellings, only starts of collectives have traits."""
    return frozenset(opcode.name for opcode in _WITH_TRAITS if not opcode.traits.isdisjoint(traits))


def opcodes_that_give(*results: Result) -> frozenset[str]:
    """Return the opcodes with one of these results, without asynchronous halves."""
    return frozenset(opcode.name for opcode in _BY_NAME.values() if opcode.result in results and not opcode.half)


def opcodes_that_call(*roles: Role) -> frozenset[str]:
    """Return the opcodes that call a computation in one of these roles."""
    return frozenset(opcode.name for opcode in _CALLING if not set(roles).isdisjoint(opcode.callees.values()))


def callee_roles(opcode: str) -> Mapping[CalleeAttribute, Role]:
    """Return the attributes by which an opcode calls computations, with the role of each; empty for an unknown opcode."""
    record = TABLE.get(opcode)
    return record.callees if record is not None else {}


COLLECTIVE_KINDS = tuple(dict.fromkeys(opcode.collective for opcode in TABLE.values() if "collective" in opcode.traits))
POINT_TO_POINT = tuple(dict.fromkeys(opcode.collective for opcode in TABLE.values() if "point-to-point" in opcode.traits))

LITERAL_OPCODES = frozenset({"constant", "parameter"})
"""Opcodes whose parentheses hold no operands."""

ASYNC_ENDS = frozenset(opcode.name for opcode in TABLE.values() if opcode.half in {"update", "done"})
"""Opcodes that only wait for the result of another instruction."""

STARTING_COLLECTIVES = frozenset(opcode.name for opcode in TABLE.values() if opcode.collective and opcode.half in {"", "start"})
"""Collectives; the start stands for an asynchronous pair."""

AFTER_COLLECTIVE_PASSES = frozenset(
    {"fusion", "all-reduce-start", "all-gather-start", "collective-permute-start", "async-start", "copy-start"}
)
"""Opcodes that XLA's passes make after those of collectives."""
ASYNCHRONOUS_ON_TPU = frozenset({"all-gather", "all-to-all", "collective-permute"})
"""Kinds of collectives with an asynchronous form on TPU; all kinds have one on GPU."""
ELEMENTWISE = opcodes_that_are("flop", "transcendental", "elementwise")
"""Opcodes that compute each element of the result from the same element of each operand."""

COMMUTATIVE = opcodes_that_are("commutative")
PRODUCTS = opcodes_that_are("product")
MARKERS = opcodes_that_are("marker")
DEVICE_NUMBERS = opcodes_that_are("device-number")
ADDING = (opcodes_that_are("sum") - {"negate"}) | {"map", "scatter", "call", "custom-call"}
"""Opcodes that add or subtract, or may call something that does."""

NAMING = opcodes_that_give("element", "packing") | {"bitcast"}
"""Opcodes that only name values, or parts of them."""

SLICES = opcodes_that_give("part") & opcodes_that_are("block")
"""Opcodes that copy a part of their first operand."""

MOVES = opcodes_that_give("move") - opcodes_that_are("collective")
"""Opcodes that put elements of their operands elsewhere, on one device."""

CONTROL_FLOW = frozenset(name for name in opcodes_that_call("run", "body", "condition", "branch") if not TABLE[name].half)
"""Opcodes that run other computations and do nothing else: calls, loops and conditionals."""

CALLEE_ATTRIBUTES: tuple[CalleeAttribute, ...] = get_args(CalleeAttribute)

CALLING_OPCODES = frozenset(
    opcode.name for opcode in TABLE.values() if opcode.callees or opcode.is_wrapper or opcode.base == "async"
)
"""Opcodes that can name a computation, all short spellings and `async-…` included."""


# -- custom calls that do no work: they state the layout or placement of a value, or mark a start or an end --------------------

# Sources: `xla/service/spmd/shardy/constants.h`, `xla/service/memory_annotations.h`, `xla/hlo/ir/hlo_instructions.h`,
# `xla/service/collective_ops_utils.h`, `xla/hlo/transforms/despecializer.cc`, `xla/service/memory_space_assignment/slice.h`;
# `transfer_with_static_ring` of transformers-neuronx.

_UNCHANGED = """
    AwsNeuronTransferWithStaticRing LayoutConstraint MoveToDevice MoveToHost SPMDFullToShardShape SPMDShardToFullShape Sharding
    annotate_device_placement pipeline_marker xla.sdy.FuncResultSharding xla.sdy.GlobalToLocalShape xla.sdy.LocalToGlobalShape
"""
UNCHANGED_TARGETS = frozenset(_UNCHANGED.split())
"""Markers that return their operands, element by element of the tuple."""

_SHARDINGS = "xla.sdy.PropagationBarrier xla.sdy.ShardingGroup ShardBarrierFrom ShardBarrierTo CustomSPMDPartitioning"
_PLACES = "PinToDevice PinToDeviceSram Pin Unpin CreateBuffer AllocateBuffer ConcatBitcast ZeroCrop"
_BORDERS = """
    AsyncCollectiveStart AsyncCollectiveDone PrepareAsyncCallStart PrepareAsyncCallDone NopReturnToken __nop SliceId
    __xla_internal_call_marker_before __xla_internal_call_marker_after
"""
_PROMISES = "AssumeGatherIndicesInBound GatherScatterIndicesBitpacked GetRngSeed X64Combine X64SplitLow X64SplitHigh"
MARKER_TARGETS = UNCHANGED_TARGETS.union(*(names.split() for names in (_SHARDINGS, _PLACES, _BORDERS, _PROMISES)))

TRANSFERS = frozenset({"MoveToHost", "MoveToDevice"})
"""Markers of copies between host and device memory: host offloading turns them into such copies."""

_INTERNAL = "_SPMDInternalOp_"
"""Prefix of the names of the partitioner's own intermediate calls."""


def is_marker(target: str) -> bool:
    """Return True if custom calls of a target compute and move nothing themselves."""
    return target in MARKER_TARGETS or target.startswith(_INTERNAL)


def is_host_callback(target: str) -> bool:
    """Return True if custom calls of a target run Python on the host, as those of `jax.debug.print` do."""
    return target.startswith(("xla_python_", "xla_ffi_")) and "python_" in target and target.endswith("_callback")
