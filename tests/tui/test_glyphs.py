"""Signs of the interface on terminals that have none: one ASCII character for each, by terminal or by setting."""

from __future__ import annotations

import pytest

from swecli.figures import bar
from swecli.tui.glyphs import needs_plain, plain
from swecli.tui.preferences import Preferences
from swecli.tui.status_bar import FRAMES
from tests.tui.scenes import DONE
from tests.tui.support import Running, running
from tests.tui.test_looks import prepared


def test_every_sign_becomes_one_ascii_character() -> None:
    signs = "›✻✎⌕◇▤☑☐⇣↺⊟▣✓✗⊘■⟲┃│─…·•▌" + FRAMES
    assert plain(signs).isascii()
    assert len(plain(signs)) == len(signs)
    drawn = ["[        ]", "[##-     ]", "[####    ]", "[########]"]
    assert [plain(bar(share, 8)) for share in (0, 0.3, 0.5, 1)] == drawn
    assert plain("日本語 é") == "日本語 é", "what is not ours stays"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-256color", "LANG": "C"}, False),
        ({"TERM": "xterm-256color", "LANG": "en_US.UTF-8"}, False),
        ({"TERM": "xterm", "LC_ALL": "de_DE.ISO-8859-1@euro", "LANG": "de_DE.utf8"}, True),
        ({"TERM": "linux"}, True),
        ({"TERM": "vt100", "LANG": "C.UTF-8"}, True),
        ({}, False),
    ],
)
def test_terminals_without_signs(environ: dict[str, str], expected: bool) -> None:
    assert needs_plain(environ) is expected


async def shown(it: Running) -> str:
    await it.say("go")
    await it.shows("done in 12 s", "45%")
    return it.screen()


async def test_the_whole_screen_is_plain_where_the_user_wants_that() -> None:
    wanted = Preferences(glyphs="ascii")
    async with running(session=prepared(DONE), preferences=lambda: wanted) as it:
        await it.until(lambda: "[###" in it.screen())
        text = await shown(it)
        assert text.isascii()
        assert "[####    ] 45%" in text
        it.app.interface.open("settings")
        await it.pilot.pause()
        assert it.screen().isascii()
