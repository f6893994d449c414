"""Values in a text: shapes, attributes, device groups, shardings, op_names. Imports tokens and opcodes of `hlo` only."""
