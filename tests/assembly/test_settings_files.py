"""The settings, the rules and the sessions behind the screens, on real files."""

from __future__ import annotations

import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from swecli.assembly.permissions import FolderRules
from swecli.assembly.session_list import SessionList
from swecli.assembly.settings import SettingsFiles
from swecli.core.config.paths import user_paths
from swecli.core.engine.state import FOR_THIS_TURN
from swecli.core.permissions.types import Rule
from swecli.core.protocol.events import Event, ItemCompleted, ItemStarted, StepEnded, TurnStarted
from swecli.core.protocol.messages import TextPart, Usage
from swecli.core.sessions.database import DATABASE, open_database
from swecli.core.sessions.store import SessionStore
from swecli.launch import LaunchOptions


class Place:
    """A home and a folder."""

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.folder = base / "work"
        self.home.mkdir()
        self.folder.mkdir()
        self.file = self.home / "config.toml"
        self.environment = {"SWECLI_HOME": str(self.home)}
        self.options = LaunchOptions(cwd=self.folder, trust="session", model="openai/x")

    @property
    def settings(self) -> SettingsFiles:
        return SettingsFiles(self.options, self.environment)

    @property
    def rules(self) -> FolderRules:
        return FolderRules(self.options, self.environment)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_each_setting_has_its_origin(place: Place) -> None:
    place.file.write_text("[agent]\nmax_steps = 9\n")
    found = {each.name: each for each in place.settings.read()}
    assert found["agent.max_steps"].origin == f"{place.file}:2"
    assert found["agent.max_steps"].own == "user"
    assert (found["model.name"].origin, found["model.name"].shown) == ("flag", "openai/x")
    assert found["ui.theme"].effect == "now"
    assert found["agent.hard_block"].origin == "default"


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("agent.max_steps", "0", "at least 1"),
        ("agent.max_steps", "many", "takes a whole number from 1, not 'many'"),
        ("ui.mouse", "maybe", "takes true or false, not 'maybe'"),
        ("approval.allow", "[1", "is not a TOML value"),
        ("model.name", "sonnet", 'must be "provider/model" or an alias'),
        ("agent.max_steps", '"9"', "whole number"),
        ("agent.hard_block", "0.5", "must not exceed"),
        ("approval.mode", "fast", "must be"),
        ("approval.allow", "Bash(*x y)", "not a rule"),
        ("keys.find", "ctrl+nothing", "no key named"),
        ("context.retention", '[{tool = "x"}]', "context.retention.0 must have exactly one of"),
        ("providers.p.headers", '{a = "b"}', "contain keys"),
        ("nothing.here", "1", "is not a setting"),
        ("ui.theme", "", "a value is missing"),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(place: Place, name: str, text: str, why: str) -> None:
    place.file.write_text("# mine\n")
    assert why in place.settings.check(name, text, "user")
    with pytest.raises(ValueError, match=r"."):
        place.settings.write(name, text, "user")
    assert place.file.read_text() == "# mine\n"


def test_written_with_comments_kept_and_taken_out_again(place: Place) -> None:
    place.file.write_text("# mine\n[agent]\n# few\nmax_steps = 3\n")
    told = place.settings.write("agent.max_steps", "30", "user")
    assert (told.value, str(place.file) in told.message) == (30, True)
    place.settings.write("approval.allow", "Bash(git *)", "user")
    place.settings.write('models.window."ollama/q"', "65536", "user")
    text = place.file.read_text()
    assert "# mine\n[agent]\n# few\nmax_steps = 30\n" in text
    assert tomllib.loads(text)["models"]["window"] == {"ollama/q": 65536}
    place.settings.unset("agent.max_steps", "user")
    assert "max_steps" not in place.file.read_text()
    with pytest.raises(ValueError, match="is not set in"):
        place.settings.unset("agent.max_steps", "user")


def test_a_project_file_only_tightens_and_stays_out_of_the_repository(place: Place) -> None:
    assert "only tighten" in place.settings.check("approval.mode", "auto", "local")
    assert "only tighten" in place.settings.check("keys.find", "f5", "local")
    place.file.write_text("[agent]\nmax_steps = 5\n")
    assert "only tighten" in place.settings.check("agent.max_steps", "6", "local")
    place.settings.write("agent.max_steps", "3", "local")
    place.settings.write("agent.max_steps", "4", "local")
    assert "config.local.toml" in (place.folder / ".swecli" / ".gitignore").read_text()
    found = {each.name: each for each in place.settings.read()}
    assert found["agent.max_steps"].own == "local"


@pytest.mark.parametrize("linked", [".swecli", ".swecli/config.local.toml"])
def test_a_project_file_behind_a_link_is_not_changed(place: Place, tmp_path: Path, linked: str) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (away / "config.local.toml").write_text("[agent]\nmax_steps = 3\n")
    link = place.folder / linked
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(away if linked == ".swecli" else away / "config.local.toml")
    for change in (
        lambda: place.settings.write("agent.max_steps", "4", "local"),
        lambda: place.settings.unset("agent.max_steps", "local"),
    ):
        with pytest.raises(ValueError, match="it is a link or inside one"):
            change()
    assert {one.name: one.read_text() for one in away.iterdir()} == {"config.local.toml": "[agent]\nmax_steps = 3\n"}


def test_what_another_layer_says_is_told(place: Place) -> None:
    told = place.settings.write("model.name", "a/b", "user").message
    assert told.startswith('No effect: flag sets openai/x. model.name = "a/b", written to'), "narrow lines end early"


def test_rules_that_add_to_those_of_another_file_have_an_effect(place: Place) -> None:
    place.settings.write("approval.deny", '["Read(a/**)"]', "local")
    told = place.settings.write("approval.deny", '["Read(b/**)"]', "user").message
    assert told.startswith('approval.deny = ["Read(b/**)"], written to'), told


def test_a_broken_file_is_an_error_with_its_line(place: Place) -> None:
    place.file.write_text("[agent]\nmax_steps = -1\n")
    with pytest.raises(ValueError, match=r"config\.toml:2: agent\.max_steps"):
        place.settings.read()


def test_rules_are_granted_revoked_and_added(place: Place) -> None:
    place.file.write_text('[approval]\ndeny = ["Bash(rm *)"]\n')
    assert "until" in place.rules.add("week", "Bash(npm test)")
    assert "unknown tool" not in place.rules.add("week", "mcp__db__query")
    for how in ("week", "deny"):
        assert place.rules.add(how, "run_comand").startswith("The rule run_comand has no effect: unknown tool")
    place.file.write_text('[approval]\ndeny = ["Bash(rm *)"]\n')
    shown = {each.rule: each for each in place.rules.read()}
    assert shown["Bash(rm *)"].origin == f"{place.file}:2"
    assert shown["Bash(npm test)"].id
    place.rules.add("deny", "Bash(dd *)")
    assert tomllib.loads(place.file.read_text())["approval"]["deny"] == ["Bash(rm *)", "Bash(dd *)"]
    with pytest.raises(ValueError, match="already"):
        place.rules.add("deny", "Bash(dd *)")
    with pytest.raises(ValueError, match="first word"):
        place.rules.add("week", "Bash(*x y)")
    assert "Revoked" in place.rules.revoke(shown["Bash(npm test)"].id)
    assert "Bash(npm test)" not in {each.rule for each in place.rules.read()}


def _store(place: Place, folder: Path, title: str, cost: str | None) -> str:
    store = SessionStore(open_database(user_paths(place.environment).workspace_data(folder) / DATABASE))
    name = store.create(str(folder), "a/b", "0").id
    bodies = (
        ItemStarted("u1", "user"),
        ItemCompleted("u1", "ok", (TextPart(title),)),
        TurnStarted("u1"),
        ItemStarted("a1", "text"),
        ItemCompleted("a1", "ok", (TextPart("the answer"),)),
        StepEnded(1, Usage(input_total=1000, output_total=20), cost),
    )
    store.append([Event(number, 1000.0 + number, name, 1, body) for number, body in enumerate(bodies, 1)])
    store.release(name)
    store.close()
    return name


def test_sessions_of_this_folder_come_first_with_their_figures(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other folder"
    other.mkdir()
    here, there = _store(place, place.folder, "fix it", "0.25"), _store(place, other, "elsewhere", None)
    sessions = SessionList(place.options, place.environment)
    mine, far = sessions.read()
    assert (mine.id, mine.title, mine.messages, mine.tokens, mine.cost, mine.away) == (
        here, "Fix it", 1, 1020, "$0.25", ""
    )  # fmt: skip
    assert (far.id, far.cost) == (there, "")
    assert f"swecli -C '{other}' -r {there}" in far.away
    assert [getattr(block, "text", "") for block in sessions.preview(mine)] == ["› fix it", "the answer"]
    assert [getattr(block, "text", "") for block in sessions.preview(far)] == ["› elsewhere", "the answer"]


def test_a_session_of_any_folder_is_deleted_unless_it_is_open(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    here, there = _store(place, place.folder, "fix it", None), _store(place, other, "elsewhere", None)
    kept = _store(place, place.folder, "keep it", None)
    sessions = SessionList(place.options, place.environment)
    for session in sessions.read():
        if session.id != kept:
            assert sessions.delete(session) == f"Deleted: {session.title}"
            assert sessions.delete(session) == f"Already deleted: {session.title}"
    assert [session.id for session in sessions.read()] == [kept]
    assert {here, there}.isdisjoint(sessions.search("answer"))
    store = SessionStore(open_database(user_paths(place.environment).workspace_data(place.folder) / DATABASE))
    [held] = sessions.read()
    with closing(store):
        store.lease(kept)
        with pytest.raises(ValueError, match="open"):
            sessions.delete(held)
    assert [session.id for session in sessions.read()] == [kept]


def test_no_sessions_and_damaged_ones_are_no_error(place: Place) -> None:
    sessions = SessionList(place.options, place.environment)
    assert list(sessions.read()) == []
    file = user_paths(place.environment).workspace_data(place.folder) / DATABASE
    file.parent.mkdir(parents=True)
    file.write_bytes(b"nonsense" * 100)
    assert list(sessions.read()) == []


def test_a_theme_that_does_not_exist_is_no_value(place: Place) -> None:
    with pytest.raises(ValueError, match=r"unknown theme 'nrod'\. Did you mean nord\?"):
        place.settings.write("ui.theme", "nrod", "user")
    assert not place.file.exists()
    for name in ("nord", "auto"):
        place.settings.write("ui.theme", name, "user")
        assert f'theme = "{name}"' in place.file.read_text()
    own = place.home / "themes" / "mine.toml"
    assert place.settings.check("ui.theme", "mine", "user")
    own.parent.mkdir()
    own.write_text('background = "#101010"\nforeground = "#f0f0f0"\n')
    assert place.settings.check("ui.theme", "mine", "user") == ""


def test_what_answers_allowed_is_listed_with_the_rest(place: Place) -> None:
    place.rules.add("week", "Bash(npm test)")
    held = [Rule("allow", "Edit(/a)", "session", "always, turn 1"), Rule("allow", "Edit(/b)", "session", FOR_THIS_TURN)]
    shown = [(each.rule, each.origin, each.held) for each in place.rules.read(held)]
    assert shown[1:] == [("Edit(/a)", "this session", True), ("Edit(/b)", "this turn", True)]
    assert shown[0][::2] == ("Bash(npm test)", False)
