"""/playbook lists, explains and changes bullets; what it says is what was done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from swecli.block_text import block_lines
from swecli.core.context_management.note_topics import is_shown
from swecli.core.engine.session import Session
from swecli.core.playbook.bullet import Bullet, Expiry, Guard, Source, Trigger
from swecli.core.playbook.playbook import Playbook
from swecli.core.playbook.store import PlaybookFile, PlaybookOptions, Playbooks, written
from swecli.core.protocol.events import BulletLearned, BulletsTold, ItemStarted, Notice, SideAnswered
from swecli.features.playbook.command import PLAYBOOK
from swecli.features.playbook.companion import SessionPlaybook
from tests.core.engine.support import Bench, bench, call, until

ANSWER = '[[step]]\ntext = "hello"\n'
TESTS = Bullet(
    "tes-00001",
    "testing",
    "`pytest` fails here (No module named 'basket'); use `python -m pytest`.",
    type="command",
    helpful=1,
    trigger=Trigger((), ("pytest",), (), ("test",)),
    guard=Guard("python -m pytest"),
    evidence=(Source("s-1", ("t2", "t3"), "abc123", "fixed"),),
    created_at=4e9,
)
GONE = Bullet("fil-00002", "file_operations", "Edits of `gone.css` fail.", expiry=Expiry(("gone.css",)), created_at=4e9)


def playbook_of(it: Bench) -> SessionPlaybook:
    playbook = it.session.companion(SessionPlaybook)
    assert playbook is not None
    return playbook


def opener(folder: Path, *bullets: Bullet, reflect: bool = False, idle: float = 1_000.0) -> Callable[[], Playbooks]:
    path = folder / ".swecli" / "playbook.jsonl"
    path.parent.mkdir()
    path.write_text(written(bullets))
    project = PlaybookFile(path, folder / "data" / "archive.jsonl", folder / "data" / "lock")
    own = PlaybookFile(folder / "own.jsonl", folder / "own" / "a.jsonl", folder / "own" / "lock", preferences=True)
    return lambda: Playbooks(folder, project, own, PlaybookOptions(reflect=reflect, idle=idle), clock=lambda: 4e9)


def stored(folder: Path) -> Playbook:
    return PlaybookFile(folder / ".swecli" / "playbook.jsonl", folder / "x", folder / "data" / "lock").read()


async def shown(session: Session, arguments: str = "") -> str:
    result = await PLAYBOOK.run(session, arguments)
    return "\n".join(line for block in (*result.blocks, *result.instead) for line in block_lines(block))


async def test_without_a_playbook_it_says_why(tmp_path: Path) -> None:
    async with bench(ANSWER, tmp_path) as it:
        assert "playbook.enabled" in await shown(it.session)
    async with bench(ANSWER, tmp_path, playbook=opener(tmp_path)) as it:
        assert "No lessons yet" in await shown(it.session)
        assert not (await PLAYBOOK.run(it.session, "")).screen  # a screen with nothing on it


async def test_it_lists_and_explains(tmp_path: Path) -> None:
    async with bench(ANSWER, tmp_path, playbook=opener(tmp_path, TESTS, GONE)) as it:
        listed = await shown(it.session)
        assert "on trial" in listed
        assert "stale" in listed
        assert "fil-00002" not in await shown(it.session, "pytest")
        nothing = await shown(it.session, "zebra")
        assert nothing.startswith("Nothing in the playbook matches 'zebra'. Use /playbook")
        one = await shown(it.session, "tes-00001")
        for said in ("session s-1 t2 t3 abc123", "pytest runs", "helpful 1, harmful 0"):
            assert said in one
        assert await shown(it.session, "why tes-00001") == one
        assert await shown(it.session, "evidence tes-00001") == one
        assert await shown(it.session, "list") == listed
        assert (await shown(it.session, "why")).startswith("Use /playbook")
        assert "gone.css is gone" in await shown(it.session, "fil-00002")


@pytest.mark.parametrize(
    ("arguments", "said", "status", "frozen", "helpful"),
    [
        ("up tes-00001", "counts as helpful 5 times more; it is core", "core", False, 6),
        ("down tes-00001", "counts as harmful 5 times more; it is archived", "archived", False, 1),
        ("freeze tes-00001", "is frozen", "probation", True, 1),
        ("off tes-00001", "is off", "off", False, 1),
        ("delete tes-00001", "does not learn it again", "deleted", False, 0),
    ],
)
async def test_a_bullet_is_changed(
    arguments: str, said: str, status: str, frozen: bool, helpful: int, tmp_path: Path
) -> None:
    async with bench(ANSWER, tmp_path, playbook=opener(tmp_path, TESTS)) as it:
        assert said in await shown(it.session, arguments)
        file = PlaybookFile(
            tmp_path / ".swecli" / "playbook.jsonl", tmp_path / "data" / "archive.jsonl", tmp_path / "l"
        )
        kept = file.read().get_bullet("tes-00001")
        assert kept is not None
        assert (kept.status, kept.frozen, kept.helpful) == (status, frozen, helpful)


async def test_texts_are_changed_and_written_down_only_where_they_are_of_this_project(tmp_path: Path) -> None:
    async with bench(ANSWER, tmp_path, playbook=opener(tmp_path, TESTS)) as it:
        assert "now says" in await shown(it.session, "edit tes-00001 Use `python -m pytest -p no:cov` here.")
        assert "unchanged" in await shown(it.session, "edit tes-00001 Run tests after changes")
        assert "Unknown bullet 'x'" in await shown(it.session, "edit x Use `python -m pytest -p no:cov` here.")
        refused = await shown(it.session, "add Write clean code")
        assert "Nothing was added" in refused
        assert "/playbook add --anyway TEXT adds it anyway" in refused
        assert "secret" in await shown(it.session, "add --anyway Use the key token=abcdefgh12345678")
        assert "Write clean code" in await shown(it.session, "add --anyway Write clean code")
        assert "Added" in await shown(it.session, "add Use pnpm, not npm.")
        assert "Added" in await shown(it.session, "everywhere Use tabs, not spaces.")
        assert "everywhere" in await shown(it.session)
        assert "Use /playbook" in await shown(it.session, "up")
    assert sorted(one.content for one in stored(tmp_path).bullets()) == [
        "Use `python -m pytest -p no:cov` here.",
        "Use pnpm, not npm.",
        "Write clean code",
    ]
    assert "tabs" in (tmp_path / "own.jsonl").read_text()


@pytest.mark.parametrize(
    ("before", "word"),
    [("edit tes-00001 Use `python -m pytest -p no:cov` here.", "edited"), ("freeze tes-00001", "frozen")],
)
async def test_what_the_user_made_their_own_is_not_taken_back(before: str, word: str, tmp_path: Path) -> None:
    async with bench(ANSWER, tmp_path, playbook=opener(tmp_path, TESTS)) as it:
        playbook_of(it).learned.append(TESTS)
        await shown(it.session, before)
        for _ in range(2):
            assert await shown(it.session, "undo") == (
                f"tes-00001 was {word} since it was learned, so it is kept. /playbook delete tes-00001 deletes it."
            )
        assert len(stored(tmp_path).bullets()) == 1
        await shown(it.session, "delete tes-00001")
        assert "already undone" in await shown(it.session, "undo")


async def test_what_another_session_learned_is_seen_and_told(tmp_path: Path) -> None:
    async with bench(ANSWER * 2, tmp_path, playbook=opener(tmp_path)) as it:
        assert "No lessons yet" in await shown(it.session)
        (tmp_path / ".swecli" / "playbook.jsonl").write_text(f"<<<<<<< ours\n{written([TESTS])}")
        assert "on trial" in await shown(it.session)
        assert "tes-00001 is frozen" in await shown(it.session, "freeze tes-00001")
        assert [one.text for one in it.bodies(Notice) if "merge conflict" in one.text] != []
        await it.say("run the tests")
        assert [one.told for one in it.bodies(BulletsTold)] == [("tes-00001",)]


async def test_what_was_learned_is_taken_back_and_the_session_can_do_without(tmp_path: Path) -> None:
    async with bench(ANSWER * 2, tmp_path, playbook=opener(tmp_path, TESTS)) as it:
        assert "No lessons from this session" in await shown(it.session, "undo")
        playbook_of(it).learned.append(TESTS)
        assert "Deleted tes-00001" in await shown(it.session, "undo")
        assert "already undone" in await shown(it.session, "undo")
        assert stored(tmp_path).bullets() == []
        assert "off for this session" in await shown(it.session, "off")
        assert "off for this session" in await shown(it.session)
        await shown(it.session, "add Use pnpm, not npm.")
        assert "off for this session" in await shown(it.session)
        assert "off for this session" not in await shown(it.session, "on")
        assert "off for this session" not in await shown(it.session)
        await shown(it.session, "off")
        await it.say("run the tests")
        assert it.bodies(BulletsTold) == []


async def test_a_bullet_is_told_once_behind_the_message_that_sets_it_off(tmp_path: Path) -> None:
    async with bench(ANSWER * 2, tmp_path, playbook=opener(tmp_path, TESTS, GONE)) as it:
        await it.say("run the tests")
        await it.say("run the tests again")
        assert [(one.place, one.told) for one in it.bodies(BulletsTold)] == [("message", ("tes-00001",))]
        (title,) = (one.title for one in it.bodies(ItemStarted) if one.kind == "note")
        assert title == "Playbook: `pytest` fails here (No module named 'basket'); use `python -m… (tes-00001)"
        first, second = (request.messages for request in it.model.requests)
        assert first == second[: len(first)]
        assert "use `python -m pytest`" in "".join(message.text for message in first)
    kept = stored(tmp_path).get_bullet("tes-00001")
    assert kept is not None
    assert (kept.exposures, kept.neutral) == (1, 1)


async def test_a_lesson_that_a_notice_has_announced_is_not_shown_again(tmp_path: Path) -> None:
    own = "`run` needs `--all` for the tests."
    other = Bullet("tes-00003", "testing", own, trigger=Trigger((), (), (), ("test",)), created_at=4e9)
    for bullets, titles in (((TESTS,), []), ((TESTS, other), [f"Playbook: {own} (tes-00003)"])):
        folder = tmp_path / str(len(bullets))
        folder.mkdir()
        async with bench(ANSWER, folder, playbook=opener(folder, *bullets)) as it:
            playbook_of(it).learned.append(TESTS)
            await it.say("run the tests")
            notes = [one for one in it.bodies(ItemStarted) if one.kind == "note"]
            assert [note.title for note in notes if is_shown(note.name)] == titles
            sent = "".join(message.text for message in it.model.requests[0].messages)
            assert all(bullet.content in sent for bullet in bullets), "the model is told either way"


REFLECTED = """
aside = '{"op": "ADD", "content": "`target-x` needs `broken`, or it fails.", "evidence": ["EVENT"]}'
[[step]]
text = "hello"
"""


async def test_a_model_reflects_where_it_is_asked_to_and_must_cite_what_happened(tmp_path: Path) -> None:
    for event, said in (("t99", "0 of 1"), ("u1", "1 of 1")):
        folder = tmp_path / event
        folder.mkdir()
        async with bench(REFLECTED.replace("EVENT", event), folder, playbook=opener(folder)) as it:
            await it.say("what is `target-x` and `broken`")
            assert said in await shown(it.session, "reflect")
            assert sum(isinstance(fact.body, BulletLearned) for fact in it.facts) == int(said[0])


WORKED = """
aside = '{"op": "ADD", "content": "`target-x` needs `broken`, or it fails.", "evidence": ["u1"]}'
[[step]]
call = [CALLS]
[[step]]
text = "done"
"""


@pytest.mark.parametrize(
    ("wanted", "attended", "calls", "learned"),
    [(True, False, 4, 1), (True, False, 3, 0), (False, False, 4, 0), (True, True, 4, 0)],
)
async def test_a_session_ends_with_a_reflection_only_where_that_is_set_and_nobody_waits_for_it(
    wanted: bool, attended: bool, calls: int, learned: int, tmp_path: Path
) -> None:
    script = WORKED.replace("CALLS", ", ".join(call("read_file", f"f{number}") for number in range(calls)))
    async with bench(script, tmp_path, playbook=opener(tmp_path, reflect=wanted)) as it:
        it.session._services.toolset.context.unattended = not attended
        await it.say("what is `target-x` and `broken`")
        facts = it.facts
    assert sum(isinstance(fact.body, BulletLearned) for fact in facts) == learned
    assert len(stored(tmp_path).bullets()) == learned


async def test_an_idle_session_reflects_once_upon_what_is_new(tmp_path: Path) -> None:
    script = WORKED.replace("CALLS", ", ".join(call("read_file", f"f{number}") for number in range(4)))
    async with bench(script, tmp_path, playbook=opener(tmp_path, reflect=True, idle=0.0)) as it:
        await it.say("what is `target-x` and `broken`")
        await until(lambda: bool(it.bodies(BulletLearned)), "a reflection")
        asked = len(it.bodies(SideAnswered))
    assert asked == 1
    assert len(it.bodies(SideAnswered)) == 1, "nothing is new when the session ends"


async def test_a_damaged_file_is_told_of(tmp_path: Path) -> None:
    give = opener(tmp_path, TESTS)
    path = tmp_path / ".swecli" / "playbook.jsonl"
    path.write_text(path.read_text() + "<<<<<<< HEAD\n{torn")
    async with bench(ANSWER, tmp_path, playbook=give) as it:
        await it.say("hi")
        told = [one.text for one in it.bodies(Notice)]
        assert any("merge conflict" in text for text in told)
        assert "kept as playbook.jsonl.corrupt-" not in str(told)
        await shown(it.session, "up tes-00001")
        assert "<<<<<<<" not in path.read_text()
        assert list(path.parent.glob("*.corrupt-*"))
