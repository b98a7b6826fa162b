"""The way to a model while none is connected."""

from __future__ import annotations

import asyncio
import re

import pytest

from swecli.assembly.session_list import StoredSession
from swecli.commands.models import LOGIN
from swecli.core.llm.offers import ModelOffer
from swecli.core.protocol.commands import RunShell, SetModel, Submit
from swecli.core.protocol.events import ModelChanged, Notice
from tests.tui.screens.fakes import Sessions, ports
from tests.tui.support import COMMANDS, Accounts, Session, running

OFFERS = (
    ModelOffer("ollama/qwen3", "not needed", window=40_000, running="127.0.0.1:11434"),
    ModelOffer("ollama/broken", "not needed", running="127.0.0.1:11434"),
    ModelOffer("anthropic/claude", "environment", "ANTHROPIC_API_KEY", window=1_000_000),
    ModelOffer("openai/gpt", "missing", "OPENAI_API_KEY"),
)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    from swecli.core.llm.providers import known_providers

    for provider in known_providers().values():
        for name in (*provider.api_key_env, *provider.base_url_env):
            monkeypatch.delenv(name, raising=False)


def alone(*offers: ModelOffer) -> Session:
    session = Session(model=False)
    session.offers.listed = offers
    return session


class Test:
    """Tries models: the ones called broken don't answer."""

    __test__ = False

    def __init__(self) -> None:
        self.tried: list[str] = []

    async def __call__(self, ref: str) -> tuple[bool, str]:
        self.tried.append(ref)
        return "broken" not in ref, f"{ref} is out of memory." if "broken" in ref else f"Connected to {ref} (0.1 s)"


async def test_what_was_found_is_listed_and_a_model_is_tried_before_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary-1")
    test = Test()
    async with running(session=alone(*OFFERS), try_model=test, size=(80, 30)) as it:
        await it.shows(
            "Connect a model", "running at 127.0.0.1:11434", "40K window", "anthropic/claude", "ANTHROPIC_API_KEY"
        )
        assert "sk-canary-1" not in it.screen()
        assert "openai/gpt" not in it.screen()
        await it.press(*"broken", "enter")
        await it.shows("ollama/broken is out of memory.", "Connect a model")
        assert it.session.sent(SetModel) == []
        await it.press(*"qwen", "enter")
        await it.shows("Connected to ollama/qwen3 (0.1 s)")
        assert "No model is connected yet" not in it.screen()
        await it.until(lambda: it.session.sent(SetModel) == [SetModel("ollama/qwen3")])
        assert test.tried == ["ollama/broken", "ollama/qwen3"]


async def test_a_server_that_starts_while_the_list_is_open_joins_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swecli.tui.connect.LOOK_AGAIN", 0.05)
    session = alone()
    async with running(session=session, size=(80, 30)) as it:
        await it.shows("no API key or local model server found", "› Add an API key")
        session.offers.listed, session.offers.open = OFFERS, ("127.0.0.1:11434",)
        await it.shows("› ollama/qwen3", "2 models at 127.0.0.1:11434 (ollama)", "Enter sends a short test message")
        session.offers.listed, session.offers.open = (), ()
        await it.shows("no API key or local model server found", "› Add an API key", "Press Enter to add a key")
        assert "ollama/qwen3" not in it.screen()
        await it.press("down")
        session.offers.listed, session.offers.open = OFFERS, ("127.0.0.1:11434",)
        await it.shows("running at 127.0.0.1:11434", "› See the demo")


async def test_of_a_long_list_the_first_models_stand_before_what_else_can_be_done() -> None:
    offers = [ModelOffer(f"openai/m{number}", "environment") for number in range(20)]
    async with running(session=alone(*offers), size=(80, 30)) as it:
        await it.shows("Connect a model", "openai/m7", "Add an API key", "See the demo")
        rows = it.screen()
        assert rows.index("openai/m7") < rows.index("Add an API key")


@pytest.mark.parametrize("rows", [24, 40])
async def test_the_reason_why_a_model_is_asked_for_stays_above_the_list(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    session = alone(*(ModelOffer(f"ollama/m{number}", "not needed", running="127.0.0.1:11434") for number in range(12)))
    session.offers.omitted = 2
    why = "gpt-5 matches openai/gpt-5 and openrouter/openai/gpt-5, which have no key. For openai/gpt-5, set the key."
    session.emit(Notice(why, "warning", "session"))
    async with running(session=session, size=(80, rows)) as it:
        await it.shows("Connect a model", "message and connects", "Left out: 2 models")
        assert "! gpt-5 matches openai/gpt-5" in it.screen()
        assert ("12 models at 127.0.0.1:11434 (ollama)" in it.screen()) == (rows > 30)


async def test_the_first_screen_says_how_many_models_it_leaves_out() -> None:
    session = alone(*OFFERS)
    session.offers.omitted = 2
    async with running(session=session, size=(100, 30)) as it:
        await it.shows("Left out: 2 models that do not chat. Type provider/name to use one.")


async def test_a_server_without_a_list_is_named_before_the_ways_to_a_model() -> None:
    session = alone()
    session.offers.unlisted = ("openai at http://h/v1 lists no models.",)
    async with running(session=session, size=(80, 30)) as it:
        await it.shows("Connect a model", "http://h/v1 lists no models", "Press Enter to add a key")
        assert it.screen().index("lists no models") < it.screen().index("Press Enter to add a key")
        assert "OPENAI_BASE_URL" not in it.screen()


async def test_the_model_that_answered_is_kept_for_the_next_start() -> None:
    kept: list[str] = []

    def keep(ref: str) -> str:
        if kept:
            raise ValueError("the file can't be written.")
        kept.append(ref)
        return "Saved as default. -m overrides it."

    for said in (
        "Connected to ollama/qwen3 (0.1 s), saved as default. -m overrides it.",
        "The next start asks again: the file can't be written.",
    ):
        async with running(session=alone(*OFFERS), try_model=Test(), keep_model=keep, size=(100, 30)) as it:
            await it.shows("Connect a model")
            await it.press(*"broken", "enter")
            await it.shows("ollama/broken is out of memory.", "Connect a model")
            await it.press(*"qwen", "enter")
            await it.shows(said)
            await it.until(lambda: it.session.sent(SetModel) == [SetModel("ollama/qwen3")])
    assert kept == ["ollama/qwen3"]


async def test_a_name_that_is_not_listed_can_be_typed() -> None:
    test = Test()
    async with running(session=alone(), try_model=test) as it:
        await it.shows("no API key or local model server found", "Connect a model")
        await it.press(*"mine/zzz", "enter")
        await it.until(lambda: it.session.sent(SetModel) == [SetModel("mine/zzz")])


async def test_a_model_chosen_by_a_command_ends_that_there_is_none() -> None:
    session = alone(*OFFERS)
    async with running(session=session) as it:
        await it.shows("No model is connected yet")
        await it.press("escape")
        await it.hides("Connect a model")
        session.view.model = Session().view.model
        session.emit(ModelChanged("fake/model"))
        await it.hides("No model is connected yet")


async def test_a_key_is_stored_from_there_and_escape_leads_to_the_prompt() -> None:
    kept: list[tuple[str, str]] = []

    def store(provider: str, key: str) -> tuple[str, str]:
        kept.append((provider, key))
        return "Stored.", ""

    async with running(
        session=alone(),
        commands=lambda: (*COMMANDS, LOGIN),
        accounts=Accounts(store, [("openai", "no key yet")]).anew,
    ) as it:
        await it.shows("Add an API key")
        await it.press("enter")
        await it.shows("Add an API key for", "no key yet")
        await it.press("enter")
        await it.shows("Key for openai")
        await it.press(*"sk-x", "enter")
        await it.until(lambda: kept == [("openai", "sk-x")])
    async with running(session=alone()) as it:
        await it.shows("Connect a model")
        await it.press("escape")
        await it.hides("Connect a model")
        await it.until(lambda: it.editor.has_focus)


async def test_the_demo_takes_the_sessions_place() -> None:
    demo = Session()
    opened = asyncio.Event()

    async def open_demo() -> Session:
        opened.set()
        return demo

    session = alone()
    async with running(session=session, demo=open_demo) as it:
        await it.shows("See the demo")
        await it.press(*"demo", "enter")
        await it.until(opened.is_set)
        await it.until(lambda: it.app.session.port is demo)
        await it.hides("Connect a model")


async def test_what_was_typed_meanwhile_is_not_hidden() -> None:
    async with running(session=alone(*OFFERS), first_prompt="fix it") as it:
        await it.shows("(ollama)", "fix it")
        assert "Connect a model" not in it.screen()
        assert it.text == "fix it"


async def test_a_connected_model_needs_no_welcome() -> None:
    async with running() as it:
        await it.pilot.pause()
        assert "Connect a model" not in it.screen()


async def test_control_d_quits_unless_something_is_typed() -> None:
    async with running(session=alone()) as it:
        await it.shows("Connect a model")
        await it.press(*"ab", "left", "ctrl+d")
        await it.shows("a")
        assert it.app.return_code is None
        await it.press("backspace", "ctrl+d")
        await it.until(lambda: it.app.return_code == 0)


async def test_a_task_that_is_typed_there_waits_in_the_prompt() -> None:
    test = Test()
    async with running(session=alone(*OFFERS), try_model=test) as it:
        await it.shows("Connect a model")
        await it.press(*("space" if key == " " else key for key in "fix the bug"), "enter")
        await it.shows("your text is in the prompt", "ollama/qwen3")
        assert it.text == "fix the bug"
        assert test.tried == []
        await it.press("escape")
        await it.shows("› fix the bug")


async def test_two_messages_that_are_typed_there_are_two_lines() -> None:
    async with running(session=alone(*OFFERS)) as it:
        await it.shows("Connect a model")
        await it.press("1", "enter")
        await it.shows("your text is in the prompt")
        await it.press(*"hello", "enter")
        await it.until(lambda: it.text == "1\nhello")


async def test_a_message_typed_there_survives_esc_but_a_filter_does_not() -> None:
    async with running(session=alone(*OFFERS)) as it:
        await it.shows("Connect a model")
        await it.at_once(*"qwen", "escape")
        await it.until(lambda: it.app.main.dock.panel is None)
        assert it.text == ""
    async with running(session=alone(*OFFERS)) as it:
        await it.shows("Connect a model")
        await it.at_once(*"fix the bug", "escape")
        await it.until(lambda: it.text == "fix the bug")


@pytest.mark.parametrize("offers", [OFFERS, ()])
@pytest.mark.parametrize("word", ["hello", "oleg", "fix/"])
async def test_a_word_that_was_meant_for_the_prompt_is_not_tried_as_a_model(
    word: str, offers: tuple[ModelOffer, ...]
) -> None:
    test = Test()
    async with running(session=alone(*offers), try_model=test) as it:
        await it.shows("Connect a model")
        await it.at_once(*word, "enter")
        await it.shows("your text is in the prompt", "Connect a model")
        assert it.text == word
        assert test.tried == []
        assert it.session.sent(SetModel) == []


async def test_a_first_message_that_is_a_command_is_run() -> None:
    async with running(session=Session(), first_prompt="/mode") as it:
        await it.shows("accept-edits", "↑↓ enter choose")
        assert not it.session.sent(Submit)


@pytest.mark.parametrize("size", [(40, 15), (80, 24), (120, 40), (200, 60)])
@pytest.mark.parametrize("offers", [OFFERS, ()])
async def test_the_greeting_says_once_that_there_is_no_model_and_what_to_do(
    size: tuple[int, int], offers: tuple[ModelOffer, ...]
) -> None:
    earlier = StoredSession("s1", "Fix the login", "/proj", 0.0, 3, 100)
    options = {
        "greets": True,
        **ports(sessions=Sessions(lambda name: pytest.fail(name), [earlier])),
        "try_model": Test(),
    }
    async with running(session=alone(*offers), size=size, **options) as it:
        await it.shows("Connect a model", "No model is connected yet")
        words = " ".join(re.sub("[\u2581-\u2588]", "", it.screen()).split())  # without the scroll bar
        assert words.count("No model is connected yet") == 1
        assert ("Enter sends a short test message" if offers else "Press Enter to add a key") in words
        assert "Describe a task" not in words
        assert ("continues “Fix the login”" in words) == (size[0] >= 100)
        if size[0] >= 100:
            rows = [row for row in it.screen().splitlines() if "swecli 0" in row or "No model is connected yet" in row]
            assert len(rows) == 2
            assert all(abs(len(row) - len(row.lstrip()) - (size[0] - len(row.strip())) // 2) < 3 for row in rows)
        await it.press("escape")
        await it.hides("Connect a model")
        await it.sees(lambda screen: "/model selects" in " ".join(screen.split()))
        it.session.view.model = Session().view.model
        it.session.emit(ModelChanged("fake/model"))
        await it.hides("No model is connected yet")
        await it.shows("fake/model")


async def test_what_is_typed_is_not_hidden_by_a_list_and_the_words_say_so() -> None:
    gate = asyncio.Event()
    session = alone(*OFFERS)

    async def slowly() -> Session:
        await gate.wait()
        return session

    async with running(open_session=slowly, size=(80, 30)) as it:
        await it.press(*"fix")
        gate.set()
        await it.shows("No model is connected yet. /model selects one.")
        assert "Enter connects" not in it.screen()
        assert it.text == "fix"


async def test_a_slash_command_typed_at_the_list_is_run() -> None:
    async with running(session=alone(*OFFERS)) as it:
        await it.shows("Connect a model")
        await it.at_once(*"/mode", "enter")
        await it.shows("accept-edits", "↑↓ enter choose")
        assert it.text == ""
        assert it.session.sent(SetModel) == []


async def test_a_question_mark_opens_help_at_the_list_but_not_within_a_name() -> None:
    async with running(session=alone(*OFFERS)) as it:
        await it.shows("Connect a model")
        await it.press(*"qwen?")
        await it.shows("qwen?")
        await it.press(*["backspace"] * 5, "?")
        await it.shows("Help \N{MIDDLE DOT}", "@path")
        await it.press("escape")
        await it.shows("Ask for a change")


async def test_commands_are_listed_while_one_is_typed_there_and_may_have_arguments() -> None:
    async with running(session=alone(*OFFERS)) as it:
        await it.shows("Connect a model")
        await it.press(*"/mo")
        await it.shows("› /mode")
        await it.hides("ollama/qwen3")
        await it.press(*["backspace"] * 2, *"context", "space", *"all", "enter")
        await it.shows("context got [all]")


async def test_a_shell_command_typed_at_the_list_is_run() -> None:
    async with running(session=alone(*OFFERS)) as it:
        await it.shows("Connect a model")
        await it.press(*"!ls", "enter")
        await it.until(lambda: it.session.sent(RunShell) == [RunShell("ls")])


async def test_a_message_without_a_model_waits_in_the_prompt_while_one_is_picked() -> None:
    async with running(session=alone(*OFFERS), try_model=Test()) as it:
        await it.shows("Connect a model")
        await it.press("escape")
        await it.until(lambda: it.editor.has_focus)
        await it.press(*"hi", "enter")
        await it.shows("Connect a model", "your message waits in the prompt")
        assert it.text == "hi"
        assert it.session.sent(Submit) == []
        await it.press("enter")
        await it.until(lambda: it.session.sent(SetModel) == [SetModel("ollama/qwen3")])
        await it.shows("› hi")
