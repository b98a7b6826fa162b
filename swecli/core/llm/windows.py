"""Choice of the context window: the user's setting, the server's report, a learned limit, or the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from swecli.core.llm.catalog import (
    CatalogMatch,
    CatalogModel,
    common_name,
    load_catalog,
    provider_name,
    spelling,
    tails,
    undated,
    without_variant,
)
from swecli.core.llm.json_values import JsonObject, as_int, as_object, as_text
from swecli.core.llm.learned_file import LearnedFile
from swecli.core.llm.model_listings import EndpointModel, is_known_program
from swecli.core.llm.types import ASSUMED_WINDOW, ModelInfo


class WindowTable(Struct, frozen=True):
    """Windows in tokens, by canonical name (``spelling``)."""

    hosts: dict[str, dict[str, int]]
    names: dict[str, int]
    families: dict[str, int]
    sources: tuple[str, ...]

    def at_host(self, provider: str, model: str) -> int | None:
        host = provider_name(provider)
        known = self.hosts.get(host, {})
        forms = (spelling(form) for form in tails(without_variant(host, model)))
        return next((known[form] for form in forms if form in known), None)

    def by_name(self, model: str) -> int | None:
        """The usual window of a model with this name: from its maker or most hosts, by its name without a date, or by
        its family."""
        common = common_name(model)
        for form in (common, undated(common)):
            for known in (self.families, self.names):
                if form in known:
                    return known[form]
        return next((self.families[form] for form in _beginnings(common) if form in self.families), None)


def _beginnings(name: str) -> Iterator[str]:
    """The name and its prefixes that end before a dash, longest first."""
    while name:
        yield name
        name = name.rpartition("-")[0]


def load_windows() -> WindowTable:
    """Reads the file, in half a millisecond; held, it would take 0.3 MiB of each session."""
    return msgspec.json.decode(Path(__file__).with_name("model_windows.json").read_bytes(), type=WindowTable)


SMALLEST, LARGEST = 256, 100_000_000
"""Tokens. A number outside this range is not a context window."""
_MAX_ENTRIES = 500


class LearnedWindow(Struct, frozen=True):
    """A window reported by a server: ``tokens``, on ``day`` (ISO date). ``refuted`` is the larger window of the user's
    settings that the server refused then; the same setting does not count again."""

    tokens: int
    day: str
    refuted: int | None = None


class LearnedWindows:
    """The file of learned windows. Nothing here raises: a window that can't be stored is learned again from the next
    error."""

    def __init__(self, path: Path) -> None:
        self._file = LearnedFile(path, "windows", {"version": 1})

    def find(self, host: str, model: str) -> LearnedWindow | None:
        item = as_object(as_object(self._file.read().get(host)).get(model))
        tokens = as_int(item.get("tokens"))
        if tokens is None or not SMALLEST <= tokens <= LARGEST:
            return None
        return LearnedWindow(tokens, as_text(item.get("day")), as_int(item.get("refuted")))

    def learn(self, host: str, model: str, window: LearnedWindow) -> str:
        """Store a window. Returns a sentence for the user if that failed, else the empty string."""
        if not SMALLEST <= window.tokens <= LARGEST:
            return ""
        entry: JsonObject = {"tokens": window.tokens, "day": window.day}
        if window.refuted is not None:
            entry["refuted"] = window.refuted
        try:
            with self._file.alone():
                aside = self._file.put_aside_if_damaged()
                windows = self._file.read()
                models = {**as_object(windows.get(host)), model: entry}
                self._file.write(_newest({**windows, host: models}))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            return f"Could not store the context window of {model} in {self._file.path}: {reason}."
        return f"{self._file.path} was damaged; it was kept as {aside}." if aside else ""


def host_key(base_url: str) -> str:
    """Host and port of a server, the key of its windows."""
    return urlsplit(base_url).netloc.rpartition("@")[2].lower()


def _newest(windows: JsonObject) -> JsonObject:
    """The most recently learned windows, up to a reasonable number."""
    rows = [
        (as_text(as_object(item).get("day")), host, model, item)
        for host, models in windows.items()
        for model, item in as_object(models).items()
    ]
    rows.sort(key=lambda row: row[:3], reverse=True)
    newest: JsonObject = {}
    for _, host, model, item in rows[:_MAX_ENTRIES]:
        newest[host] = {**as_object(newest.get(host)), model: item}
    return newest


LOCAL_PROVIDERS = (
    *("ollama", "lmstudio", "llamacpp", "vllm", "sglang"),
    *("koboldcpp", "tabbyapi", "jan", "docker", "lemonade"),
)
"""Programs that serve a model with the window chosen by their user, which no catalogue knows."""

WindowSource = Literal["user", "endpoint", "learned", "catalogue", "assumed"]


class KnownWindow(Struct, frozen=True):
    """A window in tokens, its source, and details of the source (a path, a date, a package)."""

    tokens: int
    source: WindowSource
    detail: str = ""


def choose_window(
    setting: int | None = None,
    asked: EndpointModel | None = None,
    learned: LearnedWindow | None = None,
    listed: KnownWindow | None = None,
) -> KnownWindow:
    """The applicable window: from the first source that has one. The server's reported maximum caps every source below
    the server."""
    if setting is not None:
        return KnownWindow(setting, "user", "settings")
    if asked is not None and asked.window is not None:
        return KnownWindow(asked.window, "endpoint", asked.where)
    maximum = asked.maximum if asked is not None else None
    if learned is not None:
        return _capped(learned.tokens, "learned", f"an error of {learned.day}", maximum)
    if listed is not None:
        return _capped(listed.tokens, listed.source, listed.detail, maximum)
    return _capped(ASSUMED_WINDOW, "assumed", "this model is unknown", maximum)


def listed_window(
    provider: str, model: str, found: CatalogMatch | None, table: WindowTable | None = None
) -> KnownWindow | None:
    """The window known without a request; ``found`` is the catalogue's entry. In order: the entry of exactly this
    model, data on its host, a similar entry, and the usual window of its name or family. None if unknown. ``table`` is
    given for many models."""
    entry = _of_entry(found.model) if found is not None else None
    if found is not None and found.how == "exact" and entry is not None:
        return entry
    table = table or load_windows()
    sources = ", ".join(table.sources)
    if (tokens := table.at_host(provider, model)) is not None:
        return KnownWindow(tokens, "catalogue", sources)
    if entry is not None:
        return entry
    tokens = table.by_name(model)
    return KnownWindow(tokens, "catalogue", f"{sources}, by its name") if tokens is not None else None


def _of_entry(model: CatalogModel) -> KnownWindow | None:
    if model.window is None:
        return None
    sources = ", ".join(f"{item.name} of {item.date}" for item in model.window_sources)
    return KnownWindow(model.window, "catalogue", sources)


def model_info(
    provider: str,
    model: str,
    *,
    local: bool = False,
    asked: EndpointModel | None = None,
    learned: LearnedWindow | None = None,
    setting: int | None = None,
    table: WindowTable | None = None,
) -> ModelInfo:
    """All known data of a model. ``local``: its server belongs to the user, who chose the window there. ``setting`` is
    the window set by the user. ``table`` is given for many models."""
    theirs = local or provider in LOCAL_PROVIDERS
    match = None if theirs else load_catalog().lookup(provider, model)
    listed = match.model if match is not None else None
    window = choose_window(setting, asked, learned, None if theirs else listed_window(provider, model, match, table))
    outputs = (asked.max_output if asked else None, listed.max_output if listed else None)
    images = (asked.images if asked else None, listed.images if listed else None)
    tools = (asked.tools if asked else None, listed.tools if listed else None)
    return ModelInfo(
        provider,
        model,
        window.tokens,
        next((size for size in outputs if size is not None), None),
        window.source,
        next((flag for flag in images if flag is not None), None),
        next((flag for flag in tools if flag is not None), True),
        None if listed is None else () if listed.reasoning is False else listed.efforts or None,
        warms=asked is not None and is_known_program(asked),
        tells_progress=asked is not None and asked.where == "/props",
        tells_slots=asked is not None and asked.slots is True,
        answering=asked.answering if asked is not None else "",
    )


def lookup_with(
    asked: EndpointModel | None = None, learned: LearnedWindow | None = None, local: bool = False
) -> Callable[[str, str], ModelInfo]:
    """``model_info`` for resolving a provider, which applies the user's own settings over it."""

    def look_up(provider: str, model: str) -> ModelInfo:
        return model_info(provider, model, local=local, asked=asked, learned=learned)

    return look_up


def _capped(tokens: int, source: WindowSource, detail: str, maximum: int | None) -> KnownWindow:
    return KnownWindow(tokens if maximum is None else min(tokens, maximum), source, detail)


ModelLookup = Callable[[str, str], ModelInfo]
"""(provider, model name) -> known data."""


def look_up_model(provider: str, name: str) -> ModelInfo:
    """The catalogue's entry, or a cautious guess marked by ``window_source``."""
    return model_info(provider, name)
