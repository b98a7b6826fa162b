"""Dumps of requests and answers for debugging: keys are masked, the conversation is not."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, cast

from msgspec import Struct

from swecli.core.atomic_text import make_private
from swecli.core.llm.json_values import parse_object
from swecli.core.llm.secrets import Masker, StreamMasker, key_values, masked_headers
from swecli.lazy_pattern import lazy_pattern

FOLDERS = 20
"""Newest runs that are kept."""


MOST_COVERED = 32 * 1024 * 1024
"""Bytes of an answer in which secrets are looked for across its pieces."""
_EVENT = lazy_pattern(r"(?m)^((?:data:)?[ \t]*,?)(\{.*\})([ \t]*)$")
"""A line of a stream: a server-sent event, or one JSON object."""
_NEVER_SPLIT = frozenset(("id", "object", "model", "type", "role", "name", "finish_reason", "stop_reason", "event"))
"""Fields that each event has whole."""


class _Leaf(Struct):
    """A text in an event: ``holder[key]``."""

    holder: Any
    key: Any


def without_split_secrets(text: str, cover: Callable[[str], str]) -> str:
    """A dump of a stream in which ``cover`` has replaced the secrets that its events together spell, character by
    character. Texts belong together that stand at the same place of their events."""
    events = [(match, parse_object(match[2])) for match in _EVENT.finditer(text)]
    leaves: dict[tuple[object, ...], list[tuple[int, _Leaf]]] = {}
    for number, (_, event) in enumerate(events):
        for place, leaf in _leaves(event, ()):
            leaves.setdefault(place, []).append((number, leaf))
    changed: set[int] = set()
    for pieces in leaves.values():
        whole = "".join(leaf.holder[leaf.key] for _, leaf in pieces)
        covered, at = cover(whole), 0
        for number, leaf in pieces if covered != whole else ():
            piece = covered[at : at + len(leaf.holder[leaf.key])]
            at += len(piece)
            if piece != leaf.holder[leaf.key]:
                leaf.holder[leaf.key] = piece
                changed.add(number)
    parts: list[str] = []
    end = 0
    for number in sorted(changed):
        match, event = events[number]
        parts += (text[end : match.start(2)], json.dumps(event, ensure_ascii=False, separators=(",", ":")))
        end = match.end(2)
    return "".join((*parts, text[end:]))


def _leaves(value: Any, place: tuple[object, ...]) -> Iterator[tuple[tuple[object, ...], _Leaf]]:
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value).items()
    elif isinstance(value, list):
        entries = enumerate(cast("list[Any]", value))
    for key, inner in entries:
        if isinstance(inner, str) and key not in _NEVER_SPLIT:
            yield (*place, key), _Leaf(value, key)
        elif isinstance(inner, (dict, list)):
            yield from _leaves(inner, (*place, key))


class ExchangeDump:
    """Dump of one run in a folder below ``folder``, created with its first exchange. ``secrets`` are masked. If writing
    fails, the dump ends: ``tell`` receives one sentence, and the program continues."""

    def __init__(self, folder: Path, secrets: Iterable[str], tell: Callable[[str], None] = lambda text: None) -> None:
        self._parent = folder
        self._secrets = frozenset(secrets)
        self.tell = tell
        self._folder: Path | None = None
        self._number = 0
        self._broken = False

    def begin(self, url: str, headers: Mapping[str, str], body: bytes) -> Exchange | None:
        """Write a request. None if writing is impossible."""
        if self._broken:
            return None
        masker = Masker({*self._secrets, *key_values(headers)})
        text = body.decode("utf-8", "replace")
        content = {"url": url, "headers": masked_headers(headers), "body": parse_object(text) or text}
        try:
            folder = self._open()
            self._number += 1
            with _private(folder / f"{self._number:04}-request.json") as file:
                file.write(masker.mask(json.dumps(content, ensure_ascii=False, indent=1)) + "\n")
            return Exchange(folder / f"{self._number:04}-response.txt", masker, self._fail)
        except OSError as error:
            self._fail(error)
            return None

    def _open(self) -> Path:
        if self._folder is None:
            make_private(self._parent)
            for old in sorted(path for path in self._parent.iterdir() if path.is_dir())[: -FOLDERS + 1]:
                shutil.rmtree(old, ignore_errors=True)
            self._folder = self._parent / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self.tell(f"Writing requests and answers to {self._folder}: keys are masked, the conversation is not.")
        return self._folder

    def _fail(self, error: OSError) -> None:
        if not self._broken:
            self._broken = True
            self.tell(f"Cannot write requests and answers below {self._parent}: {error.strerror or error}")


class Exchange:
    """Dump of the answer to one request as it arrives. ``close`` must be called."""

    def __init__(self, path: Path, masker: Masker, fail: Callable[[OSError], None]) -> None:
        self._masker = masker
        self._stream = StreamMasker(masker)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._fail = fail
        self._path = path
        self._file = _private(path)

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"{name}: {'***' if name == 'set-cookie' else value}" for name, value in headers.items()]
        self._write(self._masker.mask("\n".join([f"status: {status}", *lines, "", ""])))

    def body(self, chunk: bytes) -> None:
        self._write(self._stream.feed(self._decoder.decode(chunk)))

    def close(self, error: str = "") -> None:
        """End the dump; ``error`` says why the answer ended early."""
        rest = self._stream.feed(self._decoder.decode(b"", True)) + self._stream.end()
        self._write(rest + (f"\n\n[{self._masker.mask(error)}]\n" if error else ""))
        with suppress(OSError):
            self._file.close()
            self._cover_split()

    def _cover_split(self) -> None:
        """Write the dump anew if a secret came in several pieces, none of which shows what it is."""
        if self._path.stat().st_size > MOST_COVERED:
            return
        text = self._path.read_text(encoding="utf-8", errors="replace")
        covered = without_split_secrets(text, self._masker.cover)
        if covered != text:
            with _private(self._path) as file:
                file.write(covered)

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except (OSError, ValueError) as error:
            self._fail(error if isinstance(error, OSError) else OSError(str(error)))


def _private(path: Path) -> TextIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")
