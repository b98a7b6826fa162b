"""Programs that start another one and change nothing themselves, for the proof: only their plainest forms."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from swecli.core.permissions.shell.syntax import UnprovenError

_DURATION = re.compile(r"\d+(\.\d+)?[smhd]?")


def unwrap(name: str, arguments: Sequence[str | None], harmless: Callable[[str, str], bool]) -> list[str | None] | None:
    """The command that is started; None when ``name`` is no such program.

    Raises:
        UnprovenError: it is one, in a form that is not understood.
    """
    rest = list(arguments)
    match name:
        case "timeout":
            while rest and rest[0] in ("--foreground", "--preserve-status", "-v", "--verbose"):
                rest.pop(0)
            while len(rest) > 1 and rest[0] in ("-k", "-s", "--signal", "--kill-after"):
                del rest[:2]
            if not rest or rest[0] is None or not _DURATION.fullmatch(rest[0]):
                return _none_or_raise(name, arguments)
            rest.pop(0)
        case "nice":
            if rest[:1] == ["-n"]:
                del rest[:2]
            elif rest and rest[0] is not None and re.fullmatch(r"-\d+|--adjustment=\d+|-n\d+", rest[0]):
                rest.pop(0)
        case "stdbuf":
            while rest and rest[0] is not None and re.fullmatch(r"-[ioe](L|0|\d+)", rest[0]):
                rest.pop(0)
        case "env":
            while rest and rest[0] is not None:
                variable, equals, value = rest[0].partition("=")
                if not equals:
                    break
                if not harmless(variable, value):
                    raise UnprovenError(f"setting {variable} may change what the command does")
                rest.pop(0)
        case "command":
            if rest[:1] in (["-v"], ["-V"]):
                return None
        case _:
            return None
    if not rest or rest[0] is None or rest[0].startswith("-"):
        return _none_or_raise(name, arguments)
    return rest


def _none_or_raise(name: str, arguments: Sequence[str | None]) -> None:
    if list(arguments) == ["--version"]:
        return
    raise UnprovenError(f"this use of {name} is not understood")
