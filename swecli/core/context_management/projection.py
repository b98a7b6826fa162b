"""From the ledger's view to the messages of a request, and the repair that makes any history valid.

Both are pure functions. Every request is a projection: each call has exactly one result, in call order; there are no
orphans and no empty messages; call ids are unique.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from copy import copy

from msgspec.structs import replace

from swecli.core.context_management.entry_bodies import stub_parts
from swecli.core.context_management.ledger import (
    APART,
    CONTINUATION,
    CUT_NOTE,
    GO_ON_NOTE,
    INTERRUPTED,
    INTERRUPTION_NOTE,
    MISSING_RESULT,
    Entry,
    Ledger,
    Projected,
    Settled,
)
from swecli.core.context_management.note_topics import form_of
from swecli.core.context_management.prompts import without_notes
from swecli.core.context_management.thoughts import sent_thoughts
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.messages import (
    DocumentPart,
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


def project(
    ledger: Ledger, view: Sequence[ViewEntry] | None = None, dead: AbstractSet[str] | None = None
) -> tuple[Message, ...]:
    """The conversation for the model: view entries grouped into messages, then repaired.

    ``view`` replaces the ledger's own, to preview a change; a part of a view needs the thoughts that are ``dead`` in
    the whole. The messages of the ledger's own view are cached: while it
    only grows, a step costs only the new part.
    """
    if view is not None:
        return _whole(ledger, view, Settled(0), ledger.dead_thoughts(view) if dead is None else dead)
    known = ledger.projected
    if known is not None and known.revision == ledger.revision:
        return known.messages
    settled = known.settled if known is not None else Settled(ledger.rewrites)
    if settled.rewrites != ledger.rewrites:
        settled = Settled(ledger.rewrites)
    messages = _whole(ledger, ledger.view, settled, ledger.dead_thoughts())
    ledger.projected = Projected(ledger.revision, messages, settled)
    return messages


def project_with(ledger: Ledger, text: str) -> tuple[Message, ...]:
    """The conversation for the model as a next message of the user with this text makes it."""
    return project(ledger, (*ledger.view, ViewEntry("summary", "draft", without_notes(text))))


def messages_of(ledger: Ledger, view: Sequence[ViewEntry], dead: AbstractSet[str]) -> list[Message]:
    """The messages of some entries of a view, without what depends on messages around them."""
    return _repaired([message for _, message in _groups(ledger, view, 0, dead)], set())


def thoughts_changed(ledger: Ledger, view: Sequence[ViewEntry], info: ModelInfo) -> tuple[int, int]:
    """Numbers of the model's thoughts that the next request loses and regains with this view in place of the ledger's
    own; 0 for a model that does not bind them."""
    if ledger.bound is None:
        return 0, 0
    before, after = (sent_thoughts(project(ledger, version), info.name).keys() for version in (ledger.view, view))
    return len(before - after), len(after - before)


def watermarks(ledger: Ledger, messages: Sequence[Message], *, changed: bool) -> tuple[int, ...]:
    """Index of the last message made by a clearing or a summary; right after a change also of the last one before it,
    up to which a provider still has the conversation cached."""
    made = [ledger.shown.made]
    if changed:
        made.append(
            next((entry for entry in reversed(ledger.replaced_view) if entry.kind in ("stub", "summary")), None)
        )
    ids = [_message_with(ledger, entry) for entry in made if entry is not None]
    places = {message.id: index for index, message in enumerate(messages)} if ids else {}
    return tuple(places[owner] for owner in ids if owner in places)


def _message_with(ledger: Ledger, made: ViewEntry) -> str:
    """The id of the message with a rewritten entry."""
    known = ledger.entries.get(made.id)
    if known is None or known.kind == "user":
        return made.id
    return f"{known.message}.results" if known.kind == "result" else known.message


def _whole(ledger: Ledger, view: Sequence[ViewEntry], settled: Settled, dead: AbstractSet[str]) -> tuple[Message, ...]:
    """All messages of a view with this settled beginning; advances ``settled`` to the newest answer, which results may
    still follow."""
    groups = list(_groups(ledger, view, settled.entries, dead))
    newest = next((at for at in range(len(groups) - 1, -1, -1) if groups[at][1].role == "assistant"), 0)
    if newest:
        ready = _annotated(settled, ledger.environment, [message for _, message in groups[:newest]], end=False)
        settled.messages += _repaired(ready, settled.ids)
        settled.entries = groups[newest][0]
    unsettled = [message for _, message in groups[newest:]]
    rest = _annotated(copy(settled), ledger.environment, unsettled, end=True)
    return _begun([*settled.messages, *_repaired(rest, set(), settled.ids)])


def _groups(
    ledger: Ledger, view: Sequence[ViewEntry], first: int, dead: AbstractSet[str]
) -> Iterator[tuple[int, Message]]:
    """Messages of the view from ``first`` on, without ``dead`` thoughts, each with the index of its first entry."""
    calls: list[Part] = []
    results: list[Part] = []
    current = ""
    start = first

    def flush() -> Iterator[tuple[int, Message]]:
        if calls:
            made, response = ledger.responses.get(current), None
            if made is not None:
                identifier, whole, report = made.response_id, made.complete, made.report
                response = Response(made.origin, made.stop, made.usage, identifier, whole, report, made.effort)
            yield start, Message("assistant", tuple(calls), current, response)
        if results:
            yield start, Message("tool", tuple(results), f"{current}.results")
        calls.clear()
        results.clear()

    for index in range(first, len(view)):
        view_entry = view[index]
        entry = ledger.entries.get(view_entry.id)
        if view_entry.kind == "dropped":
            if entry is not None and entry.kind == "user":  # it may have carried the environment
                yield from flush()
                current, start = entry.message, index
                yield index, Message("user", (), entry.id)
            continue
        owner = entry.message if entry else view_entry.id
        if owner != current:
            yield from flush()
            current, start = owner, index
        if entry is None:
            written = view_entry.provider
            part = TextPart(view_entry.text, opaque=written.opaque if written is not None else None)
            yield index, Message("user", (part,), view_entry.id)
        elif entry.kind == "note":
            yield index, Message("user", sent_parts(entry, view_entry), entry.id, note=form_of(entry.source))
        elif entry.kind in ("user", "attachment"):
            yield index, Message("user", sent_parts(entry, view_entry), entry.id)
        else:
            parts = sent_parts(entry, view_entry)
            parts = tuple(map(_left_out, parts)) if view_entry.id in dead else parts
            (results if entry.kind == "result" else calls).extend(parts)
    yield from flush()


def sent_parts(entry: Entry, view_entry: ViewEntry) -> tuple[Part, ...]:
    """The parts that the model gets of an entry in this form."""
    if view_entry.kind == "stub":
        parts = stub_parts(entry.body.outline, view_entry.text)
    else:
        body = entry.body
        if body.imitates is None:
            marked = entry.kind in ("result", "user", "attachment")
            body.imitates = marked and any(_unmarked(part) is not part for part in body.parts)
        parts = tuple(map(_unmarked, body.parts)) if body.imitates else body.parts
    return _attached(parts) if entry.kind == "attachment" else parts


def _left_out(part: Part) -> Part:
    """The mark of a thought that is not sent: OpenAI refuses the rest of its answer under the ids that it gave it."""
    if not isinstance(part, ReasoningPart) or part.opaque is None:
        return part
    return replace(part, text="", opaque=replace(part.opaque, data=None))


_FROM_OUTSIDE = (ToolResultPart, TextPart)


def _unmarked(part: Part) -> Part:
    """Content from files, commands and the clipboard, with imitations of this program's notes escaped."""
    if not isinstance(part, _FROM_OUTSIDE):
        return part
    text = without_notes(part.text)
    return part if text is part.text else replace(part, text=text)


def _attached(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Content read for the user, in the user's name: no call of the model leads to it."""
    results = [part for part in parts if isinstance(part, ToolResultPart)]
    return tuple(part for result in results for part in (TextPart(result.text), *result.images, *result.documents))


def _annotated(settled: Settled, environment: str, messages: Iterable[Message], *, end: bool) -> list[Message]:
    """Messages with additions for the model: the environment (date, directory, platform) before the user's first words,
    or in their place if these were dropped, and the reason of an early end of the previous answer, in the user's next
    message or in a message of its own if the model continues by itself. Advances the answer in ``settled``; ``end``:
    nothing follows them, so the model continues an interrupted answer."""
    annotated: list[Message] = []
    for message in messages:
        if message.role == "user" and not settled.has_environment:
            settled.has_environment = True
            if environment and not by_provider(message):
                message = replace(message, parts=(TextPart(environment + APART), *message.parts))
        if message.role == "user" and (message.note or not message.parts):
            if message.parts:
                annotated.append(message)
            continue
        cut = _unexplained(settled) if settled.answer is not None and message.role != "tool" else None
        if cut is not None:
            if message.role == "user":
                note = INTERRUPTION_NOTE if _interrupted(cut) else CUT_NOTE
                message = replace(message, parts=(TextPart(note + APART), *message.parts))
            elif not _interrupted(cut):
                annotated.append(_go_on(cut))
        annotated.append(message)
        if message.role == "assistant":
            settled.answer, settled.users = message, 0
        elif message.role == "user":
            settled.users += 1
    cut = _unexplained(settled) if end and settled.answer is not None else None
    if cut is not None and not _interrupted(cut):
        annotated.append(_go_on(cut))
    return annotated


def _unexplained(settled: Settled) -> Message | None:
    """The newest answer if it was cut or interrupted, has content, and no note to the model explains it yet. One at its
    output limit does not count: its results mention the limit."""
    answer = settled.answer
    response = answer.response if answer is not None else None
    if answer is None or settled.users or response is None or response.complete or response.stop.detail is None:
        return None
    shown = any(isinstance(part, TextPart | ToolCallPart) and not _is_blank(part) for part in answer.parts)
    return answer if shown else None


def by_provider(message: Message) -> bool:
    """Whether it is a summary that the provider wrote. The record at the end of the view then has the environment."""
    return message.role == "user" and any(
        isinstance(part, TextPart) and part.opaque is not None for part in message.parts
    )


def _interrupted(message: Message) -> bool:
    return message.response is not None and message.response.stop.detail == INTERRUPTED


def _go_on(answer: Message) -> Message:
    return Message("user", (TextPart(GO_ON_NOTE),), f"{answer.id}.note")


def repair(messages: Iterable[Message]) -> tuple[Message, ...]:
    """A valid history from any list of messages; valid histories come back unchanged.

    Results without a call are dropped, calls without a result get one that says that they were not executed, repeated
    call ids are renamed (with their results), empty messages are dropped, and the first message is the user's.
    """
    return _begun(_repaired(list(messages), set()))


def _begun(messages: list[Message]) -> tuple[Message, ...]:
    if messages and messages[0].role != "user":
        return (Message("user", (TextPart(CONTINUATION),), "continuation"), *messages)
    return tuple(messages)


_OF_USER = (TextPart, ImagePart, DocumentPart)
_NOT_OF_MODEL = (ToolResultPart, ImagePart, DocumentPart)
_SAID = (TextPart, ToolCallPart, OpaquePart)


def _repaired(messages: Sequence[Message], used: set[str], before: AbstractSet[str] = frozenset()) -> list[Message]:
    """Valid messages. Call ids are added to ``used``; those in ``before`` count as used, too."""
    repaired: list[Message] = []
    newest: list[Message] = []
    following: list[list[Message]] = []
    """The tool messages behind each answer, up to the next one."""
    for message in messages:
        if message.role == "assistant":
            newest = []
            following.append(newest)
        elif message.role == "tool":
            newest.append(message)
    answers = iter(following)
    for message in messages:
        if message.role == "user":
            parts = tuple(part for part in message.parts if isinstance(part, _OF_USER) and not _is_blank(part))
            if parts:
                repaired.append(_replaced(message, parts))
        elif message.role == "assistant":
            results = next(answers)
            if _is_valid(message, results, used, before):
                repaired += (message, *results)
            else:
                repaired.extend(_answered(message, results, used, before))
    return repaired


def _is_valid(message: Message, tool_messages: Sequence[Message], used: set[str], before: AbstractSet[str]) -> bool:
    """Whether an answer and its results need no repair, as most: then its call ids are ``used``."""
    calls: list[str] = []
    speaks = False
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            calls.append(part.call_id)
        elif isinstance(part, _NOT_OF_MODEL) or is_nothing(part):
            return False
        elif not speaks:
            speaks = isinstance(part, _SAID) and not _is_blank(part)
    if not calls:
        return speaks and not tool_messages
    if len(tool_messages) != 1 or not all(calls) or not used.isdisjoint(calls) or not before.isdisjoint(calls):
        return False
    answered = [part.call_id if isinstance(part, ToolResultPart) else "" for part in tool_messages[0].parts]
    if calls != answered or len({*calls}) < len(calls):
        return False
    used.update(calls)
    return True


def _replaced(message: Message, parts: tuple[Part, ...]) -> Message:
    return message if parts == message.parts else replace(message, parts=parts)


def _answered(
    message: Message, tool_messages: Sequence[Message], used: set[str], before: AbstractSet[str]
) -> Iterator[Message]:
    parts = tuple(part for part in message.parts if not isinstance(part, _NOT_OF_MODEL) and not is_nothing(part))
    if not any(isinstance(part, _SAID) and not _is_blank(part) for part in parts):
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
        new_id = _unique(part.call_id, used, before)
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


def _unique(call_id: str, used: AbstractSet[str], before: AbstractSet[str]) -> str:
    candidate, number = call_id or "call", 2
    while candidate in used or candidate in before:
        candidate, number = f"{call_id or 'call'}_{number}", number + 1
    return candidate


def is_nothing(part: Part) -> bool:
    """Whether a part of an answer is empty and not needed by the provider."""
    return _is_blank(part) and not (isinstance(part, TextPart) and part.opaque is not None)


def _is_blank(part: Part) -> bool:
    if isinstance(part, TextPart):
        return not part.text or part.text.isspace()
    return isinstance(part, ReasoningPart) and part.opaque is None and not part.text
