"""What a plugin brings to run: its hooks and servers in swecli's own form."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swecli.core.extensions.plugins import Plugin
    from swecli.core.hooks.hook import Hook
    from swecli.core.language_servers.definitions import LanguageServer
    from swecli.core.mcp.definitions import ServerDefinition


def hooks_of_plugin(plugin: Plugin) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Its hooks, and sentences about those that are ignored."""
    from msgspec.structs import replace

    from swecli.core.extensions.plugins import parts
    from swecli.core.hooks.claude_settings import hooks_of
    from swecli.core.hooks.hook import PluginPlace

    found, problems = parts(plugin, "hooks", "hooks/hooks.json", "its hooks are ignored")
    place = PluginPlace(plugin.name, str(plugin.root), str(plugin.data or plugin.root))
    hooks: list[Hook] = []
    for document, keys, table in found:
        inner = table.get("hooks")
        events, at = (inner, (*keys, "hooks")) if isinstance(inner, dict) else (table, keys)
        hooks += (replace(hook, plugin=place) for hook in hooks_of(events, document, at, "plugin", problems))
    return tuple(hooks), tuple(problems)


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


def languages_of_plugin(plugin: Plugin) -> tuple[tuple[LanguageServer, ...], tuple[str, ...]]:
    """Its language servers, and sentences about those that are ignored."""
    if "language servers" not in plugin.programs:
        return (), ()
    from swecli.core.extensions.plugins import parts
    from swecli.core.language_servers.definitions import plugin_languages

    found, problems = parts(plugin, "lspServers", ".lsp.json", "its language servers are ignored")
    servers: list[LanguageServer] = []
    for document, _, table in found:
        more, trouble = plugin_languages(plugin.name, plugin.root, table, str(document.path))
        servers += more
        problems += trouble
    return tuple(servers), tuple(problems)
