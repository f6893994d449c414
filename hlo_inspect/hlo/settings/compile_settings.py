"""Flags and options of a compile, from the files that XLA writes beside its module.

* `module_0006.jit_step.debug_options`: flags that differ from XLA's defaults, after overrides
* `module_0006.jit_step/compile_options.textproto`: all flags before overrides, overrides, options, devices
* `module_0006.jit_step/topology.textproto`: the platform
* `module_0001.jit_step.config.pbtxt` on GPU: all flags, options, devices
* `module_0000.jit_step.cl_1.hlo_module_config.txt` on TPU: the same
* `module_0000.jit_step.cl_1.tpu_comp_env.txt` on TPU: all flags of its own compiler

XLA's xla/service/dump.cc writes `.debug_options` with each text of the module, and xla/pjrt/dump/dump.cc writes the folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.errors import InputError, Location
from hlo_inspect.hlo.settings.text_proto import Message, joined_entries, parse_lines, parse_text_proto, read_file
from hlo_inspect.lazy_pattern import lazy_pattern

Values = Mapping[str, str]

DEBUG_OPTIONS = ".debug_options"
COMPILE_OPTIONS = "compile_options"
MODULE_CONFIG = "module_config"
"""Kinds of files that options come from. Only options of one kind are comparable: their names differ."""

SETTING_FILES = (
    (DEBUG_OPTIONS,),
    ("/compile_options.textproto",),
    (".config.pbtxt", ".hlo_module_config.txt"),
    (".tpu_comp_env.txt",),
    ("/topology.textproto",),
)
"""Ends of the names of the files that flags and options come from."""

# Flags that change no program: where and what XLA writes, and those that JAX leaves out of its cache's key.
_IRRELEVANT_FLAG = lazy_pattern(
    r"xla_dump_.*|xla_enable_dumping|xla_detailed_logging|xla_enable_scoped_logging_timers|xla_gpu_print_compilation_stats"
    r"|xla_force_host_platform_device_count|xla_gpu_cuda_data_dir|xla_gpu_experimental_autotune_cache_mode"
    r"|xla_tpu_sdc_checker_.*",
    re.ASCII | re.DOTALL,
)
# Options that follow from arguments, number the process or the device, or are messages with a place of their own.
_IRRELEVANT_OPTION = lazy_pattern(
    r"(?:entry_computation_layout|allow_spmd_sharding_propagation_to_\w+|argument_layouts|result_layout|device_ordinal"
    r"|process_index|launch_id|debug_options|(?:static_)?device_assignment|env_option_overrides)(?:\..*)?",
    re.ASCII | re.DOTALL,
)
_STAMP = lazy_pattern(r"\d++\.(?=module_\d)", re.ASCII)


class CompileSettings(NamedTuple):
    """Flags, options and devices of one compile. A field that no file states is None, and `unknown` has the reasons.

    `flags` differ from XLA's defaults: a flag that is not in them has its default. If they are not `complete`, it is unknown.
    `process_flags` are all flags before `overrides`; `tpu_flags` all those of a TPU's compiler. `options_kind` is the kind of
    file that states `options`. `devices` holds the replicas' devices of each partition. `topology` is
    a hash of the devices and the machine that the process has.
    """

    flags: Values | None = None
    complete: bool = True
    process_flags: Values | None = None
    overrides: Values | None = None
    tpu_flags: Values | None = None
    options: Values | None = None
    options_kind: str = ""
    devices: tuple[tuple[str, ...], ...] | None = None
    platform: str | None = None
    topology: str | None = None
    unknown: tuple[str, ...] = ()

    @property
    def process_count(self) -> int | None:
        """The number of processes that the program runs on; None if no file states it."""
        text = (self.options or {}).get("process_count", "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None

    def flag(self, name: str) -> str | None:
        """Return the value of a flag after overrides, None if it is XLA's default and no file states that."""
        for values in (self.flags, self.overrides, self.process_flags, self.tpu_flags):
            if values is not None and name in values:
                return values[name]
        return None


def is_relevant_flag(name: str) -> bool:
    """Return False for flags of dumps and logs, and for those that JAX leaves out of its persistent cache's key."""
    return _IRRELEVANT_FLAG.fullmatch(name.partition(".")[0]) is None


class _Collector:
    """The settings of one module while its files are read."""

    def __init__(self) -> None:
        self.unknown: list[str] = []

    def read(self, path: Path | None) -> Message | None:
        """Return the content of a text proto, None if there is none or it is not readable."""
        if path is None:
            return None
        try:
            return parse_text_proto(read_file(path), str(path))
        except InputError as error:
            self.unknown.append(str(error))
            return None

    def read_debug_options(self, path: Path | None) -> tuple[Values | None, bool]:
        """Return the flags of `.debug_options`, and True if all of its lines are readable."""
        if path is None:
            return None, True
        try:
            message, fault = parse_lines(read_file(path), str(path))
        except InputError as error:
            self.unknown.append(str(error))
            return None, True
        if fault is not None:
            self.unknown.append(f"{fault}; flags that it does not name are unknown")
        return _relevant_flags(message), fault is None


def read_settings(module_file: Path) -> CompileSettings:
    """Read the files beside the text of a module, whatever stage it is."""
    files = _SettingFiles(module_file)
    collector = _Collector()
    debug_file, *others = map(files.find, SETTING_FILES)
    flags, complete = collector.read_debug_options(debug_file)
    compile_options, config, tpu, topology = map(collector.read, others)
    build = next(iter(compile_options.messages("executable_build_options")), None) if compile_options is not None else None
    stated = build if build is not None else config
    if flags is None and stated is None and not collector.unknown:
        collector.unknown.append(files.missing())
    block = next(iter(stated.messages("debug_options")), None) if stated is not None else None
    return CompileSettings(
        flags=flags,
        complete=complete,
        process_flags=_relevant_flags(block) if block is not None else None,
        overrides=_relevant_flags(_overrides(compile_options)) if compile_options is not None else None,
        tpu_flags=_relevant_flags(tpu) if tpu is not None else None,
        options=_options(stated, compile_options) if stated is not None else None,
        options_kind=COMPILE_OPTIONS if build is not None else MODULE_CONFIG if config is not None else "",
        devices=_devices(stated) if stated is not None else None,
        platform=_platform(topology),
        topology=_digest(topology) if topology is not None else None,
        unknown=tuple(collector.unknown),
    )


class _SettingFiles:
    """The files beside a module's text: their names begin as its own, up to one of its dots."""

    def __init__(self, module_file: Path) -> None:
        self._file = module_file
        parts = module_file.name.split(".")
        first = 2 if module_file.name.startswith("module_") else 3 if _STAMP.match(module_file.name) else 1
        self._names = [".".join(parts[:count]) for count in range(len(parts) - 1, first - 1, -1)]

    def find(self, ends: Iterable[str]) -> Path | None:
        """Return the file of this module whose name has one of the ends."""
        for name in self._names:
            for end in ends:
                path = self._file.parent / f"{name}{end}"
                if os.path.isfile(path):  # noqa: PTH113 - False for an impossible name
                    return path
        return self._stamped(ends) if _STAMP.match(self._file.name) else None

    def _stamped(self, ends: Iterable[str]) -> Path | None:
        """Return the file if each name of the dump begins with its own time."""
        bare = [_STAMP.sub("", name, count=1) for name in self._names]
        stems = {f"{name}{end}" for name in bare for end in ends if not end.startswith("/")}
        try:
            return next((path for path in sorted(self._file.parent.iterdir()) if _STAMP.sub("", path.name) in stems), None)
        except OSError:
            return None

    def missing(self) -> str:
        """Say why flags and options are unknown."""
        serialized = self.find(("/compile_options.pb",))
        if serialized is not None:
            return f"{Location(str(serialized))}: is not read; dump without --xla_dump_hlo_as_proto"
        return f"{self._file.name} has no {DEBUG_OPTIONS} and no compile_options.textproto beside it"


def stablehlo_file(module_file: Path) -> Path | None:
    """Return the StableHLO of the module whose text this is, None if the dump has none."""
    return _SettingFiles(module_file).find(("/module.mlir",))


def _relevant_flags(message: Message) -> Values:
    return {name: value for name, value in joined_entries(message).items() if is_relevant_flag(name)}


def _overrides(compile_options: Message) -> Message:
    """Return `env_option_overrides` as a message of flags. The type of the value does not count."""
    overrides = Message()
    for entry in compile_options.messages("env_option_overrides"):
        values = [value for message in entry.messages("value") for _, value in message.entries()]
        overrides.fields += [(key, value) for key, value in zip(entry.values("key"), values, strict=False)]
    return overrides


def _options(stated: Message, compile_options: Message | None) -> Values:
    """Return the options of the compile without flags and devices."""
    values = joined_entries(stated)
    if compile_options is not None:
        outer = joined_entries(compile_options).items()
        values |= {name: value for name, value in outer if not name.startswith("executable_build_options.")}
    return {name: value for name, value in values.items() if _IRRELEVANT_OPTION.fullmatch(name) is None}


def _devices(stated: Message) -> tuple[tuple[str, ...], ...] | None:
    for name in ("device_assignment", "static_device_assignment"):
        for assignment in stated.messages(name):
            return tuple(tuple(part.values("replica_device_ids")) for part in assignment.messages("computation_devices"))
    return None


def _digest(message: Message) -> str:
    text = "\n".join(f"{name}={value}" for name, value in message.entries())
    return blake2b(text.encode(errors="replace"), digest_size=16).hexdigest()


def _platform(topology: Message | None) -> str | None:
    """Return name and version of the platform."""
    if topology is None:
        return None
    words: Sequence[str] = [*topology.values("platform_name"), *topology.values("platform_version")]
    return " ".join(dict.fromkeys(words)) or None
