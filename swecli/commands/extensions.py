"""Skills, Markdown commands and agent profiles as slash commands: call, list, approve."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, Run, SlashCommand, Word, absent
from swecli.core.context_management.counter import PieceEstimator
from swecli.core.protocol.blocks import DisplayBlock, MarkdownBlock, TableBlock, TextBlock
from swecli.core.protocol.commands import Invoke
from swecli.figures import cut_line, plural

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.extensions.sources import Kind
    from swecli.core.extensions.watch import ExtensionFiles

_SUMMARY = 100
"""Characters of a description in a list."""
_MAX_PROBLEMS = 50
"""Problems of each kind to list."""
_WHERE = {
    "skills": "a folder with a SKILL.md in skills/",
    "commands": "a Markdown file in commands/",
    "agents": "a Markdown file in agents/",
}

_FROM_FILES = {"skills": "skills", "commands": "Markdown commands", "agents": "agent profiles from files"}


def custom_commands(session: Session) -> tuple[SlashCommand, ...]:
    """Present Markdown commands and skills, those awaiting approval included. Reads the files."""
    files = session.view.extension_files
    if files is None:
        return ()
    now = files.look()
    commands: list[SlashCommand] = []
    for item in now.invocables:
        shown = item.hint if item.hint.startswith(("[", "<")) else f"[{item.hint or 'text'}]"
        commands.append(_calling(item.name, cut_line(item.description, _SUMMARY), shown))
    known = {command.name for command in commands}
    for item in now.waiting:
        if item.kind != "agents" and item.name not in known:
            commands.append(_calling(item.name, f"Waits for approval: /{item.kind} approve {item.name}"))
    return tuple(commands)


def _calling(name: str, summary: str, arguments: str = "") -> SlashCommand:
    async def run(session: Session, words: str) -> CommandResult:
        return _call(session, Invoke(name, words))  # it may have been approved since the list was made

    return SlashCommand(name, summary, run, arguments=arguments, own=True)


def _call(session: Session, call: Invoke) -> CommandResult:
    """Send a call, unless it is unknown or unapproved."""
    from swecli.core.engine.invoked import NotInvoked, invocation_of

    try:
        invocation_of(session.view.extension_files, call)
    except NotInvoked as error:
        return CommandResult.text(str(error), "error")
    session.send(call)
    return CommandResult()


async def _run_skill(session: Session, arguments: str) -> CommandResult:
    name, _, rest = arguments.partition(" ")
    name = name.removeprefix("/").lower()
    files = session.view.extension_files
    skill = (await asyncio.to_thread(files.look)).skills.get(name) if files is not None else None
    if skill is None or not skill.for_user:
        why = "is only for the model" if skill is not None else "is not a skill" if name else "Name a skill"
        return CommandResult.text(f"{name} {why}: /skills lists them. Nothing was sent.".strip(), "error")
    return _call(session, Invoke(f"skill:{name}", rest.strip()))


# --- lists ---

_Rows = Callable[["Session", "ExtensionFiles"], TableBlock]
_Details = Callable[["ExtensionFiles", str], "tuple[DisplayBlock, ...] | None"]


def _lists(kind: Kind, rows: _Rows, details: _Details) -> Run:
    """A command that lists the items of a kind, shows one of them, or approves pending ones."""

    async def run(session: Session, arguments: str) -> CommandResult:
        files = session.view.extension_files
        if files is None:
            return CommandResult.text(f"This session has no {kind}.", "warning")
        await asyncio.to_thread(files.look)
        match arguments.split():
            case []:
                table = await asyncio.to_thread(rows, session, files)
                return CommandResult((*_table(session, kind, table), *_trouble(kind, files)))
            case ["approve", *names]:
                return await _approve(files, kind, names)
            case [name]:
                name = name.removeprefix("/").lower()
                shown = details(files, name) or _waiting_text(kind, files, name)
                if shown is None:
                    return CommandResult.text(f"Unknown name {name}; /{kind} lists the {kind}.", "error")
                return CommandResult(shown)
            case _:
                return CommandResult.text(f"/{kind} lists them, /{kind} NAME shows one.", "error")

    return run


def _table(session: Session, kind: Kind, table: TableBlock) -> tuple[DisplayBlock, ...]:
    places = ".swecli, .agents or .claude, of this project or in your home"
    none = absent(session, _FROM_FILES[kind], f"No {kind} yet. Add {_WHERE[kind]} of {places}.")
    if not table.rows:
        return (TextBlock(none, "dim"),)
    return (table, TextBlock(none, "dim")) if session.view.safe_mode else (table,)


def _trouble(kind: Kind, files: ExtensionFiles) -> list[DisplayBlock]:
    blocks: list[DisplayBlock] = []
    waiting = [item for item in files.now.waiting if item.kind == kind]
    if waiting:
        lines = [f"Ignored: new or changed since you trusted this folder. /{kind} approve [name] enables them."]
        blocks.append(
            TextBlock("\n".join([*lines, *_bounded([f"  {item.origin.shown}" for item in waiting])]), "warning")
        )
    problems = files.now.problems_of(kind)
    if problems:
        blocks.append(TextBlock("\n".join(_bounded(problems)), "warning"))
    return blocks


def _bounded(lines: Sequence[str]) -> list[str]:
    return [
        *lines[:_MAX_PROBLEMS],
        *([f"… and {len(lines) - _MAX_PROBLEMS} more"] if len(lines) > _MAX_PROBLEMS else []),
    ]


async def _approve(files: ExtensionFiles, kind: Kind, names: Sequence[str]) -> CommandResult:
    wanted = {name.removeprefix("/").lower() for name in names}
    waiting = [item for item in files.now.waiting if item.kind == kind and (not wanted or item.name in wanted)]
    missing = wanted - {item.name for item in waiting}
    if not waiting or missing:
        named = f": {', '.join(sorted(missing))}" if missing else ""
        return CommandResult.text(f"Nothing needs approval{named}. /{kind} lists what does.", "warning")
    trouble = await asyncio.to_thread(files.approve, waiting)
    approved = TextBlock(f"Approved in their current version: {', '.join(item.name for item in waiting)}.")
    return CommandResult((approved, TextBlock(trouble, "warning")) if trouble else (approved,))


def _waiting_text(kind: Kind, files: ExtensionFiles, name: str) -> tuple[DisplayBlock, ...] | None:
    """Content to approve."""
    item = next((item for item in files.now.waiting if item.kind == kind and item.name == name), None)
    if item is None:
        return None
    about = f"{item.origin.shown} is ignored until you approve this version: /{kind} approve {name}"
    return (TextBlock(about, "warning"), TextBlock(item.text))


def _tokens(text: str) -> str:
    return f"{PieceEstimator().count(text):,}"


def _skill_rows(session: Session, files: ExtensionFiles) -> TableBlock:
    skills = sorted(files.now.skills.values(), key=lambda skill: skill.name)
    rows = tuple(
        (
            skill.name,
            cut_line(skill.description, _SUMMARY),
            _users(skill.for_model, skill.for_user),
            f"{_tokens(skill.description) if skill.for_model else 0} + {_tokens(skill.body)}",
            skill.origin.source.label,
        )
        for skill in skills
    )
    return TableBlock(("Skill", "For", "Used by", "Tokens listed + used", "From"), rows)


def _users(model: bool, user: bool) -> str:
    return "model, you" if model and user else "model" if model else "you" if user else "nobody"


def _command_rows(session: Session, files: ExtensionFiles) -> TableBlock:
    rows = tuple(
        (
            f"/{command.name} {command.hint}".rstrip(),
            cut_line(command.description, _SUMMARY),
            _tokens(command.body),
            command.origin.source.label,
        )
        for command in sorted(files.now.commands.values(), key=lambda command: command.name)
    )
    return TableBlock(("Command", "What it does", "Tokens", "From"), rows)


def _agent_rows(session: Session, files: ExtensionFiles) -> TableBlock:
    from swecli.core.extensions.profiles import resolve_profile

    rows: list[tuple[str, ...]] = []
    for profile in sorted(files.profiles.values(), key=lambda profile: profile.name):
        made = resolve_profile(profile, tools=session.tools.names(), mode=session.view.mode)
        everything = profile.tools is None and not profile.disallowed
        tools = "all tools" if everything else plural(len(made.tools), "tool")
        unknown = f"unknown: {', '.join(made.missing)}" if made.missing else ""
        gets = ", ".join(filter(None, (tools, made.mode, profile.model, unknown)))
        about, source = cut_line(profile.description, _SUMMARY), profile.origin.source.label
        row = (profile.name, about, gets, _tokens(profile.prompt), source)
        rows.append(row)
    return TableBlock(("Agent", "For", "Gets", "Tokens", "From"), tuple(rows))


# --- one of them ---


def _skill_details(files: ExtensionFiles, name: str) -> tuple[DisplayBlock, ...] | None:
    from swecli.core.extensions.skills import beside

    skill = files.now.skills.get(name)
    if skill is None:
        return None
    lines = [skill.origin.shown, skill.description]
    if skill.allow:
        lines.append(f"Allowed in a turn that starts with it: {', '.join(skill.allow)}")
    if skill.model:
        lines.append(f"Model: {skill.model}")
    if names := beside(skill.origin.folder):
        lines.append(f"Files: {', '.join(names)}")
    return (TextBlock("\n".join(lines), "dim"), MarkdownBlock(skill.body))


def _command_details(files: ExtensionFiles, name: str) -> tuple[DisplayBlock, ...] | None:
    command = files.now.commands.get(name)
    if command is None:
        return None
    lines = [command.origin.shown, command.description]
    if command.allow:
        lines.append(f"Allowed in its turn: {', '.join(command.allow)}")
    if command.model:
        lines.append(f"Model: {command.model}")
    return (TextBlock("\n".join(lines), "dim"), MarkdownBlock(command.body))


def _agent_details(files: ExtensionFiles, name: str) -> tuple[DisplayBlock, ...] | None:
    profile = files.profiles.get(name)
    if profile is None:
        return None
    tools = "all" if profile.tools is None else ", ".join(profile.tools)
    lines = [profile.origin.shown, profile.description, f"Tools: {tools}"]
    if profile.disallowed:
        lines.append(f"Without: {', '.join(profile.disallowed)}")
    lines.append(f"Mode: {profile.mode or 'that of the session'}; model: {profile.model or 'that of the session'}")
    return (TextBlock("\n".join(lines), "dim"), MarkdownBlock(profile.prompt))


def _skill_words(session: Session) -> Iterable[Word]:
    files = session.view.extension_files
    skills = files.now.skills.values() if files is not None else ()
    return [Word(skill.name, cut_line(skill.description, _SUMMARY)) for skill in skills if skill.for_user]


_ARGUMENTS = "[name | approve]"
SKILLS = SlashCommand(
    "skills", "List skills, their tokens and problems", _lists("skills", _skill_rows, _skill_details), (), _ARGUMENTS
)
SKILL = SlashCommand("skill", "Use a skill", _run_skill, (), "<name> [text]", words=_skill_words, under="skills")
CUSTOM = SlashCommand(
    "commands",
    "List your own commands",
    _lists("commands", _command_rows, _command_details),
    (),
    _ARGUMENTS,
    under="skills",
)
AGENTS = SlashCommand(
    "agents", "List agent profiles", _lists("agents", _agent_rows, _agent_details), (), _ARGUMENTS, under="skills"
)
