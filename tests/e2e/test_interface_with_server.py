"""The interface in a real terminal against a server on this machine that speaks a provider's protocol."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer, Manners
from tests.support.terminal import Terminal

pytestmark = pytest.mark.e2e

SWECLI = str(Path(sys.executable).with_name("swecli"))
READY = "Ask for a change"

FIX = f"""
window = 128000
[[step]]
reasoning = "The price is wrong somewhere."
text = "I look for it."
call = [{{ tool = "search", arguments = {{ pattern = "def price" }} }}]
[[step]]
call = [{{ tool = "read_file", arguments = {{ path = "shop.py" }} }}]
[[step]]
text = "There it is."
[[step.call]]
tool = "edit_file"
arguments = {{ path = "shop.py", old_string = "n > 10", new_string = "n >= 10" }}
[[step]]
call = [{{ tool = "run_command", arguments = {{ command = "{sys.executable} check.py" }} }}]
[[step]]
text = "Fixed; the check passes."
"""
SHOP = "def price(n):\n    return 95 if n > 10 else 100\n"
CHECK = "from shop import price\nassert price(10) == 95\nprint('check', 'passed')\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shop.py").write_text(SHOP)
    (folder / "check.py").write_text(CHECK)
    return folder


class Programs:
    """Starts the program in a folder."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self.opened: list[Terminal] = []

    def __call__(self, *arguments: str, variables: dict[str, str], columns: int = 100, rows: int = 30) -> Terminal:
        home = str(self._project.parent / "home")
        environment = {"SWECLI_HOME": home, "HOME": str(self._project.parent), **variables}
        command = [SWECLI, *arguments]
        terminal = Terminal(command, cwd=self._project, environment=environment, columns=columns, rows=rows)
        self.opened.append(terminal)
        return terminal


@pytest.fixture
def program(project: Path) -> Iterator[Programs]:
    programs = Programs(project)
    yield programs
    for terminal in programs.opened:
        terminal.close()


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_fix_with_approvals_from_the_first_word_to_the_passing_check(
    provider: str, project: Path, program: Programs
) -> None:
    with LoopbackServer(parse_script(FIX)) as server:
        terminal = program("-m", f"{provider}/m", "Ten pieces are too dear. Fix it.", variables=server.environment())
        terminal.shows("Make this change?", "shop.py", "return 95 if n >= 10 else 100")
        assert (project / "shop.py").read_text() == SHOP
        terminal.takes_keys()
        terminal.send("y")
        terminal.shows("Run this command?", "check.py")
        assert (project / "shop.py").read_text() == SHOP.replace("n > 10", "n >= 10")
        terminal.takes_keys()
        terminal.send("y")
        terminal.shows("check passed", "Fixed; the check passes.", READY)
        terminal.send("\x04")
        assert terminal.wait() == 0
        assert terminal.settings == terminal.before
        assert "Fixed; the check passes." in terminal.text
        assert "swecli -c" in terminal.text


def test_a_rejection_takes_a_word_to_the_model_and_changes_nothing(project: Path, program: Programs) -> None:
    with LoopbackServer(parse_script(FIX)) as server:
        terminal = program("-m", "openai/m", "Fix it.", variables=server.environment())
        terminal.shows("Make this change?")
        terminal.takes_keys()
        terminal.send("n")
        terminal.shows("What should it do instead?")
        terminal.send("leave the shop alone\r")
        terminal.shows("Run this command?")
        assert (project / "shop.py").read_text() == SHOP
        assert "leave the shop alone" in str(server.asked[-1].body["messages"][-1])


def test_escape_stops_a_stream_and_the_session_goes_on(program: Programs) -> None:
    words = " ".join(f"word{n}" for n in range(400))
    stops = f'fault = {{ kind = "stall", after = {words.index("word40")} }}'  # until the request is given up
    script = f'[[step]]\ntext = "{words}"\n{stops}\n[[step]]\ntext = "Still here."'
    with LoopbackServer(parse_script(script), manners=Manners(strict=False)) as server:
        terminal = program("-m", "openai/m", "talk", variables=server.environment())
        terminal.shows("word5", "esc to interrupt")
        terminal.send("\x1b")
        terminal.shows("interrupted", READY)
        assert "word399" not in terminal.text
        terminal.send("and now?\r")
        terminal.shows("Still here.")
        assert "word5" in str(server.asked[-1].body["messages"])


def test_a_conversation_goes_on_after_a_kill(program: Programs) -> None:
    script = '[[step]]\ntext = "The first answer."\n[[step]]\ntext = "The second answer."'
    with LoopbackServer(parse_script(script)) as server:
        terminal = program("-m", "openai/m", "first question", variables=server.environment())
        terminal.shows("The first answer.", READY)
        terminal.kill(9)
        assert terminal.wait() == 137
        again = program("-c", "-m", "openai/m", variables=server.environment())
        again.shows("first question", "The first answer.", READY)
        again.send("second question\r")
        again.shows("The second answer.")


def test_a_wrong_key_is_a_line_that_says_what_to_do(program: Programs) -> None:
    with LoopbackServer(parse_script('[[step]]\ntext = "x"'), manners=Manners(key="sk-right")) as server:
        terminal = program("-m", "openai/m", "hello", variables={**server.environment(), "OPENAI_API_KEY": "sk-wrong"})
        terminal.shows("Check the key in OPENAI_API_KEY", "openai refused the key", "Enter another key for openai")
        assert "Traceback" not in terminal.text


def test_without_a_model_the_first_message_waits_in_the_prompt(program: Programs) -> None:
    terminal = program("my first question", variables={})
    terminal.shows("No model is connected yet", "› my first question")


def test_a_server_that_is_not_there_is_tried_again_and_escape_returns_the_message(program: Programs) -> None:
    variables = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    terminal = program("-m", "openai/m", "hello", variables=variables)
    terminal.shows("Retry", "esc to stop")
    terminal.send("\x1b")
    terminal.shows("Rewound 2 entries", "› hello", without="esc to stop")


CHANGES = """
[[step]]
[[step.call]]
tool = "edit_file"
[step.call.arguments]
path = "check.py"
edits = [{ old_string = "shop import", new_string = "store import" }, { old_string = "passed", new_string = "good" }]
[[step]]
call = [{ tool = "run_command", arguments = { command = "touch a" } }]
[[step]]
text = "Both done."
"""


def test_one_change_of_two_is_made_and_another_command_runs(project: Path, program: Programs) -> None:
    with LoopbackServer(parse_script(CHANGES)) as server:
        terminal = program("-m", "openai/m", "Fix it.", variables=server.environment(), columns=80, rows=24)
        terminal.shows("Make this change?", "allow edits to")
        terminal.takes_keys()
        terminal.send("e")
        terminal.shows("[x] 1 of 2", "apply 2 of 2")
        terminal.send(" ")
        terminal.shows("[ ] 1 of 2", "apply 1 of 2")
        terminal.send("\r")
        terminal.send("y")
        terminal.shows("Run this command?", "touch a")
        assert (project / "check.py").read_text() == CHECK.replace("passed", "good")
        assert "accepted 1 of 2" in str(server.asked[-1].body["messages"][-1])
        terminal.takes_keys()
        terminal.send("e")
        terminal.shows("shows it for approval")
        terminal.send("\x05bc\r")
        terminal.shows("$ touch abc", "1 yes")
        assert not (project / "abc").exists()
        terminal.takes_keys()
        terminal.send("y")
        terminal.shows("Both done.")
        assert (project / "abc").exists()
        assert not (project / "a").exists()
        assert "touch abc" in str(server.asked[-1].body["messages"][-1])
