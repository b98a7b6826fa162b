"""The settings that people change most: their names for people, and what a value looks like before it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, MarkdownBlock, TextBlock
from swecli.figures import bar, percent
from swecli.tui.backend import Setting
from swecli.tui.screens.list_screen import Entry

COMMON: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model.name": "Model",
        "approval.mode": "Permission mode",
        "ui.theme": "Theme",
        "ui.editing": "Editing keys",
        "ui.density": "Detail in the transcript",
        "ui.notify": "Notifications",
        "ui.status_line": "Status line",
        "context.auto_compact": "Compact automatically",
        "context.warn": "Warn when this full",
        "tools.command_timeout": "Command timeout",
        "ui.diff": "Diffs",
    }
)
"""In the order of the first page; one that this version does not have is left out."""
MOST: Final = 10
"""Settings on the first page."""
ALL: Final = "all settings"
"""The entry that lists every setting."""


def first_page(settings: Sequence[Setting]) -> list[Entry]:
    """The common settings with their names for people, then the way to all."""
    known = {setting.name: setting for setting in settings}
    common = [known[name] for name in COMMON if name in known][:MOST]
    entries = [entry_of(setting, COMMON[setting.name], setting.shown, setting.name) for setting in common]
    return [*entries, Entry(ALL, (f"All {len(settings)} settings …", "", ""), "plain", "", " ")]


def entry_of(setting: Setting, *cells: str) -> Entry:
    """An entry of a list; what the user has set stands out."""
    changed = setting.origin != "default"
    words = f"{setting.about} {COMMON.get(setting.name, '')}"
    return Entry(setting.name, cells, "plain" if changed else "dim", words, "*" if changed else " ", tail=True)


_THEME: Final[tuple[DisplayBlock, ...]] = (
    MarkdownBlock("**Fixed**: `price` compared with `>`, see [the docs](https://example.com)."),
    DiffBlock("shop.py", "def price(pens):\n    if pens > 10:\n", "def price(pens):\n    if pens >= 10:\n"),
)
_OUTPUT: Final = "test_cart.py ..F\n1 failed, 2 passed"
_DETAIL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "short": "$ Run pytest   exit 1 · 2 s",
        "usual": f"$ Run pytest   exit 1 · 2 s\n  {_OUTPUT.splitlines()[0]}\n  … 41 lines hidden\n  1 failed, 2 passed",
        "full": f"$ Run pytest   exit 1 · 2 s\n  {_OUTPUT.splitlines()[0]}\n  (all 43 lines)\n  1 failed, 2 passed",
    }
)


def sample(name: str, value: str) -> Sequence[DisplayBlock]:
    """What a value of a setting does, where that can be shown."""
    plain = value.strip().strip('"')
    match name:
        case "ui.theme":
            return _THEME
        case "ui.density" if plain in _DETAIL:
            return (TextBlock(_DETAIL[plain], "dim"),)
        case "context.warn" | "agent.compact_trigger" | "agent.hard_block" if (share := _share(plain)) is not None:
            return (TextBlock(f"{bar(share, 24)} {percent(share)} of the context"),)
        case _:
            return ()


def _share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None
