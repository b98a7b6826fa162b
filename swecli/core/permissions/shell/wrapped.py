"""The command behind a wrapper that only changes how another program runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from swecli.core.permissions.shell.syntax import UnprovenError
from swecli.lazy_pattern import lazy_pattern

_DURATION = lazy_pattern(r"\d+(\.\d+)?[smhd]?")


def unwrap(name: str, arguments: Sequence[str | None], harmless: Callable[[str, str], bool]) -> list[str | None] | None:
    """The command that ``name`` starts; None if it starts none.

    Raises:
        UnprovenError: it does, in an unsupported form.
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
        case "ionice":
            while rest and rest[0] is not None and re.fullmatch(r"-[cn][0-7]|-t", rest[0]):
                rest.pop(0)
            while len(rest) > 1 and rest[0] in ("-c", "-n") and rest[1] is not None and rest[1] in "01234567":
                del rest[:2]
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
