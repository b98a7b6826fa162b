"""Every panel and every screen as text at three sizes, light and dark; one application for each, which changes its size
and its colours on the way. A panel or screen without a golden fails here."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, get_args

import msgspec
import pytest

import swecli.features
import swecli.tui.dock
import swecli.tui.screens
from swecli.assembly.trust import TrustItem
from swecli.commands.base import Screen
from swecli.commands.compaction import COMPACT
from swecli.commands.models import LOGIN
from swecli.commands.usage import USAGE
from swecli.core.llm.offers import ModelOffer
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.events import Body, PermissionRequested, QuestionAsked
from swecli.core.protocol.request_events import Option, Question
from swecli.tui.dock.panel import DockPanel, KeyLine
from swecli.tui.screens.list_screen import ListPage
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.dock.test_plan import planning
from tests.tui.dock.test_trust import Gate
from tests.tui.golden import FOLDER
from tests.tui.scenes import TODOS, WORK
from tests.tui.support import COMMANDS, Accounts, Running, Session, running
from tests.tui.test_compact_panel import Planned
from tests.tui.test_looks import MIDDLE, SIZES, check_all, prepared

FETCH = PermissionRequested(
    "p3",
    "t5",
    "web_fetch",
    "https://example.org/prices",
    (TextBlock("GET https://example.org/prices"),),
    "Pages of this host were not fetched before.",
    "hash",
    "WebFetch(domain:example.org)",
)
COLOURS = Question(
    "Which colours are sold?",
    (Option("black", "in every shop"), Option("blue"), Option("日本の紫", "with wide signs")),
    header="Colours",
    multiple=True,
)
WHY = Question("What is the discount for? A sentence is enough.")
PRICE = Question("Which price?", (Option("95", "as in the README"), Option("90")), header="Price")
OFFERS = (
    ModelOffer("ollama/qwen3", "not needed", window=40_000, running="127.0.0.1:11434"),
    ModelOffer("anthropic/claude", "environment", "ANTHROPIC_API_KEY", window=1_000_000),
)
MODELS = ("anthropic/sonnet-5", "openai/gpt-6")


@dataclass(frozen=True)
class Scene:
    """How a panel comes: what the session does, what is pressed, and which options there are."""

    act: Callable[[Running], Awaitable[None]]
    bodies: tuple[Body, ...] = ()
    session: Callable[[], Session] | None = None
    options: dict[str, Any] = field(default_factory=dict)


def ripen(it: Running) -> None:
    """Let so much time pass that keys count, and show it."""
    it.clock.now += 5
    for line in it.app.query(KeyLine):
        line._look_again()


def asks(text: str, *keys: str) -> Callable[[Running], Awaitable[None]]:
    async def act(it: Running) -> None:
        await it.say("go")
        await it.shows(text)
        ripen(it)
        await it.press(*keys)

    return act


def says(line: str, text: str, *keys: str) -> Callable[[Running], Awaitable[None]]:
    async def act(it: Running) -> None:
        await it.say(line)
        await it.shows(text)
        await it.press(*keys)

    return act


async def history(it: Running) -> None:
    for turns, text in enumerate(("fix the price", "run the tests again"), 1):
        await it.say(text)
        await it.until(lambda turns=turns: it.screen().count("✓ done") == turns)
    await it.press("ctrl+r", *"test")
    await it.shows("search history: test", "run the tests again")


async def todos(it: Running) -> None:
    await it.say("go")
    await it.until(lambda: it.app.session.state.todos)
    await it.press("ctrl+t")
    await it.shows("Todos 1/3")


def waits(text: str, *keys: str) -> Callable[[Running], Awaitable[None]]:
    async def act(it: Running) -> None:
        await it.shows(text)
        ripen(it)
        await it.press(*keys)

    return act


async def effort(it: Running) -> None:
    # The same model as before: the status bar shows another one at its next tick, whenever that is.
    it.session.view.model = msgspec.structs.replace(it.session.view.model, efforts=("low", "high"))
    it.app.interface.open("pick_effort")
    await it.shows("Effort", "high")


def nobody() -> Session:
    session = Session(model=False)
    session.offers.listed = OFFERS
    return session


def unpriced() -> Session:
    session = Session()
    session.offers.unpriced = ("fake/model",)
    return session


def guarded(*items: TrustItem) -> dict[str, Any]:
    names = (".swecli/config.toml", "AGENTS.md", ".mcp.json")

    async def open_session() -> Session:
        return prepared(())

    return {"trust": Gate(names, items), "open_session": open_session}


ITEM = TrustItem("approval.allow", '["Bash(make *)"]', "/w/.swecli/config.toml:2", "d")
LOGINS = {
    "commands": lambda: (*COMMANDS, LOGIN),
    "accounts": Accounts(lambda provider, key: ("", ""), [("anthropic", "no key yet"), ("openai", "key stored")]).anew,
}
SCENES: dict[str, Scene] = {
    "panel-web": Scene(asks("example.org"), (*WORK, FETCH)),
    "panel-question-several": Scene(
        asks("Which colours", "space", "down", "down", "space"), (QuestionAsked("q", "t", (COLOURS,)),)
    ),
    "panel-question-free": Scene(asks("What is the discount", *"Loyalty"), (QuestionAsked("q", "t", (WHY,)),)),
    "panel-question-own-words": Scene(asks("Which price", "3"), (QuestionAsked("q", "t", (PRICE,)),)),
    "panel-question-second": Scene(asks("Which price", "1"), (QuestionAsked("q", "t", (PRICE, COLOURS, WHY)),)),
    "panel-trust": Scene(waits("/proj"), options=guarded()),
    "panel-trust-setting": Scene(waits("/proj", "1"), options=guarded(ITEM)),
    "panel-first-run": Scene(
        waits("running at 127.0.0.1:11434"), session=nobody, options={**LOGINS, "demo": lambda: None}
    ),
    "panel-plan": Scene(asks("Go ahead with this plan?"), session=planning),
    "panel-mode": Scene(says("/mode", "accept-edits")),
    "panel-effort": Scene(effort),
    "panel-price": Scene(
        says("/usage price", "input output", *"3 15"),
        session=unpriced,
        options={"commands": lambda: (*COMMANDS, USAGE)},
    ),
    "panel-model": Scene(says("/model", "openai/gpt-6"), options={"models": lambda: MODELS}),
    "panel-provider": Scene(says("/login", "no key yet"), options=LOGINS),
    "panel-key": Scene(says("/login openai", "Key for openai", *"secret"), options=LOGINS),
    "panel-compact": Scene(
        says("/compact the tests", "Compact from"), session=Planned, options={"commands": lambda: (*COMMANDS, COMPACT)}
    ),
    "panel-history": Scene(history, session=lambda: Session((TODOS,), (TODOS,))),
    "panel-todos": Scene(todos, (*WORK, WAIT_FOR_INTERRUPT)),  # type: ignore[arg-type]
}

PANELS = {
    "ApprovalPanel": "command",
    "PlanPanel": "panel-plan",
    "QuestionPanel": "question",
    "ChoicePanel": "panel-trust",
    "SecretPanel": "panel-key",
    "FindPanel": "find",
    "Picker": "panel-mode",
}
LIST_PAGES = {
    "HelpPage": "screen-help",
    "SettingsPage": "screen-settings",
    "ValuePage": "screen-settings-edit",
    "PermissionsPage": "screen-permissions",
    "SessionsPage": "screen-sessions",
    "RewindPage": "screen-rewind",
    "PlaybookPage": "screen-playbook",
    "ActionsPage": "screen-playbook-bullet",
    "EditPage": "screen-playbook-edit",
    "JobsPage": "screen-jobs",
    "OutputPage": "screen-jobs-output",
}
OPENED: dict[Screen, str] = {
    "pick_mode": "panel-mode",
    "pick_model": "panel-model",
    "pick_theme": "themes-dark",
    "keys": "keys",
    "find": "find",
    "login": "panel-provider",
    "help": "screen-help",
    "settings": "screen-settings",
    "permissions": "screen-permissions",
    "sessions": "screen-sessions",
    "rewind": "screen-rewind",
    "playbook": "screen-playbook",
    "jobs": "screen-jobs",
    "pick_effort": "panel-effort",
    "price": "panel-price",
}
"""What slash commands open; to quit and to clear has no looks of its own."""


@pytest.mark.parametrize("name", SCENES)
async def test_panel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from swecli.core.llm.providers import known_providers

    for provider in known_providers().values():
        for variable in (*provider.api_key_env, *provider.base_url_env):
            monkeypatch.delenv(variable, raising=False)
    scene = SCENES[name]
    session = scene.session() if scene.session else prepared(scene.bodies)
    async with running(session=session, **scene.options) as it:
        await scene.act(it)
        await check_all(it, name, (MIDDLE, *SIZES) if name == "panel-plan" else SIZES)


def subclasses(kind: type, package: Any) -> set[str]:
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    for feature in pkgutil.iter_modules(swecli.features.__path__, "swecli.features."):
        if feature.ispkg and importlib.util.find_spec(f"{feature.name}.screen"):
            importlib.import_module(f"{feature.name}.screen")
    found = [*kind.__subclasses__()]
    for each in found:
        found += each.__subclasses__()
    return {each.__name__ for each in found if each.__module__.startswith("swecli.")}


def test_every_panel_screen_and_command_has_goldens() -> None:
    assert subclasses(DockPanel, swecli.tui.dock) == set(PANELS)
    assert subclasses(ListPage, swecli.tui.screens) == set(LIST_PAGES)
    left = {"context", "compact", "wire", "cache"}  # their looks are in test_context_screens.py
    left |= {"quit", "clear", "fork", "add_folder", "trust_folder", "edit_file", "editing", "edit_plan", "keep_model"}
    assert set(OPENED) == {*get_args(Screen)} - left
    for scene in {*PANELS.values(), *LIST_PAGES.values(), *OPENED.values(), *SCENES}:
        side = ["styles"] if scene.endswith(("-dark", "-light")) else ["dark-styles", "light-styles"]
        for kind in ("80x24", "120x40", "200x60", *side):
            assert (FOLDER / f"{scene}-{kind}.txt").is_file(), f"{scene}-{kind}"
