"""/init: what it writes, and when it leaves a file alone."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from swecli.features.init import proposal
from tests.commands.support import CommandSession


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Makefile").write_text("test:\n\ttrue\n")
    (tmp_path / "app.py").write_text('"""The app."""\n')
    return tmp_path


ANSWER = json.dumps({"overview": "`app.py` does it all.", "rules": ["Run `make test` first.", "Run `make gone` too."]})


async def test_with_a_model_its_prose_goes_into_the_file(folder: Path) -> None:
    session = CommandSession(folder, answer=ANSWER)
    report = await session.slash("/init")
    text = (folder / "OPENCLI.md").read_text()
    assert "`app.py` does it all." in text
    assert "make gone" not in text
    assert "Dropped 1 of the model's statements" in report
    system, prompt = session.questions.asked[0]
    assert "JSON" in system
    assert "make test" in prompt
    assert session.command_tools.written == [(str(folder / "OPENCLI.md"), text)]


@pytest.mark.parametrize("model", [True, False])
async def test_without_a_model_or_an_answer_the_facts_alone_make_a_file(folder: Path, model: bool) -> None:
    session = CommandSession(folder, answer=None, model=model)
    report = await session.slash("/init")
    text = (folder / "OPENCLI.md").read_text()
    assert "- Test: `make test` (from `Makefile`)" in text
    assert "Written without a model" in report
    assert len(session.questions.asked) == model


async def test_garbage_from_the_model_does_no_harm(folder: Path) -> None:
    report = await CommandSession(folder, answer="I would rather not. {").slash("/init")
    assert "## Commands" in (folder / "OPENCLI.md").read_text()
    assert "The model's answer had nothing usable" in report


async def test_a_refusal_writes_nothing_and_says_why(folder: Path) -> None:
    session = CommandSession(folder)
    session.command_tools.refuse = "The user said no: later"
    assert "was not written. The user said no: later" in await session.slash("/init")
    assert not (folder / "OPENCLI.md").exists()


async def test_a_note_with_the_rejection_is_followed(folder: Path) -> None:
    session = CommandSession(folder, answer=ANSWER)
    session.command_tools.notes = ["no structure, please"]

    async def ask_model(system: str, prompt: str, *, max_output_tokens: int = 2000) -> str:
        session.questions.asked.append((system, prompt))
        return (
            ANSWER
            if len(session.questions.asked) == 1
            else json.dumps({**json.loads(ANSWER), "leave_out": ["Structure"]})
        )

    session.questions.ask = ask_model
    await session.slash("/init")
    text = (folder / "OPENCLI.md").read_text()
    assert "## Structure" not in text
    assert "## Commands" in text
    assert len(session.questions.asked) == 2
    assert "no structure, please" in session.questions.asked[1][1]
    assert "## Structure" in session.questions.asked[1][1]


@pytest.mark.parametrize("model", [True, False])
async def test_a_note_that_nobody_can_follow_is_answered(folder: Path, model: bool) -> None:
    session = CommandSession(folder, answer=ANSWER if model else None, model=model)
    session.command_tools.notes = ["longer, please"] * 2
    report = await session.slash("/init")
    assert "was not written" in report
    assert "e edits the text itself" in report
    assert len(session.command_tools.notes) == 1
    assert not (folder / "OPENCLI.md").exists()


async def test_another_day_alone_is_no_reason_to_write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class LongAgo(date):
        @classmethod
        def today(cls) -> date:
            return date(2001, 2, 3)

    with monkeypatch.context() as patched:
        patched.setattr(proposal, "date", LongAgo)
        await CommandSession(folder).slash("/init")
    assert "2001-02-03" in (folder / "OPENCLI.md").read_text()
    again = CommandSession(folder)
    assert "is up to date" in await again.slash("/init")
    assert again.command_tools.written == []
    (folder / "more.py").touch()
    await again.slash("/init")
    assert "2001-02-03" not in (folder / "OPENCLI.md").read_text()


async def test_what_a_person_wrote_stays(folder: Path) -> None:
    (folder / "OPENCLI.md").write_text("# Mine\n\n## Manners\n\nSay please.\n")
    session = CommandSession(folder)
    await session.slash("/init")
    text = (folder / "OPENCLI.md").read_text()
    assert text.startswith("# Mine\n")
    assert "## Manners\n\nSay please." in text
    assert "`make test`" in text
    kept = "Sections of OPENCLI.md kept as you wrote them: the text before the first section, manners."
    assert session.notices == [kept]


async def test_what_stays_is_said_before_the_question(folder: Path) -> None:
    (folder / "OPENCLI.md").write_text("# Always use tabs\n")
    session = CommandSession(folder)
    session.command_tools.refuse = "no"
    assert "was not written" in await session.slash("/init")
    assert session.notices == ["Sections of OPENCLI.md kept as you wrote them: the text before the first section."]


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
async def test_instructions_of_a_person_are_improved_and_not_hidden(folder: Path, name: str) -> None:
    (folder / name).write_text("# Mine\n\nUse tabs. See `src/gone.py`.\n")
    before = (folder / name).read_text()
    session = CommandSession(folder)
    report = await session.slash("/init")
    text = (folder / name).read_text()
    assert not (folder / "OPENCLI.md").exists()
    assert text.startswith(before.rstrip())
    assert "`make test`" in text
    assert "the rest is as you wrote it" in report
    assert "`src/gone.py`" in report
    assert "up to date" in await session.slash("/init")
    assert (folder / name).read_text() == text


async def test_what_is_named_already_is_not_added(folder: Path) -> None:
    text = "Run `make test`, `make lint` and all else that the Makefile has.\n"
    (folder / "AGENTS.md").write_text(text)
    await CommandSession(folder).slash("/init")
    assert (folder / "AGENTS.md").read_text().count("`make test`") == 1


async def test_what_an_imported_file_names_is_not_added_either(folder: Path) -> None:
    (folder / "AGENTS.md").write_text("See @CLAUDE.md\n")
    (folder / "CLAUDE.md").write_text("Run `make test`.\n")
    await CommandSession(folder).slash("/init")
    assert "`make test`" not in (folder / "AGENTS.md").read_text()


async def test_files_of_other_agents_are_pointed_to(folder: Path) -> None:
    (folder / "AGENTS.md").write_text("Use tabs.")
    (folder / "OPENCLI.md").write_text("# Mine\n")
    await CommandSession(folder).slash("/init")
    assert "`AGENTS.md` has further instructions" in (folder / "OPENCLI.md").read_text()


async def test_an_improved_file_points_to_those_of_other_agents(folder: Path) -> None:
    (folder / "AGENTS.md").write_text("Use tabs. More in CLAUDE.md.\n")
    (folder / "CLAUDE.md").write_text("Never push.\n")
    (folder / "GEMINI.md").write_text("# Instructions\n\n@AGENTS.md\n")
    (folder / ".cursorrules").write_text("Prefer named exports.\n")
    (folder / ".cursor" / "rules").mkdir(parents=True)
    (folder / ".cursor" / "rules" / "style.mdc").touch()
    await CommandSession(folder).slash("/init")
    text = (folder / "AGENTS.md").read_text()
    pointed = [line.split("`")[1] for line in text.splitlines() if "has further instructions" in line]
    assert pointed == [".cursorrules", ".cursor/rules/"]


async def test_a_dry_run_shows_the_change_and_writes_nothing(folder: Path) -> None:
    session = CommandSession(folder)
    assert "Nothing was written" in await session.slash("/init --dry-run")
    assert session.command_tools.written == []
    assert not (folder / "OPENCLI.md").exists()


async def test_an_empty_folder_or_an_odd_file_is_left_alone(tmp_path: Path, folder: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    session = CommandSession(empty)
    assert "no files to describe" in await session.slash("/init")
    (folder / "OPENCLI.md").mkdir()
    other = CommandSession(folder)
    assert "swecli cannot update it: is a directory" in await other.slash("/init")
    (folder / "OPENCLI.md").rmdir()
    (folder / "OPENCLI.md").write_text("x" * 300_000)
    assert "swecli cannot update it" in await other.slash("/init")
    assert session.command_tools.written == other.command_tools.written == []
