"""The names of the models that costs can be shown by."""

MODELS = ("alpa-search", "alpa-mesh")
"""Those of Alpa, which `alpa` computes."""
