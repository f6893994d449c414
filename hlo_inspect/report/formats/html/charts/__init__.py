"""Pictures of a report's tables as plain data, which the files of `drawing/` draw: a file for each picture."""
