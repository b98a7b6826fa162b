"""The whole application writes little, and what it writes gives the same picture as Textual's own output."""

from __future__ import annotations

import random
from itertools import count

import pytest
from textual import events

from swecli.core.protocol.blocks import TerminalBlock, TextBlock
from swecli.core.protocol.events import Body, Event, ItemDelta, ItemStarted
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.frames import FRAMES
from tests.tui.support import Running, Session, running
from tests.tui.written import Written

WORDS = (
    "the",
    "parser",
    "reads",
    "each",
    "token",
    "before",
    "it",
    "decides",
    "whether",
    "a",
    "branch",
    "needs",
    "more",
)
PIECES = (
    *(f"{word} " for word in WORDS),
    "\n\n",
    "\n\n## Next\n\n",
    "\n- **one** more ",
    "\n\n```python\nprint(1)\n```\n\n",
    "漢字 ",
    "👍 ",
    "e\u0301 ",
)


@pytest.fixture(autouse=True)
def frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame is drawn when it comes."""
    FRAMES.watch(monkeypatch, every=True)


class Stream:
    """An answer whose pieces are drawn as they come, without the pace of the interface."""

    def __init__(self, it: Running) -> None:
        self._it = it
        self._numbers = count(100)

    async def begin(self) -> None:
        await self._it.say("go")
        await self._it.until(lambda: self._it.app.session.state.busy)
        await self._add(ItemStarted("a1", "text"))

    async def say(self, text: str) -> None:
        await self._add(ItemDelta("a1", text))

    async def _add(self, body: Body) -> None:
        self._it.app.main.transcript.apply([Event(next(self._numbers), 0.0, "s", 1, body)])
        await self._it.settled()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_streamed_words_cost_a_twentieth(monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    written = Written(*size)
    written.watch(monkeypatch)
    async with running(session=Session((WAIT_FOR_INTERRUPT,)), size=size) as it:
        stream = Stream(it)
        await stream.begin()
        before, usual = written.characters, written.textual
        for n in range(300):
            await stream.say(f"{WORDS[n % len(WORDS)]}{chr(10) * 2 if n % 40 == 39 else ' '}")
        assert written.characters - before < (written.textual - usual) / 20


async def play(it: Running, choice: random.Random, stream: Stream) -> None:
    """Something that a user or a turn does."""
    match choice.randrange(12):
        case 0 | 1 | 2 | 3:
            for _ in range(choice.randint(1, 20)):
                await stream.say(choice.choice(PIECES))
        case 4:
            await it.press(choice.choice(("pageup", "pagedown", "home", "end")))
        case 5 | 6:
            await it.type(choice.choice(("word ", "漢", "👍", "/", "@", "a\nb", "\t")))
        case 7:
            await it.press(choice.choice(("ctrl+o", "ctrl+t", "backspace", "ctrl+p", "up", "down", "left", "escape")))
        case 8:
            await it.pilot.resize_terminal(choice.choice((40, 80, 100, 120)), choice.choice((12, 24, 40)))
        case 9:
            output = "".join(f"\x1b[3{n % 8}mline {n}\x1b[0m\n" for n in range(choice.randint(1, 9)))
            blocks = choice.choice((TextBlock("A notice", "warning"), TerminalBlock("make", output, 0)))
            it.app.main.transcript.show((blocks,))
        case 10:
            await it.press("ctrl+l")
        case _:
            it.app.appearance.background_known(choice.random() < 0.5)
    await it.settled()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "variables",
    [{"COLORTERM": "truecolor"}, {"COLORTERM": ""}, {"COLORTERM": "", "TERM": "xterm"}, {"NO_COLOR": "1"}],
    ids=["true colour", "256 colours", "16 colours", "no colours"],
)
async def test_random_sessions_look_as_with_textual(
    monkeypatch: pytest.MonkeyPatch, seed: int, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    choice = random.Random(seed)
    written = Written(80, 24)
    written.watch(monkeypatch)
    async with running(session=Session((WAIT_FOR_INTERRUPT,)), size=(80, 24)) as it:
        stream = Stream(it)
        await stream.begin()
        for _ in range(40):
            await play(it, choice, stream)
        assert written.compared > 40


async def test_the_whole_screen_returns_after_others_had_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(80, 24)
    written.watch(monkeypatch)
    async with running(session=Session((WAIT_FOR_INTERRUPT,)), size=(80, 24)) as it:
        stream = Stream(it)
        await stream.begin()
        await stream.say("Some words.")
        returns = (
            lambda: it.app.post_message(events.AppFocus()),
            lambda: it.app.app_resume_signal.publish(it.app),
            lambda: it.app.post_message(events.Resize(it.app.size, it.app.size)),
            it.app.action_redraw,
        )
        for again in returns:
            written.lose()
            again()
            await it.until(lambda: not written.lost)
            assert "Some words." in "\n".join(written.shown.lines())
