"""The catalogue of models: names, windows, capabilities, prices, and the cost of a response."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec import Struct, field, structs

from swecli.core.protocol.messages import Usage
from swecli.lazy_pattern import lazy_pattern

_RATES = ("input", "output", "cache_read", "cache_write", "cache_write_1h")


class Rates(Struct, frozen=True):
    """US dollars per million tokens. A cache rate of None is not listed: those tokens cost the input rate.
    ``cache_write`` keeps the prefix for minutes, ``cache_write_1h`` for an hour."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None


class PriceTier(Struct, frozen=True, kw_only=True):
    """Rates for all tokens of a request with an input above ``above`` tokens; None: the rate without the tier."""

    above: int
    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None


class PricePeriod(Rates, frozen=True):
    """Prices and their validity: from a day on, at hours of the day ("22:00-06:00"), on days of the week (1 = Monday);
    all UTC."""

    tiers: tuple[PriceTier, ...] = ()
    since: date | None = None
    hours: tuple[str, ...] = ()
    days: frozenset[int] = frozenset()

    def holds(self, moment: datetime) -> bool:
        """Whether these prices are valid at ``moment`` (aware, or naive and UTC)."""
        utc = moment.astimezone(UTC) if moment.tzinfo is not None else moment
        if self.since is not None and utc.date() < self.since:
            return False
        if self.days and utc.isoweekday() not in self.days:
            return False
        return not self.hours or any(_within(utc.time(), *_span(span)) for span in self.hours)

    def rates_for(self, input_tokens: int) -> Rates:
        """The rates of a request with this many input tokens, including cached ones."""
        tier = next((tier for tier in reversed(self.tiers) if input_tokens > tier.above), None)
        if tier is None:
            return self
        own = {name: rate for name in _RATES if (rate := getattr(tier, name)) is not None}
        return structs.replace(self, **own)


class PriceList(Struct, frozen=True):
    """All prices of a model; the last valid period counts. The first one is always valid."""

    periods: tuple[PricePeriod, ...]

    def at(self, moment: datetime) -> PricePeriod:
        return next((period for period in reversed(self.periods) if period.holds(moment)), self.periods[0])


def read_prices(value: object) -> PriceList | None:
    """The price list of decoded JSON; None if there is none.

    Raises:
        ValueError: a rate is not a number, or input or output is missing.
    """
    try:
        periods = msgspec.convert(value or (), tuple[PricePeriod, ...])
    except msgspec.ValidationError as error:
        raise ValueError(f"a price needs input and output: {error}") from error
    return PriceList(periods) if periods else None


def _span(text: str) -> tuple[time, time]:
    start, _, end = text.partition("-")
    return time.fromisoformat(start), time.fromisoformat(end)


def _within(moment: time, start: time, end: time) -> bool:
    """Whether a span contains ``moment``; one that ends before it starts spans midnight."""
    return start <= moment < end if start < end else moment >= start or moment < end


_BETWEEN_DIGITS = lazy_pattern(r"(?<=\d)[.p](?=\d)")
_DATE = lazy_pattern(r"(?:[-@](?:20\d\d-?\d\d-?\d\d|\d{4})|-latest)$")
_MAKER_PREFIX = lazy_pattern(
    r"^(?:(?:[a-z]{2,6}\.)?(?:anthropic|meta|mistral|deepseek|qwen|openai|google|amazon)\.|meta-)"
)
_VERSION_PREFIX = lazy_pattern(r"^(llama|qwen|glm|gemma|phi)-?v?(?=\d)")
_ROUTERS = frozenset(("openrouter", "huggingface", "vercel"))

_OTHER_PROVIDER_NAMES = {
    "google": "gemini",
    "x-ai": "xai",
    "moonshotai": "moonshot",
    "z-ai": "zai",
    "zai-org": "zai",
    "zhipuai": "zai",
    "qwen": "alibaba",
    "dashscope": "alibaba",
    "deepseek-ai": "deepseek",
    "mistralai": "mistral",
    "meta-models": "meta",
    "minimaxai": "minimax",
    "fireworks-ai": "fireworks",
    "fireworks_ai": "fireworks",
    "togetherai": "together",
    "together_ai": "together",
}


def provider_name(name: str) -> str:
    """swecli's name for a provider or a model's maker, whatever a router or another program calls it."""
    lowered = name.strip().lower()
    return _OTHER_PROVIDER_NAMES.get(lowered, lowered)


def spelling(name: str) -> str:
    """Canonical spelling of a name: lower case, with a dash between digits for dot, dash or ``p`` (``4.5``, ``4-5``,
    ``4p5``)."""
    return _BETWEEN_DIGITS.sub("-", name.strip().lower())


def common_name(name: str) -> str:
    """The usual name of a model, without host-specific folders, prefixes, variants and versions
    (``us.anthropic.claude-3-opus-20240229-v1:0`` is ``claude-3-opus-20240229``)."""
    last = re.split(r"[:@]", spelling(name).rstrip("/").rpartition("/")[2])[0]
    last = _MAKER_PREFIX.sub("", last)
    return _VERSION_PREFIX.sub(r"\1-", last)


def shown_ref(ref: str) -> str:
    """``provider/name`` as the user reads it: of a model named by its file, as llama.cpp's server names one, only the
    file's name."""
    provider, _, name = ref.partition("/")
    path = name.replace("\\", "/")
    is_file = path.startswith("/") or path[1:3] == ":/" or path.lower().endswith(".gguf")
    return f"{provider}/…/{path.rpartition('/')[2]}" if is_file and "/" in path else ref


def undated(name: str) -> str:
    """The name without a trailing date or ``-latest``, if any."""
    return _DATE.sub("", name)


def without_variant(provider: str, name: str) -> str:
    """A router's name without its serving variant: ``:free``, ``:nitro``, ``:some-host``."""
    return name.partition(":")[0] if provider in _ROUTERS else name


def tails(name: str) -> Iterator[str]:
    """The name, then the rest after its first slash, its second, and so on."""
    while True:
        yield name
        _, slash, name = name.partition("/")
        if not slash or not name:
            return


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
"""Providers that serve their own models: their data on one takes precedence over other hosts'."""


class Source(Struct, frozen=True):
    """Source of a value. ``date`` is ISO, the day of reading."""

    name: str
    version: str | None
    date: str


class _Letters(Struct, frozen=True, gc=False):
    """Letters of the sources of a group of fields."""

    window: str = ""


class CatalogModel(Struct, frozen=True):
    """One model at one provider, of which the file says more than is read here. None = not in any source; sizes are
    tokens."""

    provider: str
    id: str
    aliases: tuple[str, ...]
    window: int | None
    """Total: input plus output, if the source distinguishes them."""
    max_output: int | None
    periods: tuple[PricePeriod, ...] | None = field(name="prices")
    images: bool | None
    tools: bool | None
    reasoning: bool | None
    efforts: tuple[str, ...] | None
    deprecated: bool
    letters: _Letters = field(name="sources")

    @property
    def prices(self) -> PriceList | None:
        return PriceList(self.periods) if self.periods else None

    @property
    def window_sources(self) -> tuple[Source, ...]:
        known = load_catalog().sources
        return tuple(known[letter] for letter in self.letters.window)


class CatalogMatch(Struct, frozen=True):
    """A catalogue entry, and how well it matches the requested model.

    ``exact``: its name or an alias. ``dated``: the name with a date. ``variant``: a router's variant with another
    price. ``elsewhere``: the same name at another provider.
    """

    model: CatalogModel
    how: Literal["exact", "dated", "variant", "elsewhere"]

    @property
    def prices(self) -> PriceList | None:
        """The price at the requested provider; None if unknown."""
        return self.model.prices if self.how in ("exact", "dated") else None


class _Forms(Struct, frozen=True):
    """Lookup keys of a name, computed once for all providers: a server may list thousands of models."""

    exact: tuple[str, ...]
    undated: tuple[str, ...]

    @classmethod
    def of(cls, model: str) -> _Forms:
        plain = undated(model)
        return cls(tuple(map(spelling, tails(model))), tuple(map(spelling, tails(plain))) if plain != model else ())


class Catalog:
    """The models in file order: by provider, current ones first."""

    def __init__(self, models: Iterable[CatalogModel], sources: Mapping[str, Source] | None = None) -> None:
        self.models = tuple(models)
        self.sources = sources or {}
        self._names: dict[str, dict[str, CatalogModel]] = {}
        for model in self.models:
            self._names.setdefault(model.provider, {})[spelling(model.id)] = model
        for model in self.models:
            for alias in model.aliases:
                self._names[model.provider].setdefault(spelling(alias), model)
        for model in self.models:
            self._names[model.provider].setdefault(spelling(model.id.rpartition("/")[2]), model)

    def of_provider(self, provider: str) -> tuple[CatalogModel, ...]:
        """The models of one provider; empty if it is unknown to the catalogue."""
        name = provider_name(provider)
        return tuple(model for model in self.models if model.provider == name)

    def lookup(self, provider: str, model: str) -> CatalogMatch | None:
        """The entry for a model: by its name at that provider, without a date, without a router's variant, then by its
        name at its maker, or at another provider with the most common window."""
        host = provider_name(provider)
        plain = without_variant(host, model)
        if match := self._at(host, _Forms.of(model)):
            return match
        forms = _Forms.of(plain)
        if plain != model and (match := self._at(host, forms)):
            return CatalogMatch(match.model, "variant")
        return self._elsewhere(plain, forms)

    def _at(self, provider: str, forms: _Forms) -> CatalogMatch | None:
        names = self._names.get(provider, {})
        for form in forms.exact:
            if exact := names.get(form):
                return CatalogMatch(exact, "exact")
        for form in forms.undated:
            if dated := names.get(form):
                return CatalogMatch(dated, "dated")
        return None

    def _elsewhere(self, model: str, forms: _Forms) -> CatalogMatch | None:
        maker = provider_name(model.partition("/")[0])
        for provider in (maker, *MAKERS):
            if match := self._at(provider, forms):
                return CatalogMatch(match.model, "elsewhere")
        others = [match.model for provider in self._names if (match := self._at(provider, forms))]
        sizes = Counter(item.window for item in others if item.window is not None)
        others.sort(key=lambda item: (-sizes.get(item.window or 0, 0), item.window or 0))
        return CatalogMatch(others[0], "elsewhere") if others else None


@cache
def load_catalog() -> Catalog:
    data = Path(__file__).with_name("catalog.json").read_bytes()
    document = msgspec.json.decode(data, type=_Document)
    return Catalog(document.models, document.sources)


class _Document(Struct, frozen=True):
    sources: dict[str, Source]
    models: tuple[CatalogModel, ...]


_MILLION = Decimal(1_000_000)


def cost_of(prices: PriceList, usage: Usage, moment: datetime) -> Decimal | None:
    """US dollars for one response requested at ``moment``; None if the provider reported no sizes.

    The input's size, including the cached part, chooses the tier for all of it. Tokens neither read from nor written to
    the cache cost the input rate, and so do cached ones without a listed cache rate.
    """
    if usage.input_total is None or usage.output_total is None:
        return None
    rates = prices.at(moment).rates_for(usage.input_total)
    read, written = usage.cache_read or 0, usage.cache_write or 0
    hour = min(usage.cache_write_1h or 0, written) if rates.cache_write_1h is not None else 0
    plain = max(0, usage.input_total - read - written)
    sum_of = (
        plain * rates.input
        + read * (rates.input if rates.cache_read is None else rates.cache_read)
        + (written - hour) * (rates.input if rates.cache_write is None else rates.cache_write)
        + hour * (rates.cache_write_1h or 0)
        + usage.output_total * rates.output
    )
    return sum_of / _MILLION


def utc_now() -> datetime:
    return datetime.now(UTC)


class Pricer:
    """Prices responses: a session calls ``pricer(model_ref, usage)``."""

    def __init__(self, catalog: Callable[[], Catalog] = load_catalog, now: Callable[[], datetime] = utc_now) -> None:
        self._catalog = catalog
        self._now = now

    def __call__(self, model_ref: str, usage: Usage) -> str | None:
        """US dollars as a decimal number for a response of ``provider/name``; None without a known price. The
        provider's own report takes precedence."""
        if usage.cost is not None:
            return cost_text(usage.cost)
        provider, _, model = model_ref.partition("/")
        match = self._catalog().lookup(provider, model)
        prices = match.prices if match is not None else None
        cost = cost_of(prices, usage, self._now()) if prices is not None else None
        cost = with_searches(cost, provider, usage)
        return cost_text(cost) if cost is not None else None


SEARCH_PRICES: Mapping[str, Decimal] = MappingProxyType(
    {
        "anthropic": Decimal("0.01"),  # platform.claude.com/docs, pricing: $10 for 1,000 searches
        "openai": Decimal("0.01"),  # developers.openai.com/api/docs/pricing: $10 for 1,000 calls
        "gemini": Decimal("0.014"),  # ai.google.dev/gemini-api/docs/pricing: $14 for 1,000 queries of Gemini 3
    }
)
"""US dollars for one search of a provider's own web search; read on 2026-11-28."""


def with_searches(cost: Decimal | None, provider: str, usage: Usage) -> Decimal | None:
    """The cost of a response with its web searches, which are billed besides the tokens; None if a price is unknown."""
    if cost is None or not usage.web_searches:
        return cost
    price = SEARCH_PRICES.get(provider)
    return None if price is None else cost + usage.web_searches * price


def cost_text(amount: Decimal) -> str:
    """The amount without exponent and trailing zeros."""
    text = format(amount.normalize(), "f")
    return "0" if text in ("-0", "0") else text
