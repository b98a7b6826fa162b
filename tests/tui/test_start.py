"""What is loaded before the first frame, and how the terminal is taken and given back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from swecli.tui import boot
from swecli.tui.launch import defect_report, farewell, textual_settings
from tests.support.waiting import PATIENCE

FORBIDDEN = (
    *(
        "httpx",
        "httpcore",
        "pydantic",
        "tiktoken",
        "sqlite3",
        "mcp",
        "keyring",
        "transformers",
        "tomlkit",
        "tree_sitter",
    ),
    *("markdown_it", "pygments", "pathspec", "jsonschema", "textual.widgets._markdown"),
    *("swecli.app", "swecli.assembly", "swecli.commands", "swecli.core.engine", "swecli.core.llm", "swecli.core.tools"),
    *("swecli.core.context_management", "swecli.core.permissions", "swecli.core.protocol", "swecli.core.sessions"),
    *(
        "swecli.tui.transcript",
        "swecli.tui.session_controller",
        "swecli.tui.input_controller",
        "swecli.tui.screens.list_screen",
    ),
)
"""Modules and packages that the first frame can do without."""

FIRST_FRAME = """
import asyncio, sys
import swecli.tui.app
from swecli.tui.program import Program
class Never:
    async def first(self):
        await asyncio.Event().wait()
async def main():
    loaded = asyncio.get_running_loop().create_future()
    def load(names):
        modules = sorted(sys.modules)
        loaded.get_loop().call_soon_threadsafe(loaded.set_result, modules)
    swecli.tui.app.load = load
    async with swecli.tui.app.SwecliApp(Program(open=Never())).run_test() as pilot:
        print(*await loaded)
asyncio.run(main())
"""


def test_the_first_frame_needs_none_of_the_heavy_modules() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_FRAME], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    loaded = set(done.stdout.split())
    assert "textual.app" in loaded
    assert sorted(name for name in loaded if name.startswith(FORBIDDEN)) == []
    assert len([name for name in loaded if name.startswith("swecli")]) <= 80


def test_the_way_in_imports_no_textual() -> None:
    code = "import sys, swecli.tui.launch; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert not {"textual", "rich", "asyncio.events"} & set(done.stdout.split()) - {"asyncio.events"}


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (1, 1), (0, 0), (10, 3), (500, 200)])
def test_the_splash_stays_on_the_screen(columns: int, rows: int) -> None:
    text = boot.splash(columns, rows)
    assert text.startswith("\x1b[?1049h")
    assert ("swecli" in text) == (columns > 20 and rows > 4)
    assert (f"\x1b[{rows - 1};2H\x1b[2m›" in text) == (rows > 3)  # in the column of the prompt


def test_without_a_terminal_it_names_the_way_that_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "isatty", lambda fd: False)
    with pytest.raises(boot.TerminalUnusable, match=r"swecli -p"):
        boot.require_terminal({"TERM": "xterm"})
    monkeypatch.setattr(os, "isatty", lambda fd: True)
    with pytest.raises(boot.TerminalUnusable, match="TERM=dumb"):
        boot.require_terminal({"TERM": "Dumb"})
    for environ in ({"TERM": "xterm"}, {"TERM": ""}, {}, {"TERM": "unheard-of"}):
        boot.require_terminal(environ)


def test_settings_for_textual_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTUAL_THEME", "nord")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("ESCDELAY", raising=False)
    before = dict(os.environ)
    with textual_settings():
        assert "TEXTUAL_THEME" not in os.environ
        assert os.environ["TEXTUAL_ANIMATIONS"] == "none"
        del os.environ["NO_COLOR"]
    assert dict(os.environ) == before


def test_the_farewell_is_the_end_of_the_answer_and_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = farewell("\n".join(f"line {n}" for n in range(100)) + "\n\x1b[31mred [b]x[/b] " + "word " * 12, "swecli -c")
    assert text.startswith("…\n")
    assert "line 99" in text
    assert "line 50" not in text
    assert "\x1b" not in text
    assert "[b]x[/b]" in text
    assert all(len(line) < 40 for line in text.splitlines())
    assert text.endswith("Continue with: swecli -c\n")
    assert farewell("", "swecli -c") == "Continue with: swecli -c\n"
    assert farewell("Hi.", "") == "Hi.\n\nThis conversation was not stored.\n"
    assert farewell("", "swecli -c", parting=("A hook failed.",)) == "A hook failed.\nContinue with: swecli -c\n"
    assert "could not be stored and is lost.\nContinue with: swecli -c\n" in farewell("", "swecli -c", kept="a part")
    beside = farewell("", "swecli -c", kept="aside")
    assert "`swecli doctor --repair recover` first, which adds it.\nContinue with: swecli -c\n" in beside


def test_the_farewell_names_changed_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    paths = {str(Path.cwd() / f"src/f{n}.py"): n % 2 == 0 for n in range(14)}
    Path("src").mkdir()
    for path in paths:
        Path(path).touch()
    assert farewell("Done.", "swecli -c", {"/etc/a\x1bb": True, next(iter(paths)): True}) == (
        "Done.\n\nChanged: /etc/a\N{SYMBOL FOR ESCAPE}b (deleted), src/f0.py\nContinue with: swecli -c\n"
    )
    assert farewell("", "swecli -c", {str(tmp_path / "came-and-went"): False}) == "Continue with: swecli -c\n"
    assert "Changed: 2 more, src/f2.py, src/f3.py" in farewell("", "swecli -c", paths)


def test_a_defect_is_one_sentence_and_a_file(tmp_path: Any) -> None:
    text = defect_report(ValueError("bad \x1b[31m"), tmp_path / "state", "swecli -c")
    assert "\n" not in text
    assert "\x1b" not in text
    assert "ValueError" in (tmp_path / "state" / "errors.log").read_text()
    assert "swecli -c" in defect_report(ValueError("x"), None, "swecli -c")
    assert "was not stored" in defect_report(ValueError("x"), None, "")
