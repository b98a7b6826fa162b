"""Which hooks count, and what consent to one covers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swecli.assembly.startup import Startup, read_startup
from swecli.core.config.trust import accept_items, read_trust, refuse_items, write_trust
from swecli.core.hooks.reading import hook_approver, hook_digest
from swecli.launch import StartError

COMMAND = "./check.sh"


class Work:
    """A trusted project with one hook that runs one script."""

    def __init__(self, base: Path) -> None:
        self.home, self.folder = base / "home", base / "work"
        (self.folder / ".claude").mkdir(parents=True)
        self.home.mkdir()
        self.data = self.home / "data"
        self.script = self.folder / "check.sh"
        self.script.write_text("exit 0\n")
        self.claude()

    def claude(self, command: str = COMMAND, matcher: str = "Bash") -> None:
        hooks = {"PreToolUse": [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}
        (self.folder / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))

    def read(self, *, safe: bool = False, vouched: bool = False) -> Startup:
        environment = {"SWECLI_HOME": str(self.home), "HOME": str(self.home)}
        return read_startup(self.folder, environment, {}, safe=safe, vouched=vouched)

    @property
    def running(self) -> list[str]:
        return [hook.command for hook in self.read().hooks.hooks if not hook.waiting]


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


def trusted(work: Work) -> Startup:
    write_trust(work.data, work.folder, "trusted")
    startup = work.read()
    accept_items(work.data, work.folder, [item.digest for item in startup.pending])
    return startup


def test_an_untrusted_project_has_no_hooks(work: Work) -> None:
    assert work.read().hooks.hooks == ()
    write_trust(work.data, work.folder, "declined")
    assert work.read().hooks.hooks == ()


def test_each_change_asks_again(work: Work) -> None:
    (item,) = trusted(work).pending
    assert (item.key, item.value) == ("hooks.PreToolUse", "Bash: ./check.sh  (check.sh)")
    assert work.running == [COMMAND]
    assert work.read().notices == ()
    work.script.write_text("exit 1\n")
    assert work.running == []
    assert "1 hook waits for your consent" in work.read().notices[0]
    work.script.write_text("exit 0\n")
    assert work.running == [COMMAND]
    work.claude(COMMAND + " --all")
    assert work.running == []
    work.claude(matcher="*")
    assert work.running == []


def test_a_no_is_remembered_until_something_changes(work: Work) -> None:
    write_trust(work.data, work.folder, "trusted")
    (item,) = work.read().pending
    refuse_items(work.data, work.folder, [item.digest])
    assert work.read().notices == ()
    assert work.running == []
    assert read_trust(work.data, work.folder).refused == {item.digest}
    accept_items(work.data, work.folder, [item.digest])
    assert work.running == [COMMAND]
    assert read_trust(work.data, work.folder).refused == frozenset()


def test_vouching_lets_them_run_once_and_says_so(work: Work) -> None:
    write_trust(work.data, work.folder, "trusted")
    startup = work.read(vouched=True)
    assert [hook.waiting for hook in startup.hooks.hooks] == [""]
    assert "--trust allows 1 hook of this project to run: ./check.sh" in startup.notices[0]
    assert work.running == []


def test_hooks_of_all_files_add_up(work: Work) -> None:
    trusted(work)
    (work.home / "config.toml").write_text('[[hooks.Stop]]\ncommand = "mine"\n')
    (work.folder / ".swecli").mkdir()
    (work.folder / ".swecli" / "config.toml").write_text('[[hooks.Stop]]\ncommand = "theirs"\n')
    found = {hook.command: (hook.source, bool(hook.waiting)) for hook in work.read().hooks.hooks}
    assert found == {COMMAND: ("project", False), "mine": ("user", False), "theirs": ("project", True)}
    assert [hook.origin for hook in work.read().hooks.hooks if hook.command == "mine"] == [
        f"{work.home / 'config.toml'}:1"
    ]
    assert work.read(safe=True).hooks.hooks == ()


OWN = """
[[hooks.PreToolUse]]
command = "audit"
matcher = "Bash"
if = "Bash(git *)"
async = true
[[hooks.Stop]]
command = "done"
if = "Bash(git *)"
"""


def test_ones_own_hooks_have_conditions_and_may_run_beside(work: Work) -> None:
    (work.home / "config.toml").write_text(OWN)
    startup = work.read()
    found = [(hook.command, hook.matcher, hook.condition, hook.beside) for hook in startup.hooks.hooks]
    assert found == [("audit", "Bash", "Bash(git *)", True), ("done", "", "Bash(git *)", False)]
    (notice,) = startup.notices
    assert notice.startswith(f"{work.home / 'config.toml'}:7: a hook for Stop: its condition 'Bash(git *)'")
    assert "never runs" in notice


def test_consent_to_a_hook_of_the_projects_settings_covers_its_condition(work: Work) -> None:
    write_trust(work.data, work.folder, "trusted")
    (work.folder / ".claude" / "settings.json").unlink()
    (work.folder / ".swecli").mkdir()
    settings = work.folder / ".swecli" / "config.toml"
    settings.write_text('[[hooks.PreToolUse]]\ncommand = "guard"\nif = "Bash(rm *)"\n')
    (item,) = work.read().pending
    assert item.value == "* if Bash(rm *): guard"
    accept_items(work.data, work.folder, [item.digest])
    assert work.running == ["guard"]
    for other in ('if = "Bash(true)"', 'if = "Bash(rm *)"\nasync = true'):
        settings.write_text(f'[[hooks.PreToolUse]]\ncommand = "guard"\n{other}\n')
        assert work.running == []


def test_ones_own_hook_that_runs_a_file_of_the_workspace_needs_consent_too(work: Work) -> None:
    (work.home / "config.toml").write_text(f'[[hooks.Stop]]\ncommand = "{COMMAND}"\n')
    (hook,) = work.read().hooks.hooks
    assert "not trusted" in hook.waiting
    write_trust(work.data, work.folder, "trusted")
    assert COMMAND not in work.running


def test_the_users_own_claude_hooks_run_only_when_wanted(work: Work) -> None:
    (work.home / ".claude").mkdir()
    hooks = {"Stop": [{"hooks": [{"command": "users"}]}]}
    (work.home / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    assert work.running == []
    (work.home / "config.toml").write_text("[hooks]\nuser_claude = true\n")
    assert work.running == ["users"]


def test_a_project_can_not_turn_the_users_hooks_off(work: Work) -> None:
    trusted(work)
    (work.home / ".claude").mkdir()
    settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard"}]}]}}
    users = work.home / ".claude" / "settings.json"
    users.write_text(json.dumps(settings))
    (work.home / "config.toml").write_text("[hooks]\nuser_claude = true\n")
    assert work.running == [COMMAND, "guard"]
    (work.folder / ".claude" / "settings.local.json").write_text('{"disableAllHooks": true}')
    assert work.running == ["guard"]
    assert "this project's Claude Code settings do not run" in work.read().notices[0]
    users.write_text(json.dumps({**settings, "disableAllHooks": True}))
    assert work.running == []


def test_a_project_can_not_turn_the_users_hooks_on(work: Work) -> None:
    write_trust(work.data, work.folder, "trusted")
    (work.folder / ".swecli").mkdir()
    (work.folder / ".swecli" / "config.toml").write_text("[hooks]\nuser_claude = true\n")
    startup = work.read()
    assert not startup.loaded.settings.hooks.user_claude
    assert "hooks.user_claude" in [item.key for item in startup.pending]


def test_allowing_in_a_session_binds_the_file_as_it_is_then(work: Work) -> None:
    write_trust(work.data, work.folder, "trusted")
    (hook,) = work.read().hooks.hooks
    work.script.write_text("exit 7\n")
    allowed = hook_approver(work.data, work.folder, store=True)(hook)
    assert allowed.waiting == ""
    assert hook_digest(allowed) in read_trust(work.data, work.folder).accepted
    assert work.running == [COMMAND]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[[hooks.Stop]]\ncommand = 'x'\ntimeout = 0\n", 3, "hooks.Stop.0.timeout"),
        ("[[hooks.Stop]]\nmatcher = 'x'\n", 1, "must be given too"),
        ("[hooks]\nStop = 'x'\n", 2, "hooks.Stop"),
        ("[[hooks.Stop]]\ncommand = 'x'\nshell = 'zsh'\n", 3, "unknown key"),
        ("[[hooks.Stop]]\ncommand = 'x'\nasync = 'yes'\n", 3, "hooks.Stop.0.async"),
    ],
)
def test_a_bad_hook_is_an_error_with_its_line(work: Work, text: str, line: int, words: str) -> None:
    (work.home / "config.toml").write_text(text)
    with pytest.raises(StartError) as error:
        work.read()
    assert f"config.toml:{line}" in str(error.value)
    assert words in str(error.value)


def test_an_unknown_event_is_a_warning(work: Work) -> None:
    (work.home / "config.toml").write_text("[[hooks.PreTool]]\ncommand = 'x'\n")
    assert any("hooks.PreTool is not a setting" in notice for notice in work.read().notices)
