"""For agents that read dumps: the text of `skill`, and the server of `mcp`."""
