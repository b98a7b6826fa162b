"""Which model a session uses, and how its client is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from swecli.core.config.settings import ProviderSettings, Settings
from swecli.core.engine.services import ModelFactory, ModelUnavailable
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import (
    Overrides,
    ProviderConfig,
    ProviderSetupError,
    default_model,
    known_providers,
    resolve,
)
from swecli.core.llm.script_format import ScriptError, load_script
from swecli.core.llm.scripted import ScriptedModel
from swecli.core.llm.transport import Timeouts
from swecli.core.llm.types import ModelClient
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
    name = settings.model.name or default_model(environment) or None
    if name is None and options.headless:
        raise StartError(NO_MODEL, ExitCode.CONFIG)
    return name


def model_factory(options: LaunchOptions, settings: Settings, environment: Mapping[str, str]) -> ModelFactory:
    """Makes clients for ``provider/name``; ``--base-url`` holds for the model that the session starts with."""
    custom = [_configured(name, entry) for name, entry in settings.providers.items()]
    timeouts = Timeouts(first=settings.model.first_token_timeout, idle=settings.model.stall_timeout)
    first = chosen_model(options, settings, environment)

    def make(model: str) -> ModelClient:
        if options.script is not None:
            return _scripted(options)
        base_url = options.base_url if options.base_url and model == first else ""
        overrides = Overrides(base_url=base_url or "", timeouts=timeouts)
        try:
            return HttpModelClient(resolve(model, environment, custom, overrides))
        except ProviderSetupError as error:
            raise ModelUnavailable(str(error)) from error

    return make


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


def _configured(name: str, entry: ProviderSettings) -> ProviderConfig:
    """A provider of the settings: a new one, or a built-in one with some fields changed."""
    known = known_providers().get(name)
    base = known or ProviderConfig(name, "openai-chat", "")
    changes: dict[str, object] = {
        "protocol": entry.protocol,
        "base_url": entry.base_url,
        "api_key_env": (entry.api_key_env,) if entry.api_key_env else None,
        "window": entry.window,
    }
    headers = {**base.headers, **entry.headers}
    given = {key: value for key, value in changes.items() if value is not None}
    local = base.local or (known is None and entry.api_key_env is None)
    return replace(base, **given, headers=headers, local=local)  # type: ignore[arg-type]
