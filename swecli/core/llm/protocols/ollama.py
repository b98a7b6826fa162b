"""Ollama's own chat protocol: decoder. One JSON object per line, the last with ``done``."""

from __future__ import annotations

from swecli.core.llm.json_values import JsonObject, as_int, as_items, as_object, as_text
from swecli.core.llm.protocols.answer import WireStop
from swecli.core.llm.protocols.base import Decoder
from swecli.core.llm.protocols.drafts import CallDraft
from swecli.core.protocol.usage import Usage

NAME = "ollama-chat"

_STOPS: dict[str, WireStop] = {"stop": "end", "length": "length"}


class OllamaDecoder(Decoder):
    """Lines of ``/api/chat``. Calls come whole, their arguments as objects."""

    def on_message(self, message: JsonObject, name: str) -> bool:
        known = "message" in message or "done" in message
        if known:
            self.answer.start(as_text(message.get("model")))
        said = as_object(message.get("message"))
        if thinking := as_text(said.get("thinking")):
            self.answer.reasoning(thinking)
        if content := as_text(said.get("content")):
            self.answer.text(content)
        for item in as_items(said.get("tool_calls")):
            self._call(as_object(item))
        if message.get("done") is True:
            self._finish(message)
        return known or "error" in message

    def _call(self, item: JsonObject) -> None:
        function = as_object(item.get("function"))
        draft = CallDraft(wire_id=as_text(item.get("id")) or None, name=as_text(function.get("name")))
        call = self.answer.add(draft)
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            self.answer.call_text(call, arguments)
        else:
            call.value = as_object(arguments)
        self.answer.close_call(call)

    def _finish(self, message: JsonObject) -> None:
        usage = Usage(
            input_total=as_int(message.get("prompt_eval_count")), output_total=as_int(message.get("eval_count"))
        )
        if usage != Usage():
            self.answer.report_usage(usage)
        reason = as_text(message.get("done_reason"))
        if reason:
            self.answer.stop(reason, _STOPS.get(reason, "unknown"))
        self.answer.complete()
