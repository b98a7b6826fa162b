"""Serves the page of one session on this machine: who may see it, and the program behind it.

The page's address has a token that works once and becomes a cookie for this page alone. Without either there is
nothing. The program outlives the page: a page that is loaded again finds it as it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import secrets
import shlex
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import textual_serve  # pyright: ignore[reportMissingImports] - of the extra web, as below
from aiohttp import WSMsgType, web  # pyright: ignore[reportMissingImports]
from textual_serve.app_service import AppService  # pyright: ignore[reportMissingImports]
from textual_serve.download_manager import DownloadManager  # pyright: ignore[reportMissingImports]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
COOKIE = "swecli"
BACKLOG = 1_000_000
"""Bytes that wait for a slow page; what comes then is left out, and the page is drawn anew."""
MOST_PAGES = 50
"""Pages whose state can be asked for."""
LARGEST_MESSAGE = 16_000_000
"""Bytes of a message of the page, such as a paste."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STATIC = Path(str(textual_serve.__file__)).parent / "static"
_FILES: Mapping[str, tuple[Path | None, str]] = {
    "textual.js": (_STATIC / "js" / "textual.js", "text/javascript"),
    "xterm.css": (_STATIC / "css" / "xterm.css", "text/css"),
    "mono.ttf": (_STATIC / "fonts" / "RobotoMono-VariableFont_wght.ttf", "font/ttf"),
    "page.js": (None, "text/javascript"),
    "page.css": (None, "text/css"),
}
_NOT_HERE = "This page belongs to another. Open the address that swecli printed; it works once.\n"


class Program(AppService):
    """The program behind the page. Its output is read whether or not a page takes it."""

    def __init__(self, command: Sequence[str], ended: Callable[[], None]) -> None:
        super().__init__(
            shlex.join(command),
            write_bytes=self._queue,
            write_str=self._tell,
            close=self._ended,
            download_manager=DownloadManager(),
        )
        self._command = command
        self._when_ended = ended
        self.page: web.WebSocketResponse | None = None
        self._out: asyncio.Queue[bytes] = asyncio.Queue()
        self._waiting = 0
        self._behind = False
        """Output was left out since the page was last drawn."""
        self._size = (80, 24)
        self.resume = ""
        """How to continue the session, once the program has ended."""
        self._errors: asyncio.Task[None] | None = None

    @property
    def begun(self) -> bool:
        return self._process is not None

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._build_environment(width, height),
            limit=4 << 20,
        )
        self._stdin = process.stdin
        return process

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        about_terminal = ("TERM", "TMUX", "STY", "COLORFGBG", "KITTY", "WEZTERM", "ITERM", "VTE", "WT_", "LC_TERMINAL")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(about_terminal)}
        size = {"COLUMNS": str(width), "ROWS": str(height)}
        return {**environment, **size, "TERM": "xterm-256color", "COLORTERM": "truecolor", "COLORFGBG": "15;0"}

    async def attach(self, page: web.WebSocketResponse, width: int, height: int) -> None:
        """Show the program on this page, which replaces an earlier one, and begin it if this is the first."""
        before, self.page = self.page, page
        if before is not None:
            await before.close(code=4001, message=b"elsewhere")
        self._forget()
        self._size = width, height
        if not self.begun:
            await self.start(width, height)
        else:
            await self._draw_anew()

    def detach(self, page: web.WebSocketResponse) -> None:
        if self.page is page:
            self.page = None
            self._forget()

    def _forget(self) -> None:
        self._out, self._waiting, self._behind = asyncio.Queue(), 0, False

    async def resize(self, width: int, height: int) -> None:
        self._size = width, height
        await self.set_terminal_size(width, height)

    async def _draw_anew(self) -> None:
        await self.send_meta({"type": "attach", "width": self._size[0], "height": self._size[1]})

    async def _queue(self, data: bytes) -> None:
        """Take output for the page; a page that is too slow gets a whole frame later."""
        if self.page is None or self._behind:
            return
        if self._waiting > BACKLOG:
            self._behind = True
            return
        self._waiting += len(data)
        self._out.put_nowait(data)

    async def pump(self, page: web.WebSocketResponse) -> None:
        """Send output to the page until it is replaced or closed."""
        while self.page is page:
            queue = self._out
            data = await queue.get()
            if queue is not self._out or self.page is not page:
                return
            await page.send_bytes(data)
            self._waiting -= len(data)
            if self._behind and self._out.empty():
                self._forget()
                await self._draw_anew()

    async def _tell(self, text: str) -> None:
        if self.page is not None:
            with contextlib.suppress(ConnectionError, RuntimeError):
                await self.page.send_str(text)

    async def _ended(self) -> None:
        """The program says that it ends."""

    async def run(self) -> None:
        """Read the program's output to its end."""
        process = cast("Process", self._process)
        reading = asyncio.create_task(self._read_errors(process))
        out = cast("asyncio.StreamReader", process.stdout)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ValueError):
            while await out.readline() not in (b"__GANGLION__\n", b""):
                continue
            while True:
                kind, size = await out.readexactly(1), int.from_bytes(await out.readexactly(4), "big")
                payload = await out.readexactly(size)
                if kind == b"D":
                    await self._queue(payload)
                elif kind == b"M":
                    await self._meta(payload)
        await process.wait()
        await reading
        self._when_ended()

    async def _meta(self, payload: bytes) -> None:
        told = json.loads(payload)
        if told.get("type") == "open_url" and urlsplit(str(told.get("url"))).scheme in ("http", "https"):
            await self._tell(json.dumps(["open_url", {"url": str(told["url"]), "new_tab": True}]))

    async def _read_errors(self, process: Process) -> None:
        async for line in cast("asyncio.StreamReader", process.stderr):
            text = line.decode("utf-8", "replace")
            if text.startswith('{"resume": '):
                with contextlib.suppress(ValueError):
                    self.resume = str(json.loads(text)["resume"])
            else:
                sys.stderr.write(text)

    async def leave(self) -> None:
        """Ask the program to end, and wait for it."""
        if self.begun and cast("Process", self._process).returncode is None:
            await self.send_meta({"type": "quit"})
            if self._task is not None:
                await self._task


class PageServer:
    """``command`` starts the program; ``origins`` are further origins from which the page may be used, such as that of
    a tunnel."""

    def __init__(self, command: Sequence[str], origins: Sequence[str] = ()) -> None:
        self.ended = asyncio.Event()
        self.program = Program(command, self.ended.set)
        self._origins = frozenset(origins)
        self._hosts = frozenset(urlsplit(origin).netloc for origin in origins)
        self._path = f"/{secrets.token_urlsafe(16)}"
        self._token = ""
        self._key = secrets.token_urlsafe(32)
        """Value of the cookie."""
        self._pages: dict[str, web.WebSocketResponse] = {}
        self.port = 0

    async def start(self, port: int) -> web.AppRunner:
        """Listen on the loopback interface.

        Raises:
            OSError: the port is taken.
        """
        app = web.Application(middlewares=[self._guarded], client_max_size=1024)
        app.router.add_get(f"{self._path}/", self._page)
        app.router.add_get(f"{self._path}/ws/{{page}}", self._socket)
        app.router.add_get(f"{self._path}/state/{{page}}", self._state)
        app.router.add_get(f"{self._path}/file/{{name}}", self._file)
        runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        sockets = cast("Any", site)._server.sockets
        self.port = sockets[0].getsockname()[1]
        return runner

    def address(self) -> str:
        """A new address that works once; an earlier one that was not used works no more."""
        self._token = secrets.token_urlsafe(32)
        return f"http://127.0.0.1:{self.port}{self._path}/?token={self._token}"

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Only this machine's names, or those of the allowed origins; and the cookie, but for the token's address."""
        if not self._from_here(request):
            return web.Response(status=403, text=_NOT_HERE, headers=_HEADERS)
        with_token = request.path == f"{self._path}/" and "token" in request.query
        known = hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), self._key.encode())
        if not known and not with_token:
            return web.Response(status=403, text=_NOT_HERE, headers=_HEADERS)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(_HEADERS)
            raise
        if not response.prepared:
            response.headers.update(_HEADERS)
        return response

    def _from_here(self, request: web.Request) -> bool:
        host = urlsplit(f"//{request.host}")
        try:
            mine = host.hostname in LOOPBACK and (host.port or 80) == self.port
        except ValueError:
            return False
        if not mine and request.host not in self._hosts:
            return False
        origin = request.headers.get("Origin")
        return origin is None or origin == f"http://{request.host}" or origin in self._origins

    async def _page(self, request: web.Request) -> web.Response:
        if "token" in request.query:
            given, wanted = request.query["token"], self._token
            if not wanted or not hmac.compare_digest(given.encode(), wanted.encode()):
                return web.Response(status=403, text=_NOT_HERE)
            self._token = ""
            answer = web.Response(status=303, headers={"Location": f"{self._path}/"})
            secure = f"https://{request.host}" in self._origins
            answer.set_cookie(COOKIE, self._key, path=f"{self._path}/", httponly=True, samesite="Strict", secure=secure)
            return answer
        page = files("swecli.web").joinpath("page.html").read_text("utf-8")
        return web.Response(text=page.replace("{{page}}", secrets.token_urlsafe(8)), content_type="text/html")

    async def _file(self, request: web.Request) -> web.Response:
        path, kind = _FILES.get(request.match_info["name"], (None, ""))
        if not kind:
            raise web.HTTPNotFound
        own = files("swecli.web").joinpath(request.match_info["name"])
        data = await asyncio.to_thread((path or own).read_bytes)
        return web.Response(body=data, content_type=kind)

    async def _state(self, request: web.Request) -> web.Response:
        """What became of a page whose connection ended: ``free``, ``elsewhere`` or ``ended``."""
        mine = self._pages.get(request.match_info["page"])
        if self.ended.is_set():
            return web.json_response({"state": "ended"})
        shown = self.program.page
        return web.json_response({"state": "elsewhere" if shown is not None and shown is not mine else "free"})

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Origin") is None:
            return web.Response(status=403, text=_NOT_HERE)
        page = web.WebSocketResponse(heartbeat=20, max_msg_size=LARGEST_MESSAGE)
        await page.prepare(request)
        self._pages[request.match_info["page"]] = page
        for name in list(self._pages)[:-MOST_PAGES]:
            del self._pages[name]
        width, height = (_cells(request.query.get(name, ""), usual) for name, usual in (("width", 80), ("height", 24)))
        await self.program.attach(page, width, height)
        pumping = asyncio.create_task(self.program.pump(page))
        try:
            async for message in page:
                if message.type is WSMsgType.TEXT and self.program.page is page:
                    await self._received(page, message.data)
        finally:
            pumping.cancel()
            await asyncio.gather(pumping, return_exceptions=True)
            self.program.detach(page)
        return page

    async def _received(self, page: web.WebSocketResponse, text: str) -> None:
        """A message of the page; one in another form is ignored."""
        try:
            envelope: Any = json.loads(text)
            match envelope:
                case ["stdin", str(data)]:
                    await self.program.send_bytes(data.encode("utf-8", "replace"))
                case ["resize", {"width": int(width), "height": int(height)}]:
                    await self.program.resize(_cells(str(width), 80), _cells(str(height), 24))
                case ["ping", str(stamp)]:
                    await page.send_json(["pong", stamp[:40]])
                case ["blur"]:
                    await self.program.blur()
                case ["focus"]:
                    await self.program.focus()
                case _:
                    return
        except (ValueError, RecursionError):
            return

    async def close(self) -> None:
        """End the program and the page."""
        await self.program.leave()
        self.ended.set()
        if self.program.page is not None:
            await self.program.page.close()


def _cells(text: str, usual: int) -> int:
    """A count of cells, within what a screen can have."""
    return min(max(int(text), 1), 1000) if text.isdecimal() and len(text) < 6 else usual
