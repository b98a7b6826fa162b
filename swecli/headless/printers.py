"""What a headless run prints: a result, a stream of events, or a transcript."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Sequence
from shlex import quote
from typing import Literal, Protocol

from swecli.core.llm.remedies import for_shell
from swecli.core.permissions.decide import NO_RULE_NOW
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.codec import encode_event, to_text
from swecli.core.protocol.commands import Command, ReplyPermission
from swecli.core.protocol.events import Event, QuestionAsked
from swecli.core.protocol.messages import usage_words
from swecli.core.protocol.result import RefusedCall, Result, ResultContext, ResultError, ResultStop, ResultUsage
from swecli.event_lines import EventLines, trouble_line
from swecli.exit_codes import ExitCode
from swecli.figures import plural
from swecli.headless.outcome import Denial, Outcome
from swecli.launch import LaunchOptions, OutputFormat, StartError
from swecli.output import Output, OutputClosed


class Printer(Protocol):
    """Shows a run while it happens. Both methods raise ``OutputClosed`` if the reader has gone."""

    def event(self, event: Event) -> None: ...

    def replied(self, command: Command) -> None: ...

    def finish(self, outcome: Outcome) -> None: ...


def result_object(outcome: Outcome) -> Result:
    """The result of the run for json and for the last line of stream-json."""
    usage, error, stop, ended = outcome.usage, outcome.error, outcome.stop, outcome.ended
    return Result(
        status=outcome.status,
        exit_code=int(outcome.exit_code),
        text=outcome.text,
        structured_output=outcome.structured,
        error=ResultError(error[0], for_shell(error[1])) if error else None,
        stop=ResultStop(stop.kind, ended.reason if ended is not None else "", stop.raw, stop.detail) if stop else None,
        session=outcome.session,
        kept=outcome.kept,
        model=outcome.model or None,
        context=context_figures(outcome.budget),
        turns=outcome.turns,
        steps=outcome.steps,
        usage=ResultUsage(usage.input_total, usage.cache_read, usage.cache_write, usage.output_total, usage.reasoning),
        cost=None if outcome.cost is None else str(outcome.cost),
        denials=tuple(
            RefusedCall(denial.tool, denial.title, denial.reason, denial.asked) for denial in outcome.denials
        ),
    )


def context_figures(budget: Budget | None) -> ResultContext | None:
    """The figures of ``/context``; None before the first measure."""
    if budget is None:
        return None
    return ResultContext(
        used=budget.used,
        effective=budget.effective,
        window=budget.window,
        window_source=budget.window_source,
        share=round(budget.share, 6),
        shown=budget.shown,
    )


class ResultPrinter:
    """The result on standard output: the answer as text, or one JSON object. In the form "stream-json" it follows all
    events, each in its envelope on a line of its own. Problems go to standard error unless they are among those."""

    def __init__(self, out: Output, err: Output, form: Literal["text", "json", "stream-json"]) -> None:
        self._out = out
        self._err = err
        self._form = form

    def event(self, event: Event) -> None:
        if self._form == "stream-json":
            self._out.line(encode_event(event))
        elif line := trouble_line(event):
            self._err.note(for_shell(line))

    def replied(self, command: Command) -> None:
        """Nothing to print: the denial is reported at the end, as an event or as a part of the result."""

    def finish(self, outcome: Outcome) -> None:
        if self._form == "text" and (refused := refusal_line(outcome)):
            self._err.note(refused)
        if self._form != "text":
            self._out.line(to_text(result_object(outcome)))
        elif outcome.fits:
            self._out.line(to_text(outcome.structured))
        elif text := outcome.text.rstrip("\n"):
            self._out.text(f"{text}\n")
        for line in closing_lines(outcome):
            self._err.note(line)


def refusal_line(outcome: Outcome) -> str:
    """How many calls the missing user could have approved; precedes an answer that may not mention them. Empty if
    none."""
    asked = [denial for denial in outcome.denials if denial.asked]
    were = "call was" if len(asked) == 1 else "calls were"
    see = "; see --allowed-tools" if any(denial.why != "hook" for denial in asked) else ""
    return f"{len(asked):,} {were} refused (no user to approve){see}" if asked else ""


def closing_lines(outcome: Outcome) -> list[str]:
    """Final lines for standard error: denials and the reason of a failure."""
    lines = [f"not allowed: {denial_line(denial)}" for denial in outcome.denials]
    if any(denial.asked and denial.why == "rule" for denial in outcome.denials):
        lines.append(allowing(outcome.offers))
    if any(denial.why == "outside" for denial in outcome.denials):
        lines.append(f"{NO_RULE_NOW} Split the work into several runs; --yolo runs everything.")
    ended = outcome.ended
    if outcome.status == "interrupted":
        lines.append(f"interrupted: {ended.reason}" if ended is not None and ended.reason else "interrupted")
    elif ended is not None and ended.outcome != "done":
        lines.append(for_shell(f"{ended.outcome}: {ended.reason or ended.error_kind or 'no reason given'}"))
    elif ended is not None and ended.reason:
        lines.append(ended.reason)
    if outcome.mismatch is not None:
        lines.append(f"the answer does not match the schema: {outcome.mismatch}")
    return lines


def allowing(offers: Iterable[str]) -> str:
    """Flags that allow calls refused because the run is unattended; ``offers`` are the rules that would have."""
    rules = ",".join(offers)
    if not rules:
        return "--allowed-tools RULE or another --permission-mode may allow such calls"
    return f"to allow such calls: --allowed-tools {quote(rules)}, or another --permission-mode"


def denial_line(denial: Denial) -> str:
    target = f" {denial.title}" if denial.title else ""
    return f"{denial.tool}{target} ({denial.reason})"


class TranscriptPrinter:
    """Every event in words, then the figures of the run, all on standard output."""

    def __init__(self, out: Output, banner: str = "") -> None:
        self._lines = EventLines(lambda line: out.text(f"{line}\n"), cut=True)
        if banner:
            self._lines.say([banner])

    def event(self, event: Event) -> None:
        if isinstance(event.body, QuestionAsked):
            self._lines.say(question.text for question in event.body.questions)
        self._lines.event(event)

    def replied(self, command: Command) -> None:
        if isinstance(command, ReplyPermission):
            answer = "no" if command.choice == "reject" else "yes"
            self._lines.say([f"> {answer}{f': {command.note}' if command.note else ''}"])

    def finish(self, outcome: Outcome) -> None:
        self._lines.say([*closing_lines(outcome), _figures(outcome)])


def _figures(outcome: Outcome) -> str:
    budget = outcome.budget
    parts = [outcome.status, plural(outcome.steps, "model step")]
    if tokens := usage_words(outcome.usage, estimated=outcome.estimated):
        parts.append(tokens)
    if budget is not None:
        parts.append(f"context {budget.used:,} of {budget.effective:,} tokens ({budget.shown})")
    share = outcome.usage.cache_share
    if share is not None:
        parts.append(f"{share:.0%} of the prompts from the cache")
    if outcome.cost:
        parts.append(f"${outcome.cost}")
    return f"[{', '.join(parts)}]"


def start_failed(wanted: OutputFormat, error: StartError) -> None:
    """Write a JSON result even without a session."""
    outcome = Outcome()
    outcome.start_error = error
    _only_a_result(wanted, outcome, ())


def never_began(wanted: OutputFormat, code: ExitCode) -> ExitCode:
    """The same for a run ended by a signal before there was a session."""
    outcome = Outcome()
    outcome.signal = code
    _only_a_result(wanted, outcome, closing_lines(outcome))
    return code


def _only_a_result(wanted: OutputFormat, outcome: Outcome, lines: Sequence[str]) -> None:
    if wanted in ("json", "stream-json"):
        with contextlib.suppress(OutputClosed):
            Output(sys.stdout).line(to_text(result_object(outcome)))
    for line in lines:
        Output(sys.stderr).note(line)


def printer_for(options: LaunchOptions, out: Output, err: Output) -> Printer:
    match options.output_format:
        case "transcript":
            return TranscriptPrinter(out, options.banner)
        case form:
            return ResultPrinter(out, err, form)
