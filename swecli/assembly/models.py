"""Which model a session uses, and how its client is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from swecli.assembly.providers import configured
from swecli.core.config.model_names import expand
from swecli.core.config.settings import Settings
from swecli.core.engine.services import ModelFactory, ModelUnavailable
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import Overrides, ProviderSetupError, default_model, resolve
from swecli.core.llm.script_format import ScriptError, load_script
from swecli.core.llm.scripted import ScriptedModel
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
    name = main_model(settings, environment)
    if name is None and options.headless:
        raise StartError(NO_MODEL, ExitCode.CONFIG)
    return name


def main_model(settings: Settings, environment: Mapping[str, str]) -> str | None:
    """``provider/name`` of the settings (flags are among them), or of the first provider with a key."""
    name = settings.model.name or default_model(environment)
    return expand(name, settings) if name else None


def model_factory(options: LaunchOptions, settings: Settings, environment: Mapping[str, str]) -> ModelFactory:
    """Makes clients for ``provider/name`` or an alias; ``--base-url`` holds for the model that the session starts
    with."""
    custom = configured(settings)
    first = chosen_model(options, settings, environment)

    def make(model: str) -> ModelClient:
        if options.script is not None:
            return _scripted(options)
        name = expand(model, settings)
        overrides = Overrides(
            base_url=options.base_url if options.base_url and name == first else "",
            window=settings.models.window.get(name),
            first_timeout=settings.model.first_token_timeout,
            idle_timeout=settings.model.stall_timeout,
        )
        try:
            return HttpModelClient(resolve(name, environment, custom, overrides))
        except ProviderSetupError as error:
            raise ModelUnavailable(str(error)) from error

    return make


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
