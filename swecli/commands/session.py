"""Commands about the session: /status, /usage, /jobs, /copy and others; /export and /handoff write files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import time
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from swecli import __version__
from swecli.commands.base import Clip, CommandResult, SlashCommand, Word, fixed_words, no_instructions
from swecli.commands.context import provider_text
from swecli.commands.mode import mode_label, mode_meaning
from swecli.core.atomic_text import make_private
from swecli.core.config.paths import user_paths
from swecli.core.context_management.instructions import MAX_BYTES, nested_instructions, project_root, read_head
from swecli.core.engine.state import Spending, Tally
from swecli.core.llm.catalog import SEARCH_PRICES
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import DisplayBlock, MarkdownBlock, TableBlock, TerminalBlock, TextBlock, TodoBlock
from swecli.core.protocol.budget import Budget, window_words
from swecli.core.protocol.commands import CarryOut, SetMode, Submit
from swecli.core.protocol.events import MAIN, ItemCompleted, Price, SandboxChanged
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.protocol.modes import MODES
from swecli.core.tools.base import readable_size
from swecli.core.workspace.jobs import JobInfo, JobsError, shown_age
from swecli.core.workspace.text_file import shown_path
from swecli.export.destination import (
    FORCE,
    Destination,
    DestinationError,
    destination,
    free_name,
    located,
    write_export,
)
from swecli.figures import dollars, labelled, number, percent, plural
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.context_management.rule_files import RuleFile
    from swecli.core.engine.session import Session
    from swecli.core.engine.session_view import SessionView
    from swecli.core.protocol.events import Event


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
    found = nested_instructions(view.cwd, project_root(view.cwd), known, rules=False)
    return tuple(path for path in found.paths if path not in view.instructions)


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


def _context_words(budget: Budget) -> str:
    reserved = f"; {number(budget.reserve)} of the window are kept free for the answer" if budget.reserve else ""
    return f"{budget.shown} of {number(budget.effective)} tokens{reserved}"


def _warming(model: ModelInfo | None) -> str:
    return "" if model is None else WARMS if model.warms else PREWARMS if model.prewarms else ""


def status_text(view: SessionView, new_instructions: Sequence[str] = (), more: Sequence[tuple[str, str]] = ()) -> str:
    """``more`` are the rows of the session's companions."""
    model, budget = view.model, view.budget
    size, source = (model.window, model.window_source) if model else (0, "")
    if budget:  # the limit for requests
        size, source = budget.window, budget.window_source
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
            ("Warm-up", _warming(model)),
            ("Sandbox", sandbox_text(view.sandbox)),
            (
                "Mode",
                f"{mode_label(view.mode, yolo=view.yolo)}: {mode_meaning(view.mode, view.sandbox, yolo=view.yolo)}",
            ),
            (
                "Context",
                _context_words(budget) if budget else "not measured yet",
            ),
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
TURNS = 20
"""Newest turns to list."""


PRICE_FORM = "INPUT OUTPUT [CACHED], in dollars per million tokens"
_RATE = lazy_pattern(r"\$?(\d{1,6}(?:\.\d{1,9})?|\.\d{1,9})\$?")


def price_of(text: str) -> Price | None:
    """A typed price: two or three numbers, with or without separators; None for anything else."""
    words = [word for word in re.split(r"[\s,/;]+", text.strip()) if word]
    rates = [found[1] for word in words if (found := _RATE.fullmatch(word)) is not None]
    return Price(*rates) if len(rates) == len(words) and len(rates) in (2, 3) else None


async def _run_price(session: Session, words: str) -> CommandResult:
    first, _, rest = words.partition(" ")
    model = session.view.model
    ref = first if "/" in first and price_of(first) is None else model.ref if model is not None else ""
    price = price_of(rest if ref == first else words)
    if not ref:
        return CommandResult.text("No model is connected; name one: /usage price PROVIDER/NAME 3 15 0.3", "error")
    if not words:
        example = TextBlock(f"A price is {PRICE_FORM}, for example /usage price 3 15 0.3", "error")
        return CommandResult(screen="price", argument=ref, instead=(example,))
    if price is None:
        return CommandResult.text(f"A price is {PRICE_FORM}, for example /usage price 3 15 0.3", "error")
    try:
        where = await session.offers.set_price(ref, price)
    except ValueError as error:
        return CommandResult.text(str(error), "error")
    cached = f", cached ${price.cached}" if price.cached is not None else ""
    spent = session.view.spending.by_model.get(ref)
    so_far = f" This session's cost with it so far: {dollars(spent.cost)}." if spent is not None else ""
    return CommandResult.text(
        f"Price of {ref}: input ${price.input}, output ${price.output}{cached} per million tokens, written to"
        f" models.price in {where}.{so_far}"
    )


def _unpriced_text(models: Sequence[str]) -> str:
    """How to set the unknown prices, by command and by setting; empty if all are known."""
    if not models:
        return ""
    form = f'[models.price] "{models[0]}" = {{ input = 3, output = 15, cache_read = 0.3 }}'
    return (
        f"Price of {', '.join(models)} unknown. /usage price 3 15 0.3 sets input, output and cached input in dollars"
        f" per million tokens; in your settings: {form}"
    )


async def _run_usage(session: Session, arguments: str) -> CommandResult:
    first, _, rest = arguments.partition(" ")
    if first == "price":
        return await _run_price(session, rest.strip())
    if arguments:
        return CommandResult.text(f"/usage shows the usage; /usage price sets a price: {PRICE_FORM}.", "error")
    unpriced = session.offers.unpriced
    spending = session.view.spending
    turns = [(str(number) if number else "-", tally) for number, tally in spending.by_turn.items()]
    tables = (
        _table("By model", "model", list(spending.by_model.items())),
        _table("By agent", "agent", _by_agent(session.view)),
        _table("By turn", "turn", turns[-TURNS:]),
    )
    blocks = (TextBlock(usage_text(session.view)), *(table for table in tables if table.rows))
    return CommandResult((*blocks, TextBlock(_unpriced_text(unpriced), "dim")) if unpriced else blocks)


def _by_agent(view: SessionView) -> list[tuple[str, Tally]]:
    """Usage of the main agent and each subagent; empty without subagents."""
    tallies = view.spending.by_agent
    if not view.agents:
        return []
    agents = [(f"{one.id} ({one.started.profile})", tallies[one.id]) for one in view.agents if one.id in tallies]
    return [(MAIN, tallies.get(MAIN, Tally())), *agents[-TURNS:]]


USAGE = SlashCommand(
    "usage",
    "Show tokens and cost of this session; set a price",
    _run_usage,
    aliases=("cost", "stats"),
    arguments="[price INPUT OUTPUT [CACHED]]",
    under="status",
)


def usage_text(view: SessionView) -> str:
    totals, last = view.totals, view.last_usage
    tools = ", ".join(f"{name} {count}" for name, count in sorted(totals.by_tool.items(), key=lambda pair: -pair[1]))
    silent = bool(totals.input_tokens) and not totals.cache_read and view.spending.total.usage.cache_read is None
    share = totals.cache_read / totals.input_tokens if totals.input_tokens and not silent else None
    cache = last.cache_share if last else None
    told = bool(totals.input_tokens or totals.output_tokens or not totals.steps)

    def known(count: int) -> str:
        return f"{'about ' if totals.estimated else ''}{number(count)}" if told else "?"

    return labelled(
        (
            ("Turns", number(totals.turns)),
            # Requests outside turns, such as of /init, are no steps.
            ("Model requests", number(max(totals.steps, view.spending.total.responses))),
            ("Tool calls", number(totals.tools) + (f" ({tools})" if tools else "")),
            ("Input tokens", known(totals.input_tokens)),
            (
                "  cached",
                "?" if silent else known(totals.cache_read) + (f" ({percent(share)})" if share is not None else ""),
            ),
            ("Output tokens", known(totals.output_tokens)),
            *([("Web searches", _searches(view.spending))] if view.spending.total.usage.web_searches else []),
            ("Cache share of the last request", percent(cache) if cache is not None else "?"),
            ("Cost", _cost(totals.cost, totals.estimated) if totals.steps else "no request yet"),
        )
    )


def _searches(spending: Spending) -> str:
    """Number and cost of the providers' web searches."""
    counts = {model: tally.usage.web_searches or 0 for model, tally in spending.by_model.items()}
    prices = [SEARCH_PRICES.get(model.partition("/")[0]) for model, count in counts.items() if count]
    total = number(sum(counts.values()))
    if None in prices:
        return total
    pairs = zip(prices, filter(None, counts.values()), strict=True)
    cost = sum((price * count for price, count in pairs if price is not None), Decimal(0))
    return f"{total} ({dollars(cost)}, part of the cost)"


def _table(title: str, name: str, rows: Sequence[tuple[str, Tally]]) -> TableBlock:
    lines: list[tuple[str, ...]] = []
    for label, tally in rows:
        usage = tally.usage
        share = usage.cache_share
        lines.append(
            (
                label,
                number(tally.responses),
                number(usage.input_total) if usage.input_total is not None else "?",
                percent(share) if share is not None else "?",
                number(usage.output_total) if usage.output_total is not None else "?",
                _cost(tally.cost, tally.estimated),
            )
        )
    return TableBlock((name, "requests", "input", "cached", "output", "cost"), tuple(lines), title, figures=True)


def _cost(cost: Decimal | None, estimated: bool) -> str:
    """``about`` if an answer broke off before it reported its usage."""
    return f"about {dollars(cost)}" if estimated and cost is not None else dollars(cost)


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


JOBS_USAGE = (
    "/jobs list shows background jobs; /jobs j1 shows a job's output, /jobs stop j1 stops it; also /jobs stop all."
)
_COMMAND = 60
"""Characters of a command in the list."""
_STOP = ("stop", "kill", "end")


async def _run_jobs(session: Session, arguments: str) -> CommandResult:
    words = arguments.split()
    try:
        if not words:
            return CommandResult(screen="jobs", instead=_listed(session))
        if words == ["list"]:
            return CommandResult(_listed(session))
        if words[0] in _STOP and len(words) == 2:
            return await _stopped(session, words[1])
        if len(words) == 1 and words[0] not in _STOP:
            return await _shown(session, words[0])
    except JobsError as error:
        return CommandResult.text(str(error), "error")
    return CommandResult.text(JOBS_USAGE, "warning")


def _listed(session: Session) -> tuple[DisplayBlock, ...]:
    jobs = session.view.jobs
    if not jobs:
        return (TextBlock("No background jobs.", "dim"),)
    return (TableBlock(("Job", "Status", "Age", "Output", "Command"), tuple(_row(job) for job in jobs)),)


def _row(job: JobInfo) -> tuple[str, ...]:
    command = " ".join(job.command.split())
    command = command if len(command) <= _COMMAND else f"{command[: _COMMAND - 1]}…"
    size = readable_size(job.size) if job.tokens is None else f"{job.tokens:,} tokens"
    return job.id, status_of(job), shown_age((job.ended or time.time()) - job.started), size, command


def status_of(job: JobInfo) -> str:
    if job.status == "running":
        if not job.pid:  # a subagent
            return "running"
        return f"running (pid {job.pid})" if job.exit_status is None else "left running"
    if job.tokens is not None and job.status != "killed":
        return "done"
    return "stopped" if job.status == "killed" else f"exit {job.exit_status}"


async def _shown(session: Session, name: str) -> CommandResult:
    output = await session.job_output(name)
    job = next(job for job in session.view.jobs if job.id == name)
    if job.tokens is not None:
        facts = f"{job.id} · {job.command} · {status_of(job)} · {job.tokens:,} tokens"
        return CommandResult((TextBlock(facts, "dim"), TextBlock(output)))
    status = job.exit_status if job.status == "exited" else None
    duration = (job.ended or time.time()) - job.started
    return CommandResult((TerminalBlock(job.command, output, status, duration=duration),))


async def _stopped(session: Session, name: str) -> CommandResult:
    names = [job.id for job in session.view.jobs if job.status == "running"] if name == "all" else [name]
    if not names:
        return CommandResult.text("No background jobs.", "dim")
    ended = [await session.stop_job(one) for one in names]
    return CommandResult.text("\n".join(f"{job.id} {status_of(job)}: {job.command}" for job in ended))


def _job_words(session: Session) -> Iterable[Word]:
    for job in session.view.jobs:
        yield Word(job.id, job.command)
        if job.status == "running":
            yield Word(f"stop {job.id}", job.command)


JOBS = SlashCommand(
    "jobs",
    "List background jobs, show their output, stop them",
    _run_jobs,
    arguments="[list | job | stop job]",
    words=_job_words,
)


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


# /export and /handoff: the session as a file.


EXPORTS = "exports"
"""Folder of exports without a name, in the user's data: in the project they would be committed."""


async def _run_export(session: Session, arguments: str) -> CommandResult:
    outside = user_paths(os.environ).data / EXPORTS
    try:
        place = destination(arguments, session.view.cwd, f"swecli-{session.view.session_id}", outside)
        events = await session.facts()
        if not any(isinstance(event.body, ItemCompleted) for event in events):
            return CommandResult.text("Nothing to export yet: no message was sent.", "warning")
        if place.path.parent == outside:
            await asyncio.to_thread(make_private, outside)
        lost = await asyncio.to_thread(_export, session, events, place, await session.name())
    except DestinationError as error:
        return CommandResult.text(str(error), "error")
    except OSError as error:
        return CommandResult.text(f"Cannot create {outside} ({error.strerror or error}). Nothing was written.", "error")
    notes = "".join(f"\n{line}" for line in lost)
    return CommandResult.text(
        f"Exported as {_named(place.format)}: {_written(place.path, session.view.cwd)}. Known keys are masked.{notes}"
    )


def _written(path: Path, cwd: Path) -> str:
    return f"{shown_path(str(path), cwd)} ({readable_size(path.stat().st_size)})"


def _named(name: str) -> str:
    return {"markdown": "Markdown", "json": "JSON", "html": "an HTML page"}[name]


def _export(session: Session, events: Sequence[Event], place: Destination, name: str) -> list[str]:
    """Write the file. Returns sentences about omitted content."""
    from swecli.export.rendering import rendered

    lost: list[str] = []
    text = rendered(events, place.format, session.cover, get=session.stored_result, report=lost.append, name=name)
    write_export(place.path, text, replace=place.replace)
    return lost


EXPORT = SlashCommand(
    "export",
    "Write this session to a file: an HTML page, Markdown or JSON",
    _run_export,
    aliases=("save",),
    arguments="[file | html | markdown | json]",
    words=fixed_words(html="a page that needs nothing else", markdown="for editors", json="can be imported again"),
)


async def _run_handoff(session: Session, arguments: str) -> CommandResult:
    from swecli.export.handoff import HandoffError, handoff_markdown, handoff_of

    cwd, name = session.view.cwd, arguments.strip()
    replace = FORCE in name.split()
    name = " ".join(word for word in name.split(" ") if word != FORCE)
    try:
        path = located(name, cwd) if name else free_name(cwd, "handoff", ".md")
        events = await session.facts()
        now = max((event.ts for event in events), default=0.0)
        bundle = await asyncio.to_thread(handoff_of, events, Path(cwd), session.cover, now)
        await asyncio.to_thread(write_export, path, handoff_markdown(bundle), replace=replace)
    except HandoffError as error:
        return CommandResult.text(f"Nothing was written: {error}.", "warning")
    except DestinationError as error:
        return CommandResult.text(str(error), "error")
    counts = (
        (len(bundle.files), "changed file"),
        (len(bundle.constraints), "constraint"),
        (len(bundle.decisions), "decision"),
        (sum(todo.status != "completed" for todo in bundle.todos), "open todo"),
        (len(bundle.checks), "check"),
    )
    what = ", ".join(plural(count, word) for count, word in counts if count)
    return CommandResult.text(
        f"Handoff bundle written: {_written(path, cwd)}{f': {what}' if what else ''}. Continue from it with: "
        f"swecli --from {shlex.quote(shown_path(str(path), cwd))}"
    )


HANDOFF = SlashCommand(
    "handoff",
    "Write a bundle to continue from in a new session, with another model or by hand",
    _run_handoff,
    arguments="[file]",
    under="export",
)
