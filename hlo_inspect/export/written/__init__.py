"""Files that simulators read, written from the plan of a step or from rows by layer. `export.plan` never imports them."""
