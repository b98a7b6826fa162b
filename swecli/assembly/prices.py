"""What responses cost at the addresses that are really asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from swecli.core.config.settings import Settings
from swecli.core.llm.base_url import host_of, is_loopback
from swecli.core.llm.client import ClientConfig
from swecli.core.llm.cost import Pricer, as_text, cost_of, utc_now
from swecli.core.llm.prices import PriceList, PricePeriod, Rates
from swecli.core.llm.providers import known_providers
from swecli.core.llm.windows import LOCAL_PROVIDERS
from swecli.core.protocol.usage import Usage


class Prices:
    """A model whose price the user has set costs that; one that runs on this machine nothing; one at the provider's
    own address what the catalogue says; one at any other address something that nobody but the provider knows."""

    def __init__(
        self,
        pricer: Callable[[str, Usage], str | None] | None = None,
        own: Mapping[str, PriceList] | None = None,
    ) -> None:
        self._pricer = pricer or Pricer()
        self._own = own or {}
        self._addresses: dict[str, str] = {}

    def note(self, config: ClientConfig) -> None:
        """Remember where a model is asked."""
        self._addresses[config.info.ref] = config.base_url

    def __call__(self, model_ref: str, usage: Usage) -> str | None:
        """US dollars as a decimal number for a response; None where the price is not known."""
        if usage.cost is not None:
            return as_text(usage.cost)
        if model_ref in self._own:
            cost = cost_of(self._own[model_ref], usage, utc_now())
            return as_text(cost) if cost is not None else None
        provider, _, model = model_ref.partition("/")
        address = self._addresses.get(model_ref, "")
        if provider in LOCAL_PROVIDERS:
            return "0" if is_loopback(address) and not model.endswith(("-cloud", ":cloud")) else None
        usual = known_providers().get(provider)
        if usual is not None and address and host_of(address) != host_of(usual.base_url):
            return None
        return self._pricer(model_ref, usage)


def own_prices(settings: Settings) -> dict[str, PriceList]:
    """The prices of the settings, by ``provider/model``."""
    return {
        model: PriceList(
            (PricePeriod(Rates(**{name: Decimal(str(dollars)) for name, dollars in price if dollars is not None})),)
        )
        for model, price in settings.models.price.items()
    }
