"""The command line: arguments, their checks, and what leads to which front-end."""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from swecli.cli import main
from swecli.command_line import dispatch as dispatching
from swecli.command_line.arguments import UsageError, clean, in_container, launch_options, main_parser, parsed, rules
from swecli.command_line.habits import WORDS
from swecli.command_line.standard_streams import MAX_BYTES, joined, read_piped
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError
from tests.support.waiting import PATIENCE


def parse(*arguments: str, root: bool = False, environment: dict[str, str] | None = None) -> LaunchOptions:
    return launch_options(main_parser().parse_args(arguments), environment or {}, is_root=root)


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))


def test_without_arguments_the_program_is_interactive(tmp_path: Path) -> None:
    assert parse() == LaunchOptions(cwd=tmp_path)


def test_every_option_reaches_the_launch_options(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "system.md").write_text("Be brief.")
    options = parse(
        *("-p", "fix it", "-m", "openai/gpt-x", "--base-url", "http://127.0.0.1:1/v1", "--effort", "high"),
        *("-C", "a", "--add-dir", "../b", "--permission-mode", "accept-edits", "--max-turns", "7"),
        *("--max-tokens", "1000", "--no-session", "--output-format", "stream-json", "--input-format", "stream-json"),
        *("--allowed-tools", "edit_file,run_command(git log, git diff)", "--allowed-tools", "search"),
        *("--disallowed-tools", "write_file", "--system-prompt-file", "system.md", "--append-system-prompt", "Say ok."),
        "--debug",
    )
    assert options == LaunchOptions(
        cwd=tmp_path / "a",
        add_dirs=(tmp_path / "b",),
        prompt="fix it",
        headless=True,
        output_format="stream-json",
        input_format="stream-json",
        model="openai/gpt-x",
        base_url="http://127.0.0.1:1/v1",
        effort="high",
        mode="accept-edits",
        allowed_tools=("edit_file", "run_command(git log, git diff)", "search"),
        disallowed_tools=("write_file",),
        store=False,
        max_steps=7,
        max_tokens=1000,
        system_prompt="Be brief.",
        append_system_prompt="Say ok.",
        debug=True,
    )


@pytest.mark.parametrize(
    ("arguments", "prompt", "headless"),
    [
        (("do it",), "do it", False),
        (("-p", "do it"), "do it", True),
        (("do it", "-p"), "do it", True),
        (("-p", "do it", "and that"), "do it\n\nand that", True),
        (("do it", "--output-format", "json"), "do it", True),
        (("--", "-p"), "-p", False),
        (("-p", "/context"), "/context", True),
        (("x" * 5000,), "x" * 5000, False),
        (("~5 files are wrong",), "~5 files are wrong", False),
    ],
)
def test_the_message(arguments: tuple[str, ...], prompt: str, headless: bool) -> None:
    options = parse(*arguments)
    assert (options.prompt, options.headless) == (prompt, headless)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--nonsense",), "Unrecognized arguments: --nonsense"),
        (("one", "two"), "Unrecognized arguments: two"),
        (("-m", ""), "must be PROVIDER/NAME"),
        (("-m", "/x"), "must be PROVIDER/NAME"),
        (("--max-turns", "0"), "must be a whole number ≥ 1"),
        (("--max-tokens", "-5"), "must be a whole number ≥ 1"),
        (("--permission-mode", "wild"), "invalid choice"),
        (("--output-format", "transcript"), "invalid choice"),
        (("-r",), "needs a session id"),
        (("-c", "-r", "abc"), "use only one"),
        (("-c", "--no-session"), "cannot continue"),
        (("--yolo", "--permission-mode", "plan"), "not both"),
        (("-C", "nowhere"), "-C nowhere: no such directory"),
        (("-C", "file"), "-C file: not a directory"),
        (("--add-dir", "file"), "--add-dir file: not a directory"),
        (("--add-dir", "~nobody-here/x"), "--add-dir ~nobody-here/x: cannot use it"),
        (("-C", "~nobody-here"), "-C ~nobody-here: cannot use it"),
        (("--system-prompt-file", "nowhere"), "--system-prompt-file nowhere: No such file"),
        (("--system-prompt-file", "~nobody-here/x"), "--system-prompt-file ~nobody-here/x: No such file"),
        (("--system-prompt-file", "binary"), "not UTF-8 text"),
        (("--system-prompt", "a", "--system-prompt-file", "file"), "not allowed with"),
        (("folder",), "folder is a directory; to work there: swecli -C folder"),
        ((".",), "to work there: swecli -C ."),
        (("my folder",), "to work there: swecli -C 'my folder'"),
        (("--cwd",), "expected one argument"),
        (("--out", "json"), "Unrecognized arguments"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "my folder").mkdir()
    assert main([*arguments]) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert error.startswith("swecli: ")


@pytest.mark.parametrize(
    ("arguments", "program"),
    [
        (("--nonsense",), "swecli"),
        (("config", "set"), "swecli config set"),
        (("config", "get", "nope"), "swecli config"),
        (("sessions", "show"), "swecli sessions show"),
        (("logs", "nonsense"), "swecli logs"),
    ],
)
def test_bad_usage_names_the_help_that_describes_it(
    arguments: tuple[str, ...], program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments]) == ExitCode.USAGE
    assert capsys.readouterr().err.rstrip().endswith(f"({program} --help lists the options)")


def test_yolo_as_root_needs_a_container() -> None:
    if not in_container({}):
        with pytest.raises(UsageError, match="IS_SANDBOX=1"):
            parse("--yolo", root=True)
    assert parse("--yolo", root=False).yolo
    assert parse("--yolo", root=True, environment={"IS_SANDBOX": "1"}).yolo


def test_what_counts_as_a_container(tmp_path: Path) -> None:
    assert not in_container({}, tmp_path)
    assert not in_container({"IS_SANDBOX": "0"}, tmp_path)
    assert in_container({"IS_SANDBOX": "1"}, tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".containerenv").touch()
    assert in_container({}, tmp_path)


def test_rules_are_split_at_commas_outside_of_parentheses() -> None:
    assert rules(["a, b(c, d(e, f)),g", "", "h"]) == ("a", "b(c, d(e, f))", "g", "h")


def test_bytes_that_are_no_text_do_not_travel_on() -> None:
    assert clean("a\udcffb") == "a\ufffdb"


def test_a_missing_current_directory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(StartError, match="current directory no longer exists") as raised:
        parse("hi")
    assert raised.value.exit_code == ExitCode.BAD_INPUT
    assert parse("-C", str(tmp_path), "hi").cwd == tmp_path


@pytest.mark.parametrize(
    ("prompt", "piped", "message"),
    [("review", "diff\n", "review\n\ndiff"), ("", "diff\n", "diff"), ("review", "\n", "review"), ("", " \n", "")],
)
def test_text_and_standard_input_are_one_message(prompt: str, piped: str, message: str) -> None:
    assert joined(prompt, piped) == message


def test_standard_input_is_text_whatever_its_bytes_are() -> None:
    assert read_piped(io.BytesIO(b"\xef\xbb\xbfa\xffb"), "") == "a\ufffdb"
    assert read_piped(None, "x") == ""
    with pytest.raises(StartError, match="exceeds 10 MiB"):
        read_piped(io.BytesIO(b"x" * (MAX_BYTES + 1)), "")


class _Stream(io.TextIOWrapper):
    def __init__(self, data: bytes, terminal: bool) -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[LaunchOptions]:
    seen: list[LaunchOptions] = []

    def launch(options: LaunchOptions, terminal: object) -> int:
        assert terminal is None
        seen.append(options)
        return 0

    monkeypatch.setattr(dispatching, "launch", launch)
    return seen


@pytest.mark.parametrize(
    ("arguments", "stdin", "stdout", "headless", "prompt"),
    [
        (("hi",), None, True, False, "hi"),
        (("hi",), b"", True, True, "hi"),
        (("hi",), b"more", True, True, "hi\n\nmore"),
        ((), b"all of it\n", True, True, "all of it"),
        (("hi",), None, False, True, "hi"),
        (("-p", "hi"), None, True, True, "hi"),
        (("-p", "--input-format", "stream-json"), b"{}", True, True, ""),
    ],
)
def test_the_screen_needs_a_terminal_at_both_ends(
    arguments: tuple[str, ...],
    stdin: bytes | None,
    stdout: bool,
    headless: bool,
    prompt: str,
    launched: list[LaunchOptions],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", _Stream(stdin or b"", stdin is None))
    monkeypatch.setattr("sys.stdout", _Stream(b"", stdout))
    assert main([*arguments]) == 0
    assert [(options.headless, options.prompt) for options in launched] == [(headless, prompt)]
    assert ("not a terminal" in capsys.readouterr().err) == (not stdout)


def test_a_closed_standard_input_is_no_person(launched: list[LaunchOptions], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert main(["hi"]) == 0
    assert launched[0].headless


@pytest.mark.parametrize(
    ("arguments", "terminal", "code", "message"),
    [
        (("-p",), True, 2, "-p needs a message"),
        (("-p",), False, 42, "Nothing to send"),
        ((), False, 42, "Nothing to send"),
    ],
)
def test_nothing_to_do(
    arguments: tuple[str, ...],
    terminal: bool,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", _Stream(b"", terminal))
    monkeypatch.setattr("sys.stdout", _Stream(b"", True))
    assert main([*arguments]) == code
    assert message in capsys.readouterr().err


def test_help_names_every_option_and_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    parser = main_parser()
    options = [o for action in parser._actions for o in action.option_strings]  # pyright: ignore[reportPrivateUsage]
    assert len(options) >= 30
    assert all(option in text for option in options)
    assert all(f"swecli {name}" in text for name in ("demo", "sessions", "config", "debug"))
    undocumented = [a.dest for a in parser._actions if a.help == argparse.SUPPRESS]  # pyright: ignore[reportPrivateUsage]
    assert undocumented == []


def test_the_version_costs_nothing_but_the_standard_library() -> None:
    code = """
import sys, io  # which Python 3.14 does not load itself
before = set(sys.modules)
from swecli.cli import main
code = main(["--version"])
print(code, sorted(name for name in set(sys.modules) - before if not name.startswith("swecli")))
print(sorted(name for name in sys.modules if name.startswith("swecli")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    version, loaded, own = done.stdout.splitlines()
    assert version.startswith("swecli 0.")
    assert loaded == "0 []"
    assert own == "['swecli', 'swecli.cli']"


@pytest.mark.parametrize("arguments", [["--help"], ["-p", "x", "--nonsense"]])
def test_usage_and_help_load_no_front_end(arguments: list[str]) -> None:
    code = f"""
import contextlib, sys
from swecli.cli import main
with contextlib.suppress(SystemExit):
    main({arguments!r})
print([name for name in ("textual", "rich", "pydantic", "httpx", "sqlite3", "asyncio") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_internal_failure_is_one_line_unless_debug() -> None:
    code = """
import sys
from swecli.command_line import dispatch
def broken(options, terminal):
    raise RuntimeError("boom\\nbang")
dispatch.launch = broken
sys.exit(dispatch.dispatch(sys.argv[1:]))
"""
    for debug in (False, True):
        arguments = ["-p", "x", *(["--debug"] if debug else [])]
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )
        assert done.returncode == 1
        assert ("Traceback" in done.stderr) == debug
        assert debug or (done.stderr.count("\n") == 1 and "RuntimeError: boom bang" in done.stderr)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["confg"], "did you mean swecli config?"),
        (["confg", "get", "ui.theme"], "did you mean swecli config?"),
        (["-m", "a/b", "Docter"], "did you mean swecli doctor?"),
        (["session"], "did you mean swecli sessions?"),
        (["help"], "did you mean swecli --help?"),
        (["-m", "a/b", "context"], "it must be the first argument: swecli context"),
        (["--safe-mode", "context", "--json"], "it must be the first argument: swecli context"),
        (
            ["--permission-mode", "plan", "permissions", "check", "--", "ls"],
            "it must be the first argument: swecli permissions",
        ),
    ],
)
def test_a_word_that_is_hardly_a_message_is_not_sent(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert said in error
    assert "swecli -- " in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["--", "confg"], ["-m", "a/b", "--", "context"], ["-p", "confg"], ["hello"], ["fix confg"], ["-c"]]
)
def test_other_words_are_messages(arguments: list[str]) -> None:
    assert parsed(arguments)


@pytest.mark.parametrize("arguments", [["{}"], ["{}", "--help"], ["{}", "list", "--json"], ["-m", "a/b", "{}"]])
@pytest.mark.parametrize("word", ["skills", "upgrade", "mcp-server"])
def test_a_subcommand_of_another_agent_is_never_sent(
    word: str, arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swecli.command_line.dispatch.launch", lambda *_: pytest.fail("a message was about to be sent"))
    assert main([argument.format(word) for argument in arguments]) == ExitCode.USAGE
    assert f"No such subcommand. {WORDS[word]}" in capsys.readouterr().err
