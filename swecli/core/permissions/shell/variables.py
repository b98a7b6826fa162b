"""Which variables a script may set or show without a question."""

from __future__ import annotations

import re

from swecli.core.permissions.shell.tables import tables

_LOWER = re.compile(r"[a-z][a-z0-9_]*")
_SPECIAL = frozenset(("histchars", "auto_resume"))


def is_plain_variable(name: str) -> bool:
    """Whether setting it changes nothing but what the script itself reads from it."""
    return (_LOWER.fullmatch(name) is not None and name not in _SPECIAL) or name in tables().lists["plain_variables"]


def may_be_shown(name: str) -> bool:
    """Whether its value, which is not known, holds nothing private."""
    return name in ("?", "$", "#", "0") or name in tables().lists["shown_variables"]
