"""/rewind in the real program, in later runs: it says what it did, and its undo brings everything back."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import Program

pytestmark = pytest.mark.e2e

ACTS = """
[[step]]
call = [{ tool = "write_file", arguments = { path = "a.txt", content = "new\\n" } }]
[[step]]
text = "done"
"""


def test_a_rewind_and_its_undo_say_what_they_did(tmp_path: Path) -> None:
    work = Path(os.path.realpath(tmp_path)) / "work"
    work.mkdir()
    with LoopbackServer(parse_script(ACTS, python=sys.executable)) as provider:
        program = Program(work, work.parent / "home", provider.environment())
        assert program.run("-p", "go on", "-m", "openai/m", "--yolo").stdout == "done\n"

        def said(words: str) -> tuple[str, int]:
            ended = program.run("-c", "-p", words, "-m", "openai/m")
            return ended.stdout, ended.code

        assert said("/rewind undo") == ("There is no rewind to undo.\n", 1)
        back, code = said("/rewind 1")
        assert (re.sub(r"-\d+", "-N", back), code) == (
            "Rewound to before that message. 1 file removed. -N tokens.\n"
            "Your message was: go on\n/rewind undo reverses it.\n",
            0,
        )
        assert not (work / "a.txt").exists()
        assert said("/rewind undo") == ("Rewind undone. 1 file restored.\n", 0)
        assert (work / "a.txt").read_text() == "new\n"
        assert said("/rewind 1 files")[0].startswith("Files rewound. 1 file removed.\n")
        assert said("/rewind undo")[1] == 0
        assert program.run("sessions", "export", "2", "-o", "../s.json").code == 0
        (work / "a.txt").write_text("mine\n")
        program.run("sessions", "delete", "2")
        assert program.run("sessions", "import", "../s.json").code == 0
        unrecorded = "a.txt not tracked (no record of its earlier state)."
        assert "?" in said("/rewind list")[0]
        assert f"No file restored; {unrecorded}" in said("/rewind 1")[0]
        assert (work / "a.txt").read_text() == "mine\n"
        listed = program.run("sessions", "show", "2")
        assert listed.stdout.count("Rewound to before that message. 1 file removed.") == 1, listed.stdout
        assert "File changes undone" not in listed.stdout
