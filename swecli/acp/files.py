"""The editor's files for the tools of a session: open files with unsaved changes, and writing through the editor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import TimeoutError as NoAnswer
from pathlib import Path
from typing import Any, TypeVar

from acp import RequestError
from acp.interfaces import Client
from acp.schema import ClientCapabilities
from pydantic import ValidationError

from swecli.core.ports import EditorError

T = TypeVar("T")

SECONDS = 10.0
"""Seconds to wait for the editor. After a timeout it is not asked again in this session."""


class ClientFiles:
    """Implements ``EditorFiles`` for one session, for tools that run in threads. Asks nothing before ``session`` is
    set."""

    def __init__(self, client: Client, capabilities: ClientCapabilities, log: Callable[[str], None]) -> None:
        offered = capabilities.fs
        self._client = client
        self._reads = offered is not None and bool(offered.read_text_file)
        self._writes = offered is not None and bool(offered.write_text_file)
        self._log = log
        self._loop = asyncio.get_running_loop()
        self.session = ""

    @property
    def offered(self) -> bool:
        return self._reads

    @property
    def writes(self) -> bool:
        return self._writes and bool(self.session)

    def text(self, path: Path) -> str | None:
        if not self._reads or not self.session:
            return None
        try:
            return self._answer(self._client.read_text_file(session_id=self.session, path=str(path))).content
        except NoAnswer:
            self._reads = self._writes = False
            self._log(
                f"the editor did not return {path} within {SECONDS:.0f} s; from now on swecli reads files from disk"
            )
        except (RequestError, ConnectionError, ValidationError):
            pass  # not open in the editor: read it from disk
        return None

    def write(self, path: Path, text: str) -> None:
        try:
            self._answer(self._client.write_text_file(session_id=self.session, path=str(path), content=text))
        except NoAnswer:
            self._log(f"the editor did not write {path} within {SECONDS:.0f} s")
            raise EditorError(
                f"the editor did not confirm within {SECONDS:.0f} s that it wrote the file. Read it before you "
                "continue."
            ) from None
        except (RequestError, ConnectionError, ValidationError) as error:
            raise EditorError(f"the editor could not write it: {error}. Read it before you continue.") from None

    def _answer(self, asking: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(asking, self._loop).result(SECONDS)
