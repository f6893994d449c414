"""The findings of all rules, which `lint` groups and compares with a baseline."""

from __future__ import annotations

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import Section


class Findings(Pass):
    """Find all that rules find."""

    name = "findings"
    wants = Wants()
    findings_of = "all"

    def run(self, context: Context) -> Section:
        return Section(facts={}, tables=())
