"""What a response costs depends on the address that was asked."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from swecli.assembly.models import ModelSupply
from swecli.assembly.prices import Prices, own_prices
from swecli.core.config.key_store import KeyStore
from swecli.core.config.settings import Settings
from swecli.core.llm.providers import Overrides, resolve
from swecli.core.protocol.events import Price
from swecli.core.protocol.messages import Usage
from swecli.core.validation import validated
from swecli.launch import LaunchOptions

USED = Usage(input_total=1000, output_total=10)
KEYS = {"OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"}


@pytest.mark.parametrize(
    ("reference", "address", "price"),
    [
        ("openai/gpt-6-sol", "", "7"),
        ("openai/gpt-6-sol", "https://gateway.example/v1", None),
        ("openai/gpt-6-sol", "http://127.0.0.1:4000/v1", None),
        ("ollama/qwen3", "", "0"),
        ("ollama/qwen3-coder:480b-cloud", "", None),
        ("ollama/qwen3", "http://10.0.0.7:11434", None),
        ("vllm/qwen3", "http://[::1]:8000/v1", "0"),
    ],
)
def test_a_price_belongs_to_an_address(reference: str, address: str, price: str | None) -> None:
    prices = Prices(lambda model, usage: "7")
    prices.note(resolve(reference, KEYS, overrides=Overrides(base_url=address)))
    assert prices(reference, USED) == price


def test_what_the_provider_reports_wins_everywhere() -> None:
    prices = Prices(lambda model, usage: "7")
    prices.note(resolve("openai/x", KEYS, overrides=Overrides(base_url="http://127.0.0.1:4000/v1")))
    assert prices("openai/x", Usage(cost=Decimal("0.250"))) == "0.25"


def test_the_catalogue_has_the_price_of_a_well_known_model() -> None:
    prices = Prices()
    prices.note(resolve("openai/gpt-6-sol", KEYS))
    assert Decimal(prices("openai/gpt-6-sol", USED) or "0") > 0
    assert prices("openai/never-heard-of-it", USED) is None


def test_a_price_of_the_settings_holds_at_any_address_unless_the_provider_reports_one() -> None:
    table = {
        "office/m": {"input": 2.5, "output": 10, "cache_read": 0.25},
        "openai/gpt-6-sol": {"input": 1, "output": 1},
    }
    prices = Prices(lambda model, usage: "7", own_prices(validated(Settings, {"models": {"price": table}})))
    used = Usage(input_total=1_000_000, cache_read=600_000, cache_write=100_000, output_total=100_000)
    assert prices("office/m", used) == "2.15"
    assert prices("openai/gpt-6-sol", USED) == "0.00101"
    assert prices("office/m", Usage(cost=Decimal("0.5"))) == "0.5"
    assert prices("office/m", Usage(output_total=3)) is None
    assert prices("groq/m", USED) == "7"


def test_a_price_that_is_set_is_written_and_counts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "config" / "config.toml"
    file.parent.mkdir()
    file.write_text('# mine\n[models.price]\n"a/b" = { input = 1, output = 1 }\n')
    environment = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "SWECLI_CONFIG": str(file)}
    options = LaunchOptions(cwd=tmp_path, model="openai/mock", store=False)
    supply = ModelSupply(options, Settings(), environment, tmp_path, KeyStore(tmp_path))
    access, catalog = supply.access(), supply.catalog()
    assert access.price("openai/mock", USED) is None
    assert catalog.keep_price is not None
    assert catalog.keep_price("openai/mock", Price("2", "10", "0.2")) == str(file)
    assert access.price("openai/mock", USED) == "0.0021"
    text = file.read_text()
    assert "# mine" in text
    assert tomllib.loads(text)["models"]["price"] == {
        "a/b": {"input": 1, "output": 1},
        "openai/mock": {"input": 2.0, "output": 10.0, "cache_read": 0.2},
    }
    for price in (Price("-1", "1"), Price("1000000", "1"), Price("nan", "1"), Price("x", "1")):
        with pytest.raises(ValueError, match="dollars"):
            catalog.keep_price("openai/mock", price)
    file.write_text("broken = [")
    with pytest.raises(ValueError, match=r"config\.toml"):
        catalog.keep_price("openai/mock", Price("1", "1"))
