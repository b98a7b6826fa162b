"""Modules of Python that only print, which a file of the folder where it runs may replace."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from swecli.core.permissions.shell.expand import Situation, check_content
from swecli.core.permissions.shell.syntax import UnprovenError
from swecli.lazy_pattern import lazy_pattern

_PYTHON = lazy_pattern(r"python(?:3(?:\.[0-9]+)?)?")
_OPTION = lazy_pattern(r"--(?:sort-keys|no-ensure-ascii|json-lines|tab|no-indent|compact|indent=[0-9]+)")
_MODULE = lazy_pattern(r"([A-Za-z_]\w*)(?:\.py[cdow]?|\.(?:[\w-]+\.)?so|)")
"""A name in a folder by which Python may import it."""
_NEWER = frozenset(("annotationlib", "compression"))
"""Modules that come with a newer Python than this one."""


def prints_json(name: str, arguments: Sequence[str | None]) -> bool:
    """Whether a command is ``python3 -m json.tool``."""
    return _PYTHON.fullmatch(name) is not None and list(arguments[:2]) == ["-m", "json.tool"]


def check_json_tool(arguments: Sequence[str | None], situation: Situation) -> None:
    """Raise ``UnprovenError`` unless ``python3 -m json.tool`` with these arguments only prints, and only what may be
    read: it may write a file, or import a module of the folder where it runs."""
    operands = [word for word in arguments[2:] if word is None or _OPTION.fullmatch(word) is None]
    if len(operands) > 1 or any(word is None or (word != "-" and word.startswith("-")) for word in operands):
        raise UnprovenError("json.tool may write a file")
    names = situation.facts.names(situation.cwds[0]) if len(situation.cwds) == 1 and not situation.edited else None
    if names is None or any(_replaces_module(name) for name in names):
        raise UnprovenError("Python may import a module of this folder instead of its own")
    for word in operands:
        check_content(word or "", situation)


def _replaces_module(name: str) -> bool:
    match = _MODULE.fullmatch(name)
    if match is None or name == "test":  # the tests of Python itself
        return False
    stem = match[1]
    return stem in sys.stdlib_module_names or stem in _NEWER or (stem.startswith("_") and not re.match("__", stem))
