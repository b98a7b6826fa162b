"""What the files of a folder ask for, in plain words, before the user trusts it. Until then it has no effect."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from swecli.assembly.extension_files import project_sources
from swecli.assembly.startup import Startup, read_startup
from swecli.core.config.paths import PROJECT_FOLDER
from swecli.core.config.trust import AIDER_SETTINGS, PendingItem, covered_by_trust, instructs
from swecli.core.extensions.markdown_commands import InvocationError, MarkdownCommand, invocation, read_command
from swecli.core.extensions.profiles import AgentProfile, read_profile
from swecli.core.extensions.skills import Skill, read_skill
from swecli.core.extensions.sources import FoundFile, Reader
from swecli.core.permissions.rules import ALIASES, READERS, WRITERS, Pattern, RuleError, parse_rule
from swecli.launch import StartError

MOST_LINES = 2_000
MOST_BYTES = 20_000_000
"""Of all skills, commands and agent profiles together; beyond that their files are only counted."""
_LONGEST = 110
"""Characters of a setting's description."""
_ASKS = " (asks first)"
"""Ending of a power that needs a consent of its own after trust."""


class Power(Struct, frozen=True):
    """``file`` is the path relative to the start folder; ``text`` is a clause without its subject."""

    file: str
    text: str


def trust_lines(
    folder: Path, environment: Mapping[str, str], names: Sequence[str] | None = None, *, with_hooks: bool = False
) -> tuple[str, ...]:
    """The files that trust is about (``names``: only these), each followed by indented lines of what it asks for.
    ``with_hooks``: trust covers hooks, too. Reads files; their text is untrusted."""
    names = covered_by_trust(folder) if names is None else names
    asked = (*_of_settings(folder, environment, "" if with_hooks else _ASKS), *_of_extensions(folder)) if names else ()
    powers = list(dict.fromkeys(asked))
    lines: list[str] = []
    for name in names:
        file = name.partition("/ (")[0]
        mine = [power for power in powers if power.file == file or power.file.startswith(f"{file}/")]
        powers = [power for power in powers if power not in mine]
        lines.append(name)
        if about := _about(name):
            lines.append(f"  {about}")
        lines += (f"  {power.text}" for power in mine)
    more = len(lines) - MOST_LINES
    return tuple(lines if more <= 0 else (*lines[:MOST_LINES], f"and {more} lines more: the files have them"))


def _about(name: str) -> str:
    """What a file or folder is for as a whole, as a clause without its subject; empty if its parts say it."""
    if instructs(Path("/", name)):
        return "tells the model what to do"
    if name.endswith(AIDER_SETTINGS):
        return "names texts that tell the model what to do"
    inner = name.rpartition(f"{PROJECT_FOLDER}/")[2]
    return "is read into the prompt" if inner.startswith(("memory", "playbook", "notes")) else ""


# --- settings, hooks, servers --------------------------------------------------------------------------------------


def _of_settings(folder: Path, environment: Mapping[str, str], of_hooks: str) -> Iterator[Power]:
    """``of_hooks`` ends the clause about a hook."""
    try:
        startup = read_startup(folder, environment, {}, trust="trusted")
    except StartError as error:
        for line in str(error).splitlines():
            origin, _, text = line.partition(": ")
            yield Power(_file_of(origin, folder), f"has an error, so no session starts once you trust it: {text}")
        return
    for item in startup.loaded.pending:
        yield Power(_file_of(item.origin, folder), f"{_setting(item)}{_ASKS}")
    yield from _plain_settings(startup, folder)
    for item in startup.hooks.pending:
        event = item.key.partition(".")[2]
        yield Power(_file_of(item.origin, folder), f"runs a program at {event} for {item.value}{of_hooks}")
    from swecli.core.mcp.configured import definitions_of

    for server in definitions_of(startup, folder)[0]:
        if server.scope == "project":
            more = f" ({'; '.join(server.given)})" if server.given else ""
            verb = "connects to" if server.transport != "stdio" else "starts"
            text = f"{verb} the MCP server {server.name}: {server.line}{more}{_ASKS}"
            yield Power(_file_of(server.origin, folder), text)


def _setting(item: PendingItem) -> str:
    from swecli.core.config.change import meaning

    about = meaning(tuple(item.key.split(".")))
    words = about.about.partition(". ")[0].rstrip(".") if about is not None else ""
    what = f" ({words})" if 0 < len(words) <= _LONGEST else ""
    return f"sets {item.key}{what}: {item.value}"


def _plain_settings(startup: Startup, folder: Path) -> Iterator[Power]:
    """The settings that count as soon as the folder is trusted: they only tighten or change the looks."""
    files: dict[str, list[str]] = {}
    for key, origin in startup.loaded.origins.items():
        told = key[0] in ("mcp", "hooks") or key in (("approval", "deny"), ("approval", "ask"), ("approval", "allow"))
        if origin.layer in ("project", "local") and not told:
            files.setdefault(_file_of(origin.source, folder), []).append(".".join(key))
    for rule in startup.loaded.rules:
        if rule.scope == "project":
            files.setdefault(_file_of(rule.origin, folder), []).append(f"the rule to {rule.effect} {rule.text}")
    for file, keys in files.items():
        yield Power(file, f"sets {', '.join(dict.fromkeys(keys))}")


def _file_of(origin: str, folder: Path) -> str:
    """The file of an origin, ``FILE`` or ``FILE:LINE``, relative to the start folder."""
    head, _, line = origin.rpartition(":")
    path = head if head and line.isdecimal() else origin
    return os.path.relpath(path, os.path.realpath(folder)) if os.path.isabs(path) else path


# --- commands, skills, agents --------------------------------------------------------------------------------------


def _of_extensions(folder: Path) -> Iterator[Power]:
    read = 0
    for source in project_sources(folder):
        if read > MOST_BYTES:
            yield Power(os.path.normpath(source.label), "was not read: the files before it are too large")
            continue
        files, problems = Reader().read([source])
        read += sum(len(file.text) for file in files)
        for file in files:
            yield from (Power(os.path.normpath(file.origin.shown), text) for text in powers_of_file(file))
        for shown, problem in problems:
            yield Power(os.path.normpath(shown), problem.text)


def powers_of_file(file: FoundFile) -> Iterator[str]:
    """What one skill, command or agent profile asks for, as clauses without a subject."""
    match file.origin.source.kind:
        case "commands" if (command := read_command(file)) is not None:
            yield from _of_call(command, f"/{command.name}")
        case "skills":
            skill = read_skill(file)
            yield from _of_call(skill, f"the skill {skill.name}")
        case "agents" if (profile := read_profile(file)) is not None:
            yield _of_agent(profile)
        case _:
            pass


def _of_call(called: MarkdownCommand | Skill, name: str) -> Iterator[str]:
    if called.allow:
        rights = _listed([right_in_words(text) for text in called.allow])
        yield f"{name} wants to {rights} without asking (what leaves this folder still asks)"
    try:
        made = invocation(called, "", lambda name: None)
    except InvocationError:
        return
    if made.commands:
        yield f"{name} runs {_listed([f'`{command}`' for command in made.commands])} when you call it"
    if made.mentions:
        yield f"{name} attaches {_listed([*made.mentions])} when you call it"
    if called.model:
        yield f"{name} is answered by the model {called.model}"


def _of_agent(profile: AgentProfile) -> str:
    tools = "every tool of the session" if profile.tools is None else _listed([*profile.tools]) or "no tool"
    mode = f" in mode {profile.mode}, if the session's is not tighter" if profile.mode is not None else ""
    model = f", answered by the model {profile.model}" if profile.model else ""
    return f"the agent {profile.name} has {tools}{mode}{model}"


def right_in_words(text: str) -> str:
    """What an allow rule in the file of a command or skill asks for, as an infinitive."""
    try:
        pattern = parse_rule(text)
    except RuleError:
        return text
    match pattern.kind:
        case "command":
            words = " ".join(pattern.words).replace("\0", "*")
            if not words:
                return "run any command"
            return f"run `{words}{' …' if pattern.rest else ''}`"
        case "read" | "write":
            inner = text.partition("(")[2].removesuffix(")")
            return f"{'read' if pattern.kind == 'read' else 'change'} files that match {inner}"
        case "domain":
            return f"fetch pages of {pattern.domain}"
        case _:
            return _tool_in_words(pattern)


def _tool_in_words(pattern: Pattern) -> str:
    match pattern.tools:
        case ("run_command",):
            return "run any command"
        case tools if tools == ALIASES["Read"] or set(tools) <= {*READERS}:
            return "read any file"
        case tools if set(tools) <= {*WRITERS}:
            return "change any file"
        case (name, *_) if name.startswith("mcp__"):
            server, _, tool = name.removeprefix("mcp__").partition("__")
            return f"call {tool} of the MCP server {server}" if tool else f"call the MCP server {server}"
        case ("web_fetch",):
            return "fetch any page"
        case (name, *_):
            return f"use {name}"
        case _:
            return "use a tool"


def _listed(items: Sequence[str]) -> str:
    """The items with commas; all of them, because each is a power."""
    items = [*dict.fromkeys(items)]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""
