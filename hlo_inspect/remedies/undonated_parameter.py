"""The remedy of HI101: donation of parameters."""

from __future__ import annotations

from hlo_inspect.analysis.context import Context
from hlo_inspect.compiler.meshes import Description
from hlo_inspect.remedies.donation import donation
from hlo_inspect.remedies.remedy import Remedy
from hlo_inspect.report.model import Finding


def remedy(context: Context, _finding: Finding, description: Description) -> Remedy:
    """Return the donation of all that the step replaces."""
    return donation(context, description)
