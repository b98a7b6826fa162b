"""Trying a model out: one short question, so that the user knows before the first task whether it answers."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import aclosing

from swecli.assembly.models import ModelSupply
from swecli.assembly.startup import startup_of
from swecli.core.config.key_store import KeyStore
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.door import Door
from swecli.core.engine.services import ModelUnavailable
from swecli.core.llm.types import Failed, ModelClient, ModelRequest, SystemBlock
from swecli.core.protocol.messages import Message, TextPart
from swecli.launch import LaunchOptions, StartError

SECONDS = 120.0
"""For the whole answer: a local server may have to load the model first."""
MOST_TOKENS = 512
"""Of the answer; enough for a model that thinks before it says one word."""
QUESTION = "Answer with the one word: ready"


async def try_model(options: LaunchOptions, ref: str) -> tuple[bool, str]:
    """Whether ``provider/name`` answers, and a sentence for the user. Nothing is stored."""
    try:
        supply = await asyncio.to_thread(_supply, options)
        client = await asyncio.to_thread(supply.make, ref)
    except (StartError, ModelUnavailable) as error:
        return False, str(error)
    started = time.monotonic()
    try:
        async with asyncio.timeout(SECONDS):
            failed = await _ask(client)
    except TimeoutError:
        return False, f"{ref} gave no answer within {SECONDS:g} s."
    finally:
        await client.close()
    if failed is not None:
        said = failed.error.message.rstrip(". ")
        return False, f"{ref} did not answer: {said}. {failed.error.hint}".rstrip()
    return True, f"{ref} answers ({time.monotonic() - started:.1f} s)."


def _supply(options: LaunchOptions) -> ModelSupply:
    startup = startup_of(options, dict(os.environ))
    keys = KeyStore(startup.paths.config)
    return ModelSupply(options, startup.loaded.settings, startup.environment, startup.paths.data, keys)


async def _ask(client: ModelClient) -> Failed | None:
    request = ModelRequest(
        (SystemBlock("You are being tested."),),
        (),
        (Message("user", (TextPart(QUESTION),)),),
        max_output_tokens=MOST_TOKENS,
    )
    failed: Failed | None = None
    async with aclosing(Door(ContextManager(())).send(client, request)) as events:
        async for event in events:
            failed = event if isinstance(event, Failed) else None
    return failed
