"""A session inside a session, as a subagent has it: what it takes from the one that started it.

Its events go through that session's recorder, so they are stored before anything is shown, in one order with all
others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct, structs

from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.engine.companion import BUDGET_KIND, Companion, Companions, TurnStopped
from swecli.core.engine.consent import Requests
from swecli.core.engine.model_call import cap_reached
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.settings import Settings
from swecli.core.engine.state import SessionState
from swecli.core.engine.tool_calls import EffectLocks
from swecli.core.protocol.events import (
    DELTAS,
    Event,
    FileChanged,
    Notice,
    PermissionRequested,
    RetryScheduled,
    TurnEnded,
)

ITEMS: Final = 1_000_000
"""Range of item numbers for one subagent; those of the next one begin after it."""
EVENTS: Final = 1_000_000_000_000


class Relay:
    """Log of a subagent: its events become events of the parent session, tagged with its id. Streaming texts are left
    out, because the complete items follow and several agents at once are unreadable anyway."""

    def __init__(self, recorder: Recorder, agent: str, number: int, profile: str, *, apart: bool = False) -> None:
        """``apart``: the subagent has a work tree of its own."""
        self._recorder = recorder
        self._named = f"{agent} ({profile}){', in a git worktree of its own' if apart else ''}"
        self.agent = agent
        self.turn = recorder.turn
        self.first = (number * EVENTS, number * ITEMS)
        self.ended: TurnEnded | None = None
        self.trouble = ""
        """The newest error outside a turn."""
        self.changed: dict[str, None] = {}

    def append(self, event: Event) -> None:
        body = event.body
        match body:
            case TurnEnded():
                self.ended = body
            case FileChanged(path=path):
                self.changed[path] = None
            case Notice(level="error", text=text):
                self.trouble = text
            case PermissionRequested(facts=facts):
                body = structs.replace(body, facts=(f"asked by {self._named}", *facts))
            case RetryScheduled():
                pass
            case _ if isinstance(body, DELTAS):
                return
            case _:
                pass
        self._recorder.relay(body, self.agent, self.turn)

    async def barrier(self) -> None:
        await self._recorder.log.barrier()

    async def close(self) -> None:
        """Do nothing: the parent session's log stays open."""


class ParentLimits(Companion):
    """Stops a subagent once a limit of the session that started it is reached: a cap, or one of its companions
    blocks the request. The arguments are that session's."""

    def __init__(self, settings: Settings, state: SessionState, companions: Companions) -> None:
        self._settings = settings
        self._state = state
        self._companions = companions

    async def check_request(self, prepared: PreparedRequest) -> None:
        if (reached := cap_reached(self._settings.now.limits, self._state)) is not None:
            raise TurnStopped("limit", *reached)
        if why := await self._companions.agent_blocked():
            raise TurnStopped("limit", f"stopped because {why}", BUDGET_KIND)


class Parent(Struct, frozen=True):
    """The session that started this one."""

    relay: Relay
    limits: ParentLimits
    requests: Requests
    locks: EffectLocks | None
    """Those of all agents in its folder; None if it has a work tree of its own."""
    closing: Sequence[Callable[[], Awaitable[object]]]
    """Ends what it has for itself alone, once it has ended."""
