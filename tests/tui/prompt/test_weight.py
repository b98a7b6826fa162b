"""What a message takes of the window is known before it is sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from textual import events

from swecli.core.context_management.counter import sampled
from swecli.core.engine.message_weight import SAMPLE, WeighedMention, Weight, all_of, mentions_line, weigh
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.commands import Steer, Submit
from swecli.core.protocol.events import PermissionRequested
from swecli.tui.prompt.attachments import keep_as_files
from swecli.tui.prompt.editor import Pastes
from tests.tui.support import Running, Session, running

BUDGET = Budget((), 1000, 1100, 10_000, 12_000, 2_000, "ok", "measured")
LARGE = "a line of the log\n" * 1200


def session(*turns: object) -> Session:
    made = Session(*turns)  # type: ignore[arg-type]
    made.view.budget = BUDGET
    return made


async def pasted(it: Running, text: str) -> None:
    await it.until(lambda: it.app.session.port is not None)
    it.editor.post_message(events.Paste(text))
    await it.until(lambda: "Pasted text" in it.text)


def test_the_weight_in_words() -> None:
    assert Weight(3200, 0).shown == "~3.2K tokens"
    assert Weight(3200, 40_000).shown == "~3.2K tokens, 8% of the window"
    assert Weight(3, 40_000).shown == "~3 tokens, <1% of the window"
    assert Weight(3200, 3000).shown == "~3.2K tokens, more than the window"
    assert not Weight(3200, 4000, used=900, fixed=900).fits
    crowded = Weight(3200, 4000, used=900, fixed=700)
    assert crowded.fits
    assert crowded.needs_room
    assert not Weight(3200, 4000, used=700).needs_room
    assert weigh("", 2, replace_effective(32_000)).shown == "~3.2K tokens, 10% of the window"


def test_a_weight_is_in_the_tokens_of_the_model_as_the_forecast_is() -> None:
    weight = weigh("", 2, replace_effective(32_000), 1.5)
    assert weight.shown == "~4.8K tokens, 15% of the window"
    mentions = (WeighedMention("a.py", 1000), WeighedMention("b.py", 200))
    assert all_of(weight, mentions).tokens == 4800 + 1800
    empty = weigh("", 0, replace_effective(32_000), 1.5)
    assert mentions_line(mentions, empty) == "2 mentions: ~1.8K tokens, 6% of the window · @a.py ~1.5K · @b.py ~300"


def test_fifty_megabytes_are_judged_by_three_parts() -> None:
    text = "some words of a log\n" * 2_500_000
    counted: list[int] = []

    def count(part: str) -> int:
        counted.append(len(part))
        return len(part) // 4

    assert sampled(text, count, SAMPLE, 3) == len(text) // 4
    assert sum(counted) < 100_000
    began = time.process_time()
    pastes = Pastes()
    pastes.weigh = lambda text, images: weigh(text, images, replace_effective(100_000)).shown
    assert "M tokens" in pastes.fold(text)
    assert time.process_time() - began < 2.0


def test_pastes_are_kept_as_files_with_numbers_of_their_own(tmp_path: Path) -> None:
    first = keep_as_files("see [P1]\nand [P2]", [("[P1]", "one\ntwo\n"), ("[P2]", "x")], tmp_path)
    assert first == (
        "see .swecli/pastes/paste-1.txt (a pasted text of 2 lines)\nand .swecli/pastes/paste-2.txt "
        "(a pasted text of 1 line)"
    )
    assert (tmp_path / ".swecli/pastes/paste-1.txt").read_text() == "one\ntwo\n"
    assert (tmp_path / ".swecli/pastes/.gitignore").read_text() == "*\n"
    assert "paste-3.txt" in keep_as_files("[P]", [("[P]", "y")], tmp_path)
    glued = keep_as_files("@core[P]and", [("[P]", "z")], tmp_path)
    assert glued == "@core .swecli/pastes/paste-4.txt (a pasted text of 1 line) and"


@pytest.mark.parametrize("linked", [".swecli", ".swecli/pastes", ".swecli/pastes/.gitignore"])
def test_pastes_are_not_written_through_a_link(tmp_path: Path, linked: str) -> None:
    (project := tmp_path / "project").mkdir()
    (away := tmp_path / "away").mkdir()
    link = project / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.name == ".gitignore":
        link.symlink_to(away / "made")
        assert "paste-1.txt" in keep_as_files("[P]", [("[P]", "y")], project)
    else:
        link.symlink_to(away)
        with pytest.raises(OSError, match="is a link or inside one"):
            keep_as_files("[P]", [("[P]", "y")], project)
    assert list(away.iterdir()) == []


async def test_a_small_paste_is_sent_and_shows_its_share() -> None:
    async with running(session=session(())) as it:
        await pasted(it, "a line of the log\n" * 60)
        assert it.text.endswith("tokens, 3% of the window]")
        await it.press("enter")
        await it.until(lambda: len(it.session.sent(Submit)) == 1)


async def test_a_large_message_is_asked_about_and_can_be_sent_or_taken_back() -> None:
    async with running(session=session(())) as it:
        await it.type("why? ")
        await pasted(it, LARGE)
        typed = it.text
        await it.press("enter")
        await it.shows("This message takes ~", "of the window", "Send it unchanged", "Keep it as a file")
        assert not it.session.commands
        it.clock.now += 1
        await it.press("escape")
        await it.until(lambda: it.text == typed)
        assert it.editor.message == f"why? {LARGE}"
        await it.press("enter")
        await it.shows("Send it unchanged")
        it.clock.now += 1
        await it.press("enter")
        await it.until(lambda: it.session.sent(Submit))
        assert it.session.sent(Submit)[0].text == f"why? {LARGE}"


async def test_what_fits_after_a_compaction_can_be_sent() -> None:
    made = session(())
    made.view.budget = Budget((), 9_000, 9_100, 10_000, 12_000, 2_000, "warn", "measured")
    async with running(session=made) as it:
        await pasted(it, LARGE)
        await it.press("enter")
        await it.shows("This message takes ~", "Send it unchanged", "after a compaction of the conversation")
        it.clock.now += 1
        await it.press("enter")
        await it.until(lambda: it.session.sent(Submit))


async def test_what_can_not_fit_is_kept_as_a_file(tmp_path: Path) -> None:
    made = session(())
    made.view.cwd = tmp_path
    made.view.budget = replace_effective(1000)
    async with running(session=made) as it:
        await it.type("why? ")
        await pasted(it, LARGE)
        await it.press("enter")
        await it.shows("too large to send", "Keep it as a file")
        assert "Send it unchanged" not in it.screen()
        it.clock.now += 1
        await it.press("enter")
        await it.until(lambda: it.session.sent(Submit))
        assert it.session.sent(Submit)[0].text == "why? .swecli/pastes/paste-1.txt (a pasted text of 1,200 lines)"
        assert (tmp_path / ".swecli/pastes/paste-1.txt").read_text() == LARGE


async def test_undo_after_a_cancelled_question_takes_only_later_changes() -> None:
    async with running(session=session(())) as it:
        await it.type("why? ")
        await pasted(it, LARGE)
        await it.press("enter")
        await it.shows("Send it unchanged")
        await it.press("escape")
        await it.until(lambda: it.editor.message == f"why? {LARGE}")
        await it.type("!")
        await it.press("ctrl+underscore", "ctrl+underscore", "ctrl+underscore")
        assert it.editor.message == f"why? {LARGE}"
        assert not it.session.sent(Submit)


async def test_a_question_of_the_model_in_between_gives_the_message_back() -> None:
    made = session(())
    async with running(session=made) as it:
        await pasted(it, LARGE)
        await it.press("enter")
        await it.shows("Send it unchanged")
        made.emit(PermissionRequested("p1", "t1", "run_command", "ls", (), "it asks", "b", "Bash"))
        await it.until(lambda: it.editor.message == LARGE)
        assert not it.session.sent(Submit)


def replace_effective(effective: int) -> Budget:
    import msgspec

    return msgspec.structs.replace(BUDGET, effective=effective)


async def test_what_is_mentioned_is_weighed_below_the_prompt_and_asked_about(tmp_path: Path) -> None:
    (tmp_path / "small.txt").write_text("one line\n")
    (tmp_path / "large.txt").write_text(LARGE[: len(LARGE) // 2])
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("a")
    (tmp_path / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (tmp_path / "data.bin").write_bytes(bytes(100))
    made = session((), ())
    made.view.cwd, made.view.roots = tmp_path, (tmp_path,)
    async with running(session=made, size=(220, 30)) as it:
        await it.until(lambda: it.app.session.port is not None)
        await it.type("see @small.txt")
        await it.shows("@small.txt: ~", "tokens, <1% of the window")
        await it.type(" @docs/ @shot.png @gone.txt @data.bin @pytest.fixture")
        await it.shows("3 mentions: ~1.6K tokens, 16% of the window", "@docs/ ~", "@shot.png ~1.6K")
        await it.shows("@gone.txt: no such file", "@data.bin: it is a binary file")
        assert "@pytest.fixture:" not in it.screen()
        await it.press("enter")
        await it.until(lambda: len(it.session.sent(Submit)) == 1)
        assert it.session.sent(Submit)[0].mentions is None
        await it.hides("3 mentions")

        await it.type("why? @large.txt")
        await it.press("enter")
        await it.shows("This message takes ~", "of the window", "Send it unchanged", "Send only the path")
        it.clock.now += 1
        await it.press("escape")
        await it.until(lambda: it.text == "why? @large.txt")
        await it.press("enter")
        await it.shows("Send only the path")
        it.clock.now += 1
        await it.press("down", "enter")
        await it.until(lambda: len(it.session.sent(Submit)) == 2)
        assert it.session.sent(Submit)[1] == Submit("why? @large.txt", (), ())


async def test_nothing_overtakes_a_message_that_is_weighed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("one line\n")
    made = session((), ())
    made.view.cwd, made.view.roots = tmp_path, (tmp_path,)
    going = asyncio.Event()

    async def slowly(words: Sequence[str], *rest: Any) -> tuple[WeighedMention, ...]:
        await going.wait()
        return ()

    monkeypatch.setattr("swecli.core.engine.message_weight.weigh_mentions", slowly)
    async with running(session=made) as it:
        await it.until(lambda: it.app.session.port is not None)
        await it.say("first @a.txt ")
        await it.say("second")
        going.set()
        await it.until(lambda: len(it.session.sent(Submit)) + len(it.session.sent(Steer)) == 2)
        sent = [command for command in it.session.commands if isinstance(command, Submit | Steer)]
        assert [command.text for command in sent] == ["first @a.txt ", "second"]


def saved(folder: Path) -> int:
    """Bytes of all drafts."""
    return sum(path.stat().st_size for path in folder.glob("draft-*"))


async def test_a_paste_of_fifty_megabytes_is_held_once_and_not_saved(tmp_path: Path) -> None:
    huge = "a line of a log that is far too long\n" * 1_400_000
    async with running(session=session(), state=tmp_path) as it:
        await pasted(it, huge)
        await it.shows("Pasted 51.8M: too large to save with the draft")
        await it.press(*" look")
        it.app.main.prompt.save()
        assert saved(tmp_path) < 500
        draft = it.text
        await it.press("up", "ctrl+r", "escape")
        assert it.text == draft
        assert len(it.editor.pastes._texts) == 1
        await it.press("enter")
        await it.shows("too large to send", "1 Keep it as a file")
        await it.press("escape")
        await it.until(lambda: it.text == draft)
        await it.press("ctrl+c")
        await pasted(it, huge)
        assert len(it.editor.pastes._texts) == 1
