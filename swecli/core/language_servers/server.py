"""A running language server: the handshake, its open files, and its diagnostics."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from swecli.core.language_servers.definitions import LanguageServer
from swecli.core.language_servers.peer import Command, Peer, Refused, ServerEnded, UnknownMethod
from swecli.core.language_servers.protocol import (
    Diagnostic,
    path_of,
    read_errors,
    read_json,
    read_published,
    read_report,
    uri_of,
    whole,
)
from swecli.core.language_servers.typescript import ERROR_REQUESTS, error_request, errors_of, hands_on
from swecli.core.llm.json_values import as_list, as_object, is_object
from swecli.core.workspace.server_log import ServerLog

START_SECONDS: Final = 30.0
"""Seconds to wait for the handshake."""
ANSWER_SECONDS: Final = 20.0
"""Seconds to wait for any other answer."""
READY_SECONDS: Final = 120.0
"""Seconds to wait for the server to read the project before its diagnostics count as complete."""
FIRST_SECONDS: Final = 10.0
"""Seconds of silence about a file after which it counts as free of errors."""
FIRST_SILENCE: Final = 3.0
"""The same limit for the first file, once read, of a server that stays silent about files without errors."""
SILENCE: Final = 0.8
"""The same limit for all later files, unless the server is known to be slower."""
BEGINS: Final = 0.3
"""Seconds within which a server starts to report that it reads the project, if ever."""
QUIET: Final = 0.2
"""Seconds without another list after which a list without a version counts as complete."""
MOST_OPEN: Final = 40
"""Maximum number of files open in a server."""
_RETRIED: Final = frozenset((-32_801, -32_802))
"""ContentModified and ServerCancelled."""
_RETRIES: Final = 20
_PAUSE: Final = 0.1


class Document:
    """A file open in the server. ``published`` is the newest list of diagnostics that it sent unasked."""

    def __init__(self, path: Path, language: str) -> None:
        self.path = path
        self.uri = uri_of(path)
        self.language = language
        self.text: str | None = None
        """None if the file is not open."""
        self.version = 0
        self.published: msgspec.Raw | None = None
        self.fresh = False
        """Whether that list describes the current text."""
        self.heard = False
        """Whether the server sent a list for this text; otherwise its long silence confirms the previous one."""
        self.exact = False
        """Whether the list named the version."""
        self.at = 0.0
        """When it arrived, in seconds of the event loop."""
        self.shown_at = 0.0
        """When the text was sent to the server, or the server had read it."""
        self.news = asyncio.Event()


class RunningServer:
    """One server process. ``on_published`` receives each list for an open file."""

    def __init__(
        self, definition: LanguageServer, root: Path, log: ServerLog, on_published: Callable[[Document], None]
    ) -> None:
        self.definition = definition
        self.root = root
        self._log = log
        self._on_published = on_published
        self.peer = Peer(log, self._told, self._asked)
        self.documents: dict[Path, Document] = {}
        self.capabilities: Mapping[str, Any] = {}
        self._registered: dict[str, str] = {}
        """Methods by registration id."""
        self._working: dict[str, str] = {}
        """Reported work in progress, by token."""
        self._quiescent: bool | None = None
        self._moved = asyncio.Event()
        self._began = 0.0
        self._settled = False
        self._versions = False
        """Whether its lists name versions, so that each text gets one."""
        self._hands_on = False
        """Whether it forwards requests for errors to tsserver."""
        self._slowest = 0.0
        """Usual seconds until a list arrives, judged by the slowest recent one."""
        self._silences = 0
        self.leaves_unanswered = False
        """Whether it was silent about a text for so long that this counted as free of errors, as servers do that send
        no list for a clean file."""

    @property
    def doing(self) -> str:
        """The server's reported work in progress; empty if none."""
        return next(iter(self._working.values()), "reading the project" if self._quiescent is False else "")

    async def start(self, command: Command) -> None:
        """Start the server and complete the handshake.

        Raises:
            ServerEnded: it can't be started, or does not answer.
        """
        await self.peer.start(command)
        try:
            answer = await self.peer.request("initialize", self._initialize(), START_SECONDS)
        except (Refused, TimeoutError) as error:
            reason = f"it refused to start: {error}" if isinstance(error, Refused) else "it did not answer within 30 s"
            await self.peer.close(reason)
            raise ServerEnded(reason) from error
        except asyncio.CancelledError:
            await self.peer.close("its start was cancelled")
            raise
        self.capabilities = as_object(as_object(read_json(answer)).get("capabilities"))
        self._hands_on = hands_on(self.capabilities)
        self.peer.notify("initialized", {})
        if self.definition.settings:
            self.peer.notify("workspace/didChangeConfiguration", {"settings": self.definition.settings})
        self._began = asyncio.get_running_loop().time()

    def _initialize(self) -> dict[str, Any]:
        folder = {"uri": uri_of(self.root), "name": self.root.name}
        return {
            # A server would end itself where it can't see this process, as in a sandbox.
            "processId": None,
            "clientInfo": {"name": "swecli"},
            "rootUri": folder["uri"],
            "rootPath": str(self.root),
            "workspaceFolders": [folder],
            "initializationOptions": self.definition.options,
            "capabilities": _CAPABILITIES,
            "trace": "off",
        }

    async def close(self, why: str) -> None:
        await self.peer.close(why)

    # --- what the server says by itself -----------------------------------------------------------------------

    def _told(self, method: str, params: msgspec.Raw) -> None:
        match method:
            case "textDocument/publishDiagnostics":
                self._published(params)
            case "$/progress":
                self._progress(as_object(read_json(params)))
            case "experimental/serverStatus":
                self._quiescent = as_object(read_json(params)).get("quiescent") is not False
                self._moved.set()
            case "window/logMessage" | "window/showMessage":
                self._log.line(str(as_object(read_json(params)).get("message", ""))[:1_000])
            case _:
                pass

    def _published(self, params: msgspec.Raw) -> None:
        if self._hands_on:
            return  # it is asked, and these may be about an older text
        published = read_published(params)
        path = path_of(published.uri) if published is not None else None
        document = self.documents.get(path) if path is not None else None
        if published is None or document is None or document.text is None:
            return
        if published.version is not None and published.version < document.version:
            return
        now = asyncio.get_running_loop().time()
        self._versions = self._versions or published.version is not None
        if not document.heard and self._silences:  # the first list waits for the project to be read
            self._slowest = max(self._slowest * 0.9, now - document.shown_at)
        if document.fresh and not document.heard:  # it was slow, not silent
            self.leaves_unanswered = False
        document.published = published.diagnostics.copy()  # else the whole message is held
        document.fresh, document.heard, document.exact = True, True, published.version is not None
        document.at = now
        document.news.set()
        self._on_published(document)

    def _progress(self, params: Mapping[str, Any]) -> None:
        token, value = str(params.get("token")), as_object(params.get("value"))
        match value.get("kind"):
            case "begin" if len(self._working) < 100:
                self._working[token] = str(value.get("title", "working"))[:80]
            case "end":
                self._working.pop(token, None)
            case _:
                return
        self._moved.set()

    def _asked(self, method: str, params: msgspec.Raw) -> Any:
        match method:
            case "workspace/configuration":
                items = as_list(as_object(read_json(params)).get("items"))
                return [self._configured(as_object(item)) for item in items]
            case "client/registerCapability":
                for item in as_list(as_object(read_json(params)).get("registrations"))[:200]:
                    self._registered[str(as_object(item).get("id"))] = str(as_object(item).get("method"))
            case "client/unregisterCapability":
                fields = as_object(read_json(params))
                for item in as_list(fields.get("unregisterations", fields.get("unregistrations"))):
                    self._registered.pop(str(as_object(item).get("id")), None)
            case "workspace/applyEdit":
                return {"applied": False, "failureReason": "swecli does not let servers change files"}
            case "workspace/workspaceFolders":
                return [{"uri": uri_of(self.root), "name": self.root.name}]
            case "window/showDocument":
                return {"success": False}
            case "window/workDoneProgress/create" | "window/showMessageRequest":
                pass
            case _ if method.startswith("workspace/") and method.endswith("/refresh"):
                pass
            case _:
                raise UnknownMethod(method)
        return None

    def _configured(self, item: Mapping[str, Any]) -> Any:
        """The configured value of a section such as ``python.analysis``; everything for no section."""
        value: Any = self.definition.settings
        for part in filter(None, str(item.get("section") or "").split(".")):
            value = as_object(value).get(part)
        return value

    def offers(self, method: str, capability: str) -> bool:
        """Whether the server has a feature, from the start or registered later."""
        return bool(self.capabilities.get(capability)) or method in self._registered.values()

    # --- open files -------------------------------------------------------------------------------------------

    def show(self, path: Path, text: str) -> Document:
        """Set the server's text of a file.

        Raises:
            ServerEnded: it has ended.
        """
        document = self.documents.get(path) or Document(path, self.definition.language(str(path)) or "")
        self.documents.pop(path, None)
        self.documents[path] = document  # the newest last
        if document.text == text:
            return document
        document.version += 1
        document.fresh, document.heard = False, False
        document.shown_at = asyncio.get_running_loop().time()
        if document.text is None or self._sync_kind == 0:
            self._close(document)
            opened = {"uri": document.uri, "languageId": document.language, "version": document.version, "text": text}
            self.peer.notify("textDocument/didOpen", {"textDocument": opened})
        else:
            identity = {"uri": document.uri, "version": document.version}
            self.peer.notify("textDocument/didChange", {"textDocument": identity, "contentChanges": [{"text": text}]})
        document.text = text
        for old in list(self.documents.values())[:-MOST_OPEN]:
            self.hide(old.path)
        return document

    def hide(self, path: Path) -> None:
        """Let the server use the file on disk."""
        document = self.documents.pop(path, None)
        if document is not None:
            self._close(document)

    def _close(self, document: Document) -> None:
        if document.text is not None:
            self.peer.notify("textDocument/didClose", {"textDocument": {"uri": document.uri}})
            document.text, document.published = None, None

    @property
    def _sync_kind(self) -> int:
        kind = self.capabilities.get("textDocumentSync")
        change = whole(kind.get("change") if is_object(kind) else kind)
        return 1 if change is None else change

    def saved(self, document: Document) -> None:
        wants = as_object(self.capabilities.get("textDocumentSync")).get("save")
        if wants or "textDocument/didSave" in self._registered.values():
            text = {"text": document.text} if as_object(wants).get("includeText") else {}
            self.peer.notify("textDocument/didSave", {"textDocument": {"uri": document.uri}, **text})

    def changed_on_disk(self, changes: Sequence[tuple[str, int]]) -> None:
        """Notify the server of files created (1), changed (2) or deleted (3)."""
        if changes:
            events = [{"uri": uri_of(path), "type": kind} for path, kind in changes]
            self.peer.notify("workspace/didChangeWatchedFiles", {"changes": events})

    # --- what it finds ----------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Wait until the server has read the project, if it reports that; earlier diagnostics are incomplete."""
        loop = asyncio.get_running_loop()
        if self._settled:
            return
        end = self._began + READY_SECONDS
        while (now := loop.time()) < end and not self.peer.ended.is_set():
            begins = self._began + BEGINS
            if not self._working and self._quiescent is not False and now >= begins:
                break
            self._moved.clear()
            limit = end if self._working or self._quiescent is False else begins
            try:
                await asyncio.wait_for(self._moved.wait(), min(limit - now, 1.0))
            except TimeoutError:
                continue
        self._settled = True

    async def errors(self, documents: Sequence[Document]) -> list[tuple[Diagnostic, ...]]:
        """The errors in open files with their current texts.

        Raises:
            ServerEnded: it has ended.
        """
        each = self._handed_on if self._hands_on else self._pulled if self._is_pulled else self._awaited
        return await asyncio.gather(*(each(document) for document in documents))

    @property
    def is_exact(self) -> bool:
        """Whether its lists say which text they describe."""
        return self._hands_on or self._is_pulled or self._versions

    @property
    def _is_pulled(self) -> bool:
        return self.offers("textDocument/diagnostic", "diagnosticProvider")

    async def _pulled(self, document: Document) -> tuple[Diagnostic, ...]:
        identifier = as_object(self.capabilities.get("diagnosticProvider")).get("identifier")
        params = {"textDocument": {"uri": document.uri}} | ({"identifier": identifier} if identifier else {})
        for _ in range(_RETRIES):
            try:
                answer = await self.peer.request("textDocument/diagnostic", params, ANSWER_SECONDS)
            except Refused as error:
                if error.code not in _RETRIED:
                    self._log.line(f"textDocument/diagnostic failed: {error}")
                    break
                await asyncio.sleep(_PAUSE)
                continue
            except TimeoutError:
                break
            report = read_report(answer)
            own = await _read(report.items) if report is not None else ()
            # What comes from a slower check, a compiler for example, is only ever sent.
            more = await _read(document.published) if document.published is not None and document.fresh else ()
            return tuple(dict.fromkeys((*own, *more)))
        return ()

    async def _handed_on(self, document: Document) -> tuple[Diagnostic, ...]:
        """tsserver's answer; it reads the project first."""
        diagnostics: list[Diagnostic] = []
        for command in ERROR_REQUESTS:
            for _ in range(_RETRIES):
                try:
                    request = error_request(command, document.uri)
                    answer = await self.peer.request("workspace/executeCommand", request, READY_SECONDS)
                except Refused as error:
                    self._log.line(f"{command} failed: {error}")
                    break
                except TimeoutError:
                    await self.peer.close(f"it did not answer within {READY_SECONDS:.0f} s")
                    raise ServerEnded(self.peer.trouble) from None
                errors = errors_of(read_json(answer))
                if errors is not None:
                    diagnostics += errors
                    break
                await asyncio.sleep(_PAUSE)
        return tuple(dict.fromkeys(diagnostics))

    async def _awaited(self, document: Document) -> tuple[Diagnostic, ...]:
        patience = FIRST_SECONDS
        if not document.fresh and not self._versions:
            await self._has_read(document)
            document.shown_at = asyncio.get_running_loop().time()
            least = SILENCE if self._silences else FIRST_SILENCE
            patience = min(max(least, 2 * self._slowest), FIRST_SECONDS)
            self._silences += 1
        start = asyncio.get_running_loop().time()
        end = start + patience
        while not self.peer.ended.is_set():
            now = asyncio.get_running_loop().time()
            if self._working:  # silence means nothing as long as it reports that it works
                end = min(now + patience, start + READY_SECONDS)
            limit = end if not document.fresh else document.at if document.exact else document.at + QUIET
            if now >= limit:
                break
            document.news.clear()
            try:
                await asyncio.wait_for(self._news(document), limit - now)
            except TimeoutError:
                continue
        if self.peer.ended.is_set():
            raise ServerEnded(self.peer.trouble)
        self.leaves_unanswered = self.leaves_unanswered or not document.fresh
        document.fresh = True
        return await _read(document.published) if document.published is not None else ()

    async def _has_read(self, document: Document) -> None:
        """Return once the server has answered a question about a file, and therefore read it."""
        if not self.offers("textDocument/documentSymbol", "documentSymbolProvider"):
            return
        try:
            params = {"textDocument": {"uri": document.uri}}
            await self.peer.request("textDocument/documentSymbol", params, ANSWER_SECONDS)
        except (Refused, TimeoutError) as error:
            self._log.line(f"textDocument/documentSymbol: {error or 'no answer'}")

    async def _news(self, document: Document) -> None:
        """Return at the next list for a file, or when the server ends."""
        waits = [asyncio.ensure_future(event.wait()) for event in (document.news, self.peer.ended)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in waits:
                waiter.cancel()


async def _read(raw: msgspec.Raw) -> tuple[Diagnostic, ...]:
    """Read a long list in a thread."""
    return read_errors(raw) if len(raw) < 200_000 else await asyncio.to_thread(read_errors, raw)


def python_of(root: Path) -> str | None:
    """The interpreter of a project's virtual environment; None if not in a usual place."""
    for name in (".venv", "venv"):
        path = root / name / "bin" / "python"
        if os.access(path, os.X_OK):
            return str(path)
    return None


_CAPABILITIES: Final[Mapping[str, Any]] = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True, "showMessage": {}, "showDocument": {"support": False}},
    "workspace": {
        "applyEdit": False,
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "symbol": {"dynamicRegistration": True},
        "workspaceFolders": True,
    },
    "textDocument": {
        "synchronization": {"dynamicRegistration": True, "didSave": True},
        "publishDiagnostics": {"versionSupport": True, "relatedInformation": False},
        "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": False},
        "definition": {"linkSupport": True},
        "references": {},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
    },
    "experimental": {"serverStatusNotification": True},
}
"""swecli's client capabilities."""
