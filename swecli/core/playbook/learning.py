"""From evidence to the playbook: candidates are made, judged and added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.playbook.bullet import Bullet, Expiry, Source
from swecli.core.playbook.candidates import candidate
from swecli.core.playbook.claims import CORRECTED, PROVEN, names_something
from swecli.core.playbook.commands import parsed
from swecli.core.playbook.evidence import Evidence, lasts
from swecli.core.playbook.novelty import Known, judge, unfit
from swecli.core.playbook.playbook import Playbook, settle, subject_key
from swecli.core.playbook.trials import Count


class Learned(Struct, frozen=True):
    """A new or confirmed bullet, or the reason why a candidate was refused."""

    bullet: Bullet
    new: bool = False
    refused: str = ""


def drafts(
    evidence: Sequence[Evidence],
    session: str,
    commit: str,
    cwd: str,
    holds: Callable[[Expiry], bool],
    named: Callable[[str], bool],
) -> list[Bullet]:
    """Candidates supported by the evidence. ``named`` says whether the project names a command; what fixed a failure
    counts only if it does, or after a second success where an error said what was wrong."""
    proven = [
        entry
        for entry in evidence
        if entry.what != "fixed" or (entry.count and any(entry.errors)) or named(entry.worked)
    ]
    candidates = (candidate(entry, Source(session, entry.items, commit, entry.what), cwd, holds) for entry in proven)
    return [bullet for bullet in candidates if bullet is not None]


def learn(playbook: Playbook, candidates: Iterable[Bullet], known: Known, now: float) -> list[Learned]:
    """Add accepted candidates. New evidence confirms existing bullets and restores archived ones; bullets that the user
    deleted or switched off stay so."""
    results: list[Learned] = []
    for draft in candidates:
        same = playbook.same(draft.section, draft.content) or _same_way(playbook, draft)
        if same is not None:
            if same.status in ("deleted", "off"):
                results.append(Learned(draft, refused="the user does not want it"))
                continue
            _confirm(same, draft, now)
            results.append(Learned(same))
            continue
        if _deleted_about(playbook, draft):
            results.append(Learned(draft, refused="the user does not want it"))
            continue
        others = [bullet.content for bullet in playbook.bullets()]
        if draft.type == "preference" and not lasts(draft.content) and not names_something(draft.content):
            results.append(Learned(draft, refused="it names nothing, so it may be about this occasion only"))
            continue
        support = PROVEN if draft.type != "preference" or lasts(draft.content) else CORRECTED
        verdict = judge(draft.content, Known(known.texts, (*known.learned, *others), known.masked), support)
        reason = verdict.reason or unfit("\n".join((*draft.trigger.commands, *draft.trigger.paths)), known.masked)
        if reason:
            results.append(Learned(draft, refused=reason))
            continue
        made = replace(draft, created_at=now, verified_at=now)
        results.append(Learned(playbook.add_bullet(draft.section, draft.content, made), new=True))
    settle(playbook, now)
    return results


def _same_way(playbook: Playbook, draft: Bullet) -> Bullet | None:
    """An existing bullet with the same fix for the same failure (including the same error of the same program, whatever
    it ran on), or the known way to run a check."""
    if draft.type != "command" or not draft.guard.command:
        return None
    for bullet in playbook.all():
        if bullet.status == "deleted" or bullet.type != "command" or bullet.guard.command != draft.guard.command:
            continue
        if not draft.trigger.commands or set(draft.trigger.commands) & set(bullet.trigger.commands):
            return bullet
        if set(draft.trigger.errors) & set(bullet.trigger.errors) and _programs(draft) & _programs(bullet):
            return bullet
    return None


def _programs(bullet: Bullet) -> set[str]:
    return {parsed(command).words[0] for command in bullet.trigger.commands if parsed(command).words}


def _deleted_about(playbook: Playbook, draft: Bullet) -> bool:
    """Whether the user deleted a lesson of this kind about the same subject, in any words."""
    about = subject_key(draft)
    return bool(about) and any(
        bullet.status == "deleted" and bullet.extra.get("subject") == about for bullet in playbook.all()
    )


def _confirm(bullet: Bullet, draft: Bullet, now: float) -> None:
    sources = {(source.session, source.events): source for source in (*bullet.evidence, *draft.evidence)}
    bullet.evidence = tuple(sources.values())[-5:]
    bullet.verified_at = now
    if bullet.status == "archived" and bullet.harmful <= bullet.helpful:
        bullet.status = "probation"


def count(playbook: Playbook, counts: Iterable[Count], now: float) -> None:
    """Add outcomes to the counters, and update each bullet's status."""
    for outcome in counts:
        bullet = playbook.get_bullet(outcome.bullet)
        if bullet is None or bullet.status == "deleted":
            continue
        setattr(bullet, outcome.counter, getattr(bullet, outcome.counter) + 1)
        if outcome.counter in ("helpful", "harmful"):
            bullet.last_used = now
    settle(playbook, now)
