"""Events as lines, each written once and never changed: everything that happens, in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from swecli.block_text import block_lines
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock
from swecli.core.protocol.commands import ReplyPermission
from swecli.core.protocol.compaction_words import CLEARING, completed_line, started_words
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    CompactionUndone,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    ModeChanged,
    ModelChanged,
    Notice,
    PermissionRequested,
    Question,
    QueueChanged,
    RetryScheduled,
    SessionStarted,
    TodosChanged,
    TurnEnded,
    grounds,
    hunk_texts,
)
from swecli.core.protocol.messages import ReasoningPart, TextPart, usage_words
from swecli.safe_text import sanitise

_WORDS = {
    "y": "once",
    "yes": "once",
    "once": "once",
    "a": "always",
    "always": "always",
    "e": "edit",
    "edit": "edit",
    "n": "reject",
    "no": "reject",
}


class NotUnderstood(Exception):
    """The line is no answer; the message says what would be one."""


def approval_hint(request: PermissionRequested) -> str:
    """The answers that there are."""
    always = f", a always ({request.rule}, for this session)" if request.rule else ""
    edit = ""
    if _command(request) is not None:
        edit = ", e and another command, which is then shown for approval,"
    elif len(request.hunks) > 1:
        edit = f", e and the numbers of the changes that are to be made, of 1 to {len(request.hunks)},"
    return f"Answer with y once{always}{edit} or n no, with a word on what to do instead."


def hunk_lines(request: PermissionRequested) -> Sequence[str]:
    """The changes that can be chosen singly, with their numbers; none where there is only one."""
    if len(request.hunks) < 2:
        return ()
    lines = [f"{len(request.hunks)} changes:"]
    for number, hunk in enumerate(request.hunks, 1):
        block = request.blocks[hunk.block]
        if isinstance(block, DiffBlock):
            removed, added = hunk_texts(block, hunk)
            lines.append(f"{number}. {block.path}, line {hunk.new_start}")
            lines += [*(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    return lines


def _command(request: PermissionRequested) -> str | None:
    command = (request.arguments or {}).get("command")
    return command if request.tool == "run_command" and isinstance(command, str) else None


def _changed(request: PermissionRequested, rest: str) -> ReplyPermission:
    """The reply to an ``e`` with what follows it.

    Raises:
        NotUnderstood: that is nothing that can be changed here.
    """
    if _command(request) is not None and rest:
        arguments = {**(request.arguments or {}), "command": rest}
        return ReplyPermission(request.request, "edit", arguments=arguments)
    words = rest.replace(",", " ").split()
    numbers = tuple(sorted({int(word) for word in words if word.isdecimal()}))
    fits = all(1 <= number <= len(request.hunks) for number in numbers)
    if numbers and fits and all(word.isdecimal() for word in words):
        return ReplyPermission(request.request, "once", hunks=numbers)
    raise NotUnderstood(f"Nothing was run. {approval_hint(request)}")


def reply(request: PermissionRequested, line: str) -> ReplyPermission:
    """The reply that a line asks for.

    Raises:
        NotUnderstood: it is neither y, a, e nor n. An empty line never approves.
    """
    word, _, rest = line.strip().partition(" ")
    match _WORDS.get(word.lower().strip(",.")):
        case "once" if not rest:
            return ReplyPermission(request.request, "once")
        case "always" if not rest and request.rule is not None:
            return ReplyPermission(request.request, "always")
        case "reject":
            return ReplyPermission(request.request, "reject", rest.strip())
        case "edit":
            return _changed(request, rest.strip())
        case _:
            raise NotUnderstood(f"Nothing was run. {approval_hint(request)}")


def question_hint(question: Question) -> str:
    """How the question is answered."""
    if not question.options:
        return "Type your answer."
    several = ", or several with commas" if question.multiple else ""
    return f"Answer with a number{several}, or with words of your own."


def answer(question: Question, line: str) -> tuple[str, ...]:
    """The chosen labels, or the words themselves.

    Raises:
        NotUnderstood: it is empty, or a number that no option has.
    """
    text = line.strip()
    if not text:
        raise NotUnderstood(question_hint(question))
    parts = [part.strip() for part in text.split(",")] if question.multiple else [text]
    named = {option.label.casefold(): option.label for option in question.options}
    if all(part.casefold() in named or (question.options and part.isdecimal()) for part in parts):
        return tuple(dict.fromkeys(named.get(part.casefold()) or _label(question, int(part)) for part in parts))
    return (text,)


def question_lines(question: Question, place: int, count: int) -> Sequence[str]:
    """The question with its numbered options."""
    number = f" {place} of {count}" if count > 1 else ""
    header = f"{question.header}: " if question.header else ""
    lines = [f"Question{number}: {header}{question.text}"]
    for at, option in enumerate(question.options, 1):
        lines.append(f"{at}. {option.label}{f': {option.description}' if option.description else ''}")
    return [*lines, question_hint(question)]


def _label(question: Question, number: int) -> str:
    if not 1 <= number <= len(question.options):
        raise NotUnderstood(f"There are options 1 to {len(question.options)}. {question_hint(question)}")
    return question.options[number - 1].label


_DRAWN = re.compile(r"\s*[\u2500-\u259f][\s\u2500-\u259f]*")
"""A line that is drawn, of lines and blocks."""
_MARKS = {"pending": "to do", "in_progress": "at work", "completed": "done"}


class LinearPrinter:
    """Writes the lines of a session with ``write``, which takes one line without its end. Answers and reasoning are
    written line by line as they come, everything else when it is complete."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._started: dict[str, ItemStarted] = {}
        self._streams: dict[str, str] = {}
        """What of a running answer has not been written yet."""
        self._shown: dict[str, tuple[DisplayBlock, ...]] = {}
        self._typed: list[str] = []

    def typed(self, text: str) -> None:
        """The user typed this message, so it is on the screen already."""
        self._typed.append(text)

    def say(self, lines: Iterable[str]) -> None:
        """Write lines of text from anywhere."""
        for line in lines:
            for part in sanitise(line).split("\n"):
                self._write(part.rstrip())

    def blocks(self, blocks: Sequence[DisplayBlock], *, drawings: bool = True) -> None:
        """Write what a slash command or a tool shows. Without ``drawings`` lines of nothing but bars and boxes are left
        out, which would be read aloud sign by sign."""
        for block in blocks:
            self.say(line for line in block_lines(block) if drawings or not _DRAWN.fullmatch(line))

    def event(self, event: Event) -> None:
        """Write what an event has to tell."""
        match event.body:
            case ItemStarted() as started:
                self._finish_lines()
                self._started[started.item] = started
            case ItemDelta(item=item, text=text, channel="text"):
                self._stream(item, text)
            case ItemCheckpointed(item=item, title=title, running=running) if item in self._started:
                self._checkpoint(item, title, running)
            case ItemCompleted() as completed:
                self._complete(completed)
            case PermissionRequested() as request:
                self._ask(request)
            case _:
                self.say(_told(event))

    def _stream(self, item: str, text: str) -> None:
        started = self._started.get(item)
        if started is None or started.kind not in _STREAMED:
            return
        if item not in self._streams:
            self._finish_lines()
            self.say([_STREAMED[started.kind]])
        *lines, rest = (self._streams.get(item, "") + text).split("\n")
        self.say(lines)
        self._streams[item] = rest

    def _finish_lines(self) -> None:
        """Something else begins: write what is open of the lines before it."""
        for item, rest in self._streams.items():
            if rest:
                self.say([rest])
                self._streams[item] = ""

    def _checkpoint(self, item: str, title: str, running: bool) -> None:
        known = self._started[item]
        self._started[item] = ItemStarted(item, known.kind, known.name, title or known.title)
        if running and known.kind == "tool":
            self.say([f"Started: {_call(self._started[item])}"])

    def _complete(self, completed: ItemCompleted) -> None:
        started = self._started.pop(completed.item, None)
        if started is None:
            return
        text = "".join(part.text for part in completed.parts if isinstance(part, TextPart | ReasoningPart))
        ending = "" if completed.status == "ok" else f" ({completed.status})"
        match started.kind:
            case "text" | "reasoning":
                self._end_text(completed.item, _STREAMED[started.kind], text, ending)
            case "user":
                self._user(started, completed, text)
            case "tool" | "attachment":
                detail = f": {completed.detail}" if completed.detail else ""
                self.say([f"{_ENDED[completed.status]}: {_call(started)}{detail}"])
                if completed.blocks != self._shown.pop(completed.item, None):
                    self.blocks(completed.blocks)
            case _:
                pass

    def _end_text(self, item: str, header: str, text: str, ending: str) -> None:
        if item in self._streams:
            rest = self._streams.pop(item)
            self.say([line for line in (rest, ending.strip()) if line])
        elif text.strip():
            self.say([header, text.strip("\n") + ending])

    def _user(self, started: ItemStarted, completed: ItemCompleted, text: str) -> None:
        if started.name == "shell":
            self.blocks(completed.blocks)
        elif text in self._typed:
            self._typed.remove(text)
        else:
            self.say([f"You: {text}"])

    def _ask(self, request: PermissionRequested) -> None:
        self._shown[request.item] = request.blocks
        target = f" {request.title}" if request.title else ""
        self.say([f"Permission needed: {request.tool.replace('_', ' ')}{target}"])
        self.say([*(f"Warning: {warning}" for warning in request.warnings), *request.facts])
        self.say(grounds(request))
        self.blocks(request.blocks)
        self.say([*hunk_lines(request), approval_hint(request)])


_STREAMED = {"text": "Answer:", "reasoning": "Reasoning:"}
_ENDED = {"ok": "Done", "error": "Failed", "rejected": "Rejected", "interrupted": "Interrupted"}


def _call(started: ItemStarted) -> str:
    return f"{started.name.replace('_', ' ')} {started.title}".strip()


def _at(address: str) -> str:
    """Where a model is asked, as far as its name does not say it."""
    return f" at {address}" if address else ""


def _told(event: Event) -> list[str]:
    """Lines of what is no item."""
    match event.body:
        case SessionStarted() as body:
            start = "Session continued" if body.resumed else "New session"
            model = f"{body.model or 'none'}{_at(body.address)}"
            return [f"{start}. swecli {body.swecli}, model {model}, mode {body.mode}, in {body.cwd}."]
        case Notice(level=level, text=text, hint=hint):
            name = {"info": "Note", "warning": "Warning", "error": "Error"}[level]
            return [f"{name}: {text}{f' {hint}' if hint else ''}"]
        case ModeChanged(mode=mode):
            return [f"Mode: {mode}"]
        case ModelChanged(model=model, switched=True, address=address):
            return [f"Model: {model}{_at(address)}"]
        case QueueChanged(queue=queue):
            return [f"Waiting: {entry.text}" for entry in queue]
        case TodosChanged(todos=todos):
            return ["Plan:", *(f"{_MARKS[todo.status]}: {todo.text}" for todo in todos)]
        case RetryScheduled(attempt=attempt, limit=limit, delay=delay, reason=reason):
            number = f"{attempt} of {limit}" if limit else f"{attempt}"
            return [f"Retry {number} in {delay:.0f} seconds: {reason}"]
        case CompactionStarted(strategy=strategy) if (strategy,) != CLEARING:
            return [f"Compacting the context: {started_words(event.body)}."]
        case CompactionCompleted():
            return [completed_line(event.body)]
        case CompactionFailed(reason=reason):
            return [f"Compaction failed, nothing was changed: {reason}"]
        case CompactionUndone():
            return ["Compaction taken back."]
        case TurnEnded(outcome=outcome, reason=reason, duration=duration, usage=usage):
            tokens = usage_words(usage)
            took = f"{duration:.1f} seconds{f', {tokens}' if tokens else ''}"
            return [f"Turn {outcome} in {took}{f': {reason}' if reason else ''}."]
        case _:
            return []
