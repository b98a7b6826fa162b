"""The status bar as text: which facts, in which words, and what gives way when the screen is narrow."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from swecli.core.protocol.events import Budget, ContextLevel, Mode, SandboxChanged


Tone = Literal["plain", "dim", "mode", "ok", "warn", "compact", "block"]

BAR_WIDTH = 8


@dataclass(frozen=True, slots=True)
class Facts:
    """What the bar shows. ``cost`` is US dollars, None while unknown; ``branch`` carries a ``*`` when there
    are uncommitted changes."""

    mode: Mode
    model: str | None
    budget: Budget | None = None
    cache_share: float | None = None
    cost: Decimal | None = None
    branch: str = ""
    sandbox: SandboxChanged | None = None
    jobs: int = 0
    """Commands that run in the background."""


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    tone: Tone = "plain"


_WORDS: dict[ContextLevel, str] = {"ok": "", "warn": " high", "compact": " nearly full", "block": " FULL"}


def tokens(count: int) -> str:
    """A token count in few characters: 950, 5.4K, 54K, 1.2M."""
    if count < 1000:
        return str(count)
    if count < 9950:
        return f"{count / 1000:.1f}K"
    if count < 999_500:
        return f"{round(count / 1000)}K"
    return f"{count / 1_000_000:.1f}M"


def money(cost: Decimal | None) -> str:
    """Dollars with two digits, more where it is less than a cent; ``$?`` while unknown."""
    if cost is None:
        return "$?"
    return f"${cost:.2f}" if cost >= Decimal("0.01") or cost == 0 else f"${cost:.4f}"


def bar(share: float) -> str:
    """A bar of fixed width; anything above nothing shows, and full shows only when it is full."""
    filled = int(share * BAR_WIDTH + 0.5)
    if share > 0:
        filled = max(1, filled)
    if share < 1:
        filled = min(BAR_WIDTH - 1, filled)
    filled = min(BAR_WIDTH, filled)
    return "▓" * filled + "░" * (BAR_WIDTH - filled)


def context(budget: Budget | None, detail: int) -> list[Piece]:
    """The meter in four sizes: 3 with bar and totals, 2 with totals, 1 the percentage, 0 without its label."""
    label = [] if detail == 0 else [Piece("ctx ", "dim")]
    if budget is None or budget.source == "unknown" or budget.effective <= 0:
        return [*label, Piece("?", "dim")]
    about = "~" if budget.source == "estimated" else ""
    tone: Tone = budget.level
    pieces = list(label)
    if detail == 3:
        pieces.append(Piece(bar(budget.share) + " ", tone))
    pieces.append(Piece(f"{about}{percent(budget.share)}", tone))
    if detail >= 2:
        pieces.append(Piece(f" {tokens(budget.used)}/{tokens(budget.effective)}", "dim"))
    if budget.level != "ok":
        pieces.append(Piece(_WORDS[budget.level], tone))
    return pieces


def sandbox(facts: Facts) -> tuple[list[list[Piece]], bool]:
    """The state of the sandbox, and whether it must not give way: in auto mode without a full one, commands ask."""
    state = facts.sandbox
    if state is None:
        return [], False
    degraded = facts.mode == "auto" and state.level != "full"
    asks = ", asks" if degraded else ""
    return [[Piece(f"sandbox {state.label or state.level}{asks}", "warn" if degraded else "dim")]], degraded


def percent(share: float) -> str:
    """A whole percentage; 100 % only when it is reached."""
    value = share * 100
    return f"{min(99, round(value)) if value < 100 else round(value)}%"


def line(facts: Facts, width: int) -> list[Piece]:
    """The pieces of the bar, separated, that fit into ``width`` cells. Mode, model and context stay longest."""
    name = facts.model.rsplit("/", 1)[-1] if facts.model else "no model"
    mode = [Piece(facts.mode, "mode")]
    cache = [] if facts.cache_share is None else [[Piece(f"cache {percent(facts.cache_share)}", "dim")]]
    cost = [[Piece(money(facts.cost), "dim")]]
    branch = [[Piece(facts.branch, "dim")]] if facts.branch else []
    shield, always = sandbox(facts)
    jobs = [[Piece("1 job" if facts.jobs == 1 else f"{facts.jobs} jobs", "warn")]] if facts.jobs else []
    urgent = [*(shield if always else []), *jobs]
    candidates = [
        [mode, *shield, *jobs, [Piece(name)], context(facts.budget, 3), *cache, *cost, *branch],
        [mode, *shield, *jobs, [Piece(name)], context(facts.budget, 2), *cache, *cost, *branch],
        [mode, *shield, *jobs, [Piece(name)], context(facts.budget, 2), *cache, *cost],
        [mode, *urgent, [Piece(name)], context(facts.budget, 2), *cache, *cost],
        [mode, *urgent, [Piece(name)], context(facts.budget, 2), *cost],
        [mode, *urgent, [Piece(name)], context(facts.budget, 1), *cost],
        [mode, *urgent, [Piece(name)], context(facts.budget, 1)],
        [mode, *urgent, [Piece(shorten(name, 14))], context(facts.budget, 1)],
        [mode, [Piece(shorten(name, 14))], context(facts.budget, 1)],
        [mode, context(facts.budget, 1)],
        [context(facts.budget, 1)],
        [context(facts.budget, 0)],
    ]
    for groups in candidates:
        pieces = _joined(groups)
        if sum(len(piece.text) for piece in pieces) <= width:
            return pieces
    return []


def shorten(text: str, limit: int) -> str:
    """The text, cut in its middle to at most ``limit`` characters."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def _joined(groups: list[list[Piece]]) -> list[Piece]:
    pieces: list[Piece] = []
    for group in groups:
        if pieces:
            pieces.append(Piece(" · ", "dim"))
        pieces.extend(group)
    return pieces
