"""The recorded-style responses under ``tests/data/wire-cases``: one JSON object per line, with the body as text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from swecli.core.llm.debug_decode import decode
from swecli.core.llm.protocols.base import Decoder
from swecli.core.llm.protocols.registry import PROTOCOLS, decoder_for
from swecli.core.protocol.messages import Origin

DIRECTORY = Path(__file__).parents[2] / "data" / "wire-cases"


@dataclass(frozen=True)
class WireCase:
    protocol: str
    name: str
    status: int
    headers: dict[str, str]
    framing: str
    body: bytes
    expected: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.protocol}/{self.name}"

    def decoder(self) -> Decoder:
        return decoder_for(self.protocol, Origin(self.protocol, "host", "model"))

    def decode(self, *chunks: bytes) -> dict[str, Any]:
        return decode(self.decoder(), self.status, self.headers, chunks)

    @property
    def wanted(self) -> dict[str, Any]:
        """What ``decode`` must give."""
        keys = ("outcome", "text", "reasoning", "stop", "usage", "error")
        calls = [
            {key: call[key] for key in ("id", "name", "arguments", "arguments_raw")}
            for call in self.expected["tool_calls"]
        ]
        return {**{key: self.expected[key] for key in keys}, "tool_calls": calls}


@cache
def all_cases() -> tuple[WireCase, ...]:
    cases = []
    for protocol in PROTOCOLS:
        for line in (DIRECTORY / f"{protocol}.jsonl").read_text("utf-8").splitlines():
            item = json.loads(line)
            cases.append(
                WireCase(
                    protocol,
                    item["name"],
                    item["status"],
                    item["headers"],
                    item["framing"],
                    item["body"].encode(),
                    item["expected"],
                )
            )
    return tuple(cases)


def stream_cases() -> tuple[WireCase, ...]:
    return tuple(case for case in all_cases() if case.status == 200)


def find_case(protocol: str, name: str) -> WireCase:
    return next(case for case in all_cases() if case.protocol == protocol and case.name == name)
