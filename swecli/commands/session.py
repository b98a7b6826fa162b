"""Commands about the session: /status, /plan, /copy and others."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swecli import __version__
from swecli.commands.base import Clip, CommandResult, SlashCommand, fixed_words, no_instructions
from swecli.commands.context import provider_text
from swecli.commands.mode import mode_label, mode_meaning
from swecli.core.context_management.instructions import MAX_BYTES, nested_instructions, project_root, read_head
from swecli.core.protocol.blocks import MarkdownBlock, TextBlock, TodoBlock
from swecli.core.protocol.budget import window_words
from swecli.core.protocol.commands import CarryOut, SetMode, Submit
from swecli.core.protocol.events import SandboxChanged
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.protocol.modes import MODES
from swecli.figures import labelled, number, plural
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.context_management.rule_files import RuleFile
    from swecli.core.engine.session import Session
    from swecli.core.engine.session_view import SessionView


async def _run_status(session: Session, arguments: str) -> CommandResult:
    await session.start_settled()
    new = await asyncio.to_thread(_new_instructions, session.view)
    return CommandResult.text(status_text(session.view, new, session.status()))


def _new_instructions(view: SessionView) -> tuple[str, ...]:
    """Instruction files that a new session would read in this folder and this one did not."""
    if view.no_instructions:
        return ()
    known: list[str] = []
    for path in view.instructions:
        with contextlib.suppress(OSError):  # removed meanwhile
            known.append(read_head(Path(path), MAX_BYTES).digest)
    nested = nested_instructions(view.cwd, project_root(view.cwd), known, rules=False)
    return tuple(path for path in nested.paths if path not in view.instructions)


SHOWN_RULES = 12
"""Rules of one kind that /status names."""

STATUS = SlashCommand("status", "Show session, model, mode, folder and instructions", _run_status)


def sandbox_text(state: SandboxChanged | None) -> str:
    if state is None:
        return "not checked yet"
    why = f": {state.reason}" if state.reason else ""
    open_ = f"; not protected: {', '.join(state.uncovered)}" if state.uncovered else ""
    more = f" and {state.masked_count - len(state.masked)} more" if state.masked_count > len(state.masked) else ""
    masked = f"; commands can't read {', '.join(state.masked)}{more}" if state.masked else ""
    return f"off{why}" if state.level == "off" else f"{state.level} ({state.layer}){why}{open_}{masked}"


def rules_text(rules: Sequence[RuleFile]) -> str:
    """The instruction files that apply under a condition, by their condition; empty without any."""
    kinds = (
        ("matching", "for matching files"),
        ("described", "if the task fits"),
        ("mentioned", "if you mention them"),
    )
    parts: list[str] = []
    for when, words in kinds:
        names = [
            f"{rule.name} ({', '.join(rule.globs)})" if rule.globs else rule.name for rule in rules if rule.when == when
        ]
        if names:
            parts.append(f"{words}: {', '.join(names[:SHOWN_RULES])}{' …' if len(names) > SHOWN_RULES else ''}")
    return "; ".join(parts)


def status_text(view: SessionView, new_instructions: Sequence[str] = (), more: Sequence[tuple[str, str]] = ()) -> str:
    """``more`` are the rows of the session's companions."""
    model, budget = view.model, view.budget
    size, source = (model.window, model.window_source) if model else (0, "")
    if budget:  # the limit for requests
        size, source = budget.window, budget.window_source
    context = "not measured yet"
    if budget:
        reserved = f"; {number(budget.reserve)} of the window are kept free for the answer" if budget.reserve else ""
        context = f"{budget.shown} of {number(budget.effective)} tokens{reserved}"
    facts = f", window {window_words(size, source)}" if size else ""
    facts += ", tools as text" if model is not None and not model.tools else ""

    def near(path: str) -> str:
        return str(Path(path).relative_to(view.cwd)) if Path(path).is_relative_to(view.cwd) else path

    new = [f"{near(path)} (since the start)" for path in new_instructions]
    return labelled(
        (
            ("swecli", __version__),
            ("Session", view.session_id),
            ("Folder", str(view.cwd)),
            ("Also", ", ".join(str(root) for root in view.roots if root != view.cwd)),
            ("Model", f"{model.ref}{facts}" if model else "none; choose one with /model provider/name"),
            ("Next model", f"{view.planned_model}, from the next compaction on" if view.planned_model else ""),
            ("Address", model.address if model else ""),
            ("Warm-up", "" if model is None else WARMS if model.warms else PREWARMS if model.prewarms else ""),
            ("Sandbox", sandbox_text(view.sandbox)),
            (
                "Mode",
                f"{mode_label(view.mode, yolo=view.yolo)}: {mode_meaning(view.mode, view.sandbox, yolo=view.yolo)}",
            ),
            ("Context", context),
            ("Provider", provider_text(view.conversation)),
            ("Instructions", ", ".join((*map(near, view.instructions), *new)) or no_instructions(view)),
            ("Rules", rules_text(view.rule_files)),
            *more,
            ("Queued messages", number(len(view.queue)) if view.queue else ""),
            ("State", "working" if view.busy else "idle"),
        )
    )


WARMS = "the server evaluates the prompt while you read and type (models.warm)"
PREWARMS = "the provider fills its cache after a resume, compaction or switch, at a price (models.warm)"


async def _run_doctor(session: Session, arguments: str) -> CommandResult:
    if arguments not in ("", "online"):
        return CommandResult.text("/doctor checks the setup; /doctor online also contacts each provider.", "error")
    blocks = await session.examine(online=arguments == "online")
    return CommandResult(tuple(blocks)) if blocks else CommandResult.text("No checks are available here.")


DOCTOR = SlashCommand(
    "doctor",
    "Check models, keys, sandbox, storage and terminal",
    _run_doctor,
    arguments="[online]",
    words=fixed_words(online="also contact each provider"),
)


async def _run_plan(session: Session, arguments: str) -> CommandResult:
    match arguments.split():
        case []:
            session.send(SetMode("plan"))
            return CommandResult.text(f"Mode plan: {MODES['plan'].meaning}. /plan go carries out a plan.")
        case ["go"]:
            session.send(CarryOut())
            return CommandResult()
        case ["go", "accept-edits"]:
            session.send(CarryOut("accept-edits"))
            return CommandResult()
        case ["show"]:
            return await _show_plan(session)
        case ["edit"]:
            plan = await asyncio.to_thread(session.plan)
            if plan is None or plan.accepted:
                return CommandResult.text("No plan is waiting for your approval.", "error")
            if not plan.path:
                text = "The plan has no file because this folder is not trusted. Say what to change."
                return CommandResult.text(text, "error")
            return CommandResult(screen="edit_plan", instead=(TextBlock(f"Edit {plan.path}, then /plan go."),))
        case [first, _, *_] if first not in ("go", "show", "edit"):
            if session.view.busy:
                return CommandResult.text("A turn is running; try again when it ends. Nothing was sent.", "error")
            session.send(SetMode("plan"))
            session.send(Submit(arguments.strip()))
            return CommandResult()
        case _:
            use = "Use /plan TASK (two words or more), /plan show, /plan edit, /plan go or /plan go accept-edits."
            return CommandResult.text(f"{use} Nothing was changed or sent.", "error")


async def _show_plan(session: Session) -> CommandResult:
    plan = await asyncio.to_thread(session.plan)
    if plan is None:
        return CommandResult.text("This conversation has no plan yet. /plan starts planning.")
    state = "You approved this plan" if plan.accepted else "This plan needs your approval: /plan go, /plan edit"
    where = f" ({plan.path})" if plan.path else ""
    return CommandResult((TextBlock(f"{state}{where}."), MarkdownBlock(plan.text)))


PLAN = SlashCommand(
    "plan",
    "Plan mode (read-only); go: carry out the plan",
    _run_plan,
    arguments="[TASK | show | edit | go [accept-edits]]",
    words=fixed_words(
        **{
            "show": "show the plan",
            "edit": "change the plan in your editor",
            "go": "carry it out",
            "go accept-edits": "carry it out and accept edits",
        }
    ),
    waits=lambda words: words.strip() not in ("", "show", "edit"),
)


async def _run_todos(session: Session, arguments: str) -> CommandResult:
    todos = session.view.todos
    if not todos:
        return CommandResult.text("No todo list; the agent creates one for tasks with several steps.", "dim")
    return CommandResult((TodoBlock(todos),))


TODOS = SlashCommand("todos", "Show the agent's todo list", _run_todos, under="plan")


COPY_USAGE = "/copy copies the last answer, /copy code its last code block, /copy code 2 the second one."
_WANTED = lazy_pattern(r"(?:(answer)|(code)(?:\s+(\d{1,4}))?)?", re.IGNORECASE)


async def _run_copy(session: Session, arguments: str) -> CommandResult:
    wanted = _WANTED.fullmatch(arguments)
    if wanted is None:
        return CommandResult.text(f"{COPY_USAGE} In the transcript, c copies the block at the cursor.", "error")
    answer = last_answer(session.view.messages)
    if not answer:
        return CommandResult.text("There is no answer to copy yet.", "warning")
    if not wanted[2]:
        return _result(answer, "answer")
    blocks = code_blocks(answer)
    number = int(wanted[3]) if wanted[3] else len(blocks)
    if not 1 <= number <= len(blocks):
        count = plural(len(blocks), "code block") if blocks else "no code blocks"
        return CommandResult.text(f"The last answer has {count}.", "warning")
    return _result(blocks[number - 1], "code")


def _result(text: str, what: str) -> CommandResult:
    return CommandResult(clip=Clip(text, what), instead=(TextBlock(text),))


def last_answer(messages: Sequence[Message]) -> str:
    """The text of the model's newest message with text; empty if there is none."""
    for message in reversed(messages):
        if message.role == "assistant":
            text = "".join(part.text for part in message.parts if isinstance(part, TextPart)).strip()
            if text:
                return text
    return ""


def code_blocks(text: str) -> list[str]:
    """Fenced blocks of a Markdown text, in order, also those in lists and quotes, without their indentation; the last
    may be unterminated."""
    from markdown_it import MarkdownIt  # only this command needs it

    return [token.content.removesuffix("\n") for token in MarkdownIt().parse(text) if token.type == "fence"]


async def _run_btw(session: Session, question: str) -> CommandResult:
    if not question:
        return CommandResult.text("Type the question after it, for example /btw which file has the prices?", "warning")
    answer = await session.questions.ask_aside(question)
    if answer is None:
        return CommandResult.text("No answer arrived. The conversation is unchanged.", "warning")
    return CommandResult(
        (MarkdownBlock(answer), TextBlock("Not part of the conversation: the model will not remember it.", "dim"))
    )


BTW = SlashCommand(
    "btw",
    "Ask a side question, outside the conversation",
    _run_btw,
    aliases=("aside",),
    arguments="question",
    asks_model=True,
)


COPY = SlashCommand("copy", "Copy the last answer, or code from it", _run_copy, arguments="[code [n]]")
