"""Prices of models: the user's own, then the catalogue's where they hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from swecli.core.config.settings import Settings
from swecli.core.llm.addresses import host_of, is_loopback
from swecli.core.llm.catalog import PriceList, Pricer, cost_of, cost_text, read_prices, utc_now, with_searches
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.providers import known_providers
from swecli.core.llm.windows import LOCAL_PROVIDERS
from swecli.core.protocol.messages import Usage
from swecli.core.validation import fields_of


class Prices:
    """A price set by the user counts first; a model on this machine costs nothing; one at the provider's own address
    costs the catalogue's price; at any other address the price is unknown."""

    def __init__(
        self,
        pricer: Callable[[str, Usage], str | None] | None = None,
        own: Mapping[str, PriceList] | None = None,
    ) -> None:
        self._pricer = pricer or Pricer()
        self._own = own if own is not None else {}
        self._addresses: dict[str, str] = {}
        self._meant: dict[str, str] = {}
        """Models by the names without a provider that they were made by."""

    def note(self, config: ClientConfig, name: str = "") -> None:
        self._addresses[config.info.ref] = config.base_url
        if name and "/" not in name:
            self._meant[name] = config.info.ref

    def __call__(self, model_ref: str, usage: Usage) -> str | None:
        """US dollars as a decimal number for a response; None if the price is unknown."""
        if usage.cost is not None:
            return cost_text(usage.cost)
        model_ref = self._meant.get(model_ref, model_ref)
        if model_ref in self._own:
            cost = with_searches(cost_of(self._own[model_ref], usage, utc_now()), model_ref.partition("/")[0], usage)
            return cost_text(cost) if cost is not None else None
        provider, _, model = model_ref.partition("/")
        address = self._addresses.get(model_ref, "")
        if provider in LOCAL_PROVIDERS:
            return "0" if is_loopback(address) and not model.endswith(("-cloud", ":cloud")) else None
        usual = known_providers().get(provider)
        if usual is not None and address and host_of(address) != host_of(usual.base_url):
            return None
        return self._pricer(model_ref, usage)


def own_prices(settings: Settings) -> dict[str, PriceList]:
    own = {
        model: read_prices([{name: str(dollars) for name, dollars in fields_of(price) if dollars is not None}])
        for model, price in settings.models.price.items()
    }
    return {model: prices for model, prices in own.items() if prices is not None}
