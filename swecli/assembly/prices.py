"""Prices of models: the user's own, then the catalogue's where they hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from swecli.core.config.load import ConfigError
from swecli.core.config.settings import PriceSettings, Settings
from swecli.core.llm.addresses import host_of, is_loopback
from swecli.core.llm.catalog import (
    PriceList,
    Pricer,
    Rates,
    cost_of,
    cost_text,
    load_catalog,
    read_prices,
    utc_now,
    with_searches,
)
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.providers import known_providers
from swecli.core.llm.types import ModelInfo
from swecli.core.llm.windows import LOCAL_PROVIDERS
from swecli.core.protocol.events import Price
from swecli.core.protocol.messages import Usage
from swecli.core.validation import changed, fields_of, validated


class Prices:
    """A price set by the user counts first; a model on this machine costs nothing; one at the provider's own address
    costs the catalogue's price; at any other address the price is unknown."""

    def __init__(
        self,
        pricer: Callable[[str, Usage], str | None] | None = None,
        own: Mapping[str, PriceList] | None = None,
    ) -> None:
        self._pricer = pricer or Pricer()
        self.own = own or {}
        self._addresses: dict[str, str] = {}
        self._meant: dict[str, str] = {}
        """Models by the names without a provider that they were made by."""

    def note(self, config: ClientConfig, name: str = "") -> None:
        self._addresses[config.info.ref] = config.base_url
        if name and "/" not in name:
            self._meant[name] = config.info.ref

    def adopt(self, settings: Settings) -> None:
        """Apply changed settings."""
        self.own = own_prices(settings)

    def rates(self, info: ModelInfo) -> Rates | None:
        """What a model costs now, wherever it runs: by the user, else by the catalogue."""
        prices = self.own.get(info.ref)
        if prices is None:
            match = load_catalog().lookup(info.provider, info.name)
            prices = match.prices if match is not None else None
        return prices.at(utc_now()) if prices is not None else None

    def __call__(self, model_ref: str, usage: Usage) -> str | None:
        """US dollars as a decimal number for a response; None if the price is unknown."""
        if usage.cost is not None:
            return cost_text(usage.cost)
        model_ref = self._meant.get(model_ref, model_ref)
        if model_ref in self.own:
            cost = with_searches(cost_of(self.own[model_ref], usage, utc_now()), model_ref.partition("/")[0], usage)
            return cost_text(cost) if cost is not None else None
        provider, _, model = model_ref.partition("/")
        address = self._addresses.get(model_ref, "")
        if provider in LOCAL_PROVIDERS:
            return "0" if is_loopback(address) and not model.endswith(("-cloud", ":cloud")) else None
        usual = known_providers().get(provider)
        if usual is not None and address and host_of(address) != host_of(usual.base_url):
            return None
        return self._pricer(model_ref, usage)

    def keep(self, environment: Mapping[str, str], model: str, price: Price) -> str:
        """Store a price in the user's settings, and use it from now on.

        Raises:
            ValueError: it is not a price, or can't be written.
        """
        from swecli.core.config.change import dotted, set_value
        from swecli.core.config.paths import user_file  # imported only when a price is set

        given = {"input": price.input, "output": price.output, "cache_read": price.cached}
        try:
            checked = validated(PriceSettings, {name: float(rate) for name, rate in given.items() if rate is not None})
        except ValueError as error:
            raise ValueError("A price is in dollars per million tokens, from 0 to 100,000.") from error
        path = user_file(environment)
        try:
            set_value(path, dotted(("models", "price", model)), changed(checked))
        except ConfigError as error:
            raise ValueError(str(error)) from error
        prices = read_prices([{name: rate for name, rate in given.items() if rate is not None}])
        assert prices is not None
        self.own = {**self.own, model: prices}
        return str(path)


def own_prices(settings: Settings) -> dict[str, PriceList]:
    own = {
        model: read_prices([{name: str(dollars) for name, dollars in fields_of(price) if dollars is not None}])
        for model, price in settings.models.price.items()
    }
    return {model: prices for model, prices in own.items() if prices is not None}
