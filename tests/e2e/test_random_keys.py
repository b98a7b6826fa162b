"""Random keys in the real program, on every screen and before it is laid out: nothing crashes or hangs."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import PYTHONPATH
from tests.support.terminal import Terminal
from tests.support.thorough import examples
from tests.support.waiting import Waiting

pytestmark = pytest.mark.e2e

SWECLI = str(Path(sys.executable).with_name("swecli"))
READY = "Ask for a change"
KEYS = examples(1_200, 20_000)
BURST = 24
"""Most keys that come in one piece, as from a paste or a slow program."""
SCRIPT = '[[step]]\ntext = "One **answer** with a list:\\n\\n- a\\n- b\\n"\n' * 400

LISTS = (
    *("/help", "/keys", "/config", "/model", "/theme", "/resume", "/context", "/wire", "/cache", "/permissions"),
    *("/compact", "/usage", "/rewind", "/commands", "/skills", "/agents", "/hooks", "/mcp", "/mode", "/memory"),
    *("/jobs", "/status", "/doctor", "/diff", "/undo", "/recall x", "/find a", "/sentinel", "/plan", "/btw x"),
)
"""Commands that open a screen, a list or a panel: the keys behind them come before these are laid out."""
SPECIAL = (
    *("\r", "\t", "\x1b", "\x7f", "\n", " ", "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[5~"),
    *(
        "\x1b[6~",
        "\x1b[3~",
        "\x1b[2~",
        "\x1b[Z",
        "\x1bOP",
        "\x1b[15~",
        "\x1b[1;5A",
        "\x1b[1;2B",
        "\x1b[13;2u",
        "\x1b\r",
    ),
    *(f"\x1b{letter}" for letter in "abcdefghijklmnopqrstuvwxyz<>.,/?"),
    *(chr(code) for code in range(1, 27) if chr(code) not in "\x03\x04\x1a"),
    *("\x1b[<0;5;5M", "\x1b[<0;5;5m", "\x1b[<64;9;9M", "\x1b[<65;9;9M", "\x1b[I", "\x1b[O"),
    *(
        "\x1b[200~pasted\ntext\x1b[201~",
        "\x1b[200~\x1b[201~",
        "\x1b[",
        "\x1b[99~",
        "\x1bP\x1b\\",
        "é",
        "日",
        "\U0001f642",
    ),
)
TYPED = "abcdehjkloprwyxnq/@?:.,-+*0123456789 "
"""No ``!``: random words are no shell commands."""


def piece(source: random.Random) -> list[str]:
    """The keys that arrive at once."""
    kind = source.random()
    if kind < 0.12:
        return ["\x15", *source.choice(LISTS), "\r", *(any_key(source) for _ in range(source.randrange(4)))]
    return [any_key(source) for _ in range(1 + int(source.random() ** 3 * BURST))]


def any_key(source: random.Random) -> str:
    return source.choice(SPECIAL) if source.random() < 0.6 else source.choice(TYPED)


@pytest.mark.parametrize("seed", range(examples(1, 5)))
def test_random_keys_neither_crash_nor_block_the_program(tmp_path: Path, seed: int) -> None:
    (tmp_path / "a.py").write_text("print(1)\n")
    source, sent, starts = random.Random(seed), 0, 0
    wanted = KEYS // examples(1, 5)
    with LoopbackServer(parse_script(SCRIPT), manners=Manners(strict=False)) as server:
        while sent < wanted:
            starts += 1
            sent += session(tmp_path, server.url, source, wanted - sent)
    assert starts < 5 + wanted // 100  # what ends the program, such as /exit from a menu, is rare


def session(folder: Path, address: str, source: random.Random, keys: int) -> int:
    """Send keys until there are enough or one ends the program; returns their number."""
    environment = {"SWECLI_HOME": str(folder / "home"), "HOME": str(folder), "PYTHONPATH": PYTHONPATH, "EDITOR": "true"}
    environment |= {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "k"}
    columns, rows = source.choice(((80, 24), (120, 40), (40, 12), (200, 60)))
    terminal = Terminal([SWECLI, "-m", "openai/m"], cwd=folder, environment=environment, columns=columns, rows=rows)
    sent: list[str] = []
    count = 0
    try:
        while count < keys and not terminal._ended():  # pyright: ignore[reportPrivateUsage]
            typed = piece(source)
            count += len(typed)
            sent.append("".join(typed))
            terminal.send(sent[-1])
            if source.random() < 0.3:
                terminal._read(source.random() * 0.05)  # pyright: ignore[reportPrivateUsage]
            if source.random() < 0.02:
                terminal.resize(source.randrange(20, 130), source.randrange(6, 45))
        settle(terminal, sent)
    finally:
        terminal.close()
    return count


def settle(terminal: Terminal, sent: list[str]) -> None:
    """After all that the program is at its end without an error, or takes a word at the prompt again."""
    mark, waiting = f"mark{len(sent)}", Waiting(lambda: f"{sent[-6:]}\n{terminal.text}\nstatus {terminal.status}")
    while not terminal._ended() and mark not in terminal.text:  # pyright: ignore[reportPrivateUsage]
        waiting.go_on()
        terminal.send("\x1b")
        for _ in range(20):
            terminal._read(0.05)  # pyright: ignore[reportPrivateUsage]
        terminal.send(f"\x15{mark}")
        for _ in range(20):
            terminal._read(0.05)  # pyright: ignore[reportPrivateUsage]
    assert b"Traceback" not in terminal.raw, terminal.raw[terminal.raw.index(b"Traceback") :][:3_000].decode(
        "utf-8", "replace"
    )
    assert terminal.status in (None, 0, 130), f"{sent[-6:]}\n{terminal.raw[-2_000:].decode('utf-8', 'replace')}"
