"""How a turn ends, in words for the user."""

from __future__ import annotations

from swecli.core.context_management.gateway import REQUEST_NOT_SENT
from swecli.core.engine.companion import TurnStopped
from swecli.core.engine.model_call import speaker, why_not_again
from swecli.core.llm.remedies import GO_ON_LATER
from swecli.core.llm.types import ModelInfo, ProviderError
from swecli.core.protocol.events import ANSWER_CUT
from swecli.core.protocol.messages import CUT_BY_SWECLI, Message


def failed(error: ProviderError, info: ModelInfo) -> TurnStopped:
    """The end of a turn by an error of the provider, with advice."""
    go_on = GO_ON_LATER if error.unreached else ""
    advice = " ".join(filter(None, (why_not_again(error), error.hint, go_on)))
    stop = "" if error.message.endswith((".", "!", "?")) or not advice else "."
    reason = f"{speaker(error, info)}{error.message}{stop} {advice}".strip()
    if error.kind == "quota" and error.message.startswith(REQUEST_NOT_SENT):  # used up by others meanwhile
        return TurnStopped("limit", error.message, "max_tokens")
    kind = "content_filter" if error.moderated else error.kind
    return TurnStopped("blocked" if error.kind == "context_overflow" else "error", reason, kind)


def ended_by(message: Message) -> TurnStopped:
    """The end of a turn with this answer. One that was cut is no result."""
    cut = message.response is not None and message.response.stop.kind in ("length", "context_full")
    return TurnStopped("limit", last_word(message), ANSWER_CUT) if cut else TurnStopped("done", last_word(message))


def last_word(message: Message) -> str:
    stop = message.response.stop if message.response else None
    if stop is not None and stop.raw == CUT_BY_SWECLI:  # continuing would hardly give more
        return f"{stop.detail}, so swecli cut it"
    kind = stop.kind if stop is not None else None
    return _STOP_REASONS.get(kind or "end", "")


_STOP_REASONS: dict[str, str] = {
    "length": "the answer was cut at the output limit; say “continue” to get the rest",
    "refusal": "the model refused to answer",
    "content_filter": "the provider's content filter stopped the answer",
    "context_full": "the context window was full; the answer may be incomplete",
}
