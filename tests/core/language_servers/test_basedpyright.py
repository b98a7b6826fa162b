"""A real server, from the development requirements: an edit that breaks a type is told with the edit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swecli.core.language_servers.definitions import found_program, known
from swecli.core.language_servers.servers import LanguageServerOptions
from swecli.core.workspace.process_tree import owned
from tests.core.engine.support import until
from tests.core.language_servers.support import PATIENT, Served

BIN = Path(sys.executable).parent
PROGRAM = found_program(known()["basedpyright"], str(BIN), ())


@pytest.mark.skipif(PROGRAM is None, reason="basedpyright is not installed")
async def test_a_broken_type_is_told_and_a_clean_edit_is_not(tmp_path: Path) -> None:
    assert PROGRAM is not None
    made = Served(tmp_path, PROGRAM, LanguageServerOptions(PATIENT), None)
    try:
        made.file("pyproject.toml", "[project]\nname = 'shop'\n")
        made.file("prices.py", "def price(pens: int) -> int:\n    return pens * 2\n\n\nold: int = 'broken before'\n")
        shop = "from prices import price\n\nprint('😀', price(3))\n"
        path = made.file("shop.py", shop)
        await made.servers.expect([str(path)])
        await until(lambda: made.server.open_files == 1 and made.server.state == "ready", "the first look")
        assert await made.edit("shop.py", shop + "print(price(4))\n") == ""
        text = await made.edit("shop.py", shop.replace("(3)", "('3')"))
        assert text.startswith("basedpyright reports 1 new error:\nshop.py:3: ")
        assert '"int"' in text
        assert await made.edit("shop.py", shop) == ""
        assert [one.line for one in await made.servers.ask("definition", path, 3, 11)] == [1]
        uses = await made.servers.ask("references", made.folder / "prices.py", 1, 4)
        assert [(one.path.name, one.line) for one in uses] == [("prices.py", 1), ("shop.py", 1), ("shop.py", 3)]
        assert "price" in [one.name for one in await made.servers.ask("outline", made.folder / "prices.py")]
    finally:
        await made.servers.close()
    await until(lambda: not owned())
