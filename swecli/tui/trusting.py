"""Asking about trust at the start, one panel after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from swecli.tui.dock.panel import DockPanel
from swecli.tui.slot import Slot
from swecli.tui.trust_gate import TrustChoice, TrustGate

T = TypeVar("T")


async def ask_trust(gate: TrustGate, slot: Slot) -> tuple[str, ...]:
    """Ask whatever has to be asked before the workspace is read. Returns sentences for the user."""
    question = await asyncio.to_thread(gate.question)
    if question is None:
        return ()
    from swecli.tui.dock.trust import item_panel, trust_panel

    choice: TrustChoice = await _asked(slot, lambda done: trust_panel(question, done))
    notices = [await asyncio.to_thread(gate.answer, choice)]
    if choice in ("trust", "session"):
        items = await asyncio.to_thread(gate.items)
        for number, item in enumerate(items, 1):
            place = f"{number} of {len(items)} · {item.origin}" if len(items) > 1 else item.origin
            shown = replace(item, origin=place)
            if await _asked(slot, lambda done, shown=shown: item_panel(shown, done)):
                notices.append(await asyncio.to_thread(gate.accept, [item]))
    return tuple(notice for notice in notices if notice)


async def _asked(slot: Slot, panel: Callable[[Callable[[T], None]], DockPanel]) -> T:
    answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    shown = panel(lambda value: answer.set_result(value))
    slot.show(shown)
    value = await answer
    while slot.panel is shown:  # noqa: ASYNC110 - it makes room once its last message has come through
        await asyncio.sleep(0)
    return value
