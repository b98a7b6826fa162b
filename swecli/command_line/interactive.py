"""Interactive sessions, on the screen or line by line."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, TextIO

from msgspec.structs import replace

from swecli.assembly.succession import Succession
from swecli.assembly.trust import TrustChoice, TrustItem, WorkspaceTrust
from swecli.launch import LaunchOptions
from swecli.safe_text import safe_line, sanitise

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.tui.boot import Terminal

Said = Literal["yes", "no", "single", "later"]
_TRUST: dict[str, TrustChoice] = {"y": "trust", "yes": "trust", "s": "session", "n": "decline", "no": "decline"}
_SAID: dict[str, Said] = {"y": "yes", "yes": "yes", "n": "no", "no": "no", "o": "single"}


def asked(options: LaunchOptions, source: TextIO, target: TextIO) -> LaunchOptions:
    """Ask all questions that precede reading the folder. Returns the options with the answers."""
    options = replace(options, asked=options.trust is None)
    gate = WorkspaceTrust(options)

    def say(*lines: str) -> None:
        target.write("".join(f"{sanitise(line)}\n" for line in lines))
        target.flush()

    question = gate.question()
    if question is not None:
        names = [f"  {safe_line(name)}" for name in question.names]
        say(
            f"Do you trust {safe_line(question.folder)}? It contains files that would change how swecli works:",
            *names,
            "These files have no effect yet. Answer y yes, s only this time, n no, never; anything else means not now.",
        )
        choice = _TRUST.get(_line(source), "later")
        if told := gate.answer(choice):
            say(told)
        if choice not in ("trust", "session"):
            return gate.told(options)
    for told in _items(gate, gate.items(), source, say):
        say(told)
    return gate.told(options)


def _items(gate: WorkspaceTrust, items: Sequence[TrustItem], source: TextIO, say: Callable[..., None]) -> list[str]:
    """Ask about several items at once, then, if requested, about each."""
    if len(items) > 1:
        say(f"Allow this project to do these {len(items)} things?", *(_shown(item) for item in items))
        say("Answer y for all of them, o for one by one, n for none; anything else means not now.")
        every = _SAID.get(_line(source), "later")
        if every != "single":
            return list(filter(None, [_keep(gate, every, items)]))
    told: list[str] = []
    for item in items:
        say("Allow this project to do this?", _shown(item), "Answer y yes, n no; anything else means not now.")
        told.append(_keep(gate, _SAID.get(_line(source), "later"), [item]))
    return list(filter(None, told))


def _shown(item: TrustItem) -> str:
    return f"- {safe_line(item.wish)}: {safe_line(item.value)} ({safe_line(item.origin)})"


def _keep(gate: WorkspaceTrust, answer: Said, items: Sequence[TrustItem]) -> str:
    match answer:
        case "yes":
            return gate.accept(items)
        case "no":
            return gate.refuse(items)
        case _:
            gate.postpone(items)
            return ""


def _line(source: TextIO) -> str:
    """The next answer; empty at the end of the input."""
    return source.readline().strip().lower()


def run_plain(options: LaunchOptions) -> int:
    from swecli.command_line.standard_streams import is_terminal

    if is_terminal(sys.stdin):
        options = asked(options, sys.stdin, sys.stdout)
    from swecli.plain.front_end import LinearFrontEnd

    sessions = Succession(options, open_with_banner)

    from swecli.steady_clock import keep_steady

    async def run() -> int:
        keep_steady(asyncio.get_running_loop())
        fork = partial(sessions.stored, fork=True) if options.store else None
        front_end = LinearFrontEnd(sessions.first, sessions.next, fork_session=fork, first_prompt=options.prompt)
        return await front_end.run()

    from swecli.command_line.standard_streams import print_text

    code = asyncio.run(run())
    if sessions.spoke:
        from swecli.tui.launch import way_back

        print_text(f"{way_back(sessions.resume_hint, sessions.kept)}\n")
    return code


def run_interactive(options: LaunchOptions, terminal: Terminal | None = None) -> int:
    """The interface in the terminal, which it may already use."""
    from swecli.tui.launch import run
    from swecli.tui.program import program_of

    return run(program_of(options, open_with_banner), terminal)


async def open_with_banner(options: LaunchOptions) -> Session:
    """A session that begins with the banner of its options."""
    from importlib import import_module

    await asyncio.to_thread(import_module, "swecli.app")  # keeps the interface responsive
    from swecli.app import open_session

    session = await open_session(options)
    if options.banner:
        session.notice(options.banner)
    return session
