"""Options of a request, in one class for commands, `inspect` and analyses.

Each field of `Request` holds its name, type and default, and how the command line offers it. The options of click, the keywords
of `inspect`, and the messages to other processes derive from it. An analysis reads it as `context.request`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.remote_servers import USUAL_SECONDS

PhasesFrom = Literal["graph", "names"]
PlatformName = Literal["cpu", "gpu", "tpu"]
CostModelName = Literal["alpa-search", "alpa-mesh"]
SimulatorName = Literal["chakra", "simai", "astra-sim"]
RankFiles = Literal["all", "classes"]
Section = Literal["Options", "Input", "Program and hardware"]

INPUT: Section = "Input"
PROGRAM: Section = "Program and hardware"

T = TypeVar("T")

_METADATA = "option"


class OptionInfo(NamedTuple):
    """Form of an option. Without `flags` it is a keyword of `inspect` alone, or an argument of a command.

    `commands` take it; if there are none all commands do that read modules. `argument_of` are commands that have an argument
    in its place. `needs` is the option without which it has no
    effect. `completes` names the function of `cli.completion` that offers its values.
    """

    flags: tuple[str, ...] = ()
    help: str = ""
    section: Section = "Options"
    metavar: str | None = None
    minimum: int | None = None
    commands: tuple[str, ...] = ()
    argument_of: tuple[str, ...] = ()
    needs: str = ""
    completes: str = ""
    shows_default: bool = False


class Option(NamedTuple):
    """Option of a request. `type` is its annotation without None; if `is_many`, it can be given several times."""

    name: str
    type: Any
    default: Any
    is_many: bool
    info: OptionInfo

    @property
    def choices(self) -> tuple[str, ...]:
        """Values of an option that takes one of a few."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def flag(self) -> str:
        """Name as a user writes it: the long flag, else the keyword."""
        return self.info.flags[-1] if self.info.flags else self.name


def _option(default: T, *flags: str, help: str, **info: Any) -> T:  # noqa: A002, ANN401 - click calls it so; as `OptionInfo`
    """Declare a field of `Request`. Type checkers see its default."""
    declared: T = field(default=default, metadata={_METADATA: OptionInfo(flags, help, **info)})
    return declared


class HasText(Protocol):
    """Object that returns HLO text, such as `jax.stages.Lowered` and `Compiled`."""

    @property
    def as_text(self) -> Callable[..., str | None]: ...


@dataclass(frozen=True)
class Request:
    """Options that apply to each module of an input."""

    passes: str | Sequence[str] = _option(("summary",), help="Names of commands; the first one names the report.")
    _: KW_ONLY
    also: Sequence[str] = _option((), help="Passes whose facts and findings are added, without their tables.")
    thresholds: Sequence[str] = _option((), help="Least stakes that are findings, each as RULE=SIZE.")
    configured: Sequence[str] = _option((), help="Names of options that a configuration sets, not the user.")

    # -- of single commands ---------------------------------------------------------------------------------------------

    name: str | None = _option(
        None,
        help="Name of the instruction; for `show` also a line or pattern.",
        commands=("memory", "show"),
    )
    to: str | None = _option(None, help="Second instruction: `show` prints the paths to it.", commands=("show",))
    depth: int = _option(
        2,
        "--depth",
        metavar="N",
        minimum=0,
        shows_default=True,
        help="Show operands and users up to N steps away.",
        commands=("show",),
    )
    recorded: str | None = _option(
        None,
        "--measured",
        metavar="PROFILE",
        help="Show the measured times of this recorded profile beside bound and estimate. Without INPUT, of its own modules.",
        commands=("time",),
        argument_of=("measured",),
        completes="files",
    )
    skip: int = _option(
        0,
        "--skip",
        metavar="N",
        minimum=0,
        shows_default=True,
        help="Leave out the first N runs of every program of a recorded profile.",
        commands=("measured", "time", "diff", "report", "check"),
    )
    quick: bool = _option(
        False,
        "--quick",
        help="Skip the optimizer, costs, live ranges, and phases that op_names do not decide (faster).",
        commands=("summary", "params", "memory", "list", "show"),
    )
    cost_model: CostModelName | None = _option(
        None,
        "--cost-model",
        help="Add the costs of Alpa's first search or of its device mesh. They have no unit.",
        commands=("collectives",),
    )
    alpha: str | None = _option(
        None,
        "--alpha",
        metavar="AXIS=A,…",
        help="Set Alpa's alpha by mesh axis, for example d0=1,d1=1.",
        commands=("collectives",),
        needs="cost_model",
    )
    beta: str | None = _option(
        None,
        "--beta",
        metavar="AXIS=B,…",
        help="Set Alpa's beta by mesh axis, for example d0=1,d1=0.1.",
        commands=("collectives",),
        needs="cost_model",
    )

    simulator: SimulatorName | None = _option(
        None,
        "--to",
        help="Format: chakra (ASTRA-sim 2), simai or astra-sim (text of SimAI and of ASTRA-sim 1.0).",
        commands=("export",),
    )
    rank_files: RankFiles = _option(
        "all",
        "--ranks",
        shows_default=True,
        help="Write a file for each rank (all), or one for ranks with the same content (classes). Only chakra.",
        commands=("export",),
    )
    max_nodes: int = _option(
        500_000,
        "--max-nodes",
        metavar="N",
        minimum=1,
        shows_default=True,
        help="Refuse a step with more nodes on one rank; loops are unrolled.",
        commands=("export",),
    )
    axis_words: Sequence[str] = _option(
        (),
        "--axis",
        metavar="AXIS=WORD,…",
        help="Name the parallelism of mesh axes: DP, TP or EP, for example d0=DP,d1=TP. Axes of one word are its product.",
        commands=("export", "diff"),
    )

    # -- the input ------------------------------------------------------------------------------------------------------

    module: str | None = _option(None, "--module", metavar="REGEX", section=INPUT, help="Choose modules by name.")
    stage: str | None = _option(
        None,
        "--stage",
        metavar="TEXT",
        section=INPUT,
        help="From a dump directory, read the files of this stage, or with TEXT in their name.",
    )
    strict: bool = _option(
        False,
        "--strict",
        section=INPUT,
        help="Refuse texts that XLA's parser refuses; needs the extra [xla]. That parser accepts wrong result shapes.",
    )
    jobs: int = _option(
        1,
        "-j",
        "--jobs",
        metavar="N",
        minimum=1,
        section=INPUT,
        help="Read files in N processes. Default 1; always 1 if an input is `-`.",
    )

    remote_timeout: int = _option(
        USUAL_SECONDS,
        "--remote-timeout",
        metavar="SECONDS",
        minimum=1,
        section=INPUT,
        shows_default=True,
        help="Wait no longer for a connection to a remote server, or its next bytes. Libraries of object stores try again.",
    )

    lowered: str | Path | HasText | None = _option(
        None,
        help="HLO or StableHLO of the program before optimizations: text, file or `Lowered`. It has the shardings.",
        section=INPUT,
    )

    # -- the program and its hardware -----------------------------------------------------------------------------------

    mesh: str | None = _option(
        None,
        "--mesh",
        metavar="NAME=N,…",
        section=PROGRAM,
        help="Name the mesh axes with their sizes, for example data=4,model=2. Default: the names of the dump, else d0, d1, …",
    )
    phases: PhasesFrom = _option(
        "graph",
        "--phases",
        section=PROGRAM,
        shows_default=True,
        help="Decide phases (forward, backward, …) by op_names only (names), or by op_names and then by data flow (graph).",
    )
    platform: PlatformName | None = _option(
        None, "--platform", section=PROGRAM, help="Set the platform if it is detected wrongly: device memory depends on it."
    )
    custom_calls: str | None = _option(
        None,
        "--custom-calls",
        metavar="FILE",
        section=PROGRAM,
        help="Read a YAML file with the work of your own custom calls, by target.",
    )
    profile: str | Sequence[str] | None = _option(
        None,
        "--profile",
        metavar="NAME|FILE",
        section=PROGRAM,
        completes="profiles",
        help="Compute times for this hardware profile; `profiles` lists them, `time` compares several. Default: the "
        "accelerator that the dump names, if any.",
    )
    what_if: str | Sequence[str] = _option(
        (),
        "--what-if",
        metavar="FIGURE=Nx",
        section=PROGRAM,
        help="Multiply a figure of the profile, for example links.nvlink.bandwidth=2x or peak.bf16=2x.",
    )
    devices_per_node: int | None = _option(
        None,
        "--devices-per-node",
        metavar="N",
        minimum=1,
        section=PROGRAM,
        help="Set the number of devices in a node, which the fastest links join. Default: the profile's. Needs a profile.",
    )
    topology: str | None = _option(
        None,
        "--topology",
        metavar="AxB",
        section=PROGRAM,
        help="Place the devices: 2x8 is 2 nodes of 8, or the axes of a torus; 2x8T(1,0) numbers the devices along the first "
        "axis first. Needs a profile.",
    )

    @property
    def pass_names(self) -> tuple[str, ...]:
        return _several(self.passes)

    @property
    def profiles(self) -> tuple[str, ...]:
        return _several(self.profile)

    @property
    def changes(self) -> tuple[str, ...]:
        """Changes of figures that `what_if` asks for."""
        return _several(self.what_if)

    @property
    def uses_graph_for_phases(self) -> bool:
        """True if the graph of values may decide phases that op_names do not decide."""
        return self.phases == "graph" and not self.quick

    @property
    def skips_graph_phases(self) -> bool:
        """True if --quick skips the graph of values, which would decide phases that op_names do not decide."""
        return self.quick and self.phases == "graph"

    def given(self) -> Iterator[Option]:
        """Yield the options that differ from their defaults and that the user sets."""
        options = (option for option in OPTIONS if option.name not in self.configured)
        return (option for option in options if getattr(self, option.name) not in (option.default, ()))

    def refuse_options(self, inputs: str) -> None:
        """Raise UsageError if the user sets an option that does not apply to these `inputs`; remote ones wait as any other."""
        flags = [option.flag for option in self.given() if option.info.flags and option.name != "remote_timeout"]
        if flags:
            raise UsageError(f"{', '.join(flags)} {'does' if len(flags) == 1 else 'do'} not apply to {inputs}")

    def check(self, passes: Collection[str]) -> None:
        """Raise UsageError for a value outside its choices or below its minimum.

        Also raise it if an option lacks another that it needs, or if none of the `passes` takes it.
        """
        for option in self.given():
            value = getattr(self, option.name)
            if option.choices and value not in option.choices:
                raise UsageError(f"{option.flag} is one of {', '.join(option.choices)}, not {value!r}")
            if option.info.minimum is not None and value < option.info.minimum:
                raise UsageError(f"{option.flag} is {option.info.minimum} or more, not {value}")
            if option.info.needs and getattr(self, option.info.needs) is None:
                raise UsageError(f"{option.flag} needs {option_named(option.info.needs).flag}")
            if option.info.commands and set(passes).isdisjoint((*option.info.commands, *option.info.argument_of)):
                taken = [other for other in OPTIONS if not other.info.commands or set(passes) & set(other.info.commands)]
                hint = did_you_mean(option.name, (other.name for other in taken))
                takers = ", ".join(option.info.commands)
                raise UsageError(f"{', '.join(passes)} takes no option {option.name!r}, which is one of {takers}{hint}")


def _several(value: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def options_of(command: str) -> Iterator[Option]:
    """Yield the options that a command offers: its own first."""
    offered = [option for option in OPTIONS if option.info.flags]
    yield from (option for option in offered if command in option.info.commands)
    yield from (option for option in offered if not option.info.commands)


def check_names(names: Sequence[str]) -> None:
    """Raise UsageError with the nearest name if one of these names is no option."""
    options = [option.name for option in OPTIONS]
    for name in names:
        if name not in options:
            raise UsageError(f"there is no option {name!r}{did_you_mean(name, options)}")


def option_named(name: str) -> Option:
    """Return the option of that name."""
    return next(option for option in OPTIONS if option.name == name)


def _read_options() -> Iterator[Option]:
    hints = get_type_hints(Request)
    for declared in fields(Request):
        annotation = hints[declared.name]
        members = get_args(annotation) if get_origin(annotation) in {Union, types.UnionType} else (annotation,)
        members = tuple(member for member in members if member is not type(None))
        is_many = any(get_origin(member) is not None and get_origin(member) is not Literal for member in members)
        yield Option(declared.name, members[0], declared.default, is_many, declared.metadata[_METADATA])


OPTIONS = tuple(_read_options())
"""Options of a request, in the order of their declaration."""
