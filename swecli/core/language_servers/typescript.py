"""TypeScript: finding the version for a server, and requesting its errors.

Up to version 6 it is a program (tsserver) that typescript-language-server runs; from version 7 it is itself a language
server. typescript-language-server sends errors only if there are any, after a delay, and without a version, so swecli
queries tsserver through it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from swecli.core.language_servers.protocol import ERROR, Diagnostic, Position, Range, whole
from swecli.core.llm.json_values import as_list, as_object, is_list

SERVER_PACKAGE: Final = "typescript-language-server"
LACKING: Final = (
    "it needs TypeScript 6 or older in the project, beside it or on PATH. To install one: npm install --save-dev "
    "typescript@6"
)
FIRST_SERVER: Final = 7
"""First version that is a language server."""
_PLACES: Final = ("node_modules/typescript/lib", ".yarn/sdks/typescript/lib", ".vscode/pnpify/typescript/lib")
_TSSERVER: Final = "tsserver.js"
_LONGEST: Final = 1_000_000
REQUEST: Final = "typescript.tsserverRequest"
"""Command of the language server that forwards a request to tsserver."""
ERROR_REQUESTS: Final = ("syntacticDiagnosticsSync", "semanticDiagnosticsSync")


class _Package(Struct, frozen=True):
    """The relevant fields of a package.json."""

    name: str = ""
    version: str = ""


def tsserver_for(folder: Path, program: str, search_path: str) -> tuple[Path | None, bool]:
    """The tsserver for a file's folder: the project's own, the one beside the language server, or that of a ``tsc`` on
    PATH. False if there is certainly none; a server behind a wrapper may know another. Blocks on the disk."""
    real = Path(os.path.realpath(program))
    for start in (folder, real.parent):
        for parent in (start, *start.parents):
            for subfolder in _PLACES:
                if os.path.isfile(path := parent / subfolder / _TSSERVER):
                    return path, True
    places = [entry for entry in search_path.split(os.pathsep) if entry.startswith("/")]
    tsc = shutil.which("tsc", path=os.pathsep.join(places))
    package = _package_of(tsc) if tsc is not None else None
    if package is not None and os.path.isfile(path := package / "lib" / _TSSERVER):
        return path, True
    return None, SERVER_PACKAGE not in real.parent.parts


def is_too_old(tsc: str) -> bool:
    """Whether this ``tsc`` is known not to be a language server. Blocks on the disk."""
    package = _package_of(tsc)
    if package is None:
        return False
    major = _read(package).version.partition(".")[0]
    return major.isdecimal() and int(major) < FIRST_SERVER


def hands_on(capabilities: Mapping[str, Any]) -> bool:
    """Whether a language server forwards requests to tsserver."""
    return REQUEST in as_list(as_object(capabilities.get("executeCommandProvider")).get("commands"))


def error_request(command: str, uri: str) -> dict[str, Any]:
    return {"command": REQUEST, "arguments": [command, {"file": uri, "includeLinePosition": True}]}


def errors_of(answer: Any) -> tuple[Diagnostic, ...] | None:
    """The errors in tsserver's answer; None if it was interrupted."""
    body = as_object(answer).get("body")
    if not is_list(body):
        return None
    diagnostics: list[Diagnostic] = []
    for item in map(as_object, body):
        start, end = _position(item.get("startLocation")), _position(item.get("endLocation"))
        if item.get("category") == "error" and start is not None:
            code, message = item.get("code"), str(item.get("message", ""))
            known = code if isinstance(code, int | str) else None
            diagnostics.append(Diagnostic(Range(start, end or start), message, ERROR, known))
    return tuple(diagnostics)


def _package_of(tsc: str) -> Path | None:
    """The package folder of a ``tsc``: above the target of its link, or beside the folder of a script written by a
    package manager."""
    real = Path(os.path.realpath(tsc))
    for folder in (real.parent.parent, Path(tsc).parent.parent / "typescript"):
        if _read(folder).name == "typescript":
            return folder
    return None


def _read(folder: Path) -> _Package:
    try:
        with (folder / "package.json").open("rb") as file:
            return msgspec.json.decode(file.read(_LONGEST), type=_Package)
    except (OSError, msgspec.DecodeError):
        return _Package()


def _position(point: Any) -> Position | None:
    """From tsserver's positions, which count from 1."""
    line, offset = whole(as_object(point).get("line")), whole(as_object(point).get("offset"))
    return Position(line - 1, offset - 1) if line and offset else None
