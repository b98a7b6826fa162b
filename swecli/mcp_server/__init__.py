"""swecli as an MCP server: takes tasks from other agents."""
