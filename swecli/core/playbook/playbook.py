"""The playbook: bullets by id, bounded in number, with a status that follows from their outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.playbook.bullet import (
    LONGEST,
    Bullet,
    Status,
    Tag,
    content_key,
    from_record,
    identifier,
    to_record,
)
from swecli.core.playbook.commands import parsed
from swecli.safe_text import printable_line

MOST_LIVE: Final = 120
MOST_IN_SECTION: Final = 20
MOST_ARCHIVED: Final = 500
MOST_DELETED: Final = 500
SLACK: Final = 50
"""Excess of archived or deleted bullets before the oldest are removed."""
PROBATION: Final = 3
"""Exposures after which a bullet leaves probation."""
CORE_HELPFUL: Final = 3
CORE_WORTH: Final = 0.6
HARMFUL: Final = 2
DECAY: Final = 30 * 86_400.0
"""Seconds after which an unsupported bullet is archived."""
VOTE: Final = 5
"""Weight of a user's vote."""

TITLE = "## Learned Strategies"
_ORDER = ("file_operations", "code_navigation", "testing", "shell_commands", "error_handling")


class Playbook:
    """A container of bullets. Excess bullets are archived; the oldest archived ones are removed."""

    def __init__(self) -> None:
        self._bullets: dict[str, Bullet] = {}
        self._named: dict[str, str] = {}
        """Ids by hash of the content."""
        self.forgotten = 0
        """Number of archived bullets removed so far."""

    # --- content ---

    def add_bullet(self, section: str, content: str, bullet: Bullet | None = None) -> Bullet:
        """Add a sentence and return its bullet, or the existing one with the same content. ``bullet`` supplies all
        fields except section, content and id.

        Raises:
            ValueError: the content is empty or too long.
        """
        content = printable_line(content)
        if not content or len(content) > LONGEST:
            raise ValueError(f"a strategy has 1 to {LONGEST} characters; this one has {len(content)}")
        known = self.same(section, content)
        if known is not None and known.status != "deleted":
            known.status = "probation" if known.status == "archived" else known.status
            return known
        if known is not None:
            self.remove_bullet(known.id)
        made = replace(bullet or Bullet("", section, content), id=self._free(section, content), section=section)
        made.content = content
        self.put(made)
        if made.live:
            self.bound(made)
        return made

    def add_strategy(self, category: str, content: str) -> Bullet:
        """``add_bullet`` under the name that reflections use. Raises the same errors."""
        return self.add_bullet(category, content)

    def get_bullet(self, bullet_id: str) -> Bullet | None:
        return self._bullets.get(bullet_id)

    def tag_bullet(self, bullet_id: str, tag: Tag, count: int = 1) -> Bullet | None:
        """Count an outcome; None if the bullet does not exist."""
        bullet = self._bullets.get(bullet_id)
        if bullet is not None:
            bullet.tag(tag, count)
        return bullet

    def remove_bullet(self, bullet_id: str) -> None:
        removed = self._bullets.pop(bullet_id, None)
        if removed is not None and self._named.get(bullet_key(removed)) == bullet_id:
            del self._named[bullet_key(removed)]

    def put(self, bullet: Bullet) -> None:
        """Add a bullet, replacing the one with its id."""
        self.remove_bullet(bullet.id)
        self._bullets[bullet.id] = bullet
        self._named[bullet_key(bullet)] = bullet.id

    def bullets(self) -> list[Bullet]:
        """Bullets in use, and those that the user switched off."""
        return [bullet for bullet in self._bullets.values() if bullet.status not in ("archived", "deleted")]

    def all(self) -> list[Bullet]:
        """All bullets, including archived ones and records of deleted ones."""
        return list(self._bullets.values())

    def live(self) -> list[Bullet]:
        return [bullet for bullet in self._bullets.values() if bullet.live]

    def same(self, section: str, content: str) -> Bullet | None:
        """The bullet with this content, in any state."""
        return self.with_key(content_key(section, printable_line(content)))

    def with_key(self, key: str) -> Bullet | None:
        """The bullet with this content hash, or with this one before its deletion."""
        bullet = self._bullets.get(self._named.get(key, ""))
        return bullet if bullet is not None and bullet_key(bullet) == key else None

    def stats(self) -> dict[str, Any]:
        """Counts of bullets by section and status, and sums of their outcomes."""
        known = self.bullets()
        sections: dict[str, int] = {}
        for bullet in known:
            sections[bullet.section] = sections.get(bullet.section, 0) + 1
        return {
            "bullets": len(known),
            "sections": sections,
            "archived": sum(bullet.status == "archived" for bullet in self._bullets.values()),
            "tags": {tag: sum(getattr(bullet, tag) for bullet in known) for tag in ("helpful", "harmful", "neutral")},
        }

    # --- forms ---

    def as_context(self, max_strategies: int = 50) -> str:
        """The best bullets as Markdown for a prompt; empty without bullets."""
        best = sorted(self.live(), key=rank)[: max(0, max_strategies)]
        sections: dict[str, list[Bullet]] = {}
        for bullet in best:
            sections.setdefault(bullet.section, []).append(bullet)
        parts = [
            "\n".join((f"### {section_title(name)}", *(bullet_line(member) for member in sections[name])))
            for name in sorted(sections, key=_section_place)
        ]
        return "\n\n".join((TITLE, *parts)) if parts else ""

    def to_dict(self) -> dict[str, Any]:
        return {"bullets": [to_record(bullet) for bullet in self._bullets.values()]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Playbook:
        """The reverse of ``to_dict``; invalid entries are left out."""
        playbook, entries = cls(), data.get("bullets")
        records: Iterable[object] = ()
        if isinstance(entries, list):
            records = cast("list[object]", entries)
        elif isinstance(entries, dict):
            records = cast("dict[str, object]", entries).values()
        for record in records:
            try:
                playbook.put(from_record(record))
            except ValueError:
                continue
        return playbook

    # --- bounds ---

    def _free(self, section: str, content: str) -> str:
        turn = 0
        while (name := identifier(section, content, turn)) in self._bullets:
            turn += 1
        return name

    def bound(self, newest: Bullet | None = None) -> None:
        """Archive excess bullets, the least valuable first: in each section, or only in that of ``newest``, which is
        kept; then overall."""
        live = self.live()
        for section in {bullet.section for bullet in live} if newest is None else (newest.section,):
            self._archive([bullet for bullet in live if bullet.section == section], MOST_IN_SECTION, newest)
        self._archive([bullet for bullet in live if bullet.live], MOST_LIVE, newest)
        if len(self._bullets) > min(MOST_ARCHIVED, MOST_DELETED) + SLACK:
            self._let_go("archived", MOST_ARCHIVED)
            self._let_go("deleted", MOST_DELETED)

    def _archive(self, bullets: list[Bullet], most: int, newest: Bullet | None) -> None:
        spare = len(bullets) - most
        if spare <= 0:
            return
        for bullet in sorted(
            bullets,
            key=lambda candidate: (
                candidate is newest,
                candidate.frozen,
                candidate.worth,
                candidate.last_seen,
                candidate.id,
            ),
        ):
            if spare <= 0:
                break
            bullet.status = "archived"
            spare -= 1

    def _let_go(self, status: Status, most: int) -> None:
        there = [bullet for bullet in self._bullets.values() if bullet.status == status]
        if len(there) <= most + SLACK:  # sorted once for many, and not for each
            return
        for bullet in sorted(there, key=lambda candidate: (candidate.last_seen, candidate.id))[
            : max(0, len(there) - most)
        ]:
            self.remove_bullet(bullet.id)
            self.forgotten += status == "archived"


def bullet_key(bullet: Bullet) -> str:
    """Hash of the content; for a deleted bullet, of its former content."""
    return str(bullet.extra.get("hash", "")) if bullet.status == "deleted" else bullet.key


def rank(bullet: Bullet) -> tuple[float, float, str]:
    """Sort key, best first."""
    return (-bullet.worth, -bullet.last_seen, bullet.id)


def section_title(section: str) -> str:
    return section.replace("_", " ").title()


def _section_place(section: str) -> tuple[int, str]:
    return (_ORDER.index(section) if section in _ORDER else len(_ORDER), section)


def bullet_line(bullet: Bullet) -> str:
    return f"- [{bullet.id}] {bullet.content} (helpful={bullet.helpful}, harmful={bullet.harmful})"


class Moved(Struct, frozen=True):
    """A change of a bullet's status, with the reason as a clause."""

    bullet: str
    status: Status
    reason: str


def settle(playbook: Playbook, now: float) -> list[Moved]:
    """Judge every bullet by its outcomes: promote, demote, archive unsupported ones. Frozen bullets stay."""
    moved: list[Moved] = []
    for bullet in playbook.live():
        verdict = None if bullet.frozen else verdict_on(bullet, now)
        if verdict is not None and verdict.status != bullet.status:
            bullet.status = verdict.status
            moved.append(verdict)
    playbook.bound()
    return moved


def verdict_on(bullet: Bullet, now: float) -> Moved:
    """The status earned by a live bullet."""
    if bullet.harmful >= HARMFUL and bullet.harmful > bullet.helpful:
        return Moved(bullet.id, "archived", f"it harmed {bullet.harmful} times and helped {bullet.helpful} times")
    if bullet.last_seen and now - bullet.last_seen > DECAY:
        return Moved(bullet.id, "archived", f"it has had no support for {int(DECAY // 86_400)} days")
    if bullet.helpful >= CORE_HELPFUL and bullet.worth >= CORE_WORTH:
        return Moved(bullet.id, "core", f"it helped {bullet.helpful} times")
    if bullet.exposures >= PROBATION or bullet.status != "probation":
        return Moved(bullet.id, "active", f"it was shown {bullet.exposures} times")
    return Moved(bullet.id, "probation", "it was shown too rarely to judge")


def merged(one: Bullet, other: Bullet) -> Bullet:
    """Merge two records of the same bullet, from two branches or runs, without losing or double-counting outcomes."""
    newer, older = (one, other) if one.last_seen >= other.last_seen else (other, one)
    evidence = {(source.session, source.events): source for source in (*older.evidence, *newer.evidence)}
    statuses = {one.status, other.status}
    removed = next((status for status in ("deleted", "off") if status in statuses), None)
    return replace(
        newer,
        helpful=max(one.helpful, other.helpful),
        harmful=max(one.harmful, other.harmful),
        neutral=max(one.neutral, other.neutral),
        exposures=max(one.exposures, other.exposures),
        created_at=min(filter(None, (one.created_at, other.created_at)), default=0.0),
        last_used=max(one.last_used, other.last_used),
        verified_at=max(one.verified_at, other.verified_at),
        frozen=one.frozen or other.frozen,
        status=removed or newer.status,
        content=one.content or other.content if removed != "deleted" else "",
        evidence=tuple(evidence.values())[-5:],
        extra={**older.extra, **newer.extra},
    )


def taken_in(playbook: Playbook, bullet: Bullet) -> None:
    """Add a bullet from another file. The same bullet is merged; a different one with the same id gets a new id."""
    same = playbook.with_key(bullet_key(bullet))
    if same is not None:
        joined = merged(same, bullet)
        extra = {**joined.extra, "hash": bullet_key(same)} if joined.status == "deleted" else joined.extra
        playbook.put(replace(joined, id=same.id, extra=extra))
        return
    there = playbook.get_bullet(bullet.id)
    if there is not None and (there.status == "deleted") == (bullet.status == "deleted"):
        turn = 1
        while playbook.get_bullet(identifier(bullet.section, bullet.content, turn)) is not None:
            turn += 1
        bullet = replace(bullet, id=identifier(bullet.section, bullet.content, turn))
    elif there is not None:  # one branch deleted what the other one has: deleted it stays, unless it was edited since
        deleted, other = (there, bullet) if there.status == "deleted" else (bullet, there)
        playbook.put(deleted if bullet_key(deleted) == other.key else other)
        return
    playbook.put(bullet)


def deleted(bullet: Bullet, now: float) -> Bullet:
    """The record that remains of a bullet deleted by the user."""
    record = Bullet(bullet.id, bullet.section, "", status="deleted", created_at=bullet.created_at, verified_at=now)
    about = subject_key(bullet)
    record.extra = {"hash": bullet.key, **({"subject": about} if about else {})}
    return record


def subject_key(bullet: Bullet) -> str:
    """Hash of a lesson's kind and subject, independent of the wording of its commands; empty for a bullet without a
    subject, such as a preference."""
    if bullet.type == "preference":
        return ""
    commands = [_subject(command) for command in (bullet.guard.command, *sorted(bullet.trigger.commands)) if command]
    what = bullet.evidence[0].what if bullet.evidence and not commands else ""
    files = () if bullet.trigger.commands else bullet.trigger.paths
    about = (*files, *dict.fromkeys(commands[1:]), *commands[:1], bullet.guard.path, bullet.expiry.symbol)
    return content_key(bullet.type, "\0".join((what, *about))) if any(about) else ""


def _subject(command: str) -> str:
    """The program and its purpose, or its first argument if the purpose is unknown."""
    parsed_command = parsed(command)
    head = [word for word in parsed_command.words if not word.startswith("-")]
    return " ".join((head[0], parsed_command.intent) if head and parsed_command.intent else head[:2])
