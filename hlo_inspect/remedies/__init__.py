"""Remedies of findings as edits of StableHLO, so that a compile shows what they save. A file is named like its rule."""
