"""Gemini generateContent that requires signatures: each step of the current turn brings back the one of its first
call, on exactly that call, and none that another model made.

Source: ai.google.dev, thought signatures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from swecli.core.llm.scripted import Piece
from swecli.core.protocol.messages import StopKind
from tests.support.loopback import ProtocolName, Received, model_of
from tests.support.prompt_caches import canonical
from tests.support.strict_server import Lost
from tests.support.wire import Answering, Body
from tests.support.wire_gemini import GeminiGenerate

OF_OTHERS = "skip_thought_signature_validator"
"""What stands for the signature of a call that another model made."""


@dataclass
class GeminiRules:
    """``lost`` are signatures that did not come back, outside the current turn too, where the server accepts that."""

    protocol: ProtocolName = "gemini"
    lost: list[Lost] = field(default_factory=list)
    thoughts: int = 0
    """All signatures that came back."""
    signed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Model and part, by signature."""

    def wire(self) -> StrictGemini:
        return StrictGemini(self)

    def refusal(self, number: int, received: Received) -> str:
        contents: Sequence[Mapping[str, Any]] = received.body.get("contents", [])
        model = model_of(received.path)
        spoken = [at for at, content in enumerate(contents) if content.get("role") == "user" and _says(content)]
        turn = spoken[-1] if spoken else 0
        for at, content in enumerate(contents):
            if content.get("role") != "model":
                continue
            calls = [part for part in content["parts"] if "functionCall" in part]
            if at > turn and calls and not calls[0].get("thoughtSignature"):
                name = calls[0]["functionCall"]["name"]
                return f"Function call is missing a thought_signature in functionCall parts. {name}, position {at}"
            for part in content["parts"]:
                if wrong := self._wrong(part, model):
                    return f"contents[{at}]: {wrong}"
            missing = self._left_out(content, model)
            self.lost += [Lost(number, "left out", f"contents[{at}]") for _ in range(missing)]
        return ""

    def _wrong(self, part: Mapping[str, Any], model: str) -> str:
        signature = part.get("thoughtSignature")
        if signature is None:
            return ""
        made = self.signed.get(signature)
        if signature == OF_OTHERS:
            own = any(known == (model, _core(part)) for known in self.signed.values())
            return "Thought signature is not valid: the call has one of its own" if own else ""
        if made is None:
            return "Corrupted thought signature."
        if made[0] != model:
            return "Thought signature is not valid: another model made it."
        if made[1] != _core(part):
            return "Thought signature is not valid: it belongs to another part."
        self.thoughts += 1
        return ""

    def _left_out(self, content: Mapping[str, Any], model: str) -> int:
        calls = {_core(part): part.get("thoughtSignature") for part in content["parts"] if "functionCall" in part}
        own = {core for maker, core in self.signed.values() if maker == model}
        return sum(core in own and not signature for core, signature in calls.items())


def _says(content: Mapping[str, Any]) -> bool:
    return any("text" in part for part in content.get("parts", []))


def _core(part: Mapping[str, Any]) -> str:
    call = part.get("functionCall")
    return canonical([call["name"], call.get("args", {})]) if call else canonical(part.get("text", ""))


class StrictGemini(GeminiGenerate):
    """One answer under the rules. Each call has an id, so that equal calls differ in their arguments only."""

    def __init__(self, rules: GeminiRules) -> None:
        super().__init__()
        self._rules = rules

    def objection(self, body: Body) -> str:
        contents = json.loads(json.dumps(body.get("contents", [])))
        for content in contents:
            for part in content.get("parts", []):
                if "functionCall" in part:  # whose signatures the rules check
                    part["thoughtSignature"] = OF_OTHERS
        return super().objection({**body, "contents": contents})

    def closing(self, stop: StopKind, answering: Answering) -> list[bytes]:
        if not self._called:
            self._rules.signed[f"signature-{answering.number}"] = (answering.model, canonical(""))
        return super().closing(stop, answering)

    def _call(self, piece: Piece, answering: Answering) -> dict[str, Any]:
        made = super()._call(piece, answering)
        if signature := made.get("thoughtSignature"):
            self._rules.signed[signature] = (answering.model, _core(made))
        return made
