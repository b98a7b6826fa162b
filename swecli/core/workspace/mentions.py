"""Files that a message mentions with ``@``: the words, and the files they name on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from swecli.core.workspace.text_file import unescaped
from swecli.lazy_pattern import lazy_pattern

MOST = 20
"""Files that one message may attach."""

_MENTION = lazy_pattern(
    r"""@(?<![^\s(\[{<"'`\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]@)"""
    r"""(?:"((?:[^"\\\n]|\\.){1,1000})"(:\d+(?:-\d+)?)?|([^\s@"'`<>]{1,1000}))"""
)
"""It begins with the sign itself, so that scanning megabytes without one is fast. Languages that put no blank before
the sign are those that put none between words."""
_RANGE = lazy_pattern(r"(.+):(\d{1,9})(?:-(\d{1,9}))?")
_FILE_NAME = lazy_pattern(r"(?:.*/)?[^/]*[^/.][^/]*\.[A-Za-z][A-Za-z0-9]{0,7}")
_FILE_ENDINGS = """bash bat c cc cfg conf cpp cs css csv env gif go h hpp html ini ipynb java jpeg jpg js json jsx kt
  lock log lua md mjs pdf php png ps1 py pyi rb rs rst scss sh sql svg swift tex toml ts tsv tsx txt vue webp xml yaml
  yml"""
"""Endings that decorators, packages and hosts do not have."""
_ENDS = ".,;:!?)]}>*_"
"""Punctuation that may follow a name in a sentence."""

_MOST_JOINTS = 20


class Mention(Struct, frozen=True):
    """The ``word`` after an ``@`` names ``path``: a folder, or the lines ``first`` to ``last`` (0: the end) of a file.
    ``problem`` says why it can't be attached."""

    word: str
    path: Path
    is_folder: bool = False
    first: int = 1
    last: int = 0
    problem: str = ""
    is_pdf: bool = False
    """Whether ``first`` and ``last`` count pages."""


def mentioned(text: str) -> tuple[str, ...]:
    """The words after an ``@`` that may name files, without duplicates. A name with blanks is quoted: ``@"a
    b.txt":10-20``; in it, a backslash precedes a quote or another backslash."""
    words = ((unescaped(quoted) + lines) if quoted else plain for quoted, lines, plain in _MENTION.findall(text))
    return tuple(dict.fromkeys(word for word in words if any(letter.isalnum() for letter in word)))


def mention_of(name: str) -> str:
    """The mention of a file or folder, quoted if needed; empty if no mention can name it."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return next((text for text in (f"@{name}", f'@"{escaped}"') if mentioned(text) == (name,)), "")


def mentioned_by_hand(text: str, typed: str) -> tuple[str, ...] | None:
    """Mentions in ``typed``, the part of a message that the user typed instead of pasting or piping in; None if the
    whole message has the same ones."""
    own = mentioned(typed)
    return None if own == mentioned(text) else own


def resolve(word: str, cwd: Path) -> Mention | None:
    """The file that a word names, relative to ``cwd``; None if it is no file, such as a decorator or a package. A word
    that can only be a file but names none is a ``problem``."""
    for name in _readings(word):
        path = _existing(name, cwd)
        if path is not None:
            return Mention(name, path, is_folder=os.path.isdir(path))
        lines = _RANGE.fullmatch(name)
        path = _existing(lines[1], cwd) if lines is not None else None
        if lines is not None and path is not None:
            first, last = int(lines[2]), int(lines[3] or lines[2])
            problem = "a folder has no lines" if os.path.isdir(path) else ""
            if not 1 <= first <= last:
                problem = f"{lines[2]}-{lines[3] or lines[2]} is not a line range"
            return Mention(name, path, os.path.isdir(path), first, last, problem)
    for name in _readings(word):
        if _is_link(name, cwd):
            return Mention(name, cwd / name, problem="a link that leads nowhere")
    name = word.rstrip(_ENDS)
    bare = lines[1] if (lines := _RANGE.fullmatch(name)) is not None else name
    is_file = "/" in bare or lines is not None or bare.rpartition(".")[2].lower() in _FILE_ENDINGS.split()
    if _FILE_NAME.fullmatch(bare) and is_file:
        return Mention(name, cwd / bare, problem="no such file")
    return None


def _readings(word: str) -> Iterator[str]:
    """The word itself, then without closing punctuation, then files before words of a language without blanks."""
    rest = word
    while rest:
        yield rest
        if rest[-1] not in _ENDS:
            break
        rest = rest[:-1]
    joints = [at for at in range(1, len(word)) if word[at - 1].isascii() and not word[at].isascii()]
    for at in reversed(joints[:_MOST_JOINTS]):
        name = word[:at].rstrip(_ENDS)
        lines = _RANGE.fullmatch(name)
        if _FILE_NAME.fullmatch(lines[1] if lines is not None else name):
            yield name


def _existing(name: str, cwd: Path) -> Path | None:
    """The resolved path of this name; None if it does not exist."""
    try:
        path = Path(name).expanduser()
        path = (path if path.is_absolute() else cwd / path).resolve()
        return path if os.path.exists(path) else None
    except (OSError, ValueError, RuntimeError):
        return None


def _is_link(name: str, cwd: Path) -> bool:
    try:
        return os.path.islink(cwd / Path(name).expanduser())
    except (OSError, ValueError, RuntimeError):
        return False
