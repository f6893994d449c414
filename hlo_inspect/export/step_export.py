"""The export that a request asks for."""

from __future__ import annotations

from hlo_inspect.analysis.context import Context
from hlo_inspect.errors import UsageError
from hlo_inspect.export.written.chakra_export import ChakraExport, chakra_export
from hlo_inspect.export.written.workload_export import WorkloadExport, workload_export

StepExport = ChakraExport | WorkloadExport


def step_export(context: Context) -> StepExport:
    """Plan the export of a module. Raise InputError if its step is unknown, UsageError if it cannot be expressed."""
    request = context.request
    if request.simulator is None:
        raise UsageError("export needs --to: chakra, simai or astra-sim")
    if request.simulator != "chakra":
        return workload_export(context)
    if request.axis_words:
        raise UsageError("--axis has no effect on chakra, whose groups list their ranks")
    return chakra_export(context)
