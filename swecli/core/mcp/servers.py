"""The servers of a session: approved, started in parallel, their tools added to the registry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.atomic_text import DamagedFile, one_writer, read_json, write_json
from swecli.core.engine.services import ExtensionHost, Mentionable
from swecli.core.mcp.connection import Connection, Offered, Place, State
from swecli.core.mcp.definitions import ServerDefinition, bound
from swecli.core.mcp.oauth import WAIT, Login
from swecli.core.mcp.tools import READ_RESOURCE, McpTool, ResourceTool, described, fingerprint, prompt_of, tool_name
from swecli.core.ports import Asker
from swecli.core.protocol.request_events import Option, Question
from swecli.core.tools.dynamic import DynamicTool
from swecli.core.workspace.server_log import ServerLog

if TYPE_CHECKING:
    import httpx2
    import mcp_types

Verdict = Literal["approved", "rejected"]
Standing = Literal["on", "off", "rejected", "needs approval"]
"""Whether a session starts a server, or else why not."""

STORE: Final = "mcp.json"
"""In a workspace's data directory: the user's decisions about its servers, and their tools."""
APPROVE, ONCE, REJECT, LATER = "Start it", "Only this time", "Never start it", "Not now"
TAKE, LEAVE = "Use them", "Leave them out"
MOST_SHOWN = 6
MOST_GONE = 5_000
"""Tools that a server no longer has whose fingerprints are kept."""
_UNDER_WAY: Final = ("waiting", "starting", "restarting", "ready")
"""States of a server that needs no start: it runs, or will once the user agrees."""
INSTRUCTIONS = 2_048
"""Bytes of a server's own instructions."""
OWN_WORDS: Final = "(its instructions)"
"""Stands for these among the tools; no tool has such a name."""


class Decisions:
    """The user's decisions in a workspace, by server: the approved or rejected definition (its fingerprint), whether it
    is switched off, and the fingerprints of its accepted tools."""

    def __init__(self, path: Path | None) -> None:
        """Without a path, decisions last for the session only."""
        self._path = path
        self._held: dict[str, dict[str, object]] = {}

    def of(self, server: str) -> Mapping[str, object]:
        return self._all().get(server, {})

    def verdict(self, definition: ServerDefinition) -> Verdict | None:
        known = self.of(definition.name)
        if known.get("definition") != definition.fingerprint:
            return None
        match known.get("verdict"):
            case "approved":
                return "approved"
            case "rejected":
                return "rejected"
            case _:
                return None

    def state(self, definition: ServerDefinition) -> Standing:
        if not definition.enabled or self.of(definition.name).get("off"):
            return "off"
        verdict = self.verdict(definition) if definition.asks else "approved"
        return "on" if verdict == "approved" else verdict or "needs approval"

    def tools(self, server: str) -> Mapping[str, str] | None:
        """Fingerprints by name; None before the first start."""
        tools = self.of(server).get("tools")
        return {str(name): str(value) for name, value in tools.items()} if isinstance(tools, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

    def change(self, server: str, **values: object) -> str:
        """Store these values; None removes one. Returns a sentence on failure."""
        if self._path is None:
            self._held[server] = _without_none({**self._held.get(server, {}), **values})
            return ""
        try:
            with one_writer(self._path):
                everything = self._all()
                everything[server] = _without_none({**everything.get(server, {}), **values})
                write_json(self._path, {"version": 1, "servers": everything})
        except OSError as error:
            return f"Could not store your decision about {server} ({error.strerror or error})."
        return ""

    def trouble(self) -> str:
        """Why the stored decisions do not count, as a sentence; empty if they do. A damaged file is kept under another
        name, so only the first reading of it tells."""
        if self._path is None:
            return ""
        try:
            read_json(self._path, "servers", dict)
        except DamagedFile as error:
            return f"{error}, so swecli asks about MCP servers again."
        except OSError as error:
            return f"Cannot read {self._path} ({error.strerror or error}), so swecli asks about MCP servers again."
        return ""

    def _all(self) -> dict[str, dict[str, object]]:
        if self._path is None:
            return dict(self._held)
        try:
            entries: dict[str, dict[str, object]] = read_json(self._path, "servers", dict)
        except (DamagedFile, OSError):
            return {}
        return {name: value for name, value in entries.items() if isinstance(value, dict)}  # pyright: ignore[reportUnnecessaryIsInstance]


def _without_none(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


class Setup(Struct, frozen=True):
    """Parameters for the servers of a session. ``approve_all``: the project's definitions need no approval in this run.
    ``logs`` is a folder, None if nothing is stored."""

    definitions: tuple[ServerDefinition, ...]
    place: Place
    decisions: Decisions
    notices: tuple[str, ...] = ()
    logs: Path | None = None
    mask: Callable[[str], str] = str
    login: Login | None = None
    """None disables logins."""
    approve_all: bool = False
    later: frozenset[str] = frozenset()
    """Servers that the user was asked about in this run and left undecided."""


class McpServers:
    """An extension of one session."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.connections: dict[str, Connection] = {}
        self.left_out: dict[str, tuple[str, ...]] = {}
        """Unused tools by server: they changed and the user has not accepted the change."""
        self._doubted: set[str] = set()
        """Servers with a question about their tools."""
        self._answers: dict[str, dict[tuple[str, str], str]] = {}
        """The user's answers of this run about changed tools: by server, then by tool and fingerprint."""
        self._host: ExtensionHost | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking = asyncio.Lock()
        """One question at a time."""
        self._interactive: set[str] = set()
        """Servers that may open a login page."""
        for definition in setup.definitions:
            self.connections[definition.name] = self._connection(definition)

    def _connection(self, definition: ServerDefinition) -> Connection:
        logs = self._setup.logs
        log = ServerLog(logs / f"mcp-{definition.name}.log" if logs is not None else None, self._setup.mask)
        return Connection(definition, self, self._setup.place, log)

    @property
    def host(self) -> ExtensionHost:
        assert self._host is not None  # nothing happens before the start
        return self._host

    @property
    def asker(self) -> Asker:
        return self.host.asker

    # --- the extension ----------------------------------------------------------------------------------------

    def start(self, host: ExtensionHost) -> None:
        self._host = host
        for notice in self._setup.notices:
            host.notice(notice, "warning")
        for connection in self.connections.values():
            self._begin(connection)

    def _begin(self, connection: Connection, *, again: bool = False) -> None:
        """Start a server, if it may run."""
        if again:
            self._answers.pop(connection.name, None)
            connection.definition = bound(connection.definition, self._setup.place.cwd)
        definition = connection.definition
        if not definition.enabled or (self._setup.decisions.of(definition.name).get("off") and not again):
            connection.hold("off")
            return
        self.host.tools.expect(connection.name, connection.wrote)
        self._task(self._approved_start(connection, again=again))

    async def _approved_start(self, connection: Connection, *, again: bool) -> None:
        if await self._may_start(connection, again=again):
            connection.start()
        else:
            self.host.tools.drop(connection.name)

    def _task(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(connection.close() for connection in self.connections.values()))

    # --- approval ---------------------------------------------------------------------------------------------

    async def _may_start(self, connection: Connection, *, again: bool) -> bool:
        definition, decisions = connection.definition, self._setup.decisions
        if not definition.asks or self._setup.approve_all:
            return True
        verdict = decisions.verdict(definition)
        if verdict == "approved":
            return True
        if definition.name in self._setup.later and not again:
            connection.hold("rejected", f"not approved; /mcp enable {connection.name} asks again")
            return False
        if verdict == "rejected" and not again:
            connection.hold("rejected", f"/mcp enable {connection.name} asks again")
            return False
        connection.hold("waiting", "it needs your approval")
        async with self._asking:
            if connection.state != "waiting":  # decided by the answer to an earlier question
                return connection.state in _UNDER_WAY
            answers = await self.asker.ask("", (self._question(definition),))
        choice = answers[0][0] if answers and answers[0] else ""
        if choice == APPROVE:
            self._keep(definition.name, definition=definition.fingerprint, verdict="approved", off=None)
        if choice in (APPROVE, ONCE):
            return True
        if choice == REJECT:
            self._keep(definition.name, definition=definition.fingerprint, verdict="rejected")
            connection.hold("rejected", f"/mcp enable {definition.name} asks again")
        elif answers is None:
            connection.hold("rejected", "no user can approve it here")
            self.host.notice(
                f"MCP server {definition.name} from {definition.origin} was not started: it needs your approval.",
                "warning",
                f"Approve it with: swecli mcp approve {definition.name}",
            )
        else:
            connection.hold("rejected", f"not approved; /mcp enable {definition.name} asks again")
        return False

    def _question(self, definition: ServerDefinition) -> Question:
        what = "Start" if definition.transport == "stdio" else "Connect to"
        changed = self._setup.decisions.of(definition.name).get("definition") not in (None, definition.fingerprint)
        program = " or program" if definition.programs else ""
        lines = [
            f"{what} the MCP server {definition.name}?{f' Its definition{program} has changed.' if changed else ''}",
            described(definition.line, 4_000),
            f"from {definition.origin}",
        ]
        lines += (described(clause, 4_000) for clause in definition.given)
        if definition.transport == "stdio":
            lines.append("It is not sandboxed and runs with your permissions.")
        options = (
            Option(LATER),
            Option(APPROVE, f"and ask again only if its definition{program} changes"),
            Option(ONCE),
            Option(REJECT),
        )
        return Question("\n".join(lines), options, header=definition.name, closed=True)

    def _keep(self, server: str, **values: object) -> None:
        trouble = self._setup.decisions.change(server, **values)
        if trouble:
            self.host.notice(trouble, "warning")

    # --- what connections tell --------------------------------------------------------------------------------

    async def arrived(self, connection: Connection, offered: Offered) -> None:
        """Accept all tools at first, later new and unchanged ones. A changed description or schema asks the user,
        because it instructs the model."""
        now = _fingerprints(offered)
        known = self._setup.decisions.tools(connection.name) or {}
        missing = [name for name in known if name not in now]  # a tool that returns must be the same
        answers = self._answers.setdefault(connection.name, {})
        self._offer(connection, offered)
        differing = [(name, value) for name, value in now.items() if known.get(name, value) != value]
        changed = tuple(name for name, value in differing if answers.get((name, value)) != TAKE)
        self.left_out[connection.name] = changed
        usable = OWN_WORDS in now and OWN_WORDS not in changed
        self.host.instruct(connection.name, described(offered.instructions, INSTRUCTIONS) if usable else "")
        self._settle(connection, [tool for tool in offered.tools if tool.name not in changed])
        fingerprints = (
            {name: known[name] for name in missing[-MOST_GONE:]} | now | {name: known[name] for name in changed}
        )
        if fingerprints != dict(known):
            self._keep(connection.name, tools=fingerprints)
        if connection.name not in self._doubted and self._unanswered(connection):
            self._doubted.add(connection.name)
            self._task(self._ask_about(connection))

    def _unanswered(self, connection: Connection) -> dict[str, str]:
        """Fingerprints of the changed tools as the server offers them now, without those that the user has judged."""
        left_out, answers = self.left_out.get(connection.name, ()), self._answers.get(connection.name, {})
        offered = {name: value for name, value in _fingerprints(connection.offered).items() if name in left_out}
        return {name: value for name, value in offered.items() if (name, value) not in answers}

    def _settle(self, connection: Connection, tools: Sequence[mcp_types.Tool]) -> None:
        made: dict[str, DynamicTool] = {}
        if connection.offered.resources:
            reader = ResourceTool(connection)
            made[reader.name] = reader
        for tool in tools:
            mcp_tool = McpTool(connection, tool, made)
            made[mcp_tool.name] = mcp_tool
        clashes = self.host.tools.settle(connection.name, made.values())
        if clashes:
            names = ", ".join(clashes[:MOST_SHOWN])
            text = f"MCP server {connection.name}: left out {names} because other tools have these names."
            self.host.notice(text, "warning")

    def _offer(self, connection: Connection, offered: Offered) -> None:
        """Offer prompts as commands and resources as mentions."""
        prompts = [prompt_of(connection, prompt) for prompt in offered.prompts]
        reader = tool_name(connection.name, READ_RESOURCE)
        words = [
            Mentionable(
                f"{connection.name}:{resource.uri}",
                reader,
                {"uri": str(resource.uri)},
                resource.title or resource.name,
                resource.size,
            )
            for resource in offered.resources
        ]
        self.host.offer(connection.name, prompts, words)

    async def _ask_about(self, connection: Connection) -> None:
        """Ask once about all tools that have changed by the time of the question, and judge anew what is offered by the
        time of the answer."""
        try:
            async with self._asking:
                asked = self._unanswered(connection)
                if not asked:
                    return
                names = ", ".join(described(name, 64) for name in list(asked)[:MOST_SHOWN])
                names += f" and {len(asked) - MOST_SHOWN} more" if len(asked) > MOST_SHOWN else ""
                question = Question(
                    f"The MCP server {connection.name} has changed the descriptions of its tools: "
                    f"{names}.\nDescriptions tell the model what to do. Use them?",
                    (Option(LEAVE), Option(TAKE, "in their current version")),
                    header=connection.name,
                    closed=True,
                )
                answers = await self.asker.ask("", (question,))
        finally:
            self._doubted.discard(connection.name)
        answer = TAKE if answers and answers[0] == (TAKE,) else LEAVE
        self._answers.setdefault(connection.name, {}).update(dict.fromkeys(asked.items(), answer))
        if answers is None:
            self.host.notice(
                f"MCP server {connection.name}: left out {names} because their descriptions changed.",
                "warning",
                f"Approve them with: swecli mcp approve {connection.name}",
            )
        if connection.state == "ready":
            await self.arrived(connection, connection.offered)
        elif answer == TAKE:
            known = self._setup.decisions.tools(connection.name) or {}
            self._keep(connection.name, tools={**known, **asked})

    def stale(self, connection: Connection) -> None:
        """The server announced a change of its declarations; they are listed again at once, and the next request waits
        for them."""
        self.host.tools.expect(connection.name, connection.wrote)

    def unlisted(self, connection: Connection) -> None:
        """Listing failed: the declarations stay as they were."""
        self.host.tools.keep(connection.name)

    def changed(self, connection: Connection) -> None:
        """The connection's state changed."""
        if self._host is None:
            return
        state: State = connection.state
        if state not in _UNDER_WAY:
            self.host.instruct(connection.name, "")
        if state != "starting":
            self._interactive.discard(connection.name)
            if self._setup.login is not None:
                self._setup.login.done(connection.name)
        if state in ("failed", "needs login"):
            self.host.tools.drop(connection.name)
            self.host.offer(connection.name)
            way = "Log in with: /mcp login" if state == "needs login" else "Try again with: /mcp reconnect"
            text = f"MCP server {connection.name} {_words(state)}: {connection.reason}"
            self.host.notice(text, "warning", f"{way} {connection.name}")

    async def authorisation(self, connection: Connection) -> httpx2.Auth | None:
        """Authorisation for the server's address."""
        if self._setup.login is None:
            return None

        def tell(url: str) -> None:
            self.host.notice(f"Log in to {connection.name} in your browser: {url}")

        interactive = connection.name in self._interactive
        return await self._setup.login.authorisation(connection.definition, interactive, tell)

    def start_limit(self, connection: Connection) -> float:
        """Seconds that the server may take to become ready; longer if the user must log in."""
        return WAIT if connection.name in self._interactive else connection.definition.start_timeout

    # --- what the user asks for -------------------------------------------------------------------------------

    async def enable(self, name: str, on: bool) -> None:
        """Switch a server on or off, for later sessions too."""
        connection = self.connections[name]
        self._keep(name, off=None if on else True)
        if on:
            connection.definition = replace(connection.definition, enabled=True)
            if connection.state not in _UNDER_WAY:
                self._begin(connection, again=True)
        else:
            await connection.close("off")
            self.host.tools.drop(name)
            self.host.offer(name)

    async def reconnect(self, name: str, *, login: bool = False) -> None:
        """Restart a server; ``login`` lets it open a login page."""
        connection = self.connections[name]
        if login:
            self._interactive.add(name)
        await connection.close("starting")
        self._begin(connection, again=True)

    async def settled(self, name: str) -> None:
        """Return when a server is neither starting nor waiting."""
        connection = self.connections[name]
        while connection.state in ("starting", "restarting", "waiting"):
            await connection.moved()


def _fingerprints(offered: Offered) -> dict[str, str]:
    """What instructs the model: the tools by name, and the server's own instructions."""
    prints = {tool.name: fingerprint(tool) for tool in offered.tools}
    if offered.instructions.strip():
        prints[OWN_WORDS] = sha256(offered.instructions.encode("utf-8", "surrogatepass")).hexdigest()
    return prints


def _words(state: State) -> str:
    return {"failed": "did not start", "needs login": "needs login"}.get(state, state)
