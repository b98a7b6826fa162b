"""What is known of well-known models without asking anybody (``catalog.json``)."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from swecli.core.llm.json_values import JsonObject, as_int, as_list, as_object, as_text
from swecli.core.llm.model_names import provider_name, spelling, tails, undated, without_variant
from swecli.core.llm.prices import PriceList, read_prices

MAKERS = (
    "anthropic",
    "openai",
    "gemini",
    "xai",
    "deepseek",
    "mistral",
    "moonshot",
    "zai",
    "alibaba",
    "minimax",
    "meta",
)
"""Providers that serve their own models: what they say of one counts before what other hosts say."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value comes from. ``date`` is ISO, the day of reading."""

    name: str
    version: str
    date: str


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """One model at one provider. None = no source says; sizes are tokens.

    ``reasoning_style``: ``adaptive``, ``budget``, ``effort`` or ``level``. ``echo``: what the next request has to
    give back (``thinking_blocks``, ``thought_signature``, ``reasoning_items``, ``reasoning_content``,
    ``reasoning_details``), or ``optional``. ``retires`` is an ISO date.
    """

    provider: str
    id: str
    aliases: tuple[str, ...]
    window: int | None
    """Total: input and output together, where the source tells them apart."""
    max_output: int | None
    prices: PriceList | None
    cache_minimum: int | None
    images: bool | None
    tools: bool | None
    reasoning: bool | None
    reasoning_style: str | None
    efforts: tuple[str, ...]
    echo: str | None
    deprecated: bool
    retires: str | None
    sources: Mapping[str, tuple[Source, ...]]
    """By group of fields: window, max_output, prices, cache_minimum, capabilities, reasoning, echo."""

    @property
    def ref(self) -> str:
        """``provider/name``, as ``-m`` takes it."""
        return f"{self.provider}/{self.id}"


@dataclass(frozen=True, slots=True)
class Found:
    """An entry, and how sure it is that it is the model that was asked for.

    ``exact``: its name or another name of it. ``dated``: the name with a date. ``variant``: a router's variant,
    whose price differs. ``elsewhere``: the same name at another provider.
    """

    model: CatalogModel
    how: Literal["exact", "dated", "variant", "elsewhere"]

    @property
    def prices(self) -> PriceList | None:
        """What the model costs where it was asked for; None where that is not known."""
        return self.model.prices if self.how in ("exact", "dated") else None


class Catalog:
    """The models, in the order of the file: by provider, current ones first."""

    def __init__(self, models: Iterable[CatalogModel]) -> None:
        self.models = tuple(models)
        self._names: dict[str, dict[str, CatalogModel]] = {}
        for model in self.models:
            self._names.setdefault(model.provider, {})[spelling(model.id)] = model
        for model in self.models:
            for alias in model.aliases:
                self._names[model.provider].setdefault(spelling(alias), model)
        for model in self.models:
            self._names[model.provider].setdefault(spelling(model.id.rpartition("/")[2]), model)

    @property
    def providers(self) -> tuple[str, ...]:
        return tuple(self._names)

    def of_provider(self, provider: str) -> tuple[CatalogModel, ...]:
        """The models of one provider; none where the catalogue does not know it."""
        name = provider_name(provider)
        return tuple(model for model in self.models if model.provider == name)

    def lookup(self, provider: str, model: str) -> Found | None:
        """The entry for a model: by its name at that provider, without a date, without a router's variant, then by
        its name at the provider that makes it, or at another: one with the window that most hosts have."""
        host = provider_name(provider)
        plain = without_variant(host, model)
        for form in (model, plain):
            if found := self._at(host, form):
                return found if form == model else Found(found.model, "variant")
        return self._elsewhere(plain)

    def nearest(self, provider: str, model: str, count: int = 3) -> tuple[str, ...]:
        """References (``provider/name``) of the models whose names are most like this one, best first: of the
        provider if the catalogue knows it, else of all."""
        host = provider_name(provider)
        pool = self.of_provider(host) or self.models
        by_name: dict[str, CatalogModel] = {}
        for item in pool:
            for name in (item.id, item.id.rpartition("/")[2], *item.aliases):
                by_name.setdefault(spelling(name), item)
        wanted = spelling(model)
        close = difflib.get_close_matches(wanted, by_name, count * 3, 0.5)
        inside = [name for name in by_name if len(wanted) > 2 and wanted in name]
        refs = dict.fromkeys(by_name[name].ref for name in (*close, *inside))
        return tuple(refs)[:count]

    def _at(self, provider: str, model: str) -> Found | None:
        names = self._names.get(provider)
        if names is None:
            return None
        for form in tails(model):
            if exact := names.get(spelling(form)):
                return Found(exact, "exact")
        for form in tails(undated(model)):
            if dated := names.get(spelling(form)):
                return Found(dated, "dated")
        return None

    def _elsewhere(self, model: str) -> Found | None:
        maker = provider_name(model.partition("/")[0])
        for provider in (maker, *MAKERS):
            if found := self._at(provider, model):
                return Found(found.model, "elsewhere")
        others = [found.model for provider in self._names if (found := self._at(provider, model))]
        sizes = Counter(item.window for item in others if item.window is not None)
        others.sort(key=lambda item: (-sizes.get(item.window or 0, 0), item.window or 0))
        return Found(others[0], "elsewhere") if others else None


@cache
def load_catalog() -> Catalog:
    """The catalogue that comes with the program."""
    data = as_object(json.loads(files("swecli.core.llm").joinpath("catalog.json").read_text("utf-8")))
    sources = {letter: _source(as_object(item)) for letter, item in as_object(data.get("sources")).items()}
    return Catalog(_model(as_object(item), sources) for item in as_list(data.get("models")))


def _source(item: JsonObject) -> Source:
    return Source(as_text(item.get("name")), as_text(item.get("version")), as_text(item.get("date")))


def _model(item: JsonObject, sources: Mapping[str, Source]) -> CatalogModel:
    return CatalogModel(
        provider=as_text(item.get("provider")),
        id=as_text(item.get("id")),
        aliases=_texts(item.get("aliases")),
        window=as_int(item.get("window")),
        max_output=as_int(item.get("max_output")),
        prices=read_prices(item.get("prices")),
        cache_minimum=as_int(item.get("cache_minimum")),
        images=_flag(item.get("images")),
        tools=_flag(item.get("tools")),
        reasoning=_flag(item.get("reasoning")),
        reasoning_style=as_text(item.get("reasoning_style")) or None,
        efforts=_texts(item.get("efforts")),
        echo=as_text(item.get("echo")) or None,
        deprecated=item.get("deprecated") is True,
        retires=as_text(item.get("retires")) or None,
        sources={
            group: tuple(sources[letter] for letter in as_text(letters))
            for group, letters in as_object(item.get("sources")).items()
        },
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(as_text(item) for item in as_list(value))


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
