"""typescript-language-server and TypeScript 7 from npm: `make test-interop` installs and runs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.core.language_servers.definitions import found_program, known
from swecli.core.language_servers.servers import LanguageServerOptions
from swecli.core.workspace.process_tree import owned
from tests.core.engine.support import until
from tests.core.language_servers.support import PATIENT, Served

PLACE = Path(os.environ.get("SWECLI_INTEROP_LSP", ""))
pytestmark = pytest.mark.skipif("SWECLI_INTEROP_LSP" not in os.environ, reason="make test-interop")
PRICES = "export function price(pens: number): number {\n  return pens * 2;\n}\nexport const old: number = 'before';\n"
SHOP = "import { price } from './prices';\nconsole.log('😀', price(3));\n"


@pytest.mark.parametrize(("name", "place"), [("typescript", PLACE), ("tsc", PLACE / "seven")])
async def test_typescript(tmp_path: Path, name: str, place: Path) -> None:
    search = f"{place / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
    program = found_program(known()[name], search, ())
    assert program is not None
    made = Served(tmp_path, program, LanguageServerOptions(PATIENT), None)
    try:
        made.file("package.json", "{}")
        made.file("tsconfig.json", '{"compilerOptions": {"strict": true}}')
        prices, path = made.file("prices.ts", PRICES), made.file("shop.ts", SHOP)
        for one in (path, prices):
            await made.servers.expect([str(one)])
        await until(lambda: made.server.open_files == 2 and made.server.state == "ready", "the first look")
        await made.servers.ask("outline", path)  # the checks before are done
        assert await made.edit("shop.ts", SHOP + "console.log(price(4));\n") == ""
        assert await made.edit("shop.ts", SHOP.replace("(3)", "(3 )")) == ""
        text = await made.edit("shop.ts", SHOP.replace("(3)", "('3')"))
        assert text.startswith(f"{name} reports 1 new error:\nshop.ts:2: Argument of type 'string'")
        assert await made.edit("shop.ts", SHOP) == ""
        assert "prices.ts:2: " in await made.edit("prices.ts", PRICES.replace("pens * 2", "String(pens)"))
        uses = await made.servers.ask("references", prices, 1, 17)
        assert [(one.path.name, one.line) for one in uses] == [("prices.ts", 1), ("shop.ts", 1), ("shop.ts", 2)]
        assert made.host.notes == []
    finally:
        await made.servers.close()
    assert not owned()
