"""From the files of a project to its index: which files to read, how much of each, and what changed since."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from swecli.core.retrieval.definitions import SOURCE_ENDINGS, ending_of
from swecli.core.retrieval.index import Document, FileState, Index, document, kind_of
from swecli.core.workspace.text_file import read_bytes
from swecli.core.workspace.walk import IGNORE_FILES, Entry, IgnoreRules, ignore_root, walk
from swecli.lazy_pattern import lazy_pattern

LARGEST: Final = 400_000
"""Bytes of the largest source file to read; larger ones are indexed by name only."""
LARGEST_OTHER: Final = 60_000
"""The same limit for other files; of those that tests read only the names are indexed."""
MOST_FILES: Final = 20_000
"""Files of one index: sources first, then tests, then the rest."""
MOST_BYTES: Final = 200_000_000
_MAX_DEPTH: Final = 20
"""Most folders of a path that is looked up on disk."""
_MAX_ENTRIES: Final = 200_000
"""Most entries of a tree to visit."""

_NO_TEXT_ENDINGS = """
    .7z .a .avi .avif .bin .bmp .bz2 .class .dat .db .dll .dylib .eot .exe .gif .gz .ico .icns .jar .jpeg .jpg .lib
    .lock .map .mo .mov .mp3 .mp4 .o .obj .ogg .onnx .otf .parquet .pack .pdf .pkl .png .pyc .pyd .rlib .so .sqlite .sum
    .svg .tar .tgz .tif .tiff .ttf .wasm .wav .webm .webp .whl .woff .woff2 .xz .zip .zst .snap .po .pot .log .csv .tsv
    .jsonl .ipynb .min.js .pem .key .crt .p12 .keystore"""
_NO_TEXT = frozenset(_NO_TEXT_ENDINGS.split())
_NO_TEXT_NAMES = lazy_pattern(
    r"(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go\.sum|[^/]*\.min\.(?:js|css)|\.env(?:\.[^/]*)?"
    r"|\.netrc|\.npmrc|\.pypirc|id_[a-z0-9]+|[^/]*_pb2(?:_grpc)?\.pyi?|[^/]*\.pb\.go|[^/]*\.generated\.\w+"
    r"|[^/]*secrets?\.[^/]*|credentials[^/]*)$|(?:^|/)(?:node_modules|vendor|third_party|bower_components|\.git|\.venv"
    r"|__pycache__|site-packages)/",
    re.IGNORECASE,
)


_NOT_ONE_LINE = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters of a name that can't be written into a line of text: a pointer to it would be several lines, of which the
model would take the others for words of swecli."""


def is_indexed(path: str) -> bool:
    """Whether a file of this name is read: not data, keys, vendored or generated files."""
    if ending_of(path) in _NO_TEXT or _NO_TEXT_NAMES.search(path) is not None:
        return False
    return (path.isascii() and path.isprintable()) or _NOT_ONE_LINE.search(path) is None


def text_of(data: bytes) -> str | None:
    """The text of a file; None for other content."""
    if b"\0" in data[:8_192]:
        return None
    return data.decode("utf-8", "replace")


def largest(path: str) -> int:
    """Most bytes to read of a file."""
    if ending_of(path) in SOURCE_ENDINGS:
        return LARGEST
    return LARGEST_OTHER if kind_of(path) == "other" else 0


def state_of(root: Path, path: str) -> FileState | None:
    """The current state of a file; None if it is gone."""
    try:
        status = os.lstat(root / path)
    except (OSError, ValueError):
        return None
    return FileState(path, status.st_size, status.st_mtime_ns)


def is_there(root: Path, path: str) -> bool:
    """Whether a path is an indexable file of the project that no link leads to."""
    parts = Path(path).parts
    if not is_indexed(path) or ".." in parts or len(parts) > _MAX_DEPTH:
        return False
    try:
        links = any(os.path.islink(root / Path(*parts[:end])) for end in range(1, len(parts) + 1))
        return not links and os.path.isfile(root / path)
    except (OSError, ValueError):
        return False


def read_document(root: Path, path: str, *, empty: bool = False) -> Document | None:
    """A file as it is now; None if it is gone or not text. Its state is from before the read, so a change during the
    read is detected later."""
    state = state_of(root, path)
    if state is None:
        return None
    if empty or state.size > largest(path):
        return document(state, "")
    try:
        data, _ = read_bytes(root / path, largest(path))
    except (OSError, ValueError):
        return None
    text = text_of(data)
    return document(state, text) if text is not None else None


# --- files of a project ----------------------------------------------------------------------------------------


class Tree(Struct, frozen=True):
    """The files to index, with the folders visited and their modification times. ``complete`` is False if the tree
    has more files than may be kept or visited; ``left_out`` are the folders with most of the rest, with numbers of
    files."""

    paths: tuple[str, ...]
    folders: dict[str, int]
    complete: bool = True
    left_out: tuple[tuple[str, int], ...] = ()


_NAMED_FOLDERS: Final = 3
"""Folders named in ``left_out``."""
_ORDER: Final = {"source": 0, "test": 1, "other": 2}


def tree_of(root: Path, *, most: int = MOST_FILES, stop: Callable[[], bool] = lambda: False) -> Tree:
    """The files below ``root`` that no ignore file excludes. Links are not followed."""
    paths: list[str] = []
    folders: dict[str, int] = {"": _modified(root)}
    seen = 0
    for seen, entry in enumerate(walk(root, (root,), stop=stop), 1):
        if seen > _MAX_ENTRIES:
            break
        if entry.is_dir:
            folders[entry.path] = _modified(root / entry.path)
        elif _may_be_indexed(entry):
            paths.append(entry.path)
    complete = seen <= _MAX_ENTRIES and len(paths) <= most and not stop()
    ordered = sorted(paths, key=lambda path: (_ORDER[kind_of(path)], path.count("/")))
    left_out = Counter(f"{path.partition('/')[0]}/" if "/" in path else "./" for path in ordered[most:])
    return Tree(tuple(sorted(ordered[:most])), folders, complete, tuple(left_out.most_common(_NAMED_FOLDERS)))


def is_small(root: Path, most: int) -> bool:
    """Whether there are at most ``most`` files to index; visits no more entries than that takes."""
    seen = files = 0
    for seen, entry in enumerate(walk(root, (root,)), 1):
        files += _may_be_indexed(entry)
        if files > most or seen > 10 * most:
            return False
    return True


def _may_be_indexed(entry: Entry) -> bool:
    return entry.is_file and is_indexed(entry.path)


def _modified(folder: Path) -> int:
    try:
        return os.lstat(folder).st_mtime_ns
    except OSError:
        return 0


def documents(root: Path, paths: Iterable[str], stop: Callable[[], bool] = lambda: False) -> Iterator[Document]:
    """The files as documents; skips unreadable files and those without text. In a large project the last ones are known
    by name only."""
    left = MOST_BYTES
    for path in paths:
        if stop():
            return
        entry = read_document(root, path, empty=left <= 0)
        if entry is not None:
            left -= entry.state.size if entry.state.size <= largest(path) else 0
            yield entry


# --- changes since -----------------------------------------------------------------------------------------------

MOST_CHANGED: Final = 150
"""Most changed files before the index is rebuilt."""
_LONGEST_LOOK: Final = 5.0
"""Seconds."""


class Changes(Struct, frozen=True):
    """Paths to read again, and numbers of files with outdated entries. ``too_many``: the index must be rebuilt."""

    changed: tuple[str, ...] = ()
    gone: frozenset[int] = frozenset()
    too_many: bool = False


def changes_since(index: Index, root: Path) -> Changes:
    """Differences between index and disk: checks each known file and folder, and the entries of changed folders.
    Reports none if that takes longer than ``_LONGEST_LOOK``."""
    ends = time.monotonic() + _LONGEST_LOOK
    known = {file.path for file in index.files}
    changed: list[str] = []
    outdated: set[int] = set()
    for number, file in enumerate(index.files):
        try:
            status = os.lstat(f"{root}/{file.path}")  # a third of the time of a Path
        except OSError:
            outdated.add(number)
            continue
        if (status.st_mtime_ns, status.st_size) != (file.modified, file.size):
            changed.append(file.path)
            outdated.add(number)
        if len(outdated) > MOST_CHANGED:
            return Changes(too_many=True)
        if not number % 1_000 and time.monotonic() > ends:
            return Changes()  # a slow disk: an outdated index is better than none
    changed += _added(index, root, known)
    rules_changed = any(path.rpartition("/")[2] in IGNORE_FILES for path in changed)
    return Changes(tuple(changed), frozenset(outdated), rules_changed or len(changed) > MOST_CHANGED)


def _added(index: Index, root: Path, known: set[str]) -> list[str]:
    """Unknown files in changed or new folders."""
    waiting = [folder for folder, modified in index.folders.items() if _modified(root / folder) not in (0, modified)]
    if not waiting:
        return []
    start = ignore_root(root, (root,))
    rules = IgnoreRules(start)
    prefix = "" if start == root else f"{root.relative_to(start).as_posix()}/"
    added: list[str] = []
    while waiting and len(added) <= MOST_CHANGED:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                listed = [
                    (entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
                    for entry in entries
                ]
        except OSError:
            continue
        for name, is_dir, is_file in listed:
            path = f"{folder}/{name}" if folder else name
            if path in known or (is_dir and path in index.folders) or not (is_dir or (is_file and is_indexed(path))):
                continue
            if rules.entry_ignored(prefix + path, is_dir):
                continue
            if is_dir:
                waiting.append(path)
            else:
                added.append(path)
    return added
