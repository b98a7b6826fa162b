"""The command /compact, and the price of a change of the context."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from swecli.commands.base import CommandResult, Offer, SlashCommand, fixed_words
from swecli.core.context_management.compaction.plan import CompactionPlan
from swecli.core.context_management.compaction.policy import conversation_tokens
from swecli.core.context_management.edit_effects import price_words
from swecli.core.context_management.items import foldable
from swecli.core.protocol.blocks import TableBlock, TextBlock
from swecli.core.protocol.commands import ApplyPlan, Command, Compact, RedoCompaction, UndoCompaction
from swecli.figures import aligned, dollars, number, percent, plural
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.context_management.edits import Effect
    from swecli.core.engine.session import Session


_RANGE: Final = lazy_pattern(r"(\d{1,7})(?:\s*(?:-|–|to|\.\.)\s*(\d{1,7}))?(?:\s+(.+))?", re.DOTALL)
_PLANNING = ("plan", "preview", "dry-run")


async def _run_compact(session: Session, arguments: str) -> CommandResult:
    verb, _, rest = arguments.strip().partition(" ")
    item = rest.strip()
    # The words that stand alone begin a focus if more follows: /compact plan for the parser.
    match verb.lower().lstrip("-"):
        case "undo":
            return priced(session, UndoCompaction(item), session.prices.undo(item), "Undo the compaction")
        case "redo":
            return priced(session, RedoCompaction(item), session.prices.redo(item), "Redo the compaction")
        case "free" if not item:
            effect = None if session.view.busy else session.prices.clearing()
            return priced(session, Compact(without_model=True), effect, "Free space")
        case "now":
            plan, command = session.plan_compaction(), Compact(item)
            return _nothing_to_gain(plan, session) or _sent(session, command)
        case "history" if not item:
            return CommandResult.text(history_text(session))
        case "fold":
            return _fold(session, item)
        case word if word in _PLANNING and not item:
            return replace(_plan(session), screen="compact") if not session.view.busy else _plan(session)
        case _:
            pass
    plan, command = session.plan_compaction(), Compact(arguments.strip())
    if plan is None:
        return _sent(session, command)
    if nothing := _nothing_to_gain(plan, session):
        return nothing
    if session.view.busy:  # an offer would be refused when it is accepted
        return CommandResult((_table(plan), TextBlock("A turn is running; /compact works when it ends.", "warning")))
    title = f"Compact from {number(plan.tokens_before)} to about {number(plan.tokens_after)} tokens?"
    offer = Offer(title, command, ("Apply", "/compact undo restores it"), ("Cancel", "nothing changes"))
    if not command.focus and not plan.by_provider:  # the screen shows an editable plan
        return CommandResult(screen="compact", instead=(_table(plan),), offer=offer)
    by = (TextBlock(BY_PROVIDER.rstrip(), "dim"),) if plan.by_provider else ()
    return CommandResult((_table(plan), *by), offer=offer)


LIKELY = "word " * 90
"""Stands for the few lines that the model would write."""


def _fold(session: Session, words: str) -> CommandResult:
    """Offer to fold the messages of some turns into a few lines."""
    match, picture = _RANGE.fullmatch(words), session.inspection.picture()
    if match is None:
        return CommandResult.text(
            "Name the turns: /compact fold 3-7 [your own lines]. /context shows turns.", "warning"
        )
    if picture is None:
        return CommandResult.text("No model is connected, so swecli cannot measure the context.", "warning")
    if session.view.busy:
        return CommandResult.text("A turn is running; fold turns when it ends.", "warning")
    first, last, text = int(match[1]), int(match[2] or match[1]), (match[3] or "").strip()
    names = foldable(item for item in picture.items if first <= item.turn <= last)
    if not names:
        return CommandResult.text(
            f"No message of turns {first} to {last} is in the context. {recorded_turns(session)}", "warning"
        )
    effect = session.prices.fold(names, text or LIKELY)
    if isinstance(effect, str):
        return CommandResult.text(f"Nothing was changed: {effect}", "warning")
    if effect is None or effect.after >= effect.before:
        return CommandResult.text(
            "Nothing to gain: these messages are as short as the lines in their place.", "warning"
        )
    turns = f"turn {first}" if first == last else f"turns {first} to {last}"
    command = ApplyPlan(names, (), text or None, fold=True)
    by = "your lines" if text else "a few lines by the model"
    offer = Offer(f"Fold {turns}?", command, ("Apply", "/compact undo restores them"), ("Cancel", "nothing changes"))
    about = "" if text else "about "
    size = f"{number(effect.before)} to {about}{number(effect.after)} tokens"
    return CommandResult((TextBlock(f"Fold {turns} into {by}: {size}. {price_words(effect)}"),), offer=offer)


def recorded_turns(session: Session) -> str:
    points = session.inspection.timeline.points
    if not points:
        return "This session has made no request yet."
    return f"The requests of turns {points[0].turn} to {points[-1].turn} are recorded."


def priced(
    session: Session, command: Command, effect: Effect | None, what: str, later: Command | None = None
) -> CommandResult:
    """Carry out a change of the context at once if it costs no thoughts of the model; else name the price and offer it.
    ``later`` is the same at the next compaction, if it can wait."""
    if effect is None or not effect.thoughts or effect.refusals:
        session.send(command)
        return CommandResult()
    offer = Offer(f"{what}?", command, ("Apply", "it can be undone"), ("Cancel", "nothing changes"), later)
    return CommandResult((TextBlock(f"{what}: {price_words(effect)}"),), offer=offer)


def _nothing_to_gain(plan: CompactionPlan | None, session: Session) -> CommandResult | None:
    if plan is None or plan.worthwhile:
        return None
    budget = session.view.budget
    if budget is None:
        return CommandResult.text("Nothing to compact yet.")
    messages = plural(session.view.conversation.active, "message")
    part = f"{number(conversation_tokens(budget))} of {plural(budget.used, 'token')}"
    return CommandResult.text(f"Nothing to compact yet: little to gain ({messages}, {part}).")


def _sent(session: Session, command: Compact) -> CommandResult:
    session.send(command)
    return CommandResult()


def history_text(session: Session) -> str:
    """All compactions: time, effect, and the share of preserved facts."""
    records = session.inspection.timeline.compactions
    if not records:
        return "No compaction yet."
    rows = [
        (
            record.item,
            f"turn {record.turn}",
            record.trigger,
            f"{number(record.before)} → {number(record.after)}",
            f"{record.kept} of {plural(record.anchors, 'key detail')} kept" if record.anchors else "",
            session.inspection.compaction_state(record).replace("active", ""),
        )
        for record in records
    ]
    return f"{aligned(rows, '')}\n/compact undo ID undoes it and all later ones; /compact redo ID reapplies it."


def _plan(session: Session) -> CommandResult:
    plan = session.plan_compaction()
    if plan is None:
        return CommandResult.text("Not measured: no model is connected.", "warning")
    if not plan.worthwhile:
        return CommandResult.text("Nothing to compact: the whole conversation would be kept.")
    return CommandResult((_table(plan), TextBlock(_words(plan))))


def _table(plan: CompactionPlan) -> TableBlock:
    rows = (
        ("kept verbatim", str(plan.kept_messages), number(plan.kept_tokens)),
        (
            "summarised" if plan.summary_allowance else "removed",
            str(plan.replaced_messages),
            number(plan.replaced_tokens),
        ),
        ("moved to disk (can be read back)", str(len(plan.offloaded)), number(plan.offloaded_tokens)),
        (
            "summary by the provider (estimate)" if plan.by_provider else "summary (estimate)",
            "1" if plan.summary_allowance else "0",
            number(plan.summary_allowance),
        ),
        ("whole request, before and after", "", f"{number(plan.tokens_before)} -> {number(plan.tokens_after)}"),
        ("re-sent uncached", "", number(plan.rewritten_tokens)),
        *((("the model's thoughts that are lost", number(plan.thoughts), ""),) if plan.thoughts else ()),
    )
    return TableBlock(("", "messages", "tokens"), (*rows, *_costs(plan)), "If you compact now")


def _costs(plan: CompactionPlan) -> tuple[tuple[str, str, str], ...]:
    if plan.cost is None or plan.saved_per_request is None:
        return (("cost now", "", "price unknown"),)
    return (
        ("cost now", "", dollars(Decimal(plan.cost))),
        ("saving per later request", "", dollars(Decimal(plan.saved_per_request))),
    )


BY_PROVIDER = "The provider writes the summary: you can undo it, not edit it, and Anthropic's you can read. "


def _words(plan: CompactionPlan) -> str:
    saved = 1 - plan.tokens_after / plan.tokens_before
    return (
        f"From {number(plan.tokens_before)} to about {number(plan.tokens_after)} tokens (-{percent(saved)}). "
        f"The record keeps your own messages, files, checks and todos. {BY_PROVIDER if plan.by_provider else ''}"
        "/compact now [focus] applies it, /compact undo restores it."
    )


COMPACT = SlashCommand(
    "compact",
    "Free space in the context; also undo, redo and plan",
    _run_compact,
    aliases=("compress", "summarize"),
    arguments="[focus | now | free | fold TURNS | plan | history | undo [ID] | redo [ID]]",
    words=fixed_words(
        now="compact without showing the plan",
        free="move old output to disk, without a summary",
        fold="TURNS: fold the messages of turns 3-7 into a few lines",
        plan="show what a compaction would do",
        history="list all compactions",
        undo="restore what the last compaction replaced",
        redo="reapply it",
    ),
    waits=lambda words: words.strip().lower().lstrip("-") not in (*_PLANNING, "history"),
)


def plan_document(plan: CompactionPlan) -> dict[str, Any]:
    """Plan of a compaction. Tokens are of the whole request; ids are of ledger entries."""
    return {"type": "compaction_plan", **msgspec.to_builtins(plan), "worthwhile": plan.worthwhile}
