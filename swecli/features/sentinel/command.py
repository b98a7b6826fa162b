"""/sentinel: suggestions for the context; carry them out or dismiss them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, get_args

from swecli.commands.base import CommandResult, Offer, SlashCommand, Word
from swecli.core.context_management.rot import STALE_TURNS, command_of, undo_of
from swecli.core.protocol.blocks import TableBlock
from swecli.core.protocol.context_events import RotKind
from swecli.core.protocol.events import ContextSuggested
from swecli.event_lines import suggested_line
from swecli.figures import dollars, labelled, number

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.features.sentinel.companion import Sentinel

KINDS: Mapping[RotKind, str] = {
    "contradiction": "your instructions contradict each other",
    "reverted": "edits that were undone",
    "failing": "a command that keeps failing the same way",
    "reread": "an unchanged file read again and again",
    "stale": f"outputs older than {STALE_TURNS} turns and not used since",
    "summaries": "a summary of a summary",
    "repeated": "an instruction you had to repeat",
}
SHOWN = 12
"""Items to name before a change."""


async def _run_sentinel(session: Session, arguments: str) -> CommandResult:
    from swecli.features.sentinel.companion import Sentinel  # a list of the commands needs no engine

    sentinel = session.companion(Sentinel)
    verb, _, rest = arguments.strip().lower().partition(" ")
    if sentinel is None:
        return CommandResult.text("This session has no sentinel.", "warning")
    match verb:
        case "":
            return await _status(session, sentinel)
        case "take":
            return await _take(session, sentinel)
        case "silence" | "unsilence":
            return await _silence(session, sentinel, rest.strip(), on=verb == "silence")
        case "undo":
            return _undo(session)
        case _:
            return CommandResult.text(f"Unknown: /sentinel {verb}. Use {WORDS}.", "error")


WORDS = "take, silence [KIND], unsilence KIND or undo"


def _words(session: Session) -> Iterable[Word]:
    yield Word("take", "do what is suggested")
    yield Word("undo", "undo what was taken")
    for kind, meaning in KINDS.items():
        yield Word(f"silence {kind}", meaning)


SENTINEL = SlashCommand(
    "sentinel",
    "Suggest context improvements; take or silence them",
    _run_sentinel,
    arguments="[take | silence [KIND] | unsilence KIND | undo]",
    words=_words,
    waits=lambda words: words.strip().lower() in ("take", "undo"),
    under="context",
)


async def _status(session: Session, sentinel: Sentinel) -> CommandResult:
    suggestion = await (sentinel.suggestion() if session.view.busy else sentinel.renewed())
    rows = [(kind, f"{what}{' (silenced)' if kind in sentinel.silenced else ''}") for kind, what in KINDS.items()]
    state = "" if sentinel.enabled else "The sentinel is off (context.sentinel); it suggests nothing on its own.\n"
    now = suggested_line(suggestion) if suggestion is not None else "Nothing to suggest now."
    return CommandResult.text(f"{state}{now}\nWhat it looks for:\n{labelled(rows)}")


async def _take(session: Session, sentinel: Sentinel) -> CommandResult:
    """Preview the suggested action, and offer it."""
    if session.view.busy:
        return CommandResult.text("A turn is running; try again when it ends.", "warning")
    suggestion = await sentinel.renewed()
    if suggestion is None:
        return CommandResult.text("Nothing to suggest now; nothing was changed.")
    title = f"{suggestion.action[0].upper()}{suggestion.action[1:]}?"
    back = "/rewind undo" if suggestion.branch else "/compact undo" if suggestion.summaries else "/sentinel undo"
    offer = Offer(
        title, command_of(suggestion), ("Apply", f"{back} undoes it"), ("Cancel", "nothing changes"), named=False
    )
    return CommandResult((_table(session, suggestion),), offer=offer)


def _table(session: Session, suggestion: ContextSuggested) -> TableBlock:
    rows = [
        ("why", suggestion.reason),
        ("whole request, before and after", f"{number(suggestion.tokens_before)} -> {number(suggestion.tokens_after)}"),
    ]
    picture = session.inspection.picture() if suggestion.changes else None
    effect = (
        session.prices.rewind(suggestion.branch) if suggestion.branch else session.prices.changes(suggestion.changes)
    )
    if effect is not None and suggestion.freed and suggestion.changes:
        rows.append(("re-sent uncached", number(effect.rewritten)))
        if effect.cost is not None and effect.saved is not None:
            rows.append(("cost now", dollars(Decimal(effect.cost))))
            rows.append(("saving per later request", dollars(Decimal(effect.saved))))
    if effect is not None and effect.thoughts:
        rows.append(("the model's thoughts that are lost", number(effect.thoughts)))
    tokens = {item.id: item.tokens for item in picture.items} if picture is not None else {}
    for change in suggestion.changes[:SHOWN]:
        rows.append((f"{change.action} {number(tokens.get(change.id, 0))}", session.inspection.about(change.id)))
    if len(suggestion.changes) > SHOWN:
        rows.append(("", f"and {number(len(suggestion.changes) - SHOWN)} more"))
    return TableBlock(("", ""), tuple(rows), f"If you {suggestion.action}")


async def _silence(session: Session, sentinel: Sentinel, name: str, *, on: bool) -> CommandResult:
    now = session.view.suggestion
    kind: RotKind | None = next((kind for kind in get_args(RotKind) if kind == name), None)
    if on and not name and now is not None:
        kind = now.kind
    if kind is None:
        return CommandResult.text(f"Name the kind to {'' if on else 'un'}silence: {', '.join(KINDS)}.", "warning")
    silenced: list[RotKind] = [other for other in sentinel.silenced if other != kind]
    try:
        where = await sentinel.silence([*silenced, kind] if on else silenced)
    except ValueError as error:
        return CommandResult.text(str(error), "error")
    if on:
        return CommandResult.text(
            f"swecli won't suggest anything about {KINDS[kind]} again (context.sentinel_silenced in {where}). "
            f"/sentinel unsilence {kind} reverts it."
        )
    return CommandResult.text(f"swecli suggests something about {KINDS[kind]} again; written to {where}.")


def _undo(session: Session) -> CommandResult:
    taken = session.view.taken_up
    back = undo_of(taken) if taken is not None else None
    if back is None:
        return CommandResult.text(
            "No suggestion in this session changed single items; /rewind undo and /compact undo revert the others."
        )
    session.send(back)
    return CommandResult()
