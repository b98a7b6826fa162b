"""/playbook: lessons about the project with reasons and results, and the user's changes to them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, absent, fixed_words
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock
from swecli.figures import labelled

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.features.playbook.companion import SessionPlaybook, ShownBullet

PAUSED = "The playbook is off for this session: it neither uses nor learns lessons. /playbook on enables it."
OFF = "The playbook is off (playbook.enabled)."
NONE = (
    "No lessons yet. swecli learns from failed commands that later worked, commands you changed, and your "
    "corrections. /playbook add TEXT records a preference."
)
USAGE = (
    "Use /playbook, /playbook why ID, undo, up ID, down ID, freeze ID, off ID, on ID, delete ID, edit ID TEXT, "
    "add TEXT, everywhere TEXT or reflect; off and on without an ID switch the playbook for this session."
)
_WORDS = frozenset(["up", "down", "freeze", "off", "on", "delete", "edit", "add", "everywhere", "why", "evidence"])
"""First words that need more arguments."""


async def _run_playbook(session: Session, arguments: str) -> CommandResult:
    from swecli.features.playbook.companion import SessionPlaybook

    playbook = session.companion(SessionPlaybook)
    if playbook is None:
        return CommandResult.text(absent(session, "the playbook", OFF))
    from swecli.core.playbook.changes import ChangeRefused

    try:
        return await _done(playbook, arguments)
    except ChangeRefused as refused:
        return CommandResult.text(str(refused), "warning")


PLAYBOOK = SlashCommand(
    "playbook",
    "Show and change what swecli learned about this project",
    _run_playbook,
    arguments="[id | undo | add text | …]",
    words=fixed_words(
        add="TEXT: record a preference",
        why="ID: the evidence of an entry",
        undo="undo the last change",
        off="switch the playbook off for this session",
        on="switch it on again",
    ),
)


async def _done(playbook: SessionPlaybook, arguments: str) -> CommandResult:
    word, _, rest = arguments.strip().partition(" ")
    name, _, text = rest.strip().partition(" ")
    match word:
        case "off" | "on" if not name:
            playbook.paused = word == "off"
            return CommandResult.text(PAUSED if playbook.paused else "The playbook is on.")
        case "undo":
            return CommandResult.text(await playbook.undo())
        case "add" | "everywhere" if rest.strip():
            content, anyway = _insisted(rest)
            return CommandResult.text(await playbook.write_down(content, own=word == "everywhere", anyway=anyway))
        case "list" if not name:
            return await _listed(playbook, "")
        case "why" | "evidence" if name:
            return await _listed(playbook, rest.strip())
        case "reflect":
            return CommandResult.text(await playbook.reflect())
        case "edit" if name and text.strip():
            content, anyway = _insisted(text)
            return CommandResult.text(await playbook.edit(name, content, anyway=anyway))
        case "up" | "down" | "freeze" | "off" | "on" | "delete" if name:
            return CommandResult.text(await playbook.do(name, word))
        case _:
            pass
    return await _listed(playbook, arguments.strip())


def _insisted(words: str) -> tuple[str, bool]:
    """The text, and whether the user overrides the gate."""
    first, _, rest = words.strip().partition(" ")
    return (rest.strip(), True) if first == "--anyway" and rest.strip() else (words.strip(), False)


async def _listed(playbook: SessionPlaybook, words: str) -> CommandResult:
    """The list; one bullet in full if the words are its id; otherwise the usage."""
    shown = await playbook.shown()
    shown_bullet = next((each for each in shown if each.bullet.id == words), None)
    if shown_bullet is not None:
        return CommandResult((bullet_details(shown_bullet),))
    if words.split(" ")[0] in _WORDS:
        return CommandResult.text(USAGE, "error")
    matches = [each for each in shown if words.casefold() in f"{each.bullet.id} {each.bullet.content}".casefold()]
    if not matches and (words or not shown):
        none = f"Nothing in the playbook matches {words!r}. {USAGE}" if shown else playbook.trouble or NONE
        off = (TextBlock(PAUSED, "warning"),) if playbook.paused else ()
        return CommandResult((*off, TextBlock(none, "warning" if words or playbook.trouble else "plain")))
    return CommandResult(screen="playbook", argument=words, instead=tuple(_list_blocks(playbook, matches)))


def _list_blocks(playbook: SessionPlaybook, shown: list[ShownBullet]) -> list[DisplayBlock]:
    rows = tuple(
        (
            shown_bullet.bullet.id,
            shown_bullet.bullet.content,
            state_of(shown_bullet),
            f"{shown_bullet.bullet.helpful}/{shown_bullet.bullet.harmful}",
        )
        for shown_bullet in sorted(
            shown,
            key=lambda shown_bullet: (
                shown_bullet.bullet.status == "archived",
                shown_bullet.bullet.section,
                shown_bullet.bullet.id,
            ),
        )
    )
    below = TextBlock(f"/playbook ID shows why. Files: {', '.join(playbook.places)}", "dim")
    off = [TextBlock(PAUSED, "warning")] if playbook.paused else []
    return [TableBlock(("", "What", "State", "+/-"), rows, "Playbook"), *off, below]


def state_of(shown: ShownBullet) -> str:
    """The state in a few words."""
    bullet = shown.bullet
    if shown.stale and bullet.live:
        return "stale"
    words = {"probation": "on trial", "active": "active", "core": "proven"}
    state = words.get(bullet.status, bullet.status)
    return f"{state}, {'everywhere' if shown.own else 'frozen'}" if shown.own or bullet.frozen else state


def bullet_details(shown: ShownBullet) -> TextBlock:
    """All known facts about a bullet."""
    bullet = shown.bullet
    evidence = "\n".join(
        " ".join(filter(None, (f"{source.what or 'seen'}: session {source.session}", *source.events, source.commit)))
        for source in bullet.evidence
    )
    trigger = bullet.trigger
    return TextBlock(
        labelled(
            (
                (bullet.id, bullet.content),
                ("Kind", f"{bullet.type}, in {bullet.section}"),
                ("State", f"{state_of(shown)}{f': {shown.stale}' if shown.stale else ''}"),
                ("Learned", f"{datetime.fromtimestamp(bullet.created_at):%Y-%m-%d %H:%M}" if bullet.created_at else ""),
                ("Evidence", evidence or "none; added by hand"),
                ("Shown when", _when(trigger.commands, trigger.errors, trigger.paths, trigger.keywords)),
                (
                    "Outcomes",
                    f"helpful {bullet.helpful}, harmful {bullet.harmful}, neutral {bullet.neutral}, shown "
                    f"{bullet.exposures} times; worth {bullet.worth:.2f}",
                ),
                ("Valid while", _holds(bullet.expiry.paths, bullet.expiry.symbol)),
            )
        )
    )


def _when(commands: tuple[str, ...], errors: tuple[str, ...], paths: tuple[str, ...], keywords: tuple[str, ...]) -> str:
    parts = (
        f"{', '.join(commands)} runs" if commands else "",
        f"the error is {', '.join(errors)}" if errors else "",
        f"{', '.join(paths)} is used" if paths else "",
        f"a message is about {', '.join(keywords)}" if keywords else "",
    )
    return "; ".join(part for part in parts if part)


def _holds(paths: tuple[str, ...], symbol: str) -> str:
    there = f"{', '.join(paths)} {'is' if len(paths) == 1 else 'are'} present" if paths else ""
    return f"{there} and contains {symbol}" if there and symbol else there
