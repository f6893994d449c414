"""Pictures of a report's tables, as figures for Plotly: plain data, a file for each picture."""
