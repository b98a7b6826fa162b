"""Tools of MCP servers, and their prompts and resources."""
