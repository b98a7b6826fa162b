"""The hooks of a run: collected from all settings, and enabled if the user consented to exactly this form."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.config.paths import Paths, workspace_key
from swecli.core.config.trust import PendingItem, TrustReading, accept_items, is_led_away, item_digest
from swecli.core.validation import fields_of

if TYPE_CHECKING:
    from swecli.core.config.load import Loaded
    from swecli.core.extensions.plugins import Plugin
    from swecli.core.hooks.hook import Hook

CLAUDE_FILES = (".claude/settings.json", ".claude/settings.local.json")


class HookReading(Struct, frozen=True):
    """``pending`` waits for the user's consent."""

    hooks: tuple[Hook, ...] = ()
    pending: tuple[PendingItem, ...] = ()
    notices: tuple[str, ...] = ()


def read_hooks(
    cwd: Path,
    loaded: Loaded,
    trust: TrustReading,
    paths: Paths,
    home: str,
    *,
    plugins: Sequence[Plugin] = (),
    safe: bool = False,
    vouched: bool = False,
) -> HookReading:
    """The hooks of the user and of the user's plugins and, if the workspace is trusted, of the project. ``vouched``:
    the user trusts the folder's content for this run, and can't be asked. Without configured hooks nothing is imported
    or read."""
    settings = loaded.settings.hooks
    own = any(isinstance(value, tuple) and value != () for _, value in fields_of(settings))
    claude = [cwd / name for name in CLAUDE_FILES] if trust.trusts else []
    claude = [path for path in claude if os.path.lexists(path) and not _is_placeholder(path, cwd, paths)]
    users = Path(home) / ".claude" / "settings.json" if settings.user_claude and home else None
    plugins = [plugin for plugin in plugins if "hooks" in plugin.programs]
    if safe or not (own or claude or users or plugins):
        return HookReading()
    from swecli.core.hooks.hook import Hook, problems

    notices = [f"{path} ignored: it is a link or inside one." for path in claude if is_led_away(path)]
    claude = [path for path in claude if not is_led_away(path)]
    hooks = [*_own(loaded), *_claude(claude, users, notices), *_of_plugins(plugins, notices)]
    notices += (f"{hook.origin}: a hook for {hook.event}: {problem}." for hook in hooks for problem in problems(hook))
    judged, pending = list[Hook](), list[PendingItem]()
    for hook in hooks:
        checked_hook, item = _judged(hook, cwd, trust, vouched=vouched)
        judged.append(checked_hook)
        pending += [item] if item is not None else []
    new = [item for item in pending if item.digest not in trust.refused]
    if new:
        named = ", ".join(dict.fromkeys(item.key.partition(".")[2] for item in new))
        several = "hooks wait" if len(new) > 1 else "hook waits"
        notices.append(
            f"{len(new)} {several} for your consent and will not run ({named}). "
            "See /hooks, or `swecli permissions accept`."
        )
    ran = [hook for hook in judged if vouched and hook.source == "project"]
    if ran:
        notices.append(f"--trust allows {len(ran)} hook{'s' * (len(ran) > 1)} of this project to run: {_named(ran)}")
    return HookReading(tuple(judged), tuple(pending), tuple(notices))


def _is_placeholder(path: Path, cwd: Path, paths: Paths) -> bool:
    """Whether the sandbox of a running command put a folder in place of a file."""
    if not os.path.isdir(path):
        return False
    from swecli.core.sandbox.bubblewrap import stands_in  # only where a folder has the name of a file

    return stands_in(path, paths.state, workspace_key(cwd))


def _named(hooks: Sequence[Hook]) -> str:
    shown = [" ".join(hook.command.split())[:80] for hook in hooks[:3]]
    return ", ".join(dict.fromkeys(shown)) + (f" and {len(hooks) - 3} more" if len(hooks) > 3 else "")


def _own(loaded: Loaded) -> Iterator[Hook]:
    from swecli.core.hooks.hook import EVENTS, Hook

    for event in EVENTS:
        for number, entry in enumerate(loaded.settings.hooks.of(event)):
            origin = loaded.origins.get(("hooks", event, str(number)))
            theirs = origin is None or origin.layer in ("project", "local")
            source = "project" if theirs else "user"
            yield Hook(
                event,
                entry.command,
                entry.matcher,
                entry.timeout,
                source,
                str(origin or "settings"),
                condition=entry.condition,
                background=entry.background,
            )


def _claude(files: Sequence[Path], users: Path | None, notices: list[str]) -> list[Hook]:
    """The hooks of Claude Code's files. ``disableAllHooks`` of a project turns off the project's, never the user's."""
    from swecli.core.hooks.claude_settings import read_claude_settings

    theirs = [read_claude_settings(path, "project") for path in files]
    own = [read_claude_settings(users, "user")] if users is not None else []
    notices += (notice for settings in (*theirs, *own) for notice in settings.notices)
    if any(settings.disabled for settings in own):
        notices.append(f"The hooks in Claude Code's settings do not run: {users} sets disableAllHooks.")
        return []
    if any(settings.disabled for settings in theirs):
        notices.append("The hooks in this project's Claude Code settings do not run: disableAllHooks is set there.")
        theirs = []
    return [hook for settings in (*theirs, *own) for hook in settings.hooks]


def _of_plugins(plugins: Sequence[Plugin], notices: list[str]) -> Iterator[Hook]:
    if not plugins:
        return
    for plugin in plugins:
        hooks, problems = hooks_of_plugin(plugin)
        notices += problems
        yield from hooks


def hooks_of_plugin(plugin: Plugin) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Its hooks, and sentences about those that are ignored."""
    from swecli.core.extensions.plugins import parts
    from swecli.core.hooks.claude_settings import hooks_of
    from swecli.core.hooks.hook import PluginPlace

    tables, problems = parts(plugin, "hooks", "hooks/hooks.json", "its hooks are ignored")
    location = PluginPlace(plugin.name, str(plugin.root), str(plugin.data or plugin.root))
    hooks: list[Hook] = []
    for document, keys, table in tables:
        inner = table.get("hooks")
        wrapped = isinstance(inner, dict)
        events, at = (cast("dict[str, Any]", inner), (*keys, "hooks")) if wrapped else (table, keys)
        hooks += (replace(hook, plugin=location) for hook in hooks_of(events, document, at, "plugin", problems))
    return tuple(hooks), tuple(problems)


def _judged(hook: Hook, cwd: Path, trust: TrustReading, *, vouched: bool) -> tuple[Hook, PendingItem | None]:
    """The hook bound to the present content of its scripts, and pending consent. The user's own hooks, and those of
    plugins that the user allowed, need none unless they run content of the workspace."""
    hook = _bound(hook, cwd)
    scripts = hook.scripts
    if hook.source != "project" and not scripts:
        return hook, None
    if not trust.trusts:
        return replace(hook, waiting="it runs a file of this workspace, which you have not trusted"), None
    digest = hook_digest(hook)
    if vouched or digest in trust.accepted:
        return hook, None
    files = f"  ({', '.join(name for name, _ in scripts)})" if scripts else ""
    only = (f" if {hook.condition}" if hook.condition else "") + (", async" if hook.background else "")
    item = PendingItem(f"hooks.{hook.event}", f"{hook.matcher or '*'}{only}: {hook.deed}{files}", hook.origin, digest)
    return replace(hook, waiting="you have not allowed its current version", unconfirmed=True), item


def _bound(hook: Hook, cwd: Path) -> Hook:
    """The hook with the present content of the files that its command names."""
    from swecli.core.hooks.hook import plugin_files
    from swecli.core.permissions.workspace_scripts import workspace_scripts

    if hook.kind != "command":
        return hook
    location = hook.plugin
    if location is not None:
        location = replace(location, files=plugin_files(location, hook.command))
    return replace(hook, scripts=workspace_scripts(hook.command, cwd), plugin=location)


def hook_digest(hook: Hook) -> str:
    """The subject of consent: event, matcher, condition, whether it blocks, command, and the content of the workspace's
    files that it names."""
    condition = (f"if {hook.condition}",) if hook.condition else ()
    kind = () if hook.kind == "command" else (hook.kind, *(f"{name}: {value}" for name, value in hook.headers))
    about = (hook.event, hook.matcher, *condition, *(("async",) if hook.background else ()), *kind, *hook.variables)
    about = (*about, hook.plugin.root) if hook.plugin is not None else about
    return item_digest(("hook", *about), [hook.command, [list(script) for script in hook.scripts]])


def hook_approver(data: Path, cwd: Path, *, store: bool) -> Callable[[Hook], Hook]:
    """Stores consent to the present form of a hook, and returns that form."""

    def keep(hook: Hook) -> Hook:
        now = replace(_bound(hook, cwd), waiting="", unconfirmed=False)
        if store:
            accept_items(data, cwd, (hook_digest(now),))
        return now

    return keep
