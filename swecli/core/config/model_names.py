"""From the names that people give to models to ``provider/model``. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from swecli.core.config.settings import Settings

ROLES = ("main", "summary", "small")
"""Names that stand for the models of the settings."""


def expand(reference: str, settings: Settings) -> str:
    """``provider/model`` for an alias or a role; anything else as it is."""
    model = settings.model
    role = {"main": model.name, "summary": model.summary or model.name, "small": model.small or model.name}
    for _ in ROLES:  # a role may name another one
        if reference in settings.models.aliases:
            return settings.models.aliases[reference]
        if reference not in role:
            break
        reference = role[reference] or reference
    return reference


def named_models(settings: Settings) -> tuple[str, ...]:
    """Every ``provider/model`` that the settings name, the roles first."""
    model, models = settings.model, settings.models
    roles = [expand(name, settings) for name in (model.name, model.summary, model.small, *model.fallback) if name]
    return tuple(dict.fromkeys([*roles, *models.aliases.values(), *models.price, *models.window, *models.effort]))


def unknown_references(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Keys of the settings that name a model by a word that means nothing, with what is wrong."""
    model = settings.model
    named = {"name": (model.name,), "summary": (model.summary,), "small": (model.small,), "fallback": model.fallback}
    for key, references in named.items():
        for reference in references:
            if reference is not None and "/" not in expand(reference, settings):
                known = ", ".join(sorted(settings.models.aliases)) or "none"
                yield (
                    ("model", key),
                    f'must be "provider/model" or an alias (there are: {known}); {reference!r} is neither',
                )
