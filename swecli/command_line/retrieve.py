"""`swecli retrieve`: files of a folder that a text names and is about; no model, no network."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swecli.command_line.arguments import UsageError, folder_parser, working_directory
from swecli.command_line.standard_streams import complain, input_lines, print_lines, print_text
from swecli.core.workspace.text_file import usable_folder
from swecli.exit_codes import ExitCode
from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.core.retrieval.retrieve import Retrieval

_SHOWN = 20
_OPEN = 4
"""Folders whose index is kept in memory."""


def retrieve(arguments: Sequence[str]) -> int:
    """``swecli retrieve TEXT``, or with ``--batch`` JSON lines of ``root`` and ``text`` from standard input."""
    parser = folder_parser(
        "swecli retrieve", "Find the files that match a text, from an index; sends nothing to a model."
    )
    parser.add_argument("text", nargs="*", metavar="TEXT", help="a task, an issue, a stack trace")
    parser.add_argument("--json", action="store_true", help="for scripts: the whole ranking")
    parser.add_argument(
        "--batch", action="store_true", help='read lines {"root": DIR, "text": TEXT}; one list per line'
    )
    chosen = parser.parse_args(arguments)
    text = " ".join(chosen.text)
    if chosen.batch:
        if text or chosen.cwd:
            raise UsageError("--batch reads folder and text from standard input")
        return print_lines(batch(input_lines()))
    if not text.strip():
        raise UsageError("swecli retrieve needs a text")
    retrieval = _Projects().retrieval(working_directory(chosen.cwd), text)
    if chosen.json:
        return print_text(json.dumps(document(retrieval)) + "\n")
    lines = [safe_line(str(file)) for file in retrieval.ranked[:_SHOWN]]
    if not lines:
        complain("swecli: no file in this folder matches these words")
        return ExitCode.OK
    return print_text("\n".join(lines) + "\n")


def document(found: Retrieval) -> list[dict[str, Any]]:
    """The ranking as JSON, the likeliest file first. ``line`` is that of the symbol, 0 without one; ``mentioned``: the
    text names this file."""
    named = {file.path for file in found.named if file.sure}
    return [
        {
            "path": file.path,
            "symbol": file.symbol,
            "line": file.line,
            "score": file.score,
            "mentioned": file.path in named,
        }
        for file in found.ranked
    ]


def batch(lines: Iterable[str]) -> Iterator[str]:
    """One JSON line for each line: the list, or an object with ``error``."""
    projects = _Projects()
    for line in lines:
        if not line.strip():
            continue
        try:
            request = json.loads(line)
            root, text = request["root"], request["text"]
            if not isinstance(root, str) or not isinstance(text, str):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            yield json.dumps({"error": 'expected a line such as {"root": "/folder", "text": "words"}'})
            continue
        try:
            folder = usable_folder(root, Path.cwd())
        except (ValueError, OSError) as error:
            yield json.dumps({"error": f"{root}: {error}"})
            continue
        yield json.dumps(document(projects.retrieval(folder, text)))


class _Projects:
    """Opens each folder once; keeps the newest in memory."""

    def __init__(self) -> None:
        from swecli.core.config.paths import user_paths
        from swecli.core.workspace.process import scrubbed_environment

        self._paths = user_paths(os.environ)
        self._environment = dict(scrubbed_environment(os.environ))
        self._open: dict[Path, Any] = {}

    def retrieval(self, folder: Path, text: str) -> Retrieval:
        from swecli.core.retrieval.project import open_project
        from swecli.features.retrieval.wiring import git_program, index_place

        root = Path(os.path.realpath(folder))
        opened = self._open.pop(root, None)
        if opened is None:
            git = git_program(root, self._environment)
            opened = open_project(root, index_place(self._paths, root), git, self._environment)
        self._open[root] = opened
        while len(self._open) > _OPEN:
            self._open.pop(next(iter(self._open)))
        return opened.retrieval(text)
