"""What a plugin brings to run: its MCP servers in swecli's own form."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swecli.core.extensions.plugins import Plugin
    from swecli.core.mcp.definitions import ServerDefinition


def servers_of_plugin(plugin: Plugin) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """Its MCP servers, and sentences about those that are ignored."""
    if "MCP servers" not in plugin.programs:
        return (), ()
    from swecli.core.extensions.plugins import parts
    from swecli.core.mcp.definitions import plugin_servers

    found, problems = parts(plugin, "mcpServers", ".mcp.json", "its servers are ignored")
    servers: dict[str, ServerDefinition] = {}
    for document, _, table in found:
        more, trouble = plugin_servers(
            plugin.name, plugin.root, plugin.data or plugin.root, table, f"plugin {plugin.name}: {document.path.name}"
        )
        problems += trouble
        for one in more:
            servers.setdefault(one.name, one)
    return tuple(servers.values()), tuple(problems)
