"""The files of a workspace that a command runs, with their hashes: an approval of the command is bound to them."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from swecli.lazy_pattern import lazy_pattern

_PROJECT = lazy_pattern(r"\$(?:\{(?:CLAUDE_PROJECT_DIR|SWECLI_PROJECT_DIR|PWD)(?::?[-?][^}]*)?\}"
                      r"|(?:CLAUDE_PROJECT_DIR|SWECLI_PROJECT_DIR|PWD)\b)")  # fmt: skip
_INTO = frozenset((">", ">>", ">|", "&>", "&>>"))
"""Operators that make the next word a file to write."""
_WRITERS = frozenset(("tee", "touch"))
"""Programs that only write to the files of their arguments."""
_OPERATOR = lazy_pattern(r"[();<>|&]+")
_AFTER_VARIABLE = lazy_pattern(r"\$(?:\w+|\{[^}]*\})/(.+)", re.DOTALL)
_TAKES_CODE = lazy_pattern(r"-[a-z]*c|eval")
_DEEPEST = 4
MOST_FOLDERS = 20
"""Folders of one command from which its words are looked up."""
LARGEST_SCRIPT = 5_000_000
"""Bytes of a file that is hashed; larger files count by size only."""


def workspace_scripts(command: str, project: Path) -> tuple[tuple[str, str], ...]:
    """Workspace files that a command names, also from a folder that it names, relative to the workspace, each with the
    SHA-256 of its bytes. Files that it only writes (``>``, ``>>``, ``tee``, ``touch``) are left out because they change
    with every run. Reads files."""
    words = _named(_PROJECT.sub(lambda _: str(project), command))
    names = dict.fromkeys(name for word in words for name in (word, word.rpartition("=")[2]) if name)
    roots = (str(project), os.path.realpath(project))
    scripts: dict[str, str] = {}
    folders: dict[str, None] = {str(project): None}
    for name in names:
        path = _at(str(project), name)
        if os.path.isdir(path) and _within(path, roots) and len(folders) < MOST_FOLDERS:
            folders[path] = None
    for folder in folders:
        for name in names:
            path = _at(folder, name)
            if os.path.isfile(path) and _within(path, roots):
                scripts[os.path.relpath(path, project)] = file_hash(Path(path))
    return tuple(sorted(scripts.items()))


def _at(folder: str, name: str) -> str:
    return os.path.normpath(os.path.join(folder, os.path.expanduser(name)))


def _within(path: str, roots: Sequence[str]) -> bool:
    return any(_inside(path, root) or _inside(os.path.realpath(path), root) for root in roots)


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _named(command: str, depth: int = 0) -> Iterator[str]:
    """Words of a command and of the commands within it: of ``-c``, ``eval`` and substitutions. Of a word that begins
    with a variable, what follows it: the folder may be named elsewhere."""
    words = _words(command)
    for at, word in enumerate(words):
        yield word
        if after := _AFTER_VARIABLE.match(word):
            yield after[1]
        code = at > 0 and _TAKES_CODE.fullmatch(words[at - 1]) is not None
        if (code or "`" in word or "$(" in word) and depth < _DEEPEST:
            yield from _named(re.sub(r"\$\(|[`)]", " ; ", word), depth + 1)


def _words(command: str) -> list[str]:
    """Words and operators, without those that name what is only written."""
    try:
        words, written = _split(command, posix=True), _split(command, posix=False)
    except ValueError:
        return [word for word in re.split(r"[\s'\"`;&|()<>]+", command) if word]
    if len(words) != len(written):  # with a backslash they differ, and then no operator is told from a word for sure
        return words
    result: list[str] = []
    writes = False
    for at, word in enumerate(words):
        if not _OPERATOR.fullmatch(written[at]):
            if (at > 0 and written[at - 1] in _INTO) or (writes and not word.startswith("-")):
                continue
            writes = writes or word in _WRITERS
        else:
            writes = False
        result.append(word)
    return result


def _split(command: str, *, posix: bool) -> list[str]:
    """Words and operators; with their quotes unless ``posix``."""
    lexer = shlex.shlex(command, posix=posix, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes; for an unreadable file, a text that equals no hash."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > LARGEST_SCRIPT:
                return f"{size} bytes"
            return hashlib.sha256(file.read()).hexdigest()
    except (OSError, ValueError) as error:
        return f"unreadable: {error}"
