"""Types of the permission decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from swecli.core.permissions.facts import FileFacts
from swecli.core.protocol.modes import TIGHTEST_FIRST, Mode

if TYPE_CHECKING:
    from swecli.core.permissions.shell.losses import Loss

Outcome = Literal["allow", "ask", "deny"]
RuleScope = Literal["user", "project", "session", "flag", "grant", "command"]
"""``command``: the file of a command or skill grants the rule for the turn that the user begins with it. Such a rule
never reaches outside the workspace and counts only where it is as narrow as one that swecli offers."""
RuleEffect = Literal["allow", "ask", "deny"]
Trust = Literal["unknown", "declined", "session", "trusted"]
Sandbox = Literal["off", "partial", "full"]

MEMORY_TOOL = "memory"

SANDBOXED = "SandboxedBash"
"""The rule that lets every command run without a question that the sandbox contains; it runs there."""


class Effects(Struct, frozen=True):
    """Effects that a call declares, with resolved absolute paths; the scheduler and the permission decision read
    nothing else of a tool.

    ``reads`` and ``writes`` are files or directories; ``command`` is set for a shell command, which may touch anything;
    ``network`` is a host; ``interactive`` calls only talk to the user; ``internal`` calls change only the session
    itself (todos, notes). ``outside``: the command asks to run outside the sandbox. ``unread`` are those of ``writes``
    whose present content is lost without the model having seen any of it. ``external`` describes the program that
    carries out the call outside swecli and its sandbox ("the MCP server github"), with unknown effects. ``vouched``:
    the user trusts that program, and it declares that the call changes nothing.
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
        """Whether the call may change anything, so that it runs alone."""
        return self.command is not None or (bool(self.external) and not self.vouched)


class Rule(Struct, frozen=True):
    """``Tool`` or ``Tool(pattern)`` in one of three lists."""

    effect: RuleEffect
    text: str
    scope: RuleScope
    origin: str = ""
    """File and line, or "flag", or "always, 12:03"."""
    why: str = ""
    """Text the user reads instead of a rule that swecli itself made."""


class Call(Struct, frozen=True):
    """One tool call as the decision sees it. ``roots`` are the resolved workspace directories."""

    tool: str
    arguments: Mapping[str, Any]
    effects: Effects
    cwd: str
    roots: tuple[str, ...]
    typed: bool = False
    """Whether the user typed the text that is written or sent to a program: none of it comes from a model."""


def restores_nothing(paths: Sequence[str], command: str) -> bool:
    """Without checkpoints nothing can be restored."""
    return False


class Policy(Struct, frozen=True):
    mode: Mode = "default"
    rules: tuple[Rule, ...] = ()
    trust: Trust = "unknown"
    sandbox: Sandbox = "off"
    holds: bool = False
    """Whether a partial sandbox still restricts what a command writes and connects to."""
    masks: bool = False
    """Whether a sandbox can hide files from a command that may do everything else."""
    yolo: bool = False
    readable: tuple[str, ...] = ()
    """Resolved folders outside the workspace with readable files: those of skills."""
    own_dirs: tuple[str, ...] = ()
    """Resolved directories of swecli's own configuration, data, state and cache: no tool writes there, in any mode and
    under any rule."""
    memory: tuple[str, ...] = ()
    """Resolved folders of the user's memory: the memory tool reads there, and writes if the user agrees."""
    untrusted: tuple[str, ...] = ()
    """Sources of untrusted text since the user last consented to a call: hosts and outside files."""
    home: str = ""
    """The user's resolved home directory; empty if unknown, and then no ``~`` rule matches."""
    facts: FileFacts = field(default_factory=FileFacts)
    """Access to file-system facts; with the default no command with operands is proven read-only."""
    restores: Callable[[Sequence[str], str], bool] = restores_nothing
    """Whether ``/undo`` could restore all of these paths after a command (its text) changed them."""


class Decision(Struct, frozen=True):
    """Outcome of the decision. ``reason`` is shown and logged; ``rule`` decided if set; ``offers`` are the rules that
    "always" would add. ``offer_note`` is a sentence: what else they would allow or, without offers, why there are none.
    ``contained``: it may run without a question only because the sandbox contains it, so it must run there.
    ``reads_only``: the command is proven read-only, so no checkpoint is needed before it. ``danger`` is a warning to
    read before agreeing, as a clause; ``loss`` is the predicted loss, counted."""

    outcome: Outcome
    reason: str
    rule: Rule | None = None
    offers: tuple[str, ...] = ()
    offer_note: str = ""
    evidence: tuple[str, ...] = field(default=())
    contained: bool = False
    reads_only: bool = False
    only_reads: bool = False
    """Whether the question is only about what the command reads, not about what it does."""
    masked: bool = False
    """It may run without a question only where the files that rules keep from being read are hidden from it."""
    danger: str = ""
    loss: Loss | None = None
    counted: bool = False
    """Whether ``loss`` covers everything the command would destroy."""
    told: bool = False
    """Whether the clause of ``loss`` says all of ``danger``."""
    git_knows: bool = False
    """Whether facts that start git may prove the command read-only."""
    containable: bool = False
    """Whether the sandbox contains the command, so that it runs there once the user approves it."""
    for_now: bool = False
    """Whether it asks about an edit because of the files as they are now, so that earlier calls of a step may change
    the decision."""

    @property
    def offer(self) -> str | None:
        """The offered rules as one text, for people."""
        return ", ".join(self.offers) or None


def tightest(own: Mode | None, session: Mode) -> Mode:
    """The mode of a subagent: never looser than that of the session."""
    return session if own is None or TIGHTEST_FIRST.index(own) > TIGHTEST_FIRST.index(session) else own
