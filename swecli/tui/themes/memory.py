"""The look of the last run, so that the first frame of the next one has it. Read before anything else is loaded."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, fields
from pathlib import Path

from swecli.core.atomic_text import make_private, write_whole
from swecli.tui.themes.scheme import Scheme, SchemeError, scheme_of

_MAX = 4_000


@dataclass(frozen=True, slots=True)
class Look:
    """``wanted`` is the name that the user asked for, ``dark`` the terminal's background; ``scheme`` is what was
    shown, None for the terminal's own colours."""

    wanted: str
    dark: bool
    scheme: Scheme | None = None


def recall(path: Path | None) -> Look | None:
    """The look that was kept; None where there is none that can be used."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            text = file.read(_MAX).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    wanted, dark = values.pop("wanted", ""), values.pop("dark", "")
    name = values.pop("name", "")
    if not wanted or dark not in ("yes", "no"):
        return None
    try:
        scheme = scheme_of(name, values) if name else None
    except SchemeError:
        return None
    return Look(wanted, dark == "yes", scheme)


def keep(path: Path | None, look: Look) -> None:
    """Keep a look for the next start. A disk that refuses only costs a change of colours then."""
    if path is None or look == recall(path):
        return
    values = {"wanted": look.wanted, "dark": "yes" if look.dark else "no"}
    if look.scheme is not None:
        values |= {entry.name: getattr(look.scheme, entry.name) for entry in fields(Scheme) if entry.name != "coarse"}
    with contextlib.suppress(OSError):
        make_private(path.parent)
        write_whole(path, "".join(f"{key}={value}\n" for key, value in values.items()))
