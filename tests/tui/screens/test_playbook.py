"""The playbook's screen: the list, what is known of one, and what is done with it."""

from __future__ import annotations

from swecli.core.playbook.bullet import Bullet, Source
from swecli.core.playbook.changes import ChangeRefused
from swecli.features.playbook.companion import SessionPlaybook, ShownBullet
from tests.tui.support import running

CORE = Bullet("tes-00001", "testing", "Use `python -m pytest` here, `pytest` fails.", helpful=6, status="core")
TRIAL = Bullet("fil-00002", "file_operations", "Edits of `a.css` did not apply 3 times.")
CORE.evidence = (Source("s-1", ("t2", "t3"), "abc123", "fixed"),)


class Stub:
    """The playbook of a session, in memory."""

    def __init__(self, *bullets: Bullet) -> None:
        self.bullets = list(bullets)
        self.done: list[tuple[str, ...]] = []
        self.trouble = ""
        self.paused = False

    async def shown(self) -> list[ShownBullet]:
        return [
            ShownBullet(bullet, stale="a.css is gone" if "a.css" in bullet.content else "") for bullet in self.bullets
        ]

    async def do(self, name: str, action: str) -> str:
        if action == "down":
            raise ChangeRefused("There is no bullet.")
        self.done.append((name, action))
        if action == "delete":
            self.bullets = [bullet for bullet in self.bullets if bullet.id != name]
        return f"{name}: {action} done"

    async def edit(self, name: str, text: str) -> str:
        if len(text) > 80:
            raise ChangeRefused(f"{name} is unchanged: it is too long.")
        self.done.append((name, "edit", text))
        return f"{name} now says: {text}"


async def test_bullets_are_listed_explained_and_changed() -> None:
    stub = Stub(CORE, TRIAL)
    for size in ((80, 24), (200, 60)):
        async with running(size=size) as it:
            it.session.companions[SessionPlaybook] = stub
            it.app.interface.open("playbook")
            await it.shows("Playbook · 2", "Proven, in every session", "On trial", "stale", "session s-1")
            await it.press(*"css")
            await it.shows("1 of 2")
            await it.press("ctrl+u", "enter")
            await it.shows("counts 5 times as helpful")
            await it.press("enter")
            await it.shows("tes-00001: up done", "Playbook · 2")
    assert stub.done == [("tes-00001", "up")] * 2


async def test_a_bullet_is_edited_deleted_and_a_refusal_is_told() -> None:
    stub = Stub(CORE, TRIAL)
    async with running() as it:
        it.session.companions[SessionPlaybook] = stub
        it.app.interface.open("playbook", "pytest")
        await it.shows("1 of 2")
        await it.press("enter", *"edit", "enter")
        await it.shows("Edit tes-00001", "enter saves")
        await it.press(*" now", "enter")
        await it.shows("tes-00001 now says", "1 of 2")
        await it.press("enter", "down", "enter")
        await it.shows("There is no bullet.")
        await it.press("ctrl+x")
        await it.shows("Delete Use `python -m pytest` here", "not undoable")
        await it.press("escape")
        await it.hides("not undoable")
        await it.shows("1 of 2")
        await it.press("ctrl+x")
        await it.shows("Delete Use `python -m pytest` here")
        await it.press("1")
        await it.shows("tes-00001: delete done")
        await it.press("escape")
        await it.shows("Playbook · 1")
    assert stub.done == [("tes-00001", "edit", f"{CORE.content} now"), ("tes-00001", "delete")]


async def test_a_text_that_is_refused_stays_to_be_corrected() -> None:
    stub = Stub(CORE)
    async with running() as it:
        it.session.companions[SessionPlaybook] = stub
        it.app.interface.open("playbook")
        await it.shows("Playbook · 1")
        await it.press("enter", *"edit", "enter")
        await it.shows("enter saves")
        await it.press(*" and then more words than fit in one bullet", "enter")
        await it.shows("tes-00001 is unchanged: it is too long.", "than fit in one bullet", "enter saves")
        await it.press("ctrl+u", *"Short.", "enter")
        await it.shows("tes-00001 now says: Short.", "Playbook · 1")
    assert stub.done == [("tes-00001", "edit", "Short.")]


async def test_an_empty_playbook_says_how_it_fills() -> None:
    async with running() as it:
        it.session.companions[SessionPlaybook] = Stub()
        it.app.interface.open("playbook")
        await it.shows("No lessons yet")
