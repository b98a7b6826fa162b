"""Servers that list no models, garbage, or 3,000: on the first screen, in /model, and for a name of the start."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.assembly.models import ModelSupply
from swecli.core.config.key_store import KeyStore
from swecli.core.config.settings import Settings
from swecli.core.validation import validated
from swecli.launch import LaunchOptions, StartError
from tests.support.json_server import Reply, serve_json
from tests.support.terminal import Terminal

SWECLI = str(Path(sys.executable).with_name("swecli"))
MANY = [{"id": f"model-{number:04}", "object": "model"} for number in range(3_000)]
LISTS: Mapping[str, Any] = {
    "none": {"object": "list", "data": []},
    "garbage": Reply(b"\xff\x00<html>{{{", content_type="text/html"),
    "many": {"object": "list", "data": MANY},
}


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("listing", "shown"),
    [
        ("none", ("lists no models", "Add an API key")),
        ("garbage", ("lists no models", "Add an API key")),
        ("many", ("3,000 models at OPENAI_BASE_URL", "openai/model-")),
    ],
)
async def test_the_first_screen_and_the_list_of_models(listing: str, shown: tuple[str, ...], tmp_path: Path) -> None:
    async with serve_json({"/v1/models": LISTS[listing]}) as server:
        environment = {"HOME": str(tmp_path), "OPENAI_BASE_URL": f"{server.url}/v1"}

        def drive() -> None:
            with closing(Terminal([SWECLI], cwd=tmp_path, environment=environment, columns=100, rows=30)) as terminal:
                terminal.shows("Connect a model", *shown)
                terminal.send("\x1b")
                terminal.hides("Connect a model")
                terminal.send("/model\r")
                terminal.shows("Model: select one, or type a name")
                if listing == "many":
                    terminal.send("2987")
                    terminal.shows("openai/model-2987")
                    terminal.hides("openai/model-0001")
                else:
                    assert "Traceback" not in terminal.text
                    terminal.shows("lists no models")

        await asyncio.to_thread(drive)


def supply(tmp_path: Path, environment: Mapping[str, str], name: str, **providers: Any) -> ModelSupply:
    settings = validated(Settings, {"model": {"name": None}, "providers": providers})
    options = LaunchOptions(tmp_path, headless=True, model=name)
    chosen = replace(settings, model=replace(settings.model, name=name))
    return ModelSupply(options, chosen, environment, tmp_path, KeyStore(tmp_path, keyring=lambda: None))


async def named(tmp_path: Path, name: str, listing: object) -> str:
    """What a name means at a server with this list, or why it means nothing."""
    async with serve_json({"/v1/models": listing}) as server:

        def choose() -> str:
            try:
                return supply(tmp_path, {"OPENAI_BASE_URL": f"{server.url}/v1"}, name).first.chosen() or ""
            except StartError as error:
                return str(error)

        return await asyncio.to_thread(choose)


async def test_a_name_is_looked_up_in_what_the_server_lists(tmp_path: Path) -> None:
    assert await named(tmp_path, "model-0042", LISTS["many"]) == "openai/model-0042"
    assert "Did you mean openai/model-0042?" in await named(tmp_path, "modell-0042", LISTS["many"])
    for listing in ("none", "garbage"):
        assert "cannot look up 'model-0042'" in await named(tmp_path, "model-0042", LISTS[listing])


async def test_a_name_that_fits_two_providers_names_both(tmp_path: Path) -> None:
    listing = {"object": "list", "data": [{"id": "mock", "object": "model"}]}
    async with serve_json({"/v1/models": listing}) as one, serve_json({"/v1/models": listing}) as other:
        providers = {
            "here": {"protocol": "openai-chat", "base_url": f"{one.url}/v1"},
            "there": {"protocol": "openai-chat", "base_url": f"{other.url}/v1"},
        }

        def choose() -> str:
            with pytest.raises(StartError) as refused:
                supply(tmp_path, {}, "mock", **providers).first.chosen()
            return str(refused.value)

        assert "mock matches here/mock and there/mock; name one of them." in await asyncio.to_thread(choose)
