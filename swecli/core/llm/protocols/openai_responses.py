"""OpenAI Responses: decoder. Items are found by their place in the output, never by their id, which some
servers change within a stream; a finished item counts more than its deltas."""

from __future__ import annotations

from swecli.core.llm.errors import read_error
from swecli.core.llm.json_values import JsonObject, as_int, as_list, as_object, as_text
from swecli.core.llm.protocols.answer import WireStop
from swecli.core.llm.protocols.base import Decoder
from swecli.core.llm.protocols.drafts import CallDraft, Draft, OpaqueDraft, ReasoningDraft, TextDraft
from swecli.core.llm.protocols.openai_chat import first_int, read_cost
from swecli.core.protocol.usage import Usage

NAME = "openai-responses"

_INCOMPLETE: dict[str, WireStop] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "max_messages": "length",
    "steered": "pause",
}
_TERMINAL = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")


class _Item:
    """One output item under way."""

    def __init__(self, start: JsonObject) -> None:
        self.start = start
        self.kind = as_text(start.get("type"))
        self.drafts: list[Draft] = []
        self.section: int | None = None
        self.final: JsonObject = {}
        self.done = False

    def is_other(self, final: JsonObject) -> bool:
        """Whether ``final`` is another item, although it came at the place of this one, which is finished."""
        known = self.final
        if known.get("type") != final.get("type") or known.get("call_id") != final.get("call_id"):
            return True
        return known.get("id") != final.get("id") and known.get("content") != final.get("content")

    @property
    def draft(self) -> Draft | None:
        return self.drafts[-1] if self.drafts else None


class ResponsesDecoder(Decoder):
    """Typed events of a streamed response, or one whole ``response``."""

    _items: dict[int, _Item] | None = None

    def on_message(self, message: JsonObject, name: str) -> bool:
        kind = as_text(message.get("type")) or name
        if message.get("object") == "response":
            self._whole(message)
            return True
        if not kind.startswith("response."):
            return kind == "error"
        response = as_object(message.get("response"))
        if response:
            self.answer.start(as_text(response.get("model")), as_text(response.get("id")))
        index = as_int(message.get("output_index"))
        if kind in _TERMINAL:
            self._finish(response, kind)
        elif kind == "response.output_item.added":
            self._added(index, as_object(message.get("item")))
        elif kind == "response.output_item.done":
            self._done(self._place(index), as_object(message.get("item")))
        elif kind.endswith(".delta"):
            self._delta(kind, index, message)
        elif kind == "response.function_call_arguments.done":
            self._arguments(self._item(index, "function_call"), as_text(message.get("arguments")))
        return True

    def _known(self) -> dict[int, _Item]:
        if self._items is None:
            self._items = {}
        return self._items

    def _place(self, index: int | None) -> int:
        """Without a place, an event belongs to the newest item."""
        return index if index is not None else max(self._known(), default=0)

    def _item(self, index: int | None, kind: str) -> _Item:
        place = self._place(index)
        item = self._known().get(place)
        if item is None:
            item = self._known()[place] = _Item({"type": kind})
        return item

    def _added(self, index: int | None, start: JsonObject) -> None:
        place = index if index is not None else max(self._known(), default=-1) + 1
        item = self._known()[place] = _Item(start)
        if item.kind == "function_call":
            self._call(item)
        elif item.kind == "reasoning":
            item.drafts.append(self.answer.add(ReasoningDraft(summary=True)))
        elif item.kind != "message":
            self._keep(item)
        else:
            self.answer.changes += 1

    def _keep(self, item: _Item) -> OpaqueDraft:
        draft = self.answer.add(OpaqueDraft(data={"item": dict(item.start)}, note=item.kind))
        item.drafts.append(draft)
        return draft

    def _call(self, item: _Item) -> CallDraft:
        if isinstance(item.draft, CallDraft):
            return item.draft
        draft = CallDraft(wire_id=as_text(item.start.get("call_id")) or None, name=as_text(item.start.get("name")))
        call = self.answer.add(draft)
        item.drafts.append(call)
        self.answer.call_text(call, as_text(item.start.get("arguments")))
        return call

    def _delta(self, kind: str, index: int | None, message: JsonObject) -> None:
        text = as_text(message.get("delta"))
        if kind == "response.output_text.delta":
            self._text(self._item(index, "message"), text, refusal=False)
        elif kind == "response.refusal.delta":
            self._text(self._item(index, "message"), text, refusal=True)
        elif kind == "response.function_call_arguments.delta":
            self.answer.call_text(self._call(self._item(index, "function_call")), text)
        elif kind == "response.reasoning_summary_text.delta":
            self._reasoning(self._item(index, "reasoning"), text, as_int(message.get("summary_index")), summary=True)
        elif kind == "response.reasoning_text.delta":
            self._reasoning(self._item(index, "reasoning"), text, as_int(message.get("content_index")), summary=False)

    def _text(self, item: _Item, text: str, refusal: bool) -> None:
        draft = item.draft
        if not (isinstance(draft, TextDraft) and draft.refusal == refusal):
            if not text:
                return
            if refusal or not self.answer.splits:
                draft = self.answer.add(TextDraft(refusal=refusal))
                item.drafts.append(draft)
        self.answer.text(text, draft if isinstance(draft, TextDraft) else None)

    def _reasoning(self, item: _Item, text: str, section: int | None, summary: bool) -> None:
        draft = item.draft
        if not isinstance(draft, ReasoningDraft):
            draft = self.answer.add(ReasoningDraft(summary=summary))
            item.drafts.append(draft)
        if not draft.chunks:
            draft.summary = summary
        if draft.chunks and section != item.section:
            text = "\n\n" + text
        item.section = section
        self.answer.reasoning(text, draft)

    def _arguments(self, item: _Item, whole: str) -> None:
        """The arguments as the finished item has them: only what the deltas lacked is new."""
        call = self._call(item)
        raw = call.raw
        if whole.startswith(raw):
            self.answer.call_text(call, whole[len(raw) :])
        elif whole and not call.done:
            call.chunks = [whole]

    def _done(self, place: int, final: JsonObject) -> None:
        item = self._known().get(place)
        if item is None or (item.done and item.is_other(final)):
            self._added(place, {key: value for key, value in final.items() if key != "arguments"})
            item = self._known()[place]
        if item.done:
            return
        item.done, item.final = True, final
        kind = as_text(final.get("type")) or item.kind
        if kind == "message":
            self._done_message(item, final)
        elif kind == "reasoning":
            self._done_reasoning(item, final)
        elif kind == "function_call":
            self._done_call(item, final)
        elif isinstance(item.draft, OpaqueDraft):
            item.draft.data["item"] = dict(final)
            self.answer.changes += 1

    def _done_message(self, item: _Item, final: JsonObject) -> None:
        text, refusal = _message_texts(final)
        for whole, is_refusal in ((text, False), (refusal, True)):
            streamed = "".join(
                draft.text for draft in item.drafts if isinstance(draft, TextDraft) and draft.refusal == is_refusal
            )
            if whole.startswith(streamed) and not self.answer.splits:
                self._text(item, whole[len(streamed) :], is_refusal)
        envelope = {key: final[key] for key in ("id", "status", "phase") if final.get(key) is not None}
        for draft in item.drafts[:1]:
            draft.data = {"message": envelope}

    def _done_reasoning(self, item: _Item, final: JsonObject) -> None:
        sections = [as_text(as_object(part).get("text")) for part in as_list(final.get("content"))]
        raw = bool(sections)
        if not raw:
            sections = [as_text(as_object(part).get("text")) for part in as_list(final.get("summary"))]
        draft = item.draft
        if not isinstance(draft, ReasoningDraft):
            draft = self.answer.add(ReasoningDraft())
            item.drafts.append(draft)
        if not draft.chunks:
            draft.summary = not raw
            self.answer.reasoning("\n\n".join(section for section in sections if section), draft)
        draft.data = {"item": dict(final)}
        self.answer.changes += 1

    def _done_call(self, item: _Item, final: JsonObject) -> None:
        call = self._call(item)
        call.name = as_text(final.get("name")) or call.name
        call.wire_id = call.wire_id or as_text(final.get("call_id")) or None
        self._arguments(item, as_text(final.get("arguments")))
        call.data = {"call": {key: final[key] for key in ("id", "status") if final.get(key) is not None}}
        self.answer.close_call(call)

    def _whole(self, response: JsonObject) -> None:
        self.answer.start(as_text(response.get("model")), as_text(response.get("id")))
        self._finish(response, f"response.{as_text(response.get('status')) or 'completed'}")

    def _finish(self, response: JsonObject, kind: str) -> None:
        if not any(item.done for item in self._known().values()):
            for place, final in enumerate(as_list(response.get("output"))):
                self._done(place, as_object(final))
        if usage := as_object(response.get("usage")):
            self.answer.report_usage(read_usage(usage))
        status = as_text(response.get("status")) or kind.removeprefix("response.").replace("done", "completed")
        if status == "failed" or response.get("error"):
            self.answer.stop("failed", "error")
            self.fail_wire(read_error({"error": response.get("error") or {"message": "the response failed"}}))
        elif status == "incomplete":
            reason = as_text(as_object(response.get("incomplete_details")).get("reason"))
            self.answer.stop(reason or status, _INCOMPLETE.get(reason, "unknown"), "incomplete")
            self.answer.complete()
        else:
            self.answer.stop(status, "end" if status == "completed" else "unknown")
            self.answer.complete()


def _message_texts(item: JsonObject) -> tuple[str, str]:
    """Text and refusal of a message item."""
    parts = [as_object(part) for part in as_list(item.get("content"))]
    text = "".join(as_text(part.get("text")) for part in parts if part.get("type") in ("output_text", "text"))
    return text, "".join(as_text(part.get("refusal")) for part in parts)


def read_usage(usage: JsonObject) -> Usage:
    """Usage in the neutral vocabulary."""
    details = as_object(usage.get("input_tokens_details"))
    write = details.get("cache_write_tokens")
    if isinstance(write, dict):
        write = sum(
            number for value in as_object(details.get("cache_write_tokens")).values() if (number := as_int(value))
        )
    return Usage(
        input_total=as_int(usage.get("input_tokens")),
        cache_read=as_int(details.get("cached_tokens")),
        cache_write=first_int(write),
        output_total=as_int(usage.get("output_tokens")),
        reasoning=as_int(as_object(usage.get("output_tokens_details")).get("reasoning_tokens")),
        cost=read_cost(usage),
    )
