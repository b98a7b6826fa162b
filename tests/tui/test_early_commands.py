"""What is sent while the session still opens is done in order once it is open, each by itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager

import pytest
from textual._context import active_app

from swecli.core.protocol.budget import Budget
from swecli.core.protocol.commands import ReplyPermission, RunShell, Submit
from swecli.core.protocol.events import ItemCompleted, ItemStarted, PermissionRequested, Rewound, TurnEnded, TurnStarted
from swecli.core.protocol.messages import TextPart
from swecli.tui import app
from swecli.tui.prompt.editor import PromptEditor
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.support.waiting import PATIENCE
from tests.tui.support import Running, Session, running


class Slow:
    """A session that opens when a test says so."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.may_open = asyncio.Event()

    async def __call__(self) -> Session:
        await self.may_open.wait()
        return self.session


@asynccontextmanager
async def opening(session: Session) -> AsyncIterator[tuple[Running, Slow]]:
    slow = Slow(session)
    async with running(session=session, open_session=slow) as it:
        await it.until(lambda: it.app.loaded)
        yield it, slow


async def test_commands_are_done_one_by_one() -> None:
    async with opening(Session((WAIT_FOR_INTERRUPT,))) as (it, slow):
        for line in ("/init", "/context", "hello"):
            await it.say(line)
            await it.until(lambda: it.text == "")
        await it.shows("still opening")
        assert it.session.commands == []
        slow.may_open.set()
        await it.shows("init got []", "context got []")
        await it.until(lambda: [command.text for command in it.session.sent(Submit)] == ["hello"])
        lines = it.screen()
        assert lines.index("init got []") < lines.index("context got []")
        assert it.text == ""


async def test_lines_that_come_in_one_go_are_not_glued() -> None:
    """As what was typed before the program read keys."""
    async with opening(Session((WAIT_FOR_INTERRUPT,))) as (it, slow):
        await it.at_once(*"/init", "enter", *"/context", "enter", *"hello", "enter", *"half")
        slow.may_open.set()
        await it.shows("init got []", "context got []")
        await it.until(lambda: [command.text for command in it.session.sent(Submit)] == ["hello"])
        assert it.text == "half"


async def test_keys_behind_a_command_are_given_once_however_it_ends() -> None:
    async with running() as it:
        editor = it.app.main.prompt.editor
        sent: list[PromptEditor.Submitted] = []
        post = editor.post_message
        editor.post_message = lambda message: (  # type: ignore[method-assign]
            sent.append(message) is None if isinstance(message, PromptEditor.Submitted) else post(message)
        )
        await it.at_once(*"/context", "enter", *"hello")
        await it.until(lambda: len(sent) == 1)
        editor.let_go(sent[0])
        editor.on_blur()
        await it.until(lambda: it.text == "hello")
        await it.press("x")
        assert it.text == "hellox"


async def test_tab_completes_a_name_before_everything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    may_load = threading.Event()
    load = app.load

    def later(names: Iterable[str]) -> None:
        assert may_load.wait(PATIENCE)
        load(names)

    monkeypatch.setattr(app, "load", later)
    session = Session()
    async with running(session=session, open_session=Slow(session)) as it:
        try:
            await it.at_once(*"/mod", "tab")
            assert not it.app.loaded
            assert it.text == "/mode "
        finally:
            may_load.set()
        await it.until(lambda: it.app.loaded)


@pytest.mark.parametrize("signal", [False, True])
async def test_ctrl_c_before_everything_is_loaded_acts_once_it_is(
    monkeypatch: pytest.MonkeyPatch, signal: bool
) -> None:
    may_load = threading.Event()
    load = app.load

    def later(names: Iterable[str]) -> None:
        assert may_load.wait(PATIENCE)
        load(names)

    monkeypatch.setattr(app, "load", later)
    session = Session()
    async with running(session=session, open_session=Slow(session)) as it:
        try:
            for _ in range(2):
                if signal:
                    it.app.way_out.cancel_soon()
                else:
                    await it.at_once("ctrl+c")
            assert not it.app.loaded
        finally:
            may_load.set()
        await it.until(lambda: it.app.return_code == 0 and not it.app.is_running)


@pytest.mark.parametrize("code", [None, 143])
async def test_what_a_signal_asks_for_runs_where_timers_find_the_app(
    monkeypatch: pytest.MonkeyPatch, code: int | None
) -> None:
    found: list[object] = []
    async with running() as it:
        await it.until(lambda: it.app.loaded)
        patched: tuple[object, str] = (it.app.way_out, "cancel") if code is None else (it.app, "run_worker")
        monkeypatch.setattr(*patched, lambda *work, **_: [found.append(active_app.get(None)), *map(closed, work)])
        ask = it.app.way_out.cancel_soon if code is None else lambda: it.app.way_out.end_soon(143)
        thread = threading.Thread(target=ask)  # as the watch of signals is one
        thread.start()
        await it.until(lambda: bool(found))
        thread.join()
        monkeypatch.undo()
        assert found == [it.app]


def closed(work: Coroutine[object, object, object]) -> None:
    work.close()


async def test_what_follows_a_new_conversation_at_once_belongs_to_it() -> None:
    new = Session((WAIT_FOR_INTERRUPT,))

    async def new_session() -> Session:
        return new

    async with running((WAIT_FOR_INTERRUPT,), new_session=new_session) as it:
        await it.at_once(*"/clear", "enter", *"hello", "enter")
        await it.until(lambda: [command.text for command in new.sent(Submit)] == ["hello"])
        assert it.session.sent(Submit) == []


async def test_a_command_behind_a_new_conversation_waits_for_it() -> None:
    new = Session()

    async def new_session() -> Session:
        return new

    async with running(new_session=new_session) as it:
        it.session.view.budget = Budget((), 0, 0, 10_000, 12_000, 2_000, "ok", "measured")
        it.editor.take_paste("a line of the log\n" * 1_200)
        await it.at_once("enter", *"/clear", "enter", *"/context", "enter")
        await it.shows("Cancel")
        await it.press("escape")
        await it.shows("context got []")
        assert it.app.session.port is new


async def test_shell_commands_after_a_message_run_when_its_turn_has_ended() -> None:
    gate = PermissionRequested("p1", "t1", "run_command", "ls", (), "It asks.", "hash")
    async with opening(Session((gate, TurnEnded("done")))) as (it, slow):
        for line in ("hello", "!echo one", "!echo two", "/init"):
            await it.say(line)
        slow.may_open.set()
        await it.shows("Next: !echo one")
        assert it.session.sent(RunShell) == []
        it.session.send(ReplyPermission("p1", "once"))
        await it.until(lambda: it.session.sent(RunShell) == [RunShell("echo one"), RunShell("echo two")])
        await it.shows("init got []")
        assert it.text == ""


async def test_an_interrupt_returns_the_commands_that_wait_for_the_turn() -> None:
    async with opening(Session((WAIT_FOR_INTERRUPT,))) as (it, slow):
        for line in ("hello", "!echo one", "!echo two"):
            await it.say(line)
        slow.may_open.set()
        await it.shows("Next: !echo one")
        await it.press("escape")
        await it.shows("Not run: !echo two (Up recalls it)")
        assert it.text == "!echo one"
        assert it.session.sent(RunShell) == []


async def test_a_command_that_waits_for_a_turn_goes_with_the_user_to_another_session() -> None:
    class Left(Session):
        async def close(self, reason: str = "other") -> None:
            self.view.busy = False
            self.emit(TurnEnded("interrupted"))
            await it.until(lambda: not it.app.session.state.busy)
            await super().close(reason)

    new = Slow(Session())
    slow = Slow(Left((WAIT_FOR_INTERRUPT,)))
    async with running(session=slow.session, open_session=slow, new_session=new) as it:
        await it.until(lambda: it.app.loaded)
        for line in ("hello", "/init"):
            await it.say(line)
        slow.may_open.set()
        await it.shows("Next: /init")
        it.app.interface.open("clear")
        await it.until(lambda: slow.session.closed)
        await it.type("typed")
        await it.shows("typed")
        assert not it.app._exit
        new.may_open.set()
        await it.shows("init got []")
        assert it.app.session.port is new.session


async def test_quitting_needs_no_session() -> None:
    async with opening(Session()) as (it, _slow):
        await it.say("/quit")
        await it.until(lambda: it.app.return_code == 0)


async def test_a_message_without_a_model_comes_back_although_it_was_sent_early() -> None:
    async with opening(Session(model=False)) as (it, slow):
        await it.say("hello")
        slow.may_open.set()
        await it.until(lambda: it.text == "hello")


async def test_a_message_that_was_blocked_is_in_the_prompt_again() -> None:
    said = (TurnStarted("u1"), ItemStarted("u1", "user"), ItemCompleted("u1", "ok", (TextPart("much too long"),)))
    end = (Rewound("u1", "the message was not sent", "much too long"), TurnEnded("blocked", "It does not fit."))
    async with running(session=Session()) as it:
        for body in (*said, *end):
            it.session.emit(body)
        await it.shows("Not sent; your message is back in the prompt. It does not fit.")
        await it.until(lambda: it.text == "much too long")


async def test_what_was_typed_meanwhile_stays() -> None:
    async with running(session=Session()) as it:
        await it.type("something else")
        it.session.emit(Rewound("u1", "the message was not sent", "much too long"))
        await it.until(lambda: it.text == "much too long\nsomething else")
