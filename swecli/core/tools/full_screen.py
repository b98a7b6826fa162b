"""Commands that only make sense at a terminal, which a model's commands do not have: known by their words, so that they
end before they begin. Others are recognised by what they draw (``workspace.process``)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from types import MappingProxyType

from swecli.lazy_pattern import lazy_pattern

_OPERATORS = lazy_pattern(r"[|&;<>()$`\n]")
"""With any of these, input may come from elsewhere, or the program may be one of several."""
_EDIT = "Change the file with edit_file or write_file."
_ASK = "Use a non-interactive option or another tool."
_ALWAYS = ("--help", "--version", "-h", "-V", "--batch")

_PROGRAMS: Mapping[str, tuple[tuple[str, ...], str]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("vi", "vim", "nvim", "view", "vimdiff", "gvim"),
            (("-e", "-E", "-es", "-Es", "-s", "-c", "--cmd", "+", "--headless", "-l"), _EDIT),
        ),
        "emacs": (("-batch", "--script"), _EDIT),
        **dict.fromkeys(("nano", "pico", "joe", "ne", "mcedit", "micro", "helix", "hx"), ((), _EDIT)),
        "top": (("-b",), "Use top -b -n 1, or ps."),
        **dict.fromkeys(("htop", "btop", "btm", "glances", "nmon"), ((), "Use top -b -n 1, or ps.")),
        **dict.fromkeys(("tig", "lazygit", "gitui"), (("--all",), "Use git log, git show or git diff.")),
        **dict.fromkeys(("mc", "ranger", "nnn", "lf", "vifm", "k9s", "lazydocker", "ncdu"), (("-o", "-0"), _ASK)),
    }
)
"""By program, options (or beginnings of ``+`` words) with which it may need no terminal, and what to do instead."""


def needs_terminal(command: str) -> str:
    """Why a command is not worth starting, as a sentence; empty if it may be."""
    if _OPERATORS.search(command):
        return ""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        words = words[1:]
    name = words[0].rpartition("/")[2] if words else ""
    if name not in _PROGRAMS:
        return ""
    batch, instead = _PROGRAMS[name]
    if any(word.startswith((*batch, *_ALWAYS)) for word in words[1:]):
        return ""
    return f"{name} needs a terminal, which commands don't have, so it was not started. {instead}"
