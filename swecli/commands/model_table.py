"""Models to choose from, as text: window, price, what they can do, and which key is missing."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from swecli.core.llm.offers import ModelOffer
from swecli.core.protocol.blocks import TableBlock


def model_table(offers: Sequence[ModelOffer], title: str = "") -> TableBlock:
    """One row for each model: its name, which is long, and all else in one cell, so that both fit on a screen."""
    rows = tuple((offer.ref, known(offer)) for offer in offers)
    return TableBlock(("Model", "Window · $ per million in / out · can · key"), rows, title)


def known(offer: ModelOffer) -> str:
    """Window, price, abilities, and where the key comes from."""
    own = key(offer)
    parts = (size(offer.window), price(offer), abilities(offer), own if own != "-" else "")
    return " · ".join(part for part in parts if part)


def summary(offer: ModelOffer) -> str:
    """The same for a list to pick from, where keys that are there go without saying."""
    parts = (f"{size(offer.window)} tokens", price(offer), abilities(offer), key(offer) if not offer.usable else "")
    return " · ".join(part for part in parts if part)


def matching(offers: Sequence[ModelOffer], words: str) -> tuple[ModelOffer, ...]:
    """Those whose names have all the words."""
    wanted = words.lower().split()
    return tuple(offer for offer in offers if all(word in offer.ref.lower() for word in wanted))


def size(tokens: int | None) -> str:
    """``1.05M``, ``200K``, ``?``."""
    if tokens is None:
        return "?"
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:.3g}M"
    return f"{tokens / 1000:.4g}K" if tokens >= 1000 else str(tokens)


def price(offer: ModelOffer) -> str:
    """Dollars per million tokens of input and output; ``?`` where they are not known."""
    if offer.rates is None:
        return "free" if offer.running else "?"
    return f"{_amount(offer.rates.input)} / {_amount(offer.rates.output)}"


def abilities(offer: ModelOffer) -> str:
    """What is known that it can do; and that it takes no tools, where that is known."""
    flags = (("images", offer.images), ("reasoning", offer.reasoning))
    words = [name for name, flag in flags if flag] + (["no tools"] if offer.tools is False else [])
    return ", ".join([*words, *(["retiring"] if offer.deprecated else [])])


def key(offer: ModelOffer) -> str:
    """Where the key comes from, or which one is missing."""
    if offer.key == "missing":
        return f"needs {offer.variable}" if offer.variable else "can't be used"
    if offer.key == "environment":
        return offer.variable
    return "stored" if offer.key == "stored" else "-"


def _amount(rate: Decimal) -> str:
    text = f"{rate:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"
