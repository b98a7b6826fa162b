"""Sequences for the terminal outside of a multiplexer that would keep them for itself."""

from __future__ import annotations

from collections.abc import Mapping


def through(sequence: str, environ: Mapping[str, str]) -> str:
    """The sequence so that it reaches the terminal through tmux (where ``allow-passthrough`` is on) or screen."""
    if environ.get("TMUX"):
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    if environ.get("STY"):
        return f"\x1bP{sequence}\x1b\\"
    return sequence
