"""Events of permissions and questions: what waits for the user, the answers, and rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, get_args

from msgspec import Struct

from swecli.core.protocol.blocks import DiffBlock, DisplayBlock
from swecli.core.protocol.messages import Tagged


class Hunk(Struct, frozen=True):
    """One change that the user can accept or reject by itself. ``block`` is the index of its diff among the request's
    blocks, from 0. Lines count from 1 in the whole file; for an empty side, ``start`` is the line where its text would
    begin."""

    block: int
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int


class EditedText(Struct, frozen=True):
    """The user's replacement for the new text of diff ``block``: the same part of the file that the block shows."""

    block: int
    text: str


def hunk_texts(block: DiffBlock, hunk: Hunk) -> tuple[list[str], list[str]]:
    """The removed and the added lines of a hunk, from the texts of its block."""
    old, new = (text.split("\n") if text else [] for text in (block.old, block.new))
    i, j = hunk.old_start - block.first_line, hunk.new_start - block.first_line
    return old[i : i + hunk.old_lines], new[j : j + hunk.new_lines]


class RefusedEdit(Struct, frozen=True):
    """The user's edited arguments, refused for ``reason``; the call is unchanged."""

    arguments: Mapping[str, Any]
    reason: str


class PermissionRequested(Tagged, frozen=True, tag="permission_requested"):
    """A call waits for approval. An approval covers exactly what is shown: ``binding`` is the SHA-256 of tool,
    arguments, working directory and target, and is recomputed before execution."""

    type: ClassVar[Literal["permission_requested"]] = "permission_requested"
    request: str
    item: str
    tool: str
    title: str
    blocks: tuple[DisplayBlock, ...]
    reason: str
    binding: str
    rule: str | None = None
    """The rules that "always" would add, as shown and separated by commas; None if "always" is not offered."""
    evidence: tuple[str, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    """Changes of the blocks that can be accepted one by one."""
    facts: tuple[str, ...] = ()
    """Short phrases: where it runs, what it creates or overwrites, sizes."""
    warnings: tuple[str, ...] = ()
    """Facts to read before any answer, such as effects that cannot be undone."""
    arguments: Mapping[str, Any] | None = None
    """Arguments that a reply may replace; None if it can only choose hunks, approve or reject."""
    refused: RefusedEdit | None = None
    """The user's previous edit of the arguments, if it was refused."""
    rules: tuple[str, ...] = ()
    """The rules in ``rule``, one by one; empty if it is None, and in events of earlier versions (a single rule)."""
    rule_note: str = ""
    """A sentence: what else these rules would allow, or why no rule is offered."""
    danger: str = ""
    """A clause: what the call would destroy and whether that can be undone; empty for harmless calls."""
    acceptable: bool = False
    """Whether the call is a file change that accept-edits mode runs without approval."""

    @property
    def offered(self) -> tuple[str, ...]:
        return self.rules or ((self.rule,) if self.rule is not None else ())


PermissionChoice = Literal["once", "always", "reject", "edit"]
PERMISSION_CHOICES: Final[tuple[str, ...]] = get_args(PermissionChoice)
"""``edit`` neither approves nor rejects: the changed call is decided again."""

GrantSpan = Literal["turn", "session", "week", "project"]
"""Lifetime of "always": this turn, this session, seven days, or until revoked. The last two apply to this workspace
only."""


class PermissionResolved(Tagged, frozen=True, tag="permission_resolved"):
    type: ClassVar[Literal["permission_resolved"]] = "permission_resolved"
    request: str
    choice: PermissionChoice | Literal["cancelled"]
    by: Literal["user", "headless", "engine"] = "user"
    """``engine``: a new mode or rule settled the request; ``note`` names it."""
    note: str = ""
    """The user's note to the model."""
    span: GrantSpan = "session"
    """Lifetime of the choice "always"."""
    arguments: Mapping[str, Any] | None = None
    """The arguments, if the user replaced them."""
    hunks: tuple[int, ...] | None = None
    """The accepted hunks, if the user chose some."""
    texts: tuple[EditedText, ...] = ()


class RuleApplied(Tagged, frozen=True, tag="rule_applied"):
    """A rule decided a call: it runs, asks, or is refused."""

    type: ClassVar[Literal["rule_applied"]] = "rule_applied"
    item: str
    effect: Literal["allow", "ask", "deny"]
    rule: str
    scope: str
    origin: str = ""


class RuleRevoked(Tagged, frozen=True, tag="rule_revoked"):
    """The user revoked a rule that "always" had added for this session or turn."""

    type: ClassVar[Literal["rule_revoked"]] = "rule_revoked"
    rule: str


class Option(Struct, frozen=True):
    label: str
    description: str = ""


class Question(Struct, frozen=True):
    """One question from the model; without options it asks for free text. ``closed`` accepts only the options.
    ``blank`` is the meaning of an empty line, such as "leaves it out"; if empty, an empty line is not an answer."""

    text: str
    options: tuple[Option, ...] = ()
    multiple: bool = False
    header: str = ""
    closed: bool = False
    blank: str = ""


class UntrustedContent(Tagged, frozen=True, tag="untrusted_content"):
    """The item brought untrusted text into the conversation, from a host or a file outside the workspace. Until the
    user approves a call, calls that would send data out of the workspace without asking now ask."""

    type: ClassVar[Literal["untrusted_content"]] = "untrusted_content"
    item: str
    origin: str


class QuestionAsked(Tagged, frozen=True, tag="question_asked"):
    type: ClassVar[Literal["question_asked"]] = "question_asked"
    request: str
    item: str
    questions: tuple[Question, ...]


class QuestionAnswered(Tagged, frozen=True, tag="question_answered"):
    """One tuple of chosen labels or free text per question; ``answers`` is empty if the user dismissed them."""

    type: ClassVar[Literal["question_answered"]] = "question_answered"
    request: str
    answers: tuple[tuple[str, ...], ...]
    by: Literal["user", "headless", "engine"] = "user"


def grounds(request: PermissionRequested) -> tuple[str, ...]:
    """Lines with the request's reason and evidence, without repetition. Empty for a file change that asks only because
    it changes a file, if the facts or the diff (of a file that has this content already) say so."""
    reason = request.reason
    told = bool(request.facts) or any(isinstance(block, DiffBlock) for block in request.blocks)
    if told and reason in {f"This would change {path}." for path in request.evidence}:
        return ()
    more = [line for line in request.evidence if line not in reason]
    repeated = [line for line in more if _repeats(line, reason)]
    if len(repeated) == 1:  # several lines name the parts of a command that the reason concerns
        more.remove(repeated[0])
    return tuple(line for line in (reason, *more) if line)


FOR_SESSION = "Allowing it for the session"
"""The answer that adds a rule, for clients that name their options themselves."""


def rule_words(request: PermissionRequested, answer: str) -> str:
    """What the offered rule covers, as a sentence about the ``answer`` that adds it; or why no rule is offered."""
    note = request.rule_note
    return f"{answer} {note[:1].lower()}{note[1:]}" if note and request.rule is not None else note


def _repeats(line: str, reason: str) -> bool:
    """Whether a line of the form "words of a command: why" gives only the reason again."""
    places = (index for index in range(len(line)) if line.startswith(": ", index))
    whys = [line[index + 2 :] for index in places]
    return any(f": {why}." in reason or reason[1:].startswith(f"{why[1:]}, so it needs") for why in whys)
