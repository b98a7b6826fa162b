"""`swecli doctor --repair` asks in a terminal before it changes anything."""

from __future__ import annotations

import io
import sys
from contextlib import closing
from pathlib import Path

import pytest

from swecli.assembly.health import OFFERS, examine_storage
from swecli.command_line.models import doctor
from swecli.core.config.paths import user_paths
from swecli.core.sessions.database import DATABASE, open_database
from swecli.core.sessions.store import SessionStore
from swecli.exit_codes import ExitCode
from tests.core.sessions.support import user_turn


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def open_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of swecli's that others may look into."""
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    folder = user_paths({"SWECLI_HOME": str(tmp_path / "home")}).state
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("answer", "flags", "repaired"),
    [("n\n", [], False), ("", [], False), ("\n", [], False), ("yes\n", [], True), ("n\n", ["--yes"], True)],
)
def test_in_a_terminal_it_asks_first(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str, flags: list[str], repaired: bool
) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stdout", out)
    assert doctor(["--repair", "permissions", *flags]) == 0
    assert (open_folder.stat().st_mode & 0o077 == 0) == repaired
    assert ("[y/N]" in out.getvalue()) == (not flags)
    assert ("Nothing was changed." in out.getvalue()) == (not repaired)


def test_without_one_it_does_what_it_was_asked_for(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert doctor(["--repair", "permissions"]) == 0
    assert open_folder.stat().st_mode & 0o077 == 0
    assert "[y/N]" not in capsys.readouterr().out
    assert "permissions" in OFFERS


def test_a_size_is_told_of_a_terminal_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    paths = user_paths({"SWECLI_HOME": str(tmp_path)})
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())
    (terminal,) = (one for one in examine_storage(paths, tmp_path, {"TERM": "xterm"}) if one.what == "terminal")
    assert "no terminal" in terminal.text
    assert "0x0" not in terminal.text


def test_a_home_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    paths = user_paths({"SWECLI_HOME": str(tmp_path / "file" / "home")})
    (folder,) = (one for one in examine_storage(paths, tmp_path, {}) if one.what == "data folder")
    assert (folder.level, folder.text) == ("error", f"{tmp_path / 'file'} is no folder: sessions stay in memory only")


def test_a_first_start_that_the_disk_stopped_stored_nothing(tmp_path: Path) -> None:
    paths = user_paths({"SWECLI_HOME": str(tmp_path)})
    database = paths.workspace_data(tmp_path) / DATABASE
    database.parent.mkdir(parents=True)
    database.touch()
    found = {one.what: one for one in examine_storage(paths, tmp_path, {})}
    assert (found["sessions"].level, found["sessions"].text) == ("ok", "none stored for this folder yet")


def test_a_damaged_database_is_told_once_and_ends_with_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    database = user_paths({"SWECLI_HOME": str(tmp_path / "home")}).workspace_data(tmp_path) / DATABASE
    with closing(SessionStore(open_database(database))) as store:
        session = store.create(str(tmp_path), "fake/m", "1").id
        store.append(user_turn(session, 1, "Fix it"))
    database.write_bytes(b"\xff" * 100 + database.read_bytes()[100:])
    assert doctor([]) == ExitCode.FAILURE
    assert capsys.readouterr().out.count("damaged: ") == 1
    open_database(database).close()
    assert doctor(["--repair", "recover"]) == ExitCode.OK
    said = capsys.readouterr().out
    assert said == "All readable sessions are already here. The damaged file is kept.\n"


def test_a_recovery_with_nothing_to_read_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert doctor(["--repair", "recover"]) == ExitCode.OK
    assert capsys.readouterr().out == "There is no damaged database here.\n"
    database = user_paths({"SWECLI_HOME": str(tmp_path / "home")}).workspace_data(tmp_path) / DATABASE
    open_database(database).close()
    database.with_name(f"{DATABASE}.corrupt-1").write_bytes(b"nonsense" * 2_000)
    assert doctor(["--repair", "recover"]) == ExitCode.FAILURE
    assert capsys.readouterr().out == f"{DATABASE}.corrupt-1 has no readable session. The damaged file is kept.\n"
