"""Asking tsserver for errors through its language server, which by itself only sends them when there are some, after a
while, and without saying of which text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from swecli.core.language_servers.protocol import ERROR, Diagnostic, Position, Range, sequence, table, whole

REQUEST: Final = "typescript.tsserverRequest"
"""The command of the language server that hands a request to tsserver and its answer back."""
ERROR_REQUESTS: Final = ("syntacticDiagnosticsSync", "semanticDiagnosticsSync")


def hands_on(capabilities: Mapping[str, Any]) -> bool:
    """Whether a language server takes requests for tsserver."""
    return REQUEST in sequence(table(capabilities.get("executeCommandProvider")).get("commands"))


def error_request(command: str, uri: str) -> dict[str, Any]:
    return {"command": REQUEST, "arguments": [command, {"file": uri, "includeLinePosition": True}]}


def errors_of(answer: Any) -> tuple[Diagnostic, ...] | None:
    """The errors in an answer of tsserver; None where it was interrupted."""
    body = table(answer).get("body")
    if not isinstance(body, list):
        return None
    found: list[Diagnostic] = []
    for one in map(table, sequence(body)):
        start, end = _position(one.get("startLocation")), _position(one.get("endLocation"))
        if one.get("category") == "error" and start is not None:
            code, message = one.get("code"), str(one.get("message", ""))
            known = code if isinstance(code, int | str) else None
            found.append(Diagnostic(Range(start, end or start), message, ERROR, known))
    return tuple(found)


def _position(place: Any) -> Position | None:
    """tsserver counts from 1."""
    line, offset = whole(table(place).get("line")), whole(table(place).get("offset"))
    return Position(line - 1, offset - 1) if line and offset else None
