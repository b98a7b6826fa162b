"""A short test request to a model before it is used."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import aclosing

from swecli.assembly.models import supply_of
from swecli.assembly.startup import startup_of
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.gateway import RequestGateway
from swecli.core.engine.model_access import ModelUnavailable
from swecli.core.llm.catalog import shown_ref
from swecli.core.llm.types import Failed, ModelClient, ModelRequest, ReasoningDelta, SystemBlock, TextDelta
from swecli.core.protocol.messages import Message, TextPart
from swecli.launch import LaunchOptions, StartError

SECONDS = 120.0
"""Limit of the whole answer: a local server may have to load the model first."""
MOST_TOKENS = 512
"""Limit of the answer; enough for a model that reasons before it says one word."""
QUESTION = "Answer with the one word: ready"
ENOUGH = 40
"""Characters of an answer or of reasoning that show that the model works. A small one may go on to the limit, which
takes it half a minute on this machine's processor."""


async def try_model(options: LaunchOptions, ref: str) -> tuple[bool, str]:
    """Whether ``provider/name`` answers, and a sentence for the user. Stores nothing."""
    try:
        client = await asyncio.to_thread(
            lambda: supply_of(options, startup_of(options, dict(os.environ))).make(ref),
        )
    except (StartError, ModelUnavailable) as error:
        return False, str(error)
    started = time.monotonic()
    try:
        async with asyncio.timeout(SECONDS):
            failed = await _ask(client)
    except TimeoutError:
        return False, f"{ref} did not answer within {SECONDS:g} s."
    finally:
        await client.close()
    if failed is not None:
        said = failed.error.message.rstrip(". ")
        hint = failed.error.hint if failed.error.kind != "truncated" else ""  # of a test no answer is kept
        return False, f"{ref} did not answer: {said}. {hint}".rstrip()
    return True, f"Connected to {shown_ref(ref)} ({time.monotonic() - started:.1f} s)"


async def _ask(client: ModelClient) -> Failed | None:
    """The failure of a short question."""
    request = ModelRequest(
        (SystemBlock("You are being tested."),),
        (),
        (Message("user", (TextPart(QUESTION),)),),
        max_output_tokens=MOST_TOKENS,
    )
    failed: Failed | None = None
    answered = 0
    async with aclosing(RequestGateway(ContextManager(())).send(client, request)) as events:
        async for event in events:
            answered += len(event.text) if isinstance(event, TextDelta | ReasoningDelta) else 0
            if answered > ENOUGH:
                return None
            failed = event if isinstance(event, Failed) else None
    return failed
