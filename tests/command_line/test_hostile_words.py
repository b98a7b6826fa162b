"""Nothing that a command line, a variable, a setting or a folder's name holds acts on the terminal."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest

from swecli.command_line.dispatch import dispatch

SEQUENCES = {
    "clipboard": "\x1b]52;c;aGk=\x07",
    "title": "\x1b]0;evil\x1b\\",
    "colours": "\x1b[31m",
    "screen": "\x1b[2J\x1b[H",
    "device": "\x1bP1$q\x1b\\",
    "8 bit": "\x9b31m\x9d0;x\x9c",
    "bell and back": "\x07\x08\x7f",
    "direction": "\u202eevil\u2066",
    "invisible": "\u200b\ufeff\u2028",
}
EVERYTHING = "".join(SEQUENCES.values())
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")

WORDS = [
    ["sessions", "{}"],
    ["permissions", "--{}"],
    ["permissions", "trust", "{}"],
    ["permissions", "test", "{}"],
    ["permissions", "grant", "Bash({} *)"],
    ["permissions", "revoke", "{}"],
    ["permissions", "accept", "{}"],
    ["permissions", "check", "--", "rm -rf {}"],
    ["permissions", "check", "--json", "--", "ls {}"],
    ["config", "get", "{}"],
    ["config", "set", "{}", "1"],
    ["config", "set", "ui.theme", "{}"],
    ["config", "unset", "{}"],
    ["models", "{}"],
    ["doctor", "-m", "{}"],
    ["logout", "{}"],
    ["completion", "{}"],
    ["debug", "{}"],
    ["-p", "hi", "--{}"],
    ["-p", "hi", "-m", "{}"],
    ["-p", "hi", "-C", "{}"],
    ["-p", "hi", "--add-dir", "{}"],
    ["-p", "hi", "--settings", "{}"],
    ["-p", "hi", "--system-prompt-file", "{}"],
    ["-p", "hi", "--append-system-prompt-file", "{}"],
    ["-p", "hi", "--permission-mode", "{}"],
    ["-p", "hi", "--allowed-tools", "{}"],
    ["-p", "hi", "--effort", "{}"],
    ["-p", "hi", "--base-url", "{}"],
    ["-p", "hi", "-r", "{}"],
    ["-p", "hi", "--max-price", "{}"],
]
SETTINGS = [
    '"{}" = 1',
    '["{}"]\na = 1',
    'model = "{}"',
    '[ui]\ntheme = "{}"',
    '[ui]\nstatus_line = "{}"',
    '[ui]\n"{}" = "{}"',
    '[approval]\nmode = "{}"',
    '[approval]\nallow = ["{}", "Bash({} *)"]\ndeny = ["{}"]',
    '[providers."{}"]\nbase_url = "{}"\nkind = "{}"',
    '[keys]\n"{}" = "{}"',
    '[hooks]\npre = "{}"',
    "no toml {}",
]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "swecli"))
    monkeypatch.chdir(work)
    return work


def shown(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    with suppress(SystemExit):
        dispatch(arguments)
    out, err = capfd.readouterr()
    assert out + err, arguments
    return out + err


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("words", [["-p", "hi", "--{}"], ["config", "get", "{}"], ["permissions", "grant", "{}"]])
def test_each_sequence(words: list[str], name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert ACTS.search(shown([word.replace("{}", SEQUENCES[name]) for word in words], capfd)) is None


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_words_of_the_command_line(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert ACTS.search(shown([word.replace("{}", EVERYTHING) for word in words], capfd)) is None


@pytest.mark.parametrize("words", [["config"], ["permissions"], ["doctor"], ["-p", "hi", "--trust"]], ids=" ".join)
@pytest.mark.parametrize("text", SETTINGS)
@pytest.mark.parametrize("whose", ["user", "project"])
def test_settings(
    place: Path, tmp_path: Path, text: str, words: list[str], whose: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "swecli" if whose == "user" else place / ".swecli"
    folder.mkdir()
    value = json.dumps(EVERYTHING)[1:-1].replace("\x7f", "\\u007f")
    (folder / "config.toml").write_text(text.replace("{}", value))
    assert ACTS.search(shown(words, capfd)) is None


@pytest.mark.parametrize(
    "words",
    [["-p", "hi"], ["permissions"], ["permissions", "trust"], ["permissions", "decline"], ["sessions"], ["doctor"]],
    ids=" ".join,
)
def test_names_of_folders(
    place: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = place / EVERYTHING.replace("/", "")
    (folder / ".swecli").mkdir(parents=True)
    (folder / ".swecli" / "config.toml").write_text("x = 1\n")
    (folder / "OPENCLI.md").write_text(EVERYTHING)
    monkeypatch.chdir(folder)
    assert ACTS.search(shown(words, capfd)) is None
