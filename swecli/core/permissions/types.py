"""Values of the permission decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from swecli.core.permissions.facts import FileFacts
from swecli.core.permissions.shell.losses import Loss
from swecli.core.protocol.events import Mode

Outcome = Literal["allow", "ask", "deny"]
RuleScope = Literal["user", "project", "session", "flag", "grant"]
RuleEffect = Literal["allow", "ask", "deny"]
Trust = Literal["unknown", "declined", "session", "trusted"]
Sandbox = Literal["off", "partial", "full"]


class Effects(Struct, frozen=True):
    """What a call declares to touch, with resolved absolute paths. The scheduler and the permission decision
    read nothing else of a tool.

    ``reads`` and ``writes`` are files or directories; ``command`` is set for a shell command, which may
    touch anything; ``network`` is a host; ``interactive`` calls only talk to the user; ``internal`` calls
    change nothing but the session itself (todos, notes). ``outside``: the command asks to run outside the sandbox.
    ``unread`` are those of ``writes`` whose present content goes without the model having seen any of it.
    ``external`` is the program that carries the call out, outside of swecli and its sandbox, in words ("the MCP server
    github"): what it touches is not known. ``vouched``: the user trusts that program, and it says that the call changes
    nothing.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    command: str | None = None
    network: str | None = None
    interactive: bool = False
    internal: bool = False
    outside: bool = False
    unread: tuple[str, ...] = ()
    external: str = ""
    vouched: bool = False

    @property
    def opaque(self) -> bool:
        """Whether the call may change anything at all, so that others wait for it and it waits for them."""
        return self.command is not None or (bool(self.external) and not self.vouched)


class Rule(Struct, frozen=True):
    """``Tool`` or ``Tool(pattern)`` in one of three lists."""

    effect: RuleEffect
    text: str
    scope: RuleScope
    origin: str = ""
    """File and line, or "flag", or "always, 12:03"."""
    why: str = ""
    """What the user reads in place of the rule, where swecli itself made it."""


class Call(Struct, frozen=True):
    """One tool call as the decision sees it. ``roots`` are the resolved workspace directories."""

    tool: str
    arguments: Mapping[str, Any]
    effects: Effects
    cwd: str
    roots: tuple[str, ...]
    typed: bool = False
    """Whether what is written, or asked of another program, is what the user typed to swecli: nothing of it comes from
    a model."""


class Policy(Struct, frozen=True):
    mode: Mode = "default"
    rules: tuple[Rule, ...] = ()
    trust: Trust = "unknown"
    sandbox: Sandbox = "off"
    holds: bool = False
    """Whether a partial sandbox still holds what a command writes and connects to."""
    yolo: bool = False
    readable: tuple[str, ...] = ()
    """Resolved folders outside of the workspace whose files may be read: those of skills."""
    own_dirs: tuple[str, ...] = ()
    """Resolved directories of swecli's own configuration, data, state and cache: no tool writes there, whatever
    the mode and the rules."""
    memory: tuple[str, ...] = ()
    """Resolved folders of the user's memory, which the memory tool reads, and writes when the user agrees."""
    untrusted: tuple[str, ...] = ()
    """Where text of strangers came from since the user last consented to a call: hosts and files outside."""
    home: str = ""
    """The user's resolved home directory; empty when unknown, and then no ``~`` rule matches."""
    facts: FileFacts = field(default_factory=FileFacts)
    """How to ask the file system about what a command names; with the default no command with operands is
    proven to only read."""


class Decision(Struct, frozen=True):
    """``reason`` is shown and logged; ``rule`` decided if set; ``offers`` are the rules that "always" would add.
    ``offer_note`` is a sentence: what they would also allow or, where there are none, why.
    ``contained``: it may run without a question only because the sandbox holds it, so it must run in there.
    ``reads_only``: the command is proven to only read, so nothing has to be recorded before it. ``danger`` is what a
    person has to see before they agree, as a clause; ``loss`` is what would be gone, counted."""

    outcome: Outcome
    reason: str
    rule: Rule | None = None
    offers: tuple[str, ...] = ()
    offer_note: str = ""
    evidence: tuple[str, ...] = field(default=())
    contained: bool = False
    reads_only: bool = False
    danger: str = ""
    loss: Loss | None = None
    counted: bool = False
    """Whether ``loss`` is all that the command would destroy."""

    @property
    def offer(self) -> str | None:
        """The offered rules as one text, for people."""
        return ", ".join(self.offers) or None


_ORDER: tuple[Mode, ...] = ("plan", "default", "accept-edits", "auto")
"""The modes, the tightest first."""


def tightest(own: Mode | None, session: Mode) -> Mode:
    """The mode of a subagent: never looser than that of the session."""
    return session if own is None or _ORDER.index(own) > _ORDER.index(session) else own
