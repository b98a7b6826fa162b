"""Requests and answers as files, for finding out what went over the wire. Keys are masked, the conversation is not."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from swecli.core.llm.json_values import parse_object
from swecli.core.llm.secrets import Masker, StreamMasker, key_values, masked_headers

FOLDERS = 20
"""Runs that are kept, the newest ones."""


class ExchangeDump:
    """A folder of one run below ``folder``, made with its first exchange. ``secrets`` are values that must not be
    written. A dump that can't be written ends: ``tell`` gets one sentence, and the program goes on."""

    def __init__(self, folder: Path, secrets: Iterable[str], tell: Callable[[str], None] = lambda text: None) -> None:
        self._parent = folder
        self._secrets = frozenset(secrets)
        self.tell = tell
        self._folder: Path | None = None
        self._number = 0
        self._broken = False

    def begin(self, url: str, headers: Mapping[str, str], body: bytes) -> Exchange | None:
        """Write a request. None where nothing can be written."""
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
            self._parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            for old in sorted(path for path in self._parent.iterdir() if path.is_dir())[: -FOLDERS + 1]:
                shutil.rmtree(old, ignore_errors=True)
            self._folder = self._parent / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self.tell(f"Requests and answers are written to {self._folder}: keys are masked, the conversation is not.")
        return self._folder

    def _fail(self, error: OSError) -> None:
        if not self._broken:
            self._broken = True
            self.tell(f"Requests and answers can't be written below {self._parent}: {error.strerror or error}")


class Exchange:
    """The answer to one request as it comes. ``close`` must be called."""

    def __init__(self, path: Path, masker: Masker, fail: Callable[[OSError], None]) -> None:
        self._masker = masker
        self._stream = StreamMasker(masker)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._fail = fail
        self._file = _private(path)

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Status and headers."""
        lines = [f"{name}: {'***' if name == 'set-cookie' else value}" for name, value in headers.items()]
        self._write(self._masker.mask("\n".join([f"status: {status}", *lines, "", ""])))

    def body(self, chunk: bytes) -> None:
        """A piece of the body."""
        self._write(self._stream.feed(self._decoder.decode(chunk)))

    def close(self, error: str = "") -> None:
        """The end; ``error`` says why it came early."""
        rest = self._stream.feed(self._decoder.decode(b"", True)) + self._stream.end()
        self._write(rest + (f"\n\n[{self._masker.mask(error)}]\n" if error else ""))
        with suppress(OSError):
            self._file.close()

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except (OSError, ValueError) as error:
            self._fail(error if isinstance(error, OSError) else OSError(str(error)))


def _private(path: Path) -> TextIO:
    """A new file for the user alone."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")
