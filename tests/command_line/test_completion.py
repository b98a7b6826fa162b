"""Completion scripts follow the argument parser."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from swecli.command_line.arguments import SUBCOMMANDS, UsageError, main_parser
from swecli.command_line.completion import SCRIPTS, completion, options_of


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert completion([shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", SCRIPTS)
def test_every_option_and_subcommand_is_in_it(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    for option in options_of(main_parser()):
        for name in option.names:
            wanted = name if shell != "fish" else f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            assert wanted in text
        for choice in option.choices:
            assert choice in text
    for name in SUBCOMMANDS:
        assert name in text


def test_options_are_told_apart() -> None:
    values = {option.names[-1]: option.value for option in options_of(main_parser())}
    assert values["--cwd"] == values["--add-dir"] == "directory"
    assert values["--settings"] == values["--system-prompt-file"] == "file"
    assert values["--output-format"] == "choice"
    assert values["--print"] == "optional"
    assert values["--model"] == "text"
    assert values["--yolo"] == "none"


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_shell_can_read_it(shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    path = tmp_path / "script"
    path.write_text(script(shell, capsys))
    flag = "--no-execute" if shell == "fish" else "-n"
    checked = subprocess.run([shell, flag, str(path)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def complete(text: str, *words: str, cwd: Path) -> list[str]:
    """What bash offers for the last word."""
    line = " ".join(map(shlex.quote, ("swecli", *words)))
    asked = f'{text}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _swecli; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "--norc", "-c", asked], capture_output=True, text=True, check=True, cwd=cwd)
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_what_bash_offers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = script("bash", capsys)
    (tmp_path / "a folder").mkdir()
    (tmp_path / "file.toml").touch()
    assert complete(text, "--output-f", cwd=tmp_path) == ["--output-format"]
    assert complete(text, "--output-format", "s", cwd=tmp_path) == ["stream-json"]
    assert complete(text, "--output-format", "", cwd=tmp_path) == ["text", "json", "stream-json"]
    assert complete(text, "-C", "", cwd=tmp_path) == ["a folder"]
    assert sorted(complete(text, "--settings", "", cwd=tmp_path)) == ["a folder", "file.toml"]
    assert complete(text, "-m", "", cwd=tmp_path) == []
    assert complete(text, "comp", cwd=tmp_path) == ["completion"]
    assert complete(text, "completion", "z", cwd=tmp_path) == ["zsh"]
    assert complete(text, "-p", "fil", cwd=tmp_path) == ["file.toml"]
    assert complete(text, "config", "", cwd=tmp_path) == ["list", "get", "set", "unset", "path", "schema"]
    assert complete(text, "sessions", "sh", cwd=tmp_path) == ["show"]
    assert sorted(complete(text, "sessions", "import", "", cwd=tmp_path)) == ["a folder", "file.toml"]


def test_the_words_behind_a_subcommand_are_those_that_it_takes() -> None:
    for name, each in SUBCOMMANDS.items():
        if not each.words or name == "completion":
            continue
        run = getattr(import_module(each.place), name)
        with pytest.raises(UsageError) as refused:
            run(["no-such-word"])
        named = re.split("available: |choose from ", str(refused.value))[1].partition(" (")[0]
        assert sorted(re.findall("[a-z]+", named)) == sorted(each.words)


SETTINGS = """
swecli() { test "$1 $2" = "config --json" && printf '{"key": "%s", "a": 1}\\n' ui.theme ui.title agent.max_steps; }
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_the_names_of_settings_are_offered(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = SETTINGS + script("bash", capsys)
    assert complete(text, "config", "set", "ui.t", cwd=tmp_path) == ["ui.theme", "ui.title"]
    assert complete(text, "config", "get", "ui.th", cwd=tmp_path) == ["ui.theme"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_what_fish_offers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "script").write_text(script("fish", capsys))
    (tmp_path / "file.toml").touch()
    asked = "source script; complete -C 'swecli config '; echo; complete -C 'swecli sessions show '"
    done = subprocess.run(["fish", "-N", "-c", asked], capture_output=True, text=True, check=True, cwd=tmp_path)
    words, _, files = done.stdout.partition("\n\n")
    assert sorted(words.split()) == ["get", "list", "path", "schema", "set", "unset"]
    assert files.split() == ["file.toml", "script"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_takes_no_word_for_a_folder_of_the_same_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = script("bash", capsys) + 'compopt() { printf \'%s %s\\n\' "$1" "$2"; }\n'
    (tmp_path / "config").mkdir()
    assert complete(text, "conf", cwd=tmp_path) == ["+o filenames", "config"]
    assert complete(text, "--output-format", "s", cwd=tmp_path) == ["+o filenames", "stream-json"]
    assert complete(text, "-C", "conf", cwd=tmp_path) == ["config"]


def test_another_shell_is_a_usage_error() -> None:
    for arguments in ([], ["tcsh"], ["bash", "zsh"]):
        with pytest.raises(UsageError):
            completion(arguments)
