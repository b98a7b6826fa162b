"""Changing one value of a settings file."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from swecli.core.config.change import set_value, unset_value
from swecli.core.config.load import ConfigError
from tests.support.waiting import PATIENCE


def test_comments_order_and_mode_stay(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('# mine\n[ui]\ntheme = "auto" # as the terminal\n\n[agent]\nmax_steps = 3\n')
    path.chmod(0o600)
    set_value(path, "ui.theme", "nord")
    assert path.read_text() == '# mine\n[ui]\ntheme = "nord" # as the terminal\n\n[agent]\nmax_steps = 3\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_file_and_section_are_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config.toml"
    set_value(path, "ui.theme", "nord")
    assert path.read_text() == '[ui]\ntheme = "nord"\n'


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text("")
    link = tmp_path / "config.toml"
    link.symlink_to("real.toml")
    set_value(link, "ui.theme", "nord")
    assert link.is_symlink()
    assert "nord" in (tmp_path / "real.toml").read_text()


def test_line_ends_byte_order_mark_and_mode_stay(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b'\xef\xbb\xbf# mine\r\n[ui]\r\ntheme = "auto"\r\n')
    path.chmod(0o644)
    set_value(path, "ui.theme", "nord")
    assert path.read_bytes() == b'\xef\xbb\xbf# mine\r\n[ui]\r\ntheme = "nord"\r\n'
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_link_beside_the_file_is_not_written_through(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine\n")
    path = tmp_path / "config.toml"
    path.with_name("config.toml.new").symlink_to(other)
    set_value(path, "ui.theme", "nord")
    assert other.read_text() == "mine\n"
    assert not path.is_symlink()
    assert path.read_text() == '[ui]\ntheme = "nord"\n'


@pytest.mark.parametrize("text", ["[ui\n", "ui = 3\n"])
def test_a_file_that_can_not_take_it_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError):
        set_value(path, "ui.theme", "nord")
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_key_is_taken_out_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('# mine\n[ui]\n# colours\ntheme = "nord"\n\n[agent]\nmax_steps = 3 # few\n')
    assert unset_value(path, "ui.theme")
    assert not unset_value(path, "ui.theme")
    assert not unset_value(path, "nothing.at.all")
    assert path.read_text() == "# mine\n[ui]\n# colours\n\n[agent]\nmax_steps = 3 # few\n"


def test_a_table_keeps_the_comments_of_what_stays(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[models.aliases]\n# quick\nfast = "a/b"\n# gone\nold = "c/d"\n')
    set_value(path, "models.aliases", {"fast": "a/b", "new": "e/f"})
    text = path.read_text()
    assert '# quick\nfast = "a/b"\n' in text
    assert 'new = "e/f"' in text
    assert "old =" not in text


def test_names_with_dots_and_tables_on_a_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    set_value(path, 'models.window."a/b.c"', 1000)
    set_value(path, "context.retention", [{"tool": "search", "keep_turns": 3}])
    assert tomllib.loads(path.read_text()) == {
        "models": {"window": {"a/b.c": 1000}},
        "context": {"retention": [{"tool": "search", "keep_turns": 3}]},
    }
    assert 'retention = [{tool = "search", keep_turns = 3}]' in path.read_text()


def test_a_list_keeps_the_comments_of_what_stays(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[approval]\nallow = [\n    "Bash(a)", # one\n    "Bash(b)", # two\n]\n')
    set_value(path, "approval.allow", ["Bash(a)", "Bash(c)"])
    text = path.read_text()
    assert "# one" in text
    assert tomllib.loads(text) == {"approval": {"allow": ["Bash(a)", "Bash(c)"]}}
    set_value(path, "approval.allow", ["Bash(c)", "Bash(a)"])
    assert tomllib.loads(path.read_text()) == {"approval": {"allow": ["Bash(c)", "Bash(a)"]}}


def test_processes_that_change_one_file_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "config.toml"
    program = (
        "import sys; from pathlib import Path; from swecli.core.config.change import set_value\n"
        "sys.stdin.read()\n"  # all start together
        "for number in range(20): set_value(Path(sys.argv[1]), f'{sys.argv[2]}.key{number}', number)"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name], stdin=subprocess.PIPE) for name in "abcd"
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()
    assert [writer.wait(PATIENCE) for writer in writers] == [0] * 4
    found = tomllib.loads(path.read_text())
    assert found == {name: {f"key{number}": number for number in range(20)} for name in "abcd"}
    assert [one.name for one in path.parent.iterdir()] == ["config.toml"]
