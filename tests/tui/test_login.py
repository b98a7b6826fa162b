"""Storing a key from the interface: typed without being shown, kept nowhere but in the store."""

from __future__ import annotations

from pathlib import Path

from swecli.commands.models import LOGIN
from swecli.core.llm.offers import ModelOffer
from swecli.core.protocol.commands import SetModel
from swecli.core.protocol.events import TurnEnded
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.support import COMMANDS, Accounts, Session, running

KEY = "sk-canary-31415926"
WITH_LOGIN = lambda: (*COMMANDS, LOGIN)  # noqa: E731


class Store:
    """Takes keys, or refuses them."""

    def __init__(self, refuse: str = "") -> None:
        self.kept: list[tuple[str, str]] = []
        self.refuse = refuse

    def __call__(self, provider: str, key: str) -> tuple[str, str]:
        if self.refuse:
            raise ValueError(self.refuse)
        self.kept.append((provider, key))
        return f"The key of {provider} is stored.", f"{provider}/usual"


def holding(text: str, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_text("utf-8", "replace")]


async def test_a_key_is_asked_for_without_being_shown_or_kept(tmp_path: Path) -> None:
    store = Store()
    session = Session(model=False)
    async with running(session=session, state=tmp_path, commands=WITH_LOGIN, accounts=Accounts(store).anew) as it:
        await it.shows("Connect a model")
        await it.press("escape")
        await it.hides("Connect a model")
        await it.say("/login openai")
        await it.shows("Key for openai")
        await it.press(*KEY)
        assert KEY not in it.screen()
        assert "•" in it.screen()
        await it.press("enter")
        await it.shows("The key of openai is stored.", "Using openai/usual, its default")
        assert "No model is connected yet" not in it.screen()
        assert store.kept == [("openai", KEY)]
        await it.until(lambda: it.session.sent(SetModel) == [SetModel("openai/usual")])
        await it.until(lambda: it.editor.has_focus)
        await it.press("up")
        assert it.text == "/login openai"
    assert not holding(KEY, tmp_path)


REFUSED = TurnEnded("error", "openai: Incorrect API key provided", "auth")


async def test_a_refused_key_opens_the_panel_that_takes_another() -> None:
    store = Store()
    async with running((REFUSED,), (REFUSED,), accounts=Accounts(store).anew) as it:
        await it.say("go")
        await it.shows("fake refused the key", "Enter another key for fake", "Connect another model")
        await it.press("1")
        await it.shows("Key for fake")
        await it.press(*KEY, "enter")
        await it.until(lambda: store.kept == [("fake", KEY)])
        await it.say("again")
        await it.shows("fake refused the key")
        await it.press("escape")
        await it.hides("fake refused the key")
        await it.until(lambda: it.editor.has_focus)


async def test_a_refused_key_hides_no_draft() -> None:
    async with running((WAIT_FOR_INTERRUPT, REFUSED)) as it:
        await it.say("go")
        await it.type("a draft")
        it.session.emit(REFUSED)
        await it.shows("Incorrect API key")
        await it.settled()
        assert it.text == "a draft"
        assert "refused the key" not in it.screen()


async def test_a_server_of_the_users_own_is_asked_again_with_the_new_key() -> None:
    session = Session(model=False)
    session.offers.unlisted = ("openai at http://h/v1 requires a key.",)

    def store(provider: str, key: str) -> tuple[str, str]:
        session.offers.unlisted, session.offers.listed = (), (ModelOffer("openai/mine", "stored", "", listed=True),)
        return f"The key of {provider} is stored.", ""

    async with running(session=session, commands=WITH_LOGIN, accounts=Accounts(store).anew) as it:
        await it.shows("requires a key", "Connect a model")
        await it.press(*"/login openai", "enter")
        await it.shows("Key for openai")
        await it.press("a", "b", "enter")
        await it.shows("The key of openai is stored.", "Connect a model", "openai/mine")
        assert it.session.sent(SetModel) == []


async def test_no_key_is_asked_for_a_provider_that_does_not_exist() -> None:
    store = Store()

    async with running(commands=WITH_LOGIN, accounts=Accounts(store, known=("openai",)).anew) as it:
        await it.say("/login nosuch")
        await it.shows("Provider 'nosuch' is unknown")
        assert "Key for" not in it.screen()
        await it.say("/login openai")
        await it.shows("Key for openai")
    assert store.kept == []


async def test_the_provider_is_chosen_where_none_was_named() -> None:
    store = Store()
    offered = [("anthropic", "no key yet"), ("openai", "key stored")]
    async with running(commands=WITH_LOGIN, accounts=Accounts(store, offered).anew) as it:
        await it.say("/login")
        await it.shows("Add an API key for", "anthropic", "key stored")
        await it.press("o", "p", "enter")
        await it.shows("Key for openai")
        await it.press("a", "b", "enter")
        await it.shows("The key of openai is stored.")
        assert it.session.sent(SetModel) == []


async def test_a_key_added_from_the_first_screen_connects_the_providers_default_and_says_so() -> None:
    session = Session(model=False)
    offered = [("anthropic", "no key yet")]
    async with running(session=session, accounts=Accounts(Store(), offered).anew, size=(100, 30)) as it:
        await it.shows("No model is connected yet", "Add an API key")
        await it.press("enter")
        await it.shows("Add an API key for")
        await it.press("enter")
        await it.shows("Key for anthropic")
        await it.press("a", "b", "enter")
        await it.shows("Using anthropic/usual, its default; /model selects another.")
        assert "No model is connected yet" not in it.screen()
        assert it.session.sent(SetModel) == [SetModel("anthropic/usual")]


async def test_leaving_stores_nothing_and_a_refusal_says_why() -> None:
    store = Store(refuse="that is no key")
    async with running(commands=WITH_LOGIN, accounts=Accounts(store).anew) as it:
        await it.say("/login openai")
        await it.shows("Key for openai")
        await it.press("a", "escape")
        await it.hides("Key for openai")
        await it.say("/login openai")
        await it.press("a", "b", "enter")
        await it.shows("that is no key")
        assert store.kept == []


async def test_the_list_of_models_says_what_is_known_of_each() -> None:
    session = Session()
    session.offers.listed = (
        ModelOffer("a/ready", "environment", "A_KEY", window=200_000, images=True),
        ModelOffer("b/locked", "missing", "B_KEY", window=1_050_000),
    )
    async with running(session=session, size=(100, 24)) as it:
        await it.say("/model")
        await it.shows("a/ready", "200K window", "images")
        assert "b/locked" not in it.screen(), "only what can be used now is listed"
        await it.press(*"b/locked", "enter")
        await it.until(lambda: it.session.sent(SetModel) == [SetModel("b/locked")])
