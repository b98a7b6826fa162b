"""The samples of .swecli.example are read without a word about them."""

from __future__ import annotations

import shutil
from pathlib import Path

from swecli.core.extensions.profiles import resolve_profile
from swecli.core.tools.registry import ToolRegistry, builtin_tools
from tests.core.extensions.support import Places

EXAMPLE = Path(__file__).parents[3] / ".swecli.example"


def test_there_is_one_of_each_and_nothing_is_wrong_with_it(places: Places) -> None:
    shutil.copytree(EXAMPLE, places.project / ".swecli")
    files = places.open()
    assert files.now.problems == ()
    assert set(files.now.skills) == {"release-notes"}
    assert set(files.now.commands) == {"git:since"}
    assert set(files.now.profiles) == {"test-writer"}
    names = ToolRegistry(builtin_tools()).names()
    assert resolve_profile(files.now.profiles["test-writer"], tools=names, mode="default").problems == ()
    skill = files.now.skills["release-notes"]
    assert (skill.origin.folder / "style.md").is_file()
