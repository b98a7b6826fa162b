"""/compact: make room in the context, see before what that would do, and take it back."""

from __future__ import annotations

from decimal import Decimal

from swecli.commands.base import CommandResult, Offer, SlashCommand
from swecli.commands.figures import dollars, number, percent
from swecli.core.context_management.compaction.plan import CompactionPlan
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TableBlock, TextBlock
from swecli.core.protocol.commands import Compact, RedoCompaction, UndoCompaction


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    match arguments.strip().lower().lstrip("-"):
        case "undo":
            port.send(UndoCompaction())
            return CommandResult()
        case "redo":
            port.send(RedoCompaction())
            return CommandResult()
        case "free":
            port.send(Compact(without_model=True))
            return CommandResult()
        case "plan" | "preview" | "dry-run":
            return _plan(port)
        case _:
            pass
    plan = port.plan_compaction()
    if plan is not None and not plan.worthwhile:
        return CommandResult.text(
            f"There is nothing to gain yet: the conversation has {number(plan.kept_tokens)} tokens in "
            f"{plan.kept_messages} messages, and all of them would be kept."
        )
    command = Compact(arguments.strip())
    if plan is None:
        port.send(command)
        return CommandResult()
    title = f"Compact from {number(plan.tokens_before)} to about {number(plan.tokens_after)} tokens?"
    offer = Offer(title, command, ("Apply", "/compact undo takes it back"), ("Leave it", "nothing changes"))
    return CommandResult((_table(plan),), offer=offer)


def _plan(port: SessionPort) -> CommandResult:
    plan = port.plan_compaction()
    if plan is None:
        return CommandResult.text("No model is connected, so nothing can be measured.", "warning")
    if not plan.worthwhile:
        return CommandResult.text("A compaction would change nothing: the whole conversation would be kept.")
    return CommandResult((_table(plan), TextBlock(_words(plan))))


def _table(plan: CompactionPlan) -> TableBlock:
    rows = (
        ("kept word for word", str(plan.kept_messages), number(plan.kept_tokens)),
        (
            "summarised" if plan.summary_allowance else "left out",
            str(plan.replaced_messages),
            number(plan.replaced_tokens),
        ),
        ("offloaded, with a reference", str(len(plan.offloaded)), number(plan.offloaded_tokens)),
        ("summary, about", "1" if plan.summary_allowance else "0", number(plan.summary_allowance)),
        ("the whole request, before and after", "", f"{number(plan.tokens_before)} -> {number(plan.tokens_after)}"),
        ("sent anew, not from the cache", "", number(plan.rewritten_tokens)),
    )
    return TableBlock(("", "messages", "tokens"), (*rows, *_costs(plan)), "A compaction now")


def _costs(plan: CompactionPlan) -> tuple[tuple[str, str, str], ...]:
    if plan.cost is None or plan.saved_per_request is None:
        return ()
    return (
        ("costs now", "", dollars(Decimal(plan.cost))),
        ("saves with each later request", "", dollars(Decimal(plan.saved_per_request))),
    )


def _words(plan: CompactionPlan) -> str:
    saved = 1 - plan.tokens_after / plan.tokens_before
    return (
        f"From {number(plan.tokens_before)} to about {number(plan.tokens_after)} tokens (-{percent(saved)}). "
        "Your own messages, the files, checks and todos are kept by the record. "
        "/compact [focus] does it, /compact undo takes it back."
    )


COMPACT = SlashCommand(
    "compact",
    "Make room in the context; undo, redo and plan go with it",
    _run,
    aliases=("compress", "summarize"),
    arguments="[focus | free | plan | undo | redo]",
)
