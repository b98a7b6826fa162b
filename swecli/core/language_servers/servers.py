"""The language servers of a session: choosing one for a file, errors caused by edits, and where names are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from swecli.core.engine.services import ExtensionHost
from swecli.core.language_servers.definitions import (
    CodeError,
    CodePlace,
    CodeQuestion,
    Program,
    Surroundings,
    root_of,
    some_files,
    suited,
)
from swecli.core.protocol.events import MAIN
from swecli.core.workspace.server_log import ServerLog
from swecli.core.workspace.text_file import decode, read_bytes

if TYPE_CHECKING:
    from swecli.core.language_servers.findings import Finding
    from swecli.core.language_servers.project_server import Change, Check, ProjectServer

LARGEST: Final = 1_000_000
"""Largest file, in bytes, shown to servers."""
CATCH_UP: Final = 10.0
"""Seconds that a request waits at most for servers that say that they work on the last edits."""
PAUSES: Final = 0.6
"""Seconds between two steps of a server's work in which it says nothing."""
STEP: Final = 0.1
"""Seconds between two looks at what servers say."""
MOST_FILES: Final = 20
"""Maximum number of files checked per call."""


class LanguageServerOptions(Struct, frozen=True):
    """``wait``: seconds that an edit waits; ``most``: errors shown per edit; ``idle``: seconds after which an unused
    server is stopped."""

    wait: float = 2.0
    most: int = 10
    idle: float = 600.0


class LanguageServers:
    """An extension of one session. A server starts only once one of its files is about to change or is asked about."""

    def __init__(
        self,
        programs: Sequence[Program],
        surroundings: Surroundings,
        options: LanguageServerOptions,
        notices: Sequence[str],
    ) -> None:
        self.programs = tuple(programs)
        self._surroundings = surroundings
        self._options = options
        self._notices = tuple(notices)
        self.in_use: dict[tuple[str, Path], ProjectServer] = {}
        self._before: dict[Path, str | None] = {}
        self._late: dict[str, list[str]] = {}
        """Reports for the next call of each subagent."""
        self._host: ExtensionHost | None = None
        self._closed = False
        self.left_out: dict[str, str] = {}
        """Files withheld from servers, with the reason."""

    # --- the extension ----------------------------------------------------------------------------------------

    def start(self, host: ExtensionHost) -> None:
        self._host = host
        for notice in self._notices:
            host.notice(notice, "warning")

    async def close(self) -> None:
        self._closed = True
        await asyncio.gather(*(server.stop() for server in self.in_use.values()))

    # --- what an edit brings ----------------------------------------------------------------------------------

    async def expect(self, paths: Sequence[str]) -> None:
        """Announce changes of these files. Returns when their texts were read; servers continue in the background."""
        for path, server in self._served(paths):
            text = await asyncio.to_thread(self._text, path)
            self._before[path] = text
            if text is not None:
                server.expect(path, text)

    async def brought(self, paths: Sequence[str], agent: str) -> str:
        """The errors that changing these files caused, for the model; empty if there are none, or if servers are not
        done in time. Late errors are reported later."""
        late = self._late.pop(agent, [])
        served = self._served(paths)
        if not served:
            return "\n".join(late)
        from swecli.core.language_servers.findings import findings_text
        from swecli.core.language_servers.project_server import Change

        loop = asyncio.get_running_loop()
        end, texts = loop.time() + self._options.wait, list[str]()
        changes: list[tuple[ProjectServer, Change]] = []
        for path, server in served:
            before, after = self._before.pop(path, None), await asyncio.to_thread(self._text, path)
            if str(path) not in self.left_out and before != after:
                changes.append((server, Change(path, self._name(path), before, after)))
        while changes:
            checks = self._checks(changes, agent)
            if checks:
                await asyncio.wait([check.found for _, check in checks], timeout=max(0.0, end - loop.time()))
            changes = []
            for server, check in checks:
                if not check.found.done():
                    server.give_up(check)
                elif server.is_useless:  # another one may be there for the same files
                    changes += [(other, change) for change, other in self._elsewhere(check.changes, server)]
                else:
                    texts.append(findings_text(check.found.result(), self._options.most, server.name))
        return "\n".join(filter(None, (*late, *texts)))

    def at_work(self, agent: str) -> Sequence[str]:
        return sorted({server.name for server in self.in_use.values() if server.is_at_work(agent)})

    async def caught_up(self, agent: str) -> None:
        loop = asyncio.get_running_loop()
        end, quiet = loop.time() + CATCH_UP, 0.0
        while quiet < PAUSES and loop.time() < end:
            left = [check.found for server in self.in_use.values() for check in server.late_checks(agent)]
            if not left:
                break
            await asyncio.wait(left, timeout=STEP, return_when=asyncio.FIRST_COMPLETED)
            quiet = 0.0 if self.at_work(agent) else quiet + STEP
        for server in self.in_use.values():
            server.wait_no_more(agent)

    def late(self, agent: str) -> Sequence[str]:
        return self._late.pop(agent, [])

    def _checks(self, changes: Sequence[tuple[ProjectServer, Change]], agent: str) -> list[tuple[ProjectServer, Check]]:
        """Start checks of these changes. Returns those worth waiting for, of servers that keep up."""
        grouped: dict[ProjectServer, list[Change]] = {}
        for server, change in changes:
            grouped.setdefault(server, []).append(change)
        checks: list[tuple[ProjectServer, Check]] = []
        for server, some in grouped.items():
            patient = not server.behind
            check = server.check(some, agent)
            if patient:
                checks.append((server, check))
            else:
                server.give_up(check)
        return checks

    def _elsewhere(self, changes: Sequence[Change], failed: ProjectServer) -> list[tuple[Change, ProjectServer]]:
        others = [(change, self.server_for(change.path)) for change in changes]
        return [(change, other) for change, other in others if other is not None and other is not failed]

    def _told_late(self, server: ProjectServer, findings: Sequence[Finding], agent: str) -> None:
        from swecli.core.language_servers.findings import findings_text

        text = findings_text(findings, self._options.most, server.name, late=True)
        if agent == MAIN and self._host is not None:
            head, first = text.partition("\n")[0], findings[0]
            more = f" and {len(findings) - 1:,} more" if len(findings) > 1 else ""
            self._host.tell_model(f"{head} {first.path}:{first.line}{more}", text)
        else:
            self._late.setdefault(agent, []).append(text)

    def _failed(self, server: ProjectServer) -> None:
        """Report a failure; if other servers handle the same files, only once none of them can be started."""
        shown: ProjectServer | None = server
        if server.is_useless:
            languages = set(server.program.server.languages)
            rivals = [program.server for program in self.programs if languages & set(program.server.languages)]
            useless = {running.name: running for running in self.in_use.values() if running.is_useless}
            if any(rival.name not in useless for rival in rivals):
                return
            shown = next((useless[rival.name] for rival in rivals if not rival.quiet), None)
        if self._host is not None and not self._closed and shown is not None:
            what = "is not available" if shown.lacks else "failed"
            reason = f"The language server {shown.name} {what}: {shown.error.rstrip('.')}."
            self._host.notice(f"{reason} Edits continue without its errors.", "warning", "See /lsp.")

    # --- servers ----------------------------------------------------------------------------------------------

    def _served(self, paths: Sequence[str]) -> list[tuple[Path, ProjectServer]]:
        pairs = [(Path(path), self.server_for(Path(path))) for path in list(dict.fromkeys(paths))[:MOST_FILES]]
        return [(path, server) for path, server in pairs if server is not None]

    def server_for(self, path: Path) -> ProjectServer | None:
        """The first startable server for a file; None if there is none."""
        first: ProjectServer | None = None
        for program in () if self._closed else suited(self.programs, str(path)):
            server = self._server_of(program, path)
            if server is None:
                continue
            server.prepare(path)
            if not server.is_useless:
                return server
            first = first or server
        return first

    def _server_of(self, program: Program, path: Path) -> ProjectServer | None:
        name, root = program.server.name, root_of(program.server, path, self._surroundings.roots)
        if root is None:
            return None
        server = self.in_use.get((name, root))
        if server is None:
            from swecli.core.language_servers.project_server import ProjectServer

            logs = self._surroundings.logs
            log = ServerLog(logs / f"lsp-{name}.log" if logs is not None else None, self._surroundings.mask)
            server = ProjectServer(
                program, root, log, self._surroundings, self._told_late, self._failed, self._options.idle
            )
            self.in_use[name, root] = server
        return server

    def _text(self, path: Path) -> str | None:
        """A file's text as servers see it; None if it does not exist or is withheld."""
        try:
            data, _ = read_bytes(path, LARGEST)
        except FileNotFoundError:
            self.left_out.pop(str(path), None)
            return None
        except OSError as error:
            self.left_out[str(path)] = f"{error.strerror or error}"
            return None
        file = decode(data)
        if file.looks_binary:
            self.left_out[str(path)] = "it is not text"
            return None
        self.left_out.pop(str(path), None)
        return file.text

    def _name(self, path: Path) -> str:
        cwd = self._surroundings.cwd
        return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)

    # --- what the model asks ----------------------------------------------------------------------------------

    async def ask(self, what: CodeQuestion, path: Path, line: int = 1, column: int = 0) -> Sequence[CodePlace]:
        from swecli.core.language_servers.questions import ask

        server = self._server(path)
        text = await asyncio.to_thread(self._text, path)
        if text is None:
            raise CodeError(self.left_out.get(str(path), "the file does not exist"))
        return await ask(server, what, path, text, line, column)

    async def search(self, query: str, path: Path | None) -> Sequence[CodePlace]:
        from swecli.core.language_servers.questions import search

        in_use = [server for server in self.in_use.values() if server.pid is not None]
        if path is not None or not in_use:
            in_use = [self._server(path or await asyncio.to_thread(self._first_file))]
        return [symbol for server in in_use for symbol in await search(server, query)]

    def _server(self, path: Path) -> ProjectServer:
        server = self.server_for(path)
        if server is None:
            endings = sorted({ending for program in self.programs for ending in program.server.languages})
            raise CodeError(f"no language server handles this file; servers handle {', '.join(endings)}")
        return server

    def _first_file(self) -> Path:
        """A file of the workspace that some server handles."""
        for root in self._surroundings.roots:
            for path in some_files(root):
                if suited(self.programs, path):
                    return Path(path)
        raise CodeError("the workspace has no file for a language server")
