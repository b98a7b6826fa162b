"""swecli as an MCP server: other agents give it tasks."""
