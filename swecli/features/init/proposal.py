"""The command: proposes an OPENCLI.md from files and a model's answer, and reports the result."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult
from swecli.commands.instructions import counts_from, instructions_file, read_instructions
from swecli.core.context_management.codebase import TOP
from swecli.core.context_management.prompts import LEAN_WINDOW, read_prompt
from swecli.core.protocol.blocks import DiffBlock, TextBlock
from swecli.features.init.guide import (
    FULL_CHARS,
    LEAN_CHARS,
    MAX_TOKENS,
    Guide,
    Prose,
    build_guide,
    improve_guide,
    parse_prose,
    question,
    split,
)
from swecli.features.init.project import Project
from swecli.features.init.scan import FILE_NAME

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

_EDIT = "At the question, e edits the text itself."
_REJECTED = (
    'The user rejected it. Answer again as they say; to leave out whole sections, add "leave_out": [their headings].'
)


async def run(session: Session, arguments: str) -> CommandResult:
    """Write or improve the guide; with ``--dry-run`` only show the change."""
    only_shown = arguments.strip().lstrip("-").lower() in ("dry-run", "dry", "preview", "plan")
    if arguments.strip() and not only_shown:
        return CommandResult.text("/init takes only --dry-run, which shows the change. Nothing was written.", "error")
    folder = session.view.cwd
    target = instructions_file(folder).relative_to(folder).as_posix()
    try:
        existing = await asyncio.to_thread(read_instructions, folder / target, folder)
    except OSError as error:
        return CommandResult.text(
            f"{target} exists but swecli cannot update it: {error.strerror or error}. Nothing was changed.", "error"
        )
    project = await asyncio.to_thread(Project, folder)
    if not project.scan.files:
        return CommandResult.text(f"{folder} has no files to describe. Nothing was written.", "warning")
    is_own = target.endswith(FILE_NAME)
    make = build_guide if is_own else partial(improve_guide, target=target)
    misnamed = ", ".join(f"`{name}`" for name in project.misnamed(existing)[:8]) if not is_own else ""
    doubts = [f"{target} mentions things the project does not have; check it: {misnamed}."] if misnamed else []
    if not project.scan.complete:
        doubts.append("The project is large; swecli read only part of it.")
    rejected: list[tuple[str, str]] = []
    while True:
        prose = await _prose(session, project, rejected)
        guide = await asyncio.to_thread(make, project, prose or Prose(), existing, date.today().isoformat())
        if rejected and guide.text == rejected[-1][0]:
            return CommandResult.text(f"{target} was not written. The model's answer to your note is the same. {_EDIT}")
        if guide.text == existing or (is_own and _same(existing, guide.text, project.commit)):
            return CommandResult.text("\n".join([f"{target} is up to date. Nothing was changed.", *doubts]))
        if only_shown:
            change = DiffBlock(target, existing or None, guide.text)
            text = "\n".join([*doubts, f"Nothing was written; /init writes {target} once you agree."])
            return CommandResult((change, TextBlock(text)))
        if not rejected and (notice := _kept(target, guide)):
            session.notice(notice)  # before the question, which shows all of the file as overwritten
        run = await session.command_tools.run("write_file", {"path": str(folder / target), "content": guide.text})
        if not run.said:
            break
        if prose is None:
            return CommandResult.text(f"{target} was not written. No model answered to your note. {_EDIT}", "warning")
        rejected.append((guide.text, run.said))
    if run.is_error:
        return CommandResult.text(f"{target} was not written. {run.why}", "warning")
    return CommandResult.text("\n".join([*_report(target, guide, prose), *doubts, counts_from(session)]))


async def _prose(session: Session, project: Project, rejected: Sequence[tuple[str, str]]) -> Prose | None:
    """The model's part; None without a model or an answer. ``rejected`` are earlier texts of the file, each with the
    user's note."""
    model = session.view.model
    if model is None:
        return None
    limit = LEAN_CHARS if model.window is not None and model.window <= LEAN_WINDOW else FULL_CHARS
    facts = await asyncio.to_thread(question, project, limit)
    if rejected:
        notes = "\n".join(f"- {note}" for _, note in rejected)
        facts += (
            f"\n\nYour last answer became this guide:\n<guide>\n{rejected[-1][0]}\n</guide>\n\n{_REJECTED}\n{notes}"
        )
    answer = await session.questions.ask(read_prompt("init_system"), facts)
    return None if answer is None else parse_prose(answer, project)


def _same(existing: str, new: str, commit: str) -> bool:
    """Whether only the date would change."""

    def rest(document: str) -> list[str]:
        return [section.text for section in split(document)[0] if section.key != "current-state"]

    return bool(existing) and rest(existing) == rest(new) and (not commit or commit in existing)


def _kept(target: str, guide: Guide) -> str:
    """Hand-written parts of swecli's own file, which stay; empty if there are none."""
    if not target.endswith(FILE_NAME) or not guide.kept:
        return ""
    names = ("the text before the first section" if key == TOP else key.replace("-", " ") for key in guide.kept)
    return f"Sections of {target} kept as you wrote them: {', '.join(names)}."


def _report(target: str, guide: Guide, prose: Prose | None) -> Iterator[str]:
    if not target.endswith(FILE_NAME):
        keys = ", ".join(key.replace("-", " ") for key in guide.kept)
        yield f"{target} now has {keys}; the rest is as you wrote it."
        return
    yield f"Wrote {target}: about {guide.tokens:,} tokens."
    if prose is None:
        yield "Written without a model, only from the project's files."
    elif prose == Prose():
        yield "The model's answer had nothing usable, so this comes from the project's files alone. /init asks again."
    elif prose.dropped:
        yield f"Dropped {prose.dropped} of the model's statements because they named things that do not exist."
    if guide.tokens > MAX_TOKENS:
        yield f"Your own sections alone exceed {MAX_TOKENS:,} tokens; shorten them."
