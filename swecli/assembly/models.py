"""Which model a session uses, and how its client is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from swecli.assembly.prices import Prices
from swecli.assembly.providers import configured
from swecli.assembly.windows import Windows
from swecli.core.config.model_names import expand
from swecli.core.config.settings import Settings
from swecli.core.engine.services import ModelUnavailable, Services
from swecli.core.llm.catalog import load_catalog
from swecli.core.llm.client import ClientConfig
from swecli.core.llm.endpoint_replies import EndpointModel
from swecli.core.llm.learned_windows import LearnedWindow
from swecli.core.llm.providers import Overrides, ProviderSetupError, default_model, resolve
from swecli.core.llm.script_format import ScriptError, load_script
from swecli.core.llm.scripted import ScriptedModel
from swecli.core.llm.types import ModelClient
from swecli.core.llm.windows import lookup_with
from swecli.demo import interpreter
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError

SCRIPTED = "scripted"
NO_MODEL = (
    "No model is configured. Set OPENAI_API_KEY or ANTHROPIC_API_KEY (OPENAI_BASE_URL for any compatible server) "
    "and choose one with -m, for example: swecli -m openai/gpt-5. Or try: swecli demo"
)


def chosen_model(options: LaunchOptions, settings: Settings, environment: Mapping[str, str]) -> str | None:
    """``provider/name`` by flag, environment, settings, or the first provider with a key; None without any.

    Raises:
        StartError: headless, where a run without a model can do nothing.
    """
    if options.script is not None:
        return f"{SCRIPTED}/{options.script.stem}"
    name = main_model(settings, environment)
    if name is None and options.headless:
        raise StartError(NO_MODEL, ExitCode.CONFIG)
    return name


def main_model(settings: Settings, environment: Mapping[str, str]) -> str | None:
    """``provider/name`` of the settings (flags are among them), or of the first provider with a key."""
    name = settings.model.name or default_model(environment)
    return expand(name, settings) if name else None


class ModelSupply:
    """Makes clients for ``provider/name`` or an alias, and brings what a session needs to know of their models.

    ``--base-url`` holds for the model that the session starts with. ``data`` is where learned windows are kept.
    """

    def __init__(self, options: LaunchOptions, settings: Settings, environment: Mapping[str, str], data: Path) -> None:
        self._options = options
        self._settings = settings
        self._environment = environment
        self._custom = configured(settings)
        self._main = main_model(settings, environment)
        self.windows = Windows(data)
        self._prices = Prices()
        if options.script is None:
            load_catalog()  # here, in a thread, rather than with the first client on the event loop

    def make(self, model: str) -> ModelClient:
        """A client.

        Raises:
            ModelUnavailable: no such provider, no key; the message says what to do.
        """
        if self._options.script is not None:
            return _scripted(self._options)
        name = expand(model, self._settings)
        try:
            client = self.windows.client(partial(self._resolve, name))
        except ProviderSetupError as error:
            raise ModelUnavailable(str(error)) from error
        self._prices.note(client.config)
        return client

    def equip(self, services: Services) -> Services:
        """The services with everything about models filled in."""
        return replace(
            services,
            make_client=self.make,
            windows=self.windows,
            price=self._prices,
            effort=effort_of(self._settings, self._main),
            fallback=tuple(expand(name, self._settings) for name in self._settings.model.fallback),
            side_models=side_models(self._settings),
        )

    def _resolve(self, name: str, asked: EndpointModel | None, learned: LearnedWindow | None) -> ClientConfig:
        settings, options = self._settings, self._options
        overrides = Overrides(
            base_url=options.base_url if options.base_url and name == self._main else "",
            window=settings.models.window.get(name),
            first_timeout=settings.model.first_token_timeout,
            idle_timeout=settings.model.stall_timeout,
        )
        provider = name.partition("/")[0]
        local = any(item.local for item in self._custom if item.name == provider)
        return resolve(name, self._environment, self._custom, overrides, lookup_with(asked, learned, local))


def effort_of(settings: Settings, main: str | None) -> Callable[[str], str | None]:
    """How much the user wants each model to think: what is said of it, else for the main model what is said of
    that."""

    def effort(model: str) -> str | None:
        return settings.models.effort.get(model) or (settings.model.effort if model == main else None)

    return effort


def side_models(settings: Settings) -> dict[str, str]:
    """The models for work beside the conversation, as far as they are set."""
    roles = {"summary": settings.model.summary, "small": settings.model.small}
    return {work: expand(name, settings) for work, name in roles.items() if name is not None}


def _scripted(options: LaunchOptions) -> ModelClient:
    assert options.script is not None
    try:
        script = load_script(options.script, python=interpreter())
    except (ScriptError, OSError) as error:
        raise ModelUnavailable(f"The script can't be used: {error}") from error
    return ScriptedModel(script) if options.headless else ScriptedModel(script, pause=_real_pause)


async def _real_pause(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)
