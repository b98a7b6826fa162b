"""The command: from files and an answer of the model to a proposed OPENCLI.md, and what is reported."""

from __future__ import annotations

import asyncio
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.init.guide import (
    FULL_CHARS,
    LEAN_CHARS,
    MAX_TOKENS,
    Guide,
    Prose,
    build_guide,
    parse_prose,
    question,
    split,
)
from swecli.commands.init.project import Project
from swecli.commands.init.scan import FILE_NAME
from swecli.core.context_management.instructions import INSTRUCTION_NAMES, read_head
from swecli.core.context_management.prompts import LEAN_WINDOW, read_prompt

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

_MAX_EXISTING_BYTES = 256 * 1024


async def _run(session: Session, arguments: str) -> CommandResult:
    folder = session.view.cwd
    try:
        existing = await asyncio.to_thread(_existing, folder)
    except OSError as error:
        return CommandResult.text(
            f"{FILE_NAME} exists but cannot be updated: {error.strerror or error}. Nothing was changed.", "error"
        )
    project = await asyncio.to_thread(Project, folder)
    if not project.scan.files:
        return CommandResult.text(f"{folder} has no files to describe. Nothing was written.", "warning")
    prose = await _prose(session, project)
    today = date.today().isoformat()
    guide = await asyncio.to_thread(build_guide, project, prose or Prose(), existing, today)
    if _same(existing, guide.text, project.commit):
        return CommandResult.text(f"{FILE_NAME} is up to date. Nothing was changed.")
    run = await session.run_tool("write_file", {"path": str(folder / FILE_NAME), "content": guide.text})
    if run.is_error:
        return CommandResult.text(f"{FILE_NAME} was not written: {run.text}", "warning")
    return CommandResult.text(_report(guide, prose, project))


INIT = SlashCommand("init", f"Write {FILE_NAME}, a guide to this project for agents", _run, while_busy=False)


def _existing(folder: Path) -> str:
    try:
        head = read_head(folder / FILE_NAME, _MAX_EXISTING_BYTES, folder)
    except FileNotFoundError:
        return ""
    if not head.whole:
        raise OSError(f"it has {head.size:,} bytes, more than a guide may have")
    return head.text


async def _prose(session: Session, project: Project) -> Prose | None:
    """What the model writes; None without a model or an answer."""
    model = session.view.model
    if model is None:
        return None
    limit = LEAN_CHARS if model.window is not None and model.window <= LEAN_WINDOW else FULL_CHARS
    facts = await asyncio.to_thread(question, project, limit)
    answer = await session.ask_model(read_prompt("init_system"), facts)
    return None if answer is None else parse_prose(answer, project)


def _same(existing: str, new: str, commit: str) -> bool:
    """Whether only the date would change."""

    def rest(document: str) -> list[str]:
        return [section.text for section in split(document)[0] if section.key != "current-state"]

    return bool(existing) and rest(existing) == rest(new) and (not commit or commit in existing)


def _report(guide: Guide, prose: Prose | None, project: Project) -> str:
    lines = [f"{FILE_NAME} is written: about {guide.tokens:,} tokens, in the prompt of new conversations (/clear)."]
    if prose is None:
        lines.append("Written without a model, from the project's files only.")
    elif prose.dropped:
        lines.append(f"Dropped {prose.dropped} of the model's statements because they named things that do not exist.")
    if guide.kept:
        lines.append(f"Kept as you wrote them: {', '.join(key.replace('-', ' ') for key in guide.kept)}.")
    if guide.tokens > MAX_TOKENS:
        lines.append(f"Your own sections alone exceed {MAX_TOKENS:,} tokens; shorten them.")
    if hidden := [name for name in project.agent_files if name in INSTRUCTION_NAMES]:
        lines.append(f"{FILE_NAME} replaces {', '.join(hidden)} and points there.")
    if not project.scan.complete:
        lines.append("The project is large; only part of it was read.")
    return "\n".join(lines)
