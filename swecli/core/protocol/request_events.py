"""Events of what the user is asked: permissions and questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from swecli.core.protocol.blocks import DisplayBlock
from swecli.core.protocol.hunks import EditedText, Hunk
from swecli.core.protocol.value import value


@value
class RefusedEdit:
    """Arguments of a user that may not run, and why. The call is as it was before."""

    arguments: Mapping[str, Any]
    reason: str


@value
class PermissionRequested:
    """A call waits for consent. What is shown is what will run: ``binding`` is the SHA-256 of tool,
    arguments, working directory and target, recomputed before execution."""

    request: str
    item: str
    tool: str
    title: str
    blocks: tuple[DisplayBlock, ...]
    reason: str
    binding: str
    rule: str | None = None
    """The rule that "always" would add for this session; None where always is not offered."""
    evidence: tuple[str, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    """Changes of the blocks that can be accepted singly."""
    facts: tuple[str, ...] = ()
    """Short phrases: where it runs, what it creates or overwrites, sizes."""
    warnings: tuple[str, ...] = ()
    """What has to be seen before any answer, such as what could not be taken back."""
    arguments: Mapping[str, Any] | None = None
    """What a reply can replace, as it would run; None where it can only choose among hunks, or say yes or no."""
    refused: RefusedEdit | None = None
    """What the user had put in place of the arguments before this question, where that was refused."""
    type: Literal["permission_requested"] = field(default="permission_requested", kw_only=True)


PermissionChoice = Literal["once", "always", "reject", "edit"]
"""``edit``: neither yes nor no; the call is changed and judged anew."""

GrantSpan = Literal["turn", "session", "week", "project"]
"""How long "always" holds: this turn, this session, seven days, or until it is revoked; the last two in this workspace
only."""


@value
class PermissionResolved:
    request: str
    choice: PermissionChoice | Literal["cancelled"]
    by: Literal["user", "headless", "engine"] = "user"
    note: str = ""
    """The user's word to the model."""
    span: GrantSpan = "session"
    """For the choice "always"."""
    arguments: Mapping[str, Any] | None = None
    """The arguments, where the user replaced them."""
    hunks: tuple[int, ...] | None = None
    """The hunks that were accepted, where the user chose among them."""
    texts: tuple[EditedText, ...] = ()
    type: Literal["permission_resolved"] = field(default="permission_resolved", kw_only=True)


@value
class RuleApplied:
    """A rule decided about a call: by it the call runs, asks, or is refused."""

    item: str
    effect: Literal["allow", "ask", "deny"]
    rule: str
    scope: str
    origin: str = ""
    type: Literal["rule_applied"] = field(default="rule_applied", kw_only=True)


@value
class Option:
    label: str
    description: str = ""


@value
class Question:
    """One question of the model to the user; without options it asks for free text."""

    text: str
    options: tuple[Option, ...] = ()
    multiple: bool = False
    header: str = ""


@value
class UntrustedContent:
    """Text of strangers came into the conversation with this item: from a host, or from a file outside the workspace.
    Until the user consents to a call, what would leave the workspace unasked asks."""

    item: str
    origin: str
    type: Literal["untrusted_content"] = field(default="untrusted_content", kw_only=True)


@value
class QuestionAsked:
    request: str
    item: str
    questions: tuple[Question, ...]
    type: Literal["question_asked"] = field(default="question_asked", kw_only=True)


@value
class QuestionAnswered:
    """One tuple of chosen labels or free text for each question; empty when it was dismissed."""

    request: str
    answers: tuple[tuple[str, ...], ...]
    by: Literal["user", "headless", "engine"] = "user"
    type: Literal["question_answered"] = field(default="question_answered", kw_only=True)
