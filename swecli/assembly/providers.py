"""The providers of the settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from swecli.core.config.model_settings import ProviderSettings
from swecli.core.config.settings import Settings
from swecli.core.llm.providers import ProviderConfig, known_providers


def configured(settings: Settings) -> tuple[ProviderConfig, ...]:
    """The user's own providers, and the built-in ones of which they changed something."""
    return tuple(_configured(name, entry) for name, entry in settings.providers.items())


def _configured(name: str, entry: ProviderSettings) -> ProviderConfig:
    known = known_providers().get(name)
    base = known or ProviderConfig(name, "openai-chat", "")
    changes: dict[str, Any] = {
        "protocol": entry.protocol,
        "base_url": entry.base_url,
        "api_key_env": (entry.api_key_env,) if entry.api_key_env else None,
        "window": entry.window,
        "max_output": entry.max_output,
    }
    given = {key: value for key, value in changes.items() if value is not None}
    local = base.local or (known is None and entry.api_key_env is None)
    headers = {**base.headers, **entry.headers}
    return replace(base, **given, headers=headers, quirks=entry.dialect.given, local=local)
