"""Loopback servers that enforce what the newest APIs enforce.

    with StrictServer(parse_script(...), AnthropicRules()) as server:
        ... ANTHROPIC_BASE_URL = server.url ...
        assert server.refused == []
        assert server.rules.lost == []

The rules keep what they saw; see ``strict_anthropic``, ``strict_responses``, ``strict_gemini`` and ``strict_llama``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from swecli.core.llm.scripted import Fault, Script
from tests.support.loopback import LoopbackServer, Manners, ProtocolName, Received
from tests.support.wire import Wire


@dataclass(frozen=True)
class Lost:
    """A thought that the model did not see. ``request`` counts from 1; ``path`` is its place in the request, empty
    for one that the client left out."""

    request: int
    reason: str
    path: str = ""


class Rules(Protocol):
    """What one provider enforces beyond the form of a request."""

    @property
    def protocol(self) -> ProtocolName: ...

    def wire(self) -> Wire:
        """The protocol for one answer."""
        ...

    def refusal(self, number: int, received: Received) -> str:
        """Why the provider refuses the request with this number, from 1; empty if it does not."""
        ...


R = TypeVar("R", bound=Rules)


class StrictServer(LoopbackServer, Generic[R]):
    """``refused`` are the sentences of all requests that the rules refused."""

    def __init__(self, script: Script, rules: R, manners: Manners | None = None, port: int = 0) -> None:
        super().__init__(script, rules.protocol, manners, port)
        self.rules = rules
        self.refused: list[str] = []

    def _wires(self) -> Iterator[Wire]:
        yield self.rules.wire()

    def _refused(self, wire: Wire, received: Received) -> Fault | None:
        fault = super()._refused(wire, received)
        if fault is not None:
            return fault
        words = self.rules.refusal(len(self.asked), received)
        if words:
            self.refused.append(words)
        return Fault("bad_request", message=words) if words else None
