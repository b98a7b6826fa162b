"""Which files count: precedence, trust by content, bad files, and what changes while a session runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, current_thread, main_thread
from typing import Any

import pytest

from swecli.core.config.trust import covered_by_trust
from swecli.core.extensions import reading
from swecli.core.extensions.catalogue import Catalogue, Change
from swecli.core.extensions.reading import read_catalogue
from swecli.core.extensions.watch import ExtensionFiles
from tests.core.extensions.support import Places
from tests.support.waiting import PATIENCE


def follow(files: ExtensionFiles) -> Callable[[], Change | None]:
    """What one session is told."""
    seen = files.seen

    def news() -> Change | None:
        nonlocal seen
        change, seen = files.news(seen)
        return change

    return news


def test_nothing_is_nothing_and_loads_nothing() -> None:
    code = (
        "import sys, pathlib; from swecli.core.extensions.watch import ExtensionFiles; p = pathlib.Path('/nowhere');"
        "files = ExtensionFiles(p, p, p, trusted=True); assert not files.now.skills;"
        "assert files.news(files.seen)[0] is None;"
        "print([name for name in sys.modules if name.startswith('swecli.core.extensions.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert eval(done.stdout) == ["swecli.core.extensions.catalogue", "swecli.core.extensions.watch"]


def test_the_nearest_folder_wins_and_swecli_s_own_in_it(places: Places) -> None:
    for home, description in ((".claude", "c"), (".agents", "b"), (".swecli", "a")):
        places.skill("one", description, home=home)
    places.write("~/.claude/skills/one/SKILL.md", "---\nname: one\ndescription: mine\n---\n")
    places.write("~/.config/swecli/commands/own.md", "hello")
    sub = places.project / "sub"
    places.write("sub/.claude/commands/near.md", "near")
    places.write(".claude/commands/near.md", "far")
    files = Places(sub, places.home).open()
    assert files.now.skills["one"].description == "a"
    assert files.now.commands["near"].body == "near"
    assert set(files.now.commands) == {"near", "own"}
    duplicates = [text for _, text in files.now.problems]
    assert sum("takes precedence" in text for text in duplicates) == 4
    assert any(text.startswith("~/.claude/skills/one/SKILL.md: one is also in") for text in duplicates)


def test_the_same_file_twice_is_no_problem(places: Places) -> None:
    places.skill("one")
    places.skill("one", home=".agents")
    assert places.open().now.problems == ()


def test_project_files_count_only_where_the_user_trusts_it(places: Places) -> None:
    places.skill("theirs")
    places.write("~/.claude/skills/mine/SKILL.md", "---\ndescription: d\n---\n")
    assert set(places.open(trusted=False).now.skills) == {"mine"}
    assert set(places.open().now.skills) == {"mine", "theirs"}


def test_what_is_asked_about_names_them(places: Places) -> None:
    places.skill("one")
    places.write(".agents/commands/a.md", "x")
    assert covered_by_trust(places.project) == (".agents/commands/ (1)", ".claude/skills/ (1)")


def test_a_trusted_project_counts_as_far_as_it_was_approved(places: Places) -> None:
    places.skill("one")
    files = places.open(at_once=False)
    assert files.now.skills == {}
    assert [one.name for one in files.now.waiting] == ["one"]
    assert files.approve(files.now.waiting) == ""
    assert set(files.now.skills) == {"one"}
    assert set(places.open(at_once=False).now.skills) == {"one"}
    places.skill("one", "changed by a pull")
    again = places.open(at_once=False)
    assert again.now.skills == {}
    assert "changed by a pull" in again.now.waiting[0].text


def test_a_change_of_a_project_file_waits_and_the_model_is_told(places: Places) -> None:
    places.skill("one")
    places.skill("two")
    files = places.open()
    news = follow(files)
    assert news() is None
    places.skill("one", "another thing")
    change = news()
    assert change is not None
    assert [one.name for one in change.waiting] == ["one"]
    assert change.removed == ("skill one",)
    assert "no longer exist: one" in change.model
    assert news() is None
    files.approve(files.now.waiting)
    change = news()
    assert change is not None
    assert change.added == ("skill one",)
    assert "- one: another thing" in change.model


def test_a_change_of_a_file_of_one_s_own_counts_at_once(places: Places) -> None:
    path = places.write("~/.claude/skills/own/SKILL.md", "---\nname: own\ndescription: before\n---\n")
    files = places.open()
    news = follow(files)
    path.write_text("---\nname: own\ndescription: after\n---\n")
    change = news()
    assert change is not None
    assert change.changed == ("skill own",)
    assert "- own: after" in change.model
    path.unlink()
    gone = news()
    assert gone is not None
    assert "no longer exist: own" in gone.model
    assert files.now.skills == {}


def test_a_command_or_agent_needs_no_word_to_the_model(places: Places) -> None:
    files = places.open()
    news = follow(files)
    places.write("~/.claude/commands/new.md", "x")
    places.write("~/.claude/agents/a.md", "---\nname: a\ndescription: d\n---\np")
    change = news()
    assert change is not None
    assert change.added == ("/new", "agent a")
    assert change.model == ""
    assert {"a", "explore"} <= set(files.profiles)


def test_a_profile_of_one_s_own_takes_the_place_of_a_built_in_one(places: Places) -> None:
    places.write("~/.claude/agents/explore.md", "---\nname: explore\ndescription: mine\n---\np")
    assert places.open().profiles["explore"].description == "mine"


def test_names_of_swecli_s_commands_stay_swecli_s(places: Places) -> None:
    places.write(".claude/commands/help.md", "mine")
    places.skill("clear")
    places.write(".claude/commands/pdf.md", "command")
    places.skill("pdf")
    files = places.open(built_in=("help", "clear"))
    assert set(files.now.commands) == {"pdf"}
    texts = [text for _, text in files.now.problems]
    assert any("help.md: /help is a command of swecli" in text for text in texts)
    assert any("use the skill with /skill clear" in text for text in texts)
    assert any("pdf.md: /pdf is also a skill" in text for text in texts)
    called = files.now.invocable("pdf")
    assert called is files.now.skills["pdf"]
    assert files.now.invocable("skill:clear") is files.now.skills["clear"]


def test_links_out_of_the_project_are_not_read(places: Places) -> None:
    outside = places.write("~/elsewhere/SKILL.md", "---\ndescription: stolen\n---\n")
    (places.project / ".claude/skills").mkdir(parents=True)
    (places.project / ".claude/skills/bad").symlink_to(outside.parent)
    (places.project / ".agents").symlink_to(places.home)
    places.write("~/commands/x.md", "x")
    places.write("~/.claude/skills/link", b"")
    (places.home / ".claude/skills/mine").symlink_to(outside.parent)
    files = places.open()
    assert set(files.now.skills) == {"mine"}
    assert files.now.commands == {}
    texts = sorted(text for _, text in files.now.problems)
    assert [text.partition(":")[0] for text in texts if "leads outside the project" in text] == [
        ".agents/agents",
        ".agents/commands",
        ".agents/skills",
        ".claude/skills/bad/SKILL.md",
    ]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_command_in_the_encoding_of_its_mark(places: Places, encoding: str) -> None:
    places.write(".claude/commands/wide.md", "---\ndescription: wide\n---\nnaïve".encode(encoding))
    files = places.open()
    assert files.now.problems == ()
    assert files.now.commands["wide"].body == "naïve"


def test_files_that_are_nothing_of_use_are_one_line_each(places: Places) -> None:
    places.write(".claude/commands/binary.md", b"a\0b")
    places.write(".claude/commands/latin.md", "---\ndescription: d\n---\nna\xefve".encode("latin-1"))
    places.write(".claude/commands/9.md", "x")
    places.write(".claude/commands/empty.md", "")
    os.mkfifo(places.project / ".claude/commands/pipe.md")
    places.write(".claude/skills/huge/SKILL.md", "---\ndescription: d\n---\n" + "line of text\n" * 170_000)
    (places.project / ".claude/skills/gone").mkdir()
    (places.project / ".claude/skills/gone/SKILL.md").symlink_to("nowhere")
    files = places.open()
    texts = {text.partition(":")[0].rpartition("/")[2]: text for _, text in files.now.problems}
    assert "binary file" in texts["binary.md"]
    assert "latin.md:4: is not UTF-8" in texts["latin.md"]
    assert "usable name" in texts["9.md"]
    assert "a named pipe" in texts["pipe.md"]
    assert "is empty" in texts["empty.md"]
    skills = [text for kind, text in files.now.problems if kind == "skills"]
    assert any("2,210,023 bytes; only its first 262,144" in text for text in skills), skills
    assert any("a broken link" in text for text in skills)
    assert files.now.commands["latin"].body == "na�ve"
    assert len(files.now.skills["huge"].body) < 262_144


def test_a_problem_belongs_to_the_kind_of_its_folder(places: Places) -> None:
    for name in ("commands/agents/gone.md", "skills/commands/SKILL.md"):
        path = places.write(f".claude/{name}", "x")
        path.unlink()
        path.symlink_to("nowhere")
    problems = places.open().now.problems
    assert sorted(kind for kind, _ in problems) == ["commands", "skills"], problems


def test_a_folder_that_can_not_be_listed_hides_no_other(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    places.write(".claude/commands/closed/one.md", "x")
    places.write(".claude/commands/open/two.md", "x")
    listed = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    now = places.open().now
    assert set(now.commands) == {"open:two"}
    assert now.problems == (("commands", ".claude/commands/closed: cannot list it (Permission denied)"),)


def test_a_folder_that_holds_the_workspace_is_no_skill_s_to_read(places: Places) -> None:
    places.write("SKILL.md", "---\ndescription: d\n---\n")
    (places.home / ".claude/skills").mkdir(parents=True)
    (places.home / ".claude/skills/all").symlink_to(places.project)
    places.write("~/.claude/skills/mine/SKILL.md", "---\ndescription: d\n---\n")
    files = places.open()
    assert set(files.now.skills) == {"all", "mine"}
    assert files.readable == (str((places.home / ".claude/skills/mine").resolve()),)


def test_a_home_that_is_the_workspace_counts_as_the_user_s(places: Places) -> None:
    places.write("~/.claude/commands/x.md", "x")
    at_home = Places(places.home, places.home).open(at_once=False)
    assert set(at_home.now.commands) == {"x"}


@pytest.mark.parametrize("kind", ["commands", "agents"])
def test_a_readme_is_none(places: Places, kind: str) -> None:
    places.write(f".claude/{kind}/README.md", "about these")
    assert places.open().now.invocables == ()


def test_a_look_during_another_one_sees_the_files_as_they_are(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    places.write("~/.claude/commands/one.md", "x")
    files = places.open()
    places.write("~/.claude/commands/two.md", "x")
    begun, go_on = Event(), Event()

    def slowly(*arguments: Any) -> Catalogue:
        if current_thread() is not main_thread():
            begun.set()
            go_on.wait(PATIENCE)
        return read_catalogue(*arguments)

    monkeypatch.setattr(reading, "read_catalogue", slowly)
    with ThreadPoolExecutor() as threads:
        other = threads.submit(files.look)
        try:
            assert begun.wait(PATIENCE)
            assert set(files.look().commands) == {"one", "two"}
        finally:
            go_on.set()
        assert set(other.result().commands) == {"one", "two"}


def test_each_session_is_told_whatever_another_one_was_told(places: Places) -> None:
    files = places.open()
    main, agent = follow(files), follow(files)
    places.write("~/.claude/skills/own/SKILL.md", "---\nname: own\ndescription: new\n---\n")
    for news in (agent, main):
        change = news()
        assert change is not None
        assert change.added == ("skill own",)
        assert news() is None
    assert follow(files)() is None
