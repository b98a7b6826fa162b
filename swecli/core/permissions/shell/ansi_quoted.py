"""The escapes of ``$'…'``."""

from __future__ import annotations

import codecs
import re

_ANSI = re.compile(r"\\(u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|x[0-9a-fA-F]{1,2}|[0-7]{1,3}|c.|.)", re.DOTALL)


def decode_ansi(body: str) -> str:
    """The text that bash makes of it."""
    return _ANSI.sub(_ansi_character, body)


def _ansi_character(match: re.Match[str]) -> str:
    code = match.group(1)
    if code in ("u", "U", "x"):
        return f"\\{code}"  # without digits it is no escape
    if code[0] in "uUx":
        number = int(code[1:], 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else ""
    if code[0] in "01234567":
        return chr(int(code, 8) % 256)
    if code[0] == "c":
        return ""
    return (
        {"E": "\x1b"}.get(code) or codecs.decode(f"\\{code}", "unicode_escape")
        if code in "abefnrtvE" and code != "e"
        else code
    )
