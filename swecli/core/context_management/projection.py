"""From the ledger's view to the messages of a request, and the repair that makes any history valid.

Both are pure functions. What is sent is always a projection: each call has exactly one result, in call order;
there are no orphans and no empty messages; call ids are unique.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from swecli.core.context_management.ledger import Entry, Ledger
from swecli.core.protocol.events import ViewEntry
from swecli.core.protocol.messages import (
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Response,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

MISSING_RESULT = "No result: the call was not executed."
INTERRUPTED = "interrupted"
"""``Stop.detail`` of an answer that the user cut short."""

INTERRUPTION_NOTE = "[The user interrupted your previous answer; what you had written until then is above.]"
CUT_NOTE = "[Your previous answer was cut off by a failure of the connection; what had arrived is above.]"
GO_ON_NOTE = (
    "[Your previous answer was cut off by a failure of the connection. Go on exactly where it stops, without repeating "
    "what is above; none of its tool calls was executed.]"
)
CONTINUATION = "[The conversation continues.]"


def project(ledger: Ledger, view: Sequence[ViewEntry] | None = None) -> tuple[Message, ...]:
    """The conversation as the model is to see it: view entries grouped into messages, then repaired.

    ``view`` takes the place of the ledger's own, to see what a change of it would give.
    """
    if view is not None:
        return _project(ledger, view)
    known = ledger.projected
    if known is None or known[0] != ledger.revision:
        known = ledger.projected = (ledger.revision, _project(ledger, ledger.view))
    return known[1]


def _project(ledger: Ledger, view: Sequence[ViewEntry]) -> tuple[Message, ...]:
    return repair(with_notes(with_environment(_group(ledger, view), ledger.environment)))


def _group(ledger: Ledger, view: Sequence[ViewEntry]) -> list[Message]:
    messages: list[Message] = []
    calls: list[Part] = []
    results: list[Part] = []
    current = ""

    def flush() -> None:
        if calls:
            messages.append(Message("assistant", tuple(calls), current, _response(ledger, current)))
        if results:
            messages.append(Message("tool", tuple(results), f"{current}.results"))
        calls.clear()
        results.clear()

    for view_entry in view:
        entry = ledger.entries.get(view_entry.id)
        owner = entry.message if entry else view_entry.id
        if owner != current:
            flush()
            current = owner
        if entry is None:
            messages.append(Message("user", (TextPart(view_entry.text),), view_entry.id))
        elif entry.kind == "user":
            messages.append(Message("user", _parts(entry, view_entry), entry.id))
        else:
            (results if entry.kind == "result" else calls).extend(_parts(entry, view_entry))
    flush()
    return messages


def _parts(entry: Entry, view_entry: ViewEntry) -> tuple[Part, ...]:
    if view_entry.kind != "stub":
        return entry.parts
    return tuple(_stubbed(part, view_entry.text) for part in entry.parts)


def _stubbed(part: Part, text: str) -> Part:
    match part:
        case ToolResultPart():
            return replace(part, text=text, images=())
        case ToolCallPart():
            return replace(part, arguments=text)
        case _:
            return TextPart(text)


def _response(ledger: Ledger, message: str) -> Response | None:
    body = ledger.responses.get(message)
    if body is None:
        return None
    return Response(body.origin, body.stop, body.usage, body.response_id, body.complete)


def with_environment(messages: Sequence[Message], environment: str) -> list[Message]:
    """Put the session's environment note (date, directory, platform) in front of the first user message."""
    result = list(messages)
    if environment:
        for index, message in enumerate(result):
            if message.role == "user":
                result[index] = replace(message, parts=(TextPart(environment), *message.parts))
                break
    return result


def with_notes(messages: Sequence[Message]) -> list[Message]:
    """Tell the model why its previous answer ended early: in the next message of the user, or in a message of its
    own where the model itself is to go on."""
    result: list[Message] = []
    for message in messages:
        before = _last_assistant(result)
        if message.role != "tool" and before is not None and _untold(result, before):
            if message.role == "user":
                note = INTERRUPTION_NOTE if _interrupted(before) else CUT_NOTE
                message = replace(message, parts=(TextPart(note), *message.parts))
            elif not _interrupted(before):
                result.append(_go_on(before))
        result.append(message)
    last = _last_assistant(result)
    if last is not None and not _interrupted(last) and _untold(result, last):
        result.append(_go_on(last))
    return result


def _untold(messages: Sequence[Message], answer: Message) -> bool:
    """Whether the newest answer ended early, shows something, and nobody has told the model yet."""
    shown = any(isinstance(part, TextPart | ToolCallPart) and not _is_blank(part) for part in answer.parts)
    return shown and _ended_early(answer) and _user_count_after(messages, answer) == 0


def _interrupted(message: Message) -> bool:
    return message.response is not None and message.response.stop.detail == INTERRUPTED


def _go_on(answer: Message) -> Message:
    return Message("user", (TextPart(GO_ON_NOTE),), f"{answer.id}.note")


def _ended_early(message: Message) -> bool:
    """Cut or interrupted; an answer that reached its output limit ended by a rule that its results tell of."""
    response = message.response
    return response is not None and not response.complete and response.stop.detail is not None


def _last_assistant(messages: Sequence[Message]) -> Message | None:
    return next((message for message in reversed(messages) if message.role == "assistant"), None)


def _user_count_after(messages: Sequence[Message], assistant: Message) -> int:
    count = 0
    for message in reversed(messages):
        if message is assistant:
            break
        count += message.role == "user"
    return count


def repair(messages: Iterable[Message]) -> tuple[Message, ...]:
    """A valid history from any list of messages; valid histories come back unchanged.

    Results without a call are dropped, calls without a result get one that says that they were not executed,
    repeated call ids are renamed (with their results), empty messages are dropped, and the first message is
    the user's.
    """
    repaired: list[Message] = []
    used: set[str] = set()
    pending = list(messages)
    for index, message in enumerate(pending):
        if message.role == "tool":
            continue  # results are placed by their call
        if message.role == "user":
            parts = tuple(
                part for part in message.parts if isinstance(part, TextPart | ImagePart) and not _is_blank(part)
            )
            if parts:
                repaired.append(_replaced(message, parts))
        else:
            repaired.extend(_answered(message, list(_results_after(pending, index)), used))
    if repaired and repaired[0].role != "user":
        repaired.insert(0, Message("user", (TextPart(CONTINUATION),), "continuation"))
    return tuple(repaired)


def _replaced(message: Message, parts: tuple[Part, ...]) -> Message:
    return message if parts == message.parts else replace(message, parts=parts)


def _results_after(messages: Sequence[Message], index: int) -> Iterator[Message]:
    """Tool messages between this assistant message and the next one."""
    for position in range(index + 1, len(messages)):
        message = messages[position]
        if message.role == "assistant":
            return
        if message.role == "tool":
            yield message


def _answered(message: Message, tool_messages: Sequence[Message], used: set[str]) -> Iterator[Message]:
    parts = tuple(
        part for part in message.parts if not isinstance(part, ToolResultPart | ImagePart) and not _is_nothing(part)
    )
    if not any(isinstance(part, TextPart | ToolCallPart | OpaquePart) and not _is_blank(part) for part in parts):
        return
    available: dict[str, list[ToolResultPart]] = {}
    for tool_message in tool_messages:
        for result in tool_message.tool_results:
            available.setdefault(result.call_id, []).append(result)
    results: list[Part] = []
    renamed: list[Part] = []
    for part in parts:
        if not isinstance(part, ToolCallPart):
            renamed.append(part)
            continue
        new_id = _unique(part.call_id, used)
        used.add(new_id)
        matches = available.get(part.call_id)
        result = matches.pop(0) if matches else ToolResultPart(new_id, part.name, MISSING_RESULT, True)
        renamed.append(part if new_id == part.call_id else replace(part, call_id=new_id))
        results.append(result if new_id == result.call_id else replace(result, call_id=new_id))
    yield _replaced(message, tuple(renamed))
    if results:
        same = len(tool_messages) == 1 and tool_messages[0].parts == tuple(results)
        tool_id = tool_messages[0].id if tool_messages else f"{message.id}.results"
        yield tool_messages[0] if same else Message("tool", tuple(results), tool_id)


def _unique(call_id: str, used: set[str]) -> str:
    candidate, number = call_id or "call", 2
    while candidate in used:
        candidate, number = f"{call_id or 'call'}_{number}", number + 1
    return candidate


def _is_nothing(part: Part) -> bool:
    """Whether a part of an answer can go: it says nothing, and the provider wants nothing back with it."""
    return _is_blank(part) and not (isinstance(part, TextPart) and part.opaque is not None)


def _is_blank(part: Part) -> bool:
    match part:
        case TextPart(text=text):
            return not text.strip()
        case ReasoningPart(text=text, opaque=opaque):
            return opaque is None and not text
        case _:
            return False
