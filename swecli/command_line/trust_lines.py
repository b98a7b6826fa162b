"""The question whether a folder is trusted, and about single things that it wants, line by line: for the plain
front-end, where a person types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TextIO

from msgspec.structs import replace

from swecli.assembly.trust import WorkspaceTrust
from swecli.launch import LaunchOptions
from swecli.safe_text import safe_line, sanitise
from swecli.tui.backend import TrustChoice, TrustItem

Said = Literal["yes", "no", "single", "later"]
_TRUST: dict[str, TrustChoice] = {"y": "trust", "yes": "trust", "s": "session", "n": "decline", "no": "decline"}
_SAID: dict[str, Said] = {"y": "yes", "yes": "yes", "n": "no", "no": "no", "o": "single"}


def asked(options: LaunchOptions, source: TextIO, target: TextIO) -> LaunchOptions:
    """Ask whatever has to be asked before the folder is read. Returns the options with the answers in them."""
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
            "None has been read yet. Answer y yes, s only this time, n no, never; anything else means not now.",
        )
        choice = _TRUST.get(_line(source), "later")
        if told := gate.answer(choice):
            say(told)
        if choice not in ("trust", "session"):
            return gate.applied(options)
    for told in _items(gate, gate.items(), source, say):
        say(told)
    return gate.applied(options)


def _items(gate: WorkspaceTrust, items: Sequence[TrustItem], source: TextIO, say: Callable[..., None]) -> list[str]:
    """Ask about all at once where there are several, then, if so wished, about each."""
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


def _keep(gate: WorkspaceTrust, said: Said, items: Sequence[TrustItem]) -> str:
    match said:
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
