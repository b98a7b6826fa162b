"""MCP servers: definitions, connections, and the tools, prompts and resources that they add to a session."""
