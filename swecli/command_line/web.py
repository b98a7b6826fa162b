"""`swecli web`: the interface in a browser on this machine, for one session."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from urllib.parse import urlsplit

from swecli.command_line.arguments import Parser, UsageError, is_root, launch_options, parsed
from swecli.command_line.standard_streams import complain, is_terminal
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError
from swecli.stopping import Stop

MISSING = "swecli web needs the extra web: uv tool install 'swecli[web]', or pipx install 'swecli[web]'"
PAGE = ("-m", "swecli.command_line.web")
"""Arguments of Python for the program behind the page."""


def web(arguments: Sequence[str]) -> int:
    """Serve the page until its session ends, or Ctrl+C."""
    parser = Parser(
        prog="swecli web",
        description="Show the interface in a browser of this machine. All options of `swecli` that keep the interface "
        "count as well (-m, -c, -r ID, -C). The server listens on 127.0.0.1 only; from elsewhere, use a tunnel of your "
        "own, such as `ssh -L 8765:127.0.0.1:8765 HOST`.",
        allow_abbrev=False,
    )
    parser.add_argument("--port", type=int, default=0, metavar="N", help="instead of any free one")
    parser.add_argument(
        "--public-url", metavar="URL", action="append", default=[], help="an address at which a tunnel shows the page"
    )
    chosen, rest = parser.parse_known_args(arguments)
    if not 0 <= chosen.port <= 65_535:
        raise UsageError("--port must be between 1 and 65535")
    origins = [_origin(url) for url in chosen.public_url]
    _options(rest)
    if find_spec("textual_serve") is None:
        raise StartError(MISSING, ExitCode.USAGE)
    stop = Stop()
    with stop.handled():
        return int(asyncio.run(_serve([sys.executable, *PAGE, *rest], chosen.port, origins, stop)))


def _options(arguments: Sequence[str]) -> LaunchOptions:
    options = launch_options(parsed(arguments), os.environ, is_root=is_root())
    if options.headless or options.plain:
        raise UsageError("swecli web shows the interface; leave out the options of a run without it")
    return options


def _origin(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.username is not None:
        raise UsageError(f"--public-url {url} is no http or https address")
    return f"{parts.scheme}://{parts.netloc.lower()}"


async def _serve(command: Sequence[str], port: int, origins: Sequence[str], stop: Stop) -> int:
    try:
        from swecli.web.server import PageServer
    except ImportError as error:  # a half-installed extra
        raise StartError(f"{MISSING} ({error})", ExitCode.USAGE) from error

    server = PageServer(command, origins)
    try:
        runner = await server.start(port)
    except OSError as error:
        raise StartError(f"Cannot listen on port {port}: {error.strerror}.", ExitCode.FAILURE) from error
    loop = asyncio.get_running_loop()
    again = is_terminal(sys.stdin)

    def tell() -> None:
        sys.stdout.write(f"{server.address()}\n")
        sys.stdout.flush()

    def typed() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
        else:
            tell()

    more = "; Enter makes a new one" if again else ""
    complain(f"swecli: open this address in a browser of this machine. It works once{more}; Ctrl+C ends.")
    tell()
    if again:
        loop.add_reader(0, typed)
    try:
        with stop.calling(server.ended.set):
            await server.ended.wait()
    finally:
        if again:
            with suppress(ValueError):
                loop.remove_reader(0)
        await server.close()
        await runner.cleanup()
    if server.program.resume:
        complain(f"swecli: continue with: {server.program.resume}")
    return int(stop.code or ExitCode.OK)


def page(arguments: Sequence[str]) -> int:
    """The program behind the page."""
    options = _options(arguments)
    if options.worktree is not None or options.resume is not None:
        from swecli.command_line.worktree import in_worktree

        return in_worktree(options, _run_page)
    return _run_page(options)


def _run_page(options: LaunchOptions) -> int:
    from swecli.command_line.interactive import open_with_banner
    from swecli.tui.program import program_of
    from swecli.tui.web import run_page

    return run_page(program_of(options, open_with_banner))


def _main() -> int:
    try:
        return page(sys.argv[1:])
    except StartError as error:
        complain(f"swecli: {error}")
        return int(error.exit_code)


if __name__ == "__main__":
    sys.exit(_main())
