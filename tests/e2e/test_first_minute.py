"""The first minute: from six starts to the first answer of a model, in at most three keys besides the words typed, with
nothing looked up. The first screen of each is a golden."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from swecli.core.config.key_store import KeyStore
from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.provider_proxy import ProviderProxy
from tests.support.terminal import Terminal
from tests.tui.golden import FOLDER, check

pytestmark = pytest.mark.e2e

SWECLI = str(Path(sys.executable).with_name("swecli"))
MOST = 3
"""Keys until the first answer."""
SETTLED = 3.0
"""Seconds after which a golden is written anew."""
SCRIPT = """
name = "mistral-small"
window = 128000
[[step]]
text = "{first}"
[[step]]
text = "The answer."
"""
VARYING = ((r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"), (r"done in \S+ s · .*", "done in …"), (r"context ▕.*", "context …"))
"""What differs from run to run, and what stands in its place in a golden."""


@dataclass
class Place:
    """A home, a project, a server, and the way to it."""

    home: Path
    project: Path
    server: LoopbackServer
    proxy: ProviderProxy

    @property
    def beside(self) -> dict[str, str]:
        """The environment of a start that leads to a server of the user's own."""
        return {"OPENAI_BASE_URL": f"{self.server.url}/v1"}

    def open(self, variables: dict[str, str], *arguments: str) -> Terminal:
        environment = {"HOME": str(self.home), "SWECLI_HOME": str(self.home / "swecli"), **variables}
        return Terminal([SWECLI, *arguments], cwd=self.project, environment=environment)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    home = tmp_path / "home"
    project = home / "project"
    project.mkdir(parents=True)
    (project / "shop.py").write_text("PRICE = 3\n")
    return home, project


@contextlib.contextmanager
def place(folders: tuple[Path, Path], first: str = "The answer.") -> Iterator[Place]:
    with LoopbackServer(parse_script(SCRIPT.format(first=first))) as server, ProviderProxy(server.port) as proxy:
        yield Place(*folders, server, proxy)


class Hand:
    """Types, and counts the keys that are not words of a message."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.keys = 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self.terminal.send(key)
            self.keys += 1

    def say(self, words: str) -> None:
        self.terminal.send(words)
        self.terminal.shows(f"› {words}")
        self.press("\r")


def first_screen(name: str, terminal: Terminal, *texts: str) -> None:
    """Wait for the golden: what comes late, such as a measure, is of it."""
    terminal.shows(*texts)
    golden = FOLDER / f"start-{name}-80x24.txt"
    if "UPDATE_GOLDENS" in os.environ:
        end = time.monotonic() + SETTLED
        terminal.until(lambda: time.monotonic() > end)
    else:
        wanted = golden.read_text(encoding="utf-8")
        terminal.until(lambda: f"{shown(terminal)}\n" == wanted, f"waiting for {golden.name}")
    check(golden.stem, shown(terminal))


def shown(terminal: Terminal) -> str:
    text = terminal.text.rstrip()
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text)
    return text


def key_only(at: Place) -> int:
    terminal = at.open({"OPENAI_API_KEY": "sk-canary", **at.proxy.environment()})
    with contextlib.closing(terminal):
        first_screen("key-only", terminal, "openai/gpt-6-sol", "OPENAI_API_KEY")
        hand = Hand(terminal)
        hand.say("what is this?")
        terminal.shows("The answer.")
        assert at.proxy.hosts == ["api.openai.com"]
        return hand.keys


def stored_key(at: Place) -> int:
    KeyStore(at.home / "swecli", keyring=lambda: None).put("openai", "https://api.openai.com", "sk-canary")
    terminal = at.open(at.proxy.environment())
    with contextlib.closing(terminal):
        first_screen("stored-key", terminal, "openai/gpt-6-sol", "stored key")
        hand = Hand(terminal)
        hand.say("what is this?")
        terminal.shows("The answer.")
        assert at.server.asked[0].headers["authorization"] == "Bearer sk-canary"
        return hand.keys


def key_and_address(at: Place) -> int:
    return _connected("key-and-address", at, {**at.beside, "OPENAI_API_KEY": "sk-canary"})


def local_server(at: Place) -> int:
    return _connected("local-server", at, at.beside)


def _connected(name: str, at: Place, variables: dict[str, str]) -> int:
    terminal = at.open(variables)
    with contextlib.closing(terminal):
        first_screen(name, terminal, "Connect a model", "openai/mistral-small")
        hand = Hand(terminal)
        hand.press("\r")
        terminal.shows("Connected to openai/mistral-small")
        hand.say("what is this?")
        terminal.shows("The answer.", "done in")
        return hand.keys


def nothing(at: Place) -> int:
    """Without a key and a server there is the demonstration."""
    terminal = at.open({})
    with contextlib.closing(terminal):
        first_screen("nothing", terminal, "Connect a model", "See the demo")
        hand = Hand(terminal)
        hand.press("\x1b[B", "\r")
        terminal.shows("I'll find the place")
        return hand.keys


def resumed(at: Place) -> int:
    variables = {**at.beside, "OPENAI_API_KEY": "sk-canary"}
    before = at.open(variables, "-m", "openai/mistral-small", "hello there")
    with contextlib.closing(before):
        before.shows("The first answer.", "Ask for a change")
        before.send("\x04")
        before.wait()
    terminal = at.open(variables, "-c")
    with contextlib.closing(terminal):
        first_screen("resumed", terminal, "hello there", "The first answer.", "Ask for a change")
        hand = Hand(terminal)
        hand.say("and now?")
        terminal.shows("The answer.", "done in")
        return hand.keys


STARTS: dict[str, tuple[Callable[[Place], int], str]] = {
    "key only": (key_only, "The answer."),
    "key and address": (key_and_address, "ready"),
    "local server": (local_server, "ready"),
    "nothing": (nothing, "ready"),
    "stored key": (stored_key, "The answer."),
    "resumed session": (resumed, "The first answer."),
}


@pytest.mark.parametrize("start", STARTS)
def test_the_first_answer_takes_at_most_three_keys(start: str, folders: tuple[Path, Path]) -> None:
    begin, first = STARTS[start]
    with place(folders, first) as at:
        assert begin(at) <= MOST
