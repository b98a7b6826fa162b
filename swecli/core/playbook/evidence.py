"""Evidence in the events of a session: failures and what then worked, and corrections by the user.

This module makes no judgement. Each piece of evidence is a few recorded events that anybody can look up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.llm.foreign_calls import stored_arguments
from swecli.core.playbook.commands import (
    asks_elsewhere,
    brings_what_was_missing,
    differs,
    explains,
    instead_of_unknown,
    is_slip,
    lacks_something,
    parsed,
    proves_nothing,
    same_intent,
    shown,
    signature,
)
from swecli.core.playbook.trials import Step
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.events import (
    MAIN,
    Event,
    FileChanged,
    FilesRestored,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    PermissionRequested,
    PermissionResolved,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import TextPart, ToolCallPart
from swecli.lazy_pattern import lazy_pattern

What = Literal[
    "fixed",
    "turned green",
    "changed by the user",
    "corrected by the user",
    "edit did not apply",
    "taken back",
    "searched in vain",
    "read again",
    "timed out",
]


class Evidence(Struct, frozen=True):
    """Related events (``items``). ``failed`` are commands that failed and ``worked`` is the one that succeeded;
    ``errors`` are their signatures, or empty; ``words`` are the user's, or a search pattern; ``task`` is the user's
    request; ``count`` is a number of times, or seconds; of what fixed a failure, 1 once it has succeeded again."""

    what: What
    items: tuple[str, ...]
    failed: tuple[str, ...] = ()
    worked: str = ""
    errors: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    words: str = ""
    symbol: str = ""
    task: str = ""
    count: int = 0


class Ran(Struct, frozen=True):
    """A command that ended by itself or by its time limit."""

    item: str
    command: str
    ok: bool
    error: str
    turn: int
    edits: int
    """Number of file changes before it."""
    seconds: float = 0.0
    timed_out: bool = False


MOST_OPEN: Final = 30
"""Maximum number of failures kept in mind."""
TURNS: Final = 1
"""Turns after which a failure is forgotten."""
READS: Final = 3
EMPTY_SEARCHES: Final = 2
FAILED_EDITS: Final = 2

_CORRECTION: Final = lazy_pattern(
    r"(?:^|[.!?:;,]\s+|\n)(?:no|nope|wrong|stop|actually|not like that|that'?s (?:wrong|not right)"
    r"|i (?:said|meant|told you)|(?:please )?(?:don'?t|do not))\b"
    r"|\b(?:never|always|prefer|from now on|in (?:this|our) (?:repo|project|code ?base)|we (?:use|don'?t|never|always)"
    r"|must(?:n't| not)|should (?:not|never)|use \S+ (?:not|instead of|rather than))\b",
    re.IGNORECASE,
)
"""A correction or a rule. A task that describes how to do something this time is neither."""
_RULE: Final = lazy_pattern(
    r"\b(?:don'?t|do not|never|always|use|run|prefer|avoid|must|should(?:n'?t| not| never)|from now on)\b",
    re.IGNORECASE,
)
_STORY: Final = lazy_pattern(
    r"\?\s*$|\bwhat (?:do|does|did|is)\b|\b(?:should|must|could|would)(?:n'?t| not| never)? have\b"
    r"|\b(?:was|were|had|did(?:n'?t)?|said|meant|told|asked|wanted|got|found|thought|for[gs]ot|forget|worry|bother|mind"
    r"|hesitate)\b"
    r"|\b(?:it|that|this|which|they|there|i|he|she|you) (?:(?:just|only|still|really) )?"
    r"(?:must|always|never|should|prefer)\b"
    r"|\b(?:always|never) (?:been|seen|done|heard|\w+ed|\w*(?!s)\ws)\b",
    re.IGNORECASE,
)
"""A question, what happened, or how something behaves."""
_POINTS: Final = lazy_pattern(
    r"\b(?:this|these|that|those)\b(?! (?:repo|project|team|code)\b)|\b(?:there|yet)\b|^[^,;:(]*\b(?:it|them)\b",
    re.IGNORECASE,
)
"""Something that only this conversation knows; in a later clause, ``it`` is what the first one named."""
_PARTICULAR: Final = lazy_pattern(
    r"\bthe (?:other|old|new|same|first|second|third|last|next|previous|right|wrong|above|shorter)\b", re.IGNORECASE
)
_ONCE: Final = lazy_pattern(
    r"\b(?:later|(?<!from )now|not yet|this time|just once|today|tomorrow|tonight|at the moment|meanwhile|until"
    r"|for the (?:moment|time being)|(?:in|with) this (?:turn|step|task|change|commit))\b",
    re.IGNORECASE,
)
"""An instruction for this occasion, which no later session should follow."""
_LASTS: Final = lazy_pattern(
    r"\b(?:never|always|from now on|every|each|in (?:this|our) (?:repo|project|code ?base)|we (?:use|don'?t|do not))\b",
    re.IGNORECASE,
)
_SENTENCE: Final = lazy_pattern(r"(?<=[.!?;])\s+|\n+")
_SYMBOL: Final = lazy_pattern(
    r"\b(?:async def|def|class|function|func|fn|interface|struct|enum|trait|impl"
    r"|module)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w{2,60})"
)
_PLAIN: Final = lazy_pattern(r"[\w][\w .-]{2,39}")
_KILLED: Final = lazy_pattern(r"killed after (\d+)")


def _is_rule(text: str) -> bool:
    """Whether the user's words state how to work here, rather than what to do this time or what happened: a "no" to one
    call says nothing about the next."""
    if any(pattern.search(text) for pattern in (_STORY, _POINTS)) or _RULE.search(text) is None:
        return False
    return lasts(text) or not (_ONCE.search(text) or _PARTICULAR.search(text))


def lasts(text: str) -> bool:
    """Whether a rule in the user's words says of itself that it is none for this occasion only."""
    return _LASTS.search(text) is not None


class _Call(Struct):
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    kind: str = "tool"


class EvidenceWatch:
    """Receives every event of a session as it happens, and returns the evidence that each completes."""

    def __init__(self, cwd: str) -> None:
        self._cwd = os.path.realpath(cwd)
        self._turn = 0
        self._task = ""
        self._worked_before = False
        """Whether the previous turn, or this one so far, had calls; otherwise a message can't be a correction."""
        self._calls: dict[str, _Call] = {}
        self._failed: list[Ran] = []
        self._previous: Ran | None = None
        """The latest command that did more than look."""
        self._red: dict[str, Ran] = {}
        self._slow: dict[str, Ran] = {}
        self._edited: list[str] = []
        self._made: set[str] = set()
        """Files that the session created."""
        self._unproven: dict[str, Evidence] = {}
        """What worked after a failure, by command: a second success shows that it is a way to work here."""
        self._in_turn = False
        self._edits: dict[str, set[str]] = {}
        """The model's edits of a file, as items; none if the newest change is by a slash command of the user, such as
        ``/init``."""
        self._asked: dict[str, PermissionRequested] = {}
        self._replaced: dict[str, str] = {}
        """Original commands that the user changed, by item."""
        self._bad_edits: dict[str, list[str]] = {}
        self._empty: list[tuple[str, str]] = []
        self._reads: dict[str, list[str]] = {}
        self._noted: set[tuple[str, str]] = set()
        self.steps: list[Step] = []
        """Attempted steps, for the consumer to take."""

    def observe(self, event: Event) -> list[Evidence]:
        if event.agent != MAIN:
            return []
        match event.body:
            case TurnStarted():
                self._in_turn = True
                self._begin(event.turn)
            case TurnEnded():
                self._in_turn = False
            case ItemStarted(item=item, kind=kind, name=name) if kind in ("tool", "user"):
                self._calls[item] = _Call(name, kind=kind)
            case ItemCheckpointed(item=item, part=ToolCallPart() as part) if item in self._calls:
                self._calls[item].arguments = stored_arguments(part.name, part.arguments)
            case ItemCompleted() as done:
                return self._completed(done)
            case FileChanged(path=path, item=item, before=before):
                if before is None:
                    self._made.add(self.relative(path))
                return self._changed(path, item)
            case FilesRestored(direction="undo") as restored:
                paths = self._regretted(restored)
                return [Evidence("taken back", (f"e{event.seq}",), paths=paths[:2], task=self._task)] if paths else []
            case PermissionRequested() as asked:
                self._asked[asked.request] = asked
            case PermissionResolved() as resolved:
                return self._resolved(resolved)
            case _:
                pass
        return []

    def _begin(self, turn: int) -> None:
        self._turn = turn
        self._worked_before = any(call.kind == "tool" for call in self._calls.values())
        self._calls.clear()
        self._asked.clear()
        self._replaced.clear()
        self._empty.clear()
        self._reads.clear()
        self._task = ""
        self._failed = [run for run in self._failed if turn - run.turn <= TURNS][-MOST_OPEN:]

    # --- what ended ---

    def _completed(self, done: ItemCompleted) -> list[Evidence]:
        call = self._calls.get(done.item)
        if call is None:
            return []
        if call.kind == "user":
            text = "\n".join(part.text for part in done.parts if isinstance(part, TextPart))
            return self._ran(done) if call.name == "shell" else self._said(done.item, text)
        if call.name == "run_command":
            if done.status == "rejected":
                self.steps.append(Step("command", shown(str(call.arguments.get("command", ""))), "rejected"))
            return self._ran(done)
        path = self.relative(call.arguments.get("path"))
        if call.name in ("edit_file", "write_file", "apply_patch"):
            return self._edit_ended(done, path, call)
        if call.name == "read_file" and done.status == "ok" and path:
            self.steps.append(Step("read", path, "ok"))
            self._reads.setdefault(path, []).append(done.item)
        pattern = call.arguments.get("pattern")
        if call.name == "search" and isinstance(pattern, str) and done.detail.startswith("no matches"):
            self._empty.append((done.item, pattern))
        return []

    def _said(self, item: str, text: str) -> list[Evidence]:
        """A user message: a request, and possibly a correction."""
        corrects = (self._worked_before or bool(self._task)) and _CORRECTION.search(text) is not None
        self._task = self._task or text[:2_000]
        if not corrects or len(text) > 2_000:
            return []
        return [
            Evidence("corrected by the user", (item,), words=" ".join(sentence.split()), task=self._task)
            for sentence in _SENTENCE.split(text)
            if _CORRECTION.search(sentence) and _is_rule(sentence)
        ][:2]

    def _ran(self, done: ItemCompleted) -> list[Evidence]:
        block = next((candidate for candidate in done.blocks if isinstance(candidate, TerminalBlock)), None)
        if done.status not in ("ok", "error") or block is None or not block.command:
            return []
        if done.detail.startswith(("job", "blocked by sandbox")) or (block.exit_status is None and not _slow(done)):
            return []
        ok = block.exit_status == 0 and done.status == "ok"
        error = "" if ok else signature(block.output, block.exit_status)
        ran = Ran(
            done.item,
            shown(block.command),
            ok,
            error,
            self._turn,
            len(self._edited),
            block.duration or done.duration or 0.0,
            _slow(done) > 0,
        )
        self.steps.append(
            Step("command", ran.command, "ok" if ok else "error", error or ("time" if ran.timed_out else ""))
        )
        previous, self._previous = self._previous, self._previous if parsed(ran.command).looks else ran
        if not ok:
            self._failure(replace(ran, seconds=_slow(done) or ran.seconds))
            return []
        return self._success(ran, previous)

    def _failure(self, ran: Ran) -> None:
        if ran.timed_out:
            self._slow[ran.command] = ran
            return
        self._failed.append(ran)
        del self._failed[:-MOST_OPEN]
        if not ran.error and parsed(ran.command).intent in ("test", "lint", "types", "build"):
            self._red.setdefault(ran.command, ran)

    def _success(self, ran: Ran, previous: Ran | None) -> list[Evidence]:
        evidence: list[Evidence] = []
        before = self._replaced.pop(ran.item, "")
        fixed = [
            failure
            for failure in self._failed
            if self._fixes(failure, ran, directly=previous is not None and failure.item == previous.item)
        ]
        if (unproven := self._unproven.pop(ran.command, None)) is not None:
            evidence.append(replace(unproven, items=(*unproven.items[-3:], ran.item), count=1))
        if before and differs(before, ran.command):
            evidence.append(Evidence("changed by the user", (ran.item,), (before,), ran.command, task=self._task))
        elif fixed:
            errors = {failure.command: failure.error for failure in fixed}
            failed = tuple(errors)[-2:]
            items = (*(failure.item for failure in fixed[-3:]), ran.item)
            way = Evidence("fixed", items, failed, ran.command, tuple(map(errors.__getitem__, failed)), task=self._task)
            evidence.append(way)
            self._unproven[ran.command] = way
        elif (slow := self._slow.pop(ran.command, None)) is not None and ran.seconds > slow.seconds:
            evidence.append(
                Evidence(
                    "timed out",
                    (slow.item, ran.item),
                    (slow.command,),
                    ran.command,
                    task=self._task,
                    count=round(ran.seconds),
                )
            )
        elif (red := self._red.get(ran.command)) is not None and red.edits < len(self._edited):
            paths = tuple(dict.fromkeys(self._edited[red.edits :]))
            items = (red.item, ran.item)
            evidence.append(Evidence("turned green", items, (), ran.command, paths=paths, task=self._task))
        if brings_what_was_missing(ran.command):
            self._failed = [failure for failure in self._failed if not lacks_something(failure.error)]
        fixed_items = {failure.item for failure in fixed}
        self._failed = [
            failure for failure in self._failed if failure.item not in fixed_items and failure.command != ran.command
        ]
        self._red.pop(ran.command, None)
        return evidence

    def _fixes(self, failed: Ran, ran: Ran, *, directly: bool) -> bool:
        """Whether a success fixes a failure: the failure was the command's own, or nothing else about the command has
        changed. A command that ``directly`` follows a missing program need not resemble it."""
        if not differs(failed.command, ran.command) or proves_nothing(ran.command, self._made):
            return False
        if is_slip(failed.command, ran.command):
            return False
        if not same_intent(failed.command, ran.command):
            return directly and bool(failed.error) and instead_of_unknown(failed.command, ran.command)
        if not explains(failed.command, ran.command, failed.error):
            return False
        if asks_elsewhere(failed.command, ran.command, failed.error):
            return False
        same = parsed(failed.command).targets == parsed(ran.command).targets
        return failed.edits == len(self._edited) and (bool(failed.error) or same)

    # --- what the user did ---

    def _resolved(self, resolved: PermissionResolved) -> list[Evidence]:
        asked = self._asked.pop(resolved.request, None)
        if asked is None or resolved.by != "user":
            return []
        arguments = asked.arguments or {}
        was = arguments.get("command", "")
        if resolved.choice in ("once", "always", "edit") and resolved.arguments is not None:
            now = resolved.arguments.get("command")
            if asked.tool == "run_command" and isinstance(now, str) and isinstance(was, str):
                self._replaced.setdefault(asked.item, was or asked.title)
            return []
        if resolved.choice == "reject" and _is_rule(resolved.note):
            note = " ".join(resolved.note.split())
            failed = (shown(was),) if isinstance(was, str) and was else ()
            path = self.relative(arguments.get("path") or (asked.title if not failed else ""))
            paths = (path,) if path else ()
            return [Evidence("corrected by the user", (asked.item,), failed, words=note, paths=paths, task=self._task)]
        return []

    # --- files ---

    def _changed(self, path: str, item: str) -> list[Evidence]:
        name = self.relative(path)
        if not name:
            return []
        self._edited.append(name)
        if self._in_turn:
            self._edits.setdefault(name, set()).add(item)
        else:
            self._edits.pop(name, None)
        call = self._calls.get(item)
        symbol = _symbol(call.arguments) if call is not None else ""
        if len(self._empty) >= EMPTY_SEARCHES:
            items, patterns = zip(*self._empty, strict=True)
            self._empty.clear()
            words = next((pattern for pattern in reversed(patterns) if _PLAIN.fullmatch(pattern)), "")
            if words and self._first("searched", name):
                return [
                    Evidence(
                        "searched in vain",
                        (*items[-3:], item),
                        paths=(name,),
                        words=words,
                        symbol=symbol,
                        task=self._task,
                        count=len(items),
                    )
                ]
        reads = self._reads.pop(name, [])
        if len(reads) >= READS and symbol and self._first("read", name):
            items = (*reads[-3:], item)
            return [Evidence("read again", items, paths=(name,), symbol=symbol, task=self._task, count=len(reads))]
        return []

    def _regretted(self, restored: FilesRestored) -> tuple[str, ...]:
        """Files of which an undo reverted the model's own edit. What a command changed says nothing about them: an
        undone ``mv`` is about the move, and by-products are not what the user means."""
        undone = {operation.partition(" ")[0] for operation in restored.operations}
        names = dict.fromkeys(self.relative(file.path) for file in restored.files)
        return tuple(name for name in names if not undone.isdisjoint(self._edits.get(name, ())))

    def standing(self, evidence: Sequence[Evidence], event: Event) -> list[Evidence]:
        """The evidence without what this event revokes: an undo that was itself undone."""
        match event.body:
            case FilesRestored(direction="redo", files=files) if event.agent == MAIN:
                back = {self.relative(file.path) for file in files}
                return [entry for entry in evidence if entry.what != "taken back" or back.isdisjoint(entry.paths)]
            case _:
                return list(evidence)

    def _edit_ended(self, done: ItemCompleted, path: str, call: _Call) -> list[Evidence]:
        if not path:
            return []
        if done.status != "interrupted":
            self.steps.append(Step("edit", path, done.status))
        if done.status == "error":
            self._bad_edits.setdefault(path, []).append(done.item)
            return []
        failed = self._bad_edits.pop(path, []) if done.status == "ok" else []
        if len(failed) < FAILED_EDITS or not self._first("edit", path):
            return []
        return [
            Evidence(
                "edit did not apply",
                (*failed[-3:], done.item),
                paths=(path,),
                symbol=_symbol(call.arguments),
                task=self._task,
                count=len(failed),
            )
        ]

    def _first(self, what: str, path: str) -> bool:
        first = (what, path) not in self._noted
        self._noted.add((what, path))
        return first

    def relative(self, path: object) -> str:
        """A path relative to the working directory; empty for paths outside."""
        if not isinstance(path, str) or not path or "\n" in path:
            return ""
        whole = os.path.normpath(os.path.join(self._cwd, os.path.expanduser(path)))
        real = whole if whole.startswith(f"{self._cwd}{os.sep}") else os.path.realpath(whole)
        return os.path.relpath(real, self._cwd) if real.startswith(f"{self._cwd}{os.sep}") else ""


def _slow(done: ItemCompleted) -> float:
    """Seconds after which a command was killed by its time limit; otherwise 0."""
    match = _KILLED.match(done.detail)
    return float(match[1]) if match is not None else 0.0


def _symbol(arguments: Mapping[str, Any]) -> str:
    """The function or class that an edit touches, if its text shows it."""
    edits = arguments.get("edits")
    first = cast("list[object]", edits)[0] if isinstance(edits, list) and edits else arguments
    table = cast("dict[str, object]", first) if isinstance(first, dict) else {}
    texts = (table.get("old_string"), table.get("new_string"))
    return next((match[1] for text in texts if isinstance(text, str) and (match := _SYMBOL.search(text))), "")
