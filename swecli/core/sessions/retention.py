"""Which sessions may go, by the rules of the settings: too old, or too much together. Nothing is deleted here."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from swecli.core.sessions.store import SessionInfo

DAY = 86_400.0


class Retention(Struct, frozen=True):
    """``older_than`` is days after which a session goes, ``total`` bytes of all that stay; None: no such rule.
    ``protected`` is days for which no rule touches a session."""

    older_than: float | None = None
    total: int | None = None
    protected: float = 30

    @property
    def limits(self) -> bool:
        return self.older_than is not None or self.total is not None


class Expired(Struct, frozen=True):
    session: SessionInfo
    why: str


def expired(sessions: Sequence[SessionInfo], rules: Retention, now: float, held: Collection[str] = ()) -> list[Expired]:
    """The sessions that go, oldest first. Those in ``held`` are open and stay. ``now`` is Unix seconds; a session from
    the future, because a clock was wrong, counts as new."""
    gone: list[Expired] = []
    total = sum(session.size for session in sessions)
    for session in sorted(sessions, key=lambda one: (one.updated, one.id)):
        days = (now - session.updated) / DAY
        if session.id in held or days < rules.protected:
            continue
        if rules.older_than is not None and days >= rules.older_than:
            gone.append(Expired(session, f"unused for {days:.0f} days"))
        elif rules.total is not None and total > rules.total:
            gone.append(Expired(session, f"all sessions take more than {rules.total:,} bytes"))
        else:
            continue
        total -= session.size
    return gone
