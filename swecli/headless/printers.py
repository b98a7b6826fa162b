"""What a headless run writes: text, JSON, event streams and the linear transcript."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import Any, Literal, Protocol

from swecli.core.protocol.budget import Budget
from swecli.core.protocol.codec import encode_event, to_text
from swecli.core.protocol.commands import Command, ReplyPermission
from swecli.core.protocol.events import Event, QuestionAsked
from swecli.core.protocol.messages import usage_words
from swecli.event_lines import EventLines, trouble_line
from swecli.headless.outcome import Denial, Outcome
from swecli.output import Output


class Printer(Protocol):
    """Shows a run as it happens. Both methods raise ``OutputClosed`` when nobody reads any more."""

    def event(self, event: Event) -> None: ...

    def replied(self, command: Command) -> None: ...

    def finish(self, outcome: Outcome) -> None: ...


def result_object(outcome: Outcome) -> dict[str, Any]:
    """The result of the run as it is written in json and as the last line of stream-json."""
    usage, error, stop, ended = outcome.usage, outcome.error, outcome.stop, outcome.ended
    return {
        "type": "result",
        "status": outcome.status,
        "exit_code": int(outcome.exit_code),
        "text": outcome.text,
        "structured_output": outcome.structured,
        "error": {"kind": error[0], "message": error[1]} if error else None,
        "stop": {
            "kind": stop.kind,
            "reason": ended.reason if ended is not None else "",
            "raw": stop.raw,
            "detail": stop.detail,
        }
        if stop is not None
        else None,
        "session": outcome.session,
        "model": outcome.model or None,
        "context": context_figures(outcome.budget),
        "turns": outcome.turns,
        "steps": outcome.steps,
        "usage": {
            "input_total": usage.input_total,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
            "output_total": usage.output_total,
            "reasoning": usage.reasoning,
        },
        "cost": None if outcome.cost is None else str(outcome.cost),
        "denials": [
            {"tool": denial.tool, "title": denial.title, "reason": denial.reason, "approval_needed": denial.asked}
            for denial in outcome.denials
        ],
    }


def context_figures(budget: Budget | None) -> dict[str, Any] | None:
    """The figures of ``/context``, in tokens; None while nothing was measured."""
    if budget is None:
        return None
    return {
        "used": budget.used,
        "effective": budget.effective,
        "window": budget.window,
        "window_source": budget.window_source,
        "share": round(budget.share, 6),
        "shown": budget.shown,
    }


class ResultPrinter:
    """The result on standard output: the answer as text, or one JSON object, which in the form "stream-json" follows
    every event with its envelope on a line of its own. Troubles go to standard error unless they are among those."""

    def __init__(self, out: Output, err: Output, form: Literal["text", "json", "stream-json"]) -> None:
        self._out = out
        self._err = err
        self._form = form

    def event(self, event: Event) -> None:
        if self._form == "stream-json":
            self._out.line(encode_event(event))
        elif line := trouble_line(event):
            self._err.note(line)

    def replied(self, command: Command) -> None:
        """The denial is reported at the end, as an event or as a part of the result."""

    def finish(self, outcome: Outcome) -> None:
        if self._form != "text":
            self._out.line(to_text(result_object(outcome)))
        elif outcome.fits:
            self._out.line(to_text(outcome.structured))
        elif text := outcome.text.rstrip("\n"):
            self._out.text(f"{text}\n")
        for line in closing_lines(outcome):
            self._err.note(line)


def closing_lines(outcome: Outcome) -> list[str]:
    """What standard error gets at the end: denials and why the run did not end well."""
    lines = [f"not allowed: {denial_line(denial)}" for denial in outcome.denials]
    if any(denial.asked for denial in outcome.denials):
        lines.append(allowing(outcome.offers))
    ended = outcome.ended
    if outcome.status == "interrupted":
        lines.append("interrupted")
    elif ended is not None and ended.outcome != "done":
        lines.append(f"{ended.outcome}: {ended.reason or ended.error_kind or 'no reason given'}")
    elif ended is not None and ended.reason:
        lines.append(ended.reason)
    if outcome.mismatch is not None:
        lines.append(f"the answer does not match the schema: {outcome.mismatch}")
    return lines


def allowing(offers: Iterable[str]) -> str:
    """Which flags allow calls that nobody could be asked about; ``offers`` are the rules that would have."""
    rules = ",".join(offers)
    if not rules:
        return "--allowed-tools RULE or another --permission-mode may allow such calls"
    return f"to allow such calls: --allowed-tools {quote(rules)}, or another --permission-mode"


def denial_line(denial: Denial) -> str:
    target = f" {denial.title}" if denial.title else ""
    return f"{denial.tool}{target} ({denial.reason})"


class TranscriptPrinter:
    """Every event in words, then the figures of the run. All of it goes to standard output."""

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
    parts = [outcome.status, f"{outcome.steps} model steps"]
    if tokens := usage_words(outcome.usage):
        parts.append(tokens)
    if budget is not None:
        parts.append(f"context {budget.used:,} of {budget.effective:,} tokens ({budget.shown})")
    share = outcome.usage.cache_share
    if share is not None:
        parts.append(f"{share:.0%} of the prompts from the cache")
    if outcome.cost:
        parts.append(f"${outcome.cost}")
    return f"[{', '.join(parts)}]"
