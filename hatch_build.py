"""Build hook of hatchling: a wheel with the library of the native reader, or without one.

With cc, gcc or clang on PATH the wheel gets a library for this machine. Without a compiler, if the compiler fails, or with
`HLO_INSPECT_NATIVE=0`, the wheel has none and fits everywhere. `HLO_INSPECT_TARGET` names a target of ziglang to build for.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import sysconfig
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_INSTALLED = "hlo_inspect/native/hlo_core.so"


class NativeLibrary(BuildHookInterface[Any]):
    """Hook that compiles the library before the wheel is built."""

    _folder = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the library, and name the platform in the wheel's tag. An editable install has it in the tree."""
        if os.environ.get("HLO_INSPECT_NATIVE") == "0":
            return
        build = _load_build(Path(self.root))
        target = os.environ.get("HLO_INSPECT_TARGET", "")
        if target and target not in build.TARGETS:
            raise ValueError(f"HLO_INSPECT_TARGET is one of {', '.join(build.TARGETS)}, not {target!r}")
        self._folder = tempfile.mkdtemp()
        library = build.LIBRARY if version == "editable" else Path(self._folder) / build.LIBRARY.name
        try:
            compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target] if target else build.find_compiler()
            build.compile_library(library, compiler, is_strict=False)
        except build.BuildError as error:
            if target:
                raise
            self.app.display_warning(f"the wheel has no native reader: {error}")
            return
        if version != "editable":
            build_data["force_include"][str(library)] = _INSTALLED
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{build.TARGETS[target] if target else _platform()}"

    def finalize(self, _version: str, _build_data: dict[str, Any], _artifact: str) -> None:
        """Remove the folder of the library, which is in the wheel."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _platform() -> str:
    """Return the platform of this machine in a wheel's tag."""
    if sys.platform == "darwin":  # the compiler builds for this processor only, whatever Python was built for
        release = platform.mac_ver()[0].split(".")[0]
        return f"macosx_{release}_0_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def _load_build(root: Path) -> ModuleType:
    """Return the module that compiles, without the package: what that imports is not installed yet."""
    spec = spec_from_file_location("hlo_inspect_native_build", root / "hlo_inspect" / "native" / "build.py")
    if spec is None or spec.loader is None:
        raise ImportError("hlo_inspect/native/build.py cannot be loaded")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
