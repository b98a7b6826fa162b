"""The user's changes to bullets. Each applies to the playbook as it is on disk, and returns a sentence about the
result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from swecli.core.playbook.bullet import PREFERENCES, Bullet, Trigger
from swecli.core.playbook.claims import CORRECTED, PROVEN, SAID
from swecli.core.playbook.likeness import words
from swecli.core.playbook.novelty import Known, judge
from swecli.core.playbook.playbook import VOTE, Playbook, deleted, settle
from swecli.safe_text import printable_line

Change = Callable[[Playbook, Bullet, float], str]


class ChangeRefused(Exception):
    """Nothing was changed; the message is a sentence with the reason."""


def vote_up(playbook: Playbook, bullet: Bullet, now: float) -> str:
    bullet.tag("helpful", VOTE)
    bullet.verified_at = now
    settle(playbook, now)
    return f"{bullet.id} counts as helpful {VOTE} times more; it is {bullet.status}."


def vote_down(playbook: Playbook, bullet: Bullet, now: float) -> str:
    bullet.tag("harmful", VOTE)
    settle(playbook, now)
    return f"{bullet.id} counts as harmful {VOTE} times more; it is {bullet.status}."


def freeze(playbook: Playbook, bullet: Bullet, now: float) -> str:
    bullet.frozen = not bullet.frozen
    return (
        f"{bullet.id} is frozen: neither outcomes nor time change it."
        if bullet.frozen
        else f"{bullet.id} is judged by its outcomes again."
    )


def switch_off(playbook: Playbook, bullet: Bullet, now: float) -> str:
    bullet.status = "off"
    return f"{bullet.id} is off: the model does not see it."


def switch_on(playbook: Playbook, bullet: Bullet, now: float) -> str:
    """Use a bullet again that was off or archived; it starts on probation."""
    if not bullet.live:
        bullet.status, bullet.verified_at = "probation", now
        playbook.bound(bullet)
    return f"{bullet.id} is on."


def delete(playbook: Playbook, bullet: Bullet, now: float) -> str:
    playbook.put(deleted(bullet, now))
    return f"Deleted {bullet.id}; swecli does not learn it again."


def take_back(learned: Bullet) -> Change:
    """A change that deletes a learned bullet, unless the user has edited it since."""

    def taken(playbook: Playbook, bullet: Bullet, now: float) -> str:
        done = "edited" if bullet.content != learned.content else "frozen" if bullet.frozen else ""
        if done:
            raise ChangeRefused(
                f"{bullet.id} was {done} since it was learned, so it is kept. /playbook delete {bullet.id} deletes it."
            )
        return delete(playbook, bullet, now)

    return taken


ACTIONS: Mapping[str, Change] = MappingProxyType(
    {"up": vote_up, "down": vote_down, "freeze": freeze, "off": switch_off, "on": switch_on, "delete": delete}
)
"""Changes by the user's word for them."""


def edit_to(text: str, masked: Callable[[str], str], *, anyway: bool = False) -> Change:
    """A change to another text. It may repeat known content, but must be specific to this project unless the user
    insists (``anyway``), and must not contain a secret."""

    def edit(playbook: Playbook, bullet: Bullet, now: float) -> str:
        content = printable_line(text)
        if reason := _refusal(content, masked, CORRECTED, f"edit {bullet.id}", anyway=anyway):
            raise ChangeRefused(f"{bullet.id} is unchanged: {reason}.")
        same = playbook.same(bullet.section, content)
        if same is not None and same.id != bullet.id and same.status != "deleted":
            raise ChangeRefused(f"{bullet.id} is unchanged: {same.id} says the same.")
        keywords = tuple(dict.fromkeys((*words(content), *bullet.trigger.keywords)))[:14]
        playbook.put(
            replace(bullet, content=content, trigger=replace(bullet.trigger, keywords=keywords), verified_at=now)
        )
        return f"{bullet.id} now says: {content}"

    return edit


def written_down(
    playbook: Playbook, content: str, now: float, masked: Callable[[str], str], *, anyway: bool = False
) -> Bullet:
    """A preference written by the user. It needs no evidence, and only the user removes it.

    Raises:
        ChangeRefused: it is not specific to this project (without ``anyway``), or contains a secret.
    """
    content = printable_line(content)
    if reason := _refusal(content, masked, SAID, "add", anyway=anyway):
        raise ChangeRefused(f"Nothing was added: {reason}.")
    trigger = Trigger(keywords=tuple(dict.fromkeys(words(content)))[:14])
    draft = Bullet("", PREFERENCES, content, type="preference", status="core", trigger=trigger, frozen=True)
    draft.created_at = draft.verified_at = now
    return playbook.add_bullet(PREFERENCES, content, draft)


def _refusal(content: str, masked: Callable[[str], str], support: float, command: str, *, anyway: bool) -> str:
    """Why a user's text is refused, and how to insist if possible; empty if it is accepted."""
    known = Known(masked=masked)
    firm = judge(content, known, PROVEN).reason
    if firm or anyway:
        return firm
    reason = judge(content, known, support).reason
    return f"{reason}. /playbook {command} --anyway TEXT adds it anyway" if reason else ""
