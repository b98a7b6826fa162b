"""MCP servers: their definitions, connections to them, and what they bring into a session."""
