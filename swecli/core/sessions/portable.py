"""A session as one portable JSON document: written from its facts, read back into a store.

No secret is restored or disclosed: keys were covered when the facts were stored and are covered again when they are
written. On reading, permissions, waiting messages and open questions are ignored.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import itertools
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from random import SystemRandom
from types import MappingProxyType
from typing import Any, Final, cast

import msgspec
from msgspec import Struct, structs

from swecli.core.protocol.codec import CodecError, decode_body, encode_body, to_text
from swecli.core.protocol.events import (
    MAIN,
    AgentEnded,
    AgentStarted,
    Body,
    CacheBreak,
    CompactionCompleted,
    CompactionFailed,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextEdited,
    Event,
    FileChanged,
    FileRead,
    FilesRestored,
    HookRan,
    ItemCheckpointed,
    ItemCompleted,
    ItemsOffloaded,
    ItemStarted,
    ModeChanged,
    ModelChanged,
    ModelResponded,
    Notice,
    PermissionRequested,
    PermissionResolved,
    PromptPrefix,
    QuestionAnswered,
    QuestionAsked,
    QueueChanged,
    RewindUndone,
    Rewound,
    ScratchpadChanged,
    SessionStarted,
    SideAnswered,
    StepEnded,
    StepStarted,
    TodosChanged,
    TurnEnded,
    TurnStarted,
    Unknown,
    UntrustedContent,
    tag_of,
)
from swecli.core.protocol.messages import Opaque
from swecli.core.sessions.database import Database
from swecli.core.sessions.journal import masked
from swecli.core.sessions.log import visible_json
from swecli.core.sessions.results import ResultStore, result_reference
from swecli.core.sessions.store import LATEST, UNREADABLE, SessionError, SessionStore, new_session_id
from swecli.core.sessions.titles import storable
from swecli.core.workspace.command_output import as_read
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import INVISIBLE

FORMAT: Final = "swecli-session"
VERSION: Final = 1
MAX_BYTES: Final = 512_000_000
"""Bytes of the largest document that is read."""
_ID: Final = lazy_pattern(r"[0-9A-Za-z][0-9A-Za-z._-]{0,63}")
_REFERENCE: Final = lazy_pattern(r"r[0-9a-f]{12}")


class PortableError(Exception):
    """The document is invalid or can't be imported; the message says why. Nothing was changed."""


class StoredResult(Struct, frozen=True):
    """A large result outside the conversation, with the reference used there."""

    id: str
    tool: str
    content: bytes


class Portable(Struct, frozen=True):
    """A session outside any store. Times are Unix seconds; ``left_out`` describes omitted parts in sentences. Without a
    ``model`` it continues with that of the settings."""

    id: str
    title: str
    cwd: str
    model: str
    created: float
    updated: float
    swecli: str
    events: tuple[Event, ...]
    results: tuple[StoredResult, ...] = ()
    left_out: tuple[str, ...] = ()
    name: str = ""
    """The user's name for it; at the destination another session may already have that name."""


def references(events: Iterable[Event]) -> list[str]:
    """References to results that a session stored outside its conversation, without duplicates."""
    refs: dict[str, None] = {}
    for event in events:
        if isinstance(event.body, ItemsOffloaded):
            refs.update(dict.fromkeys(item.ref for item in event.body.items))
    return list(refs)


def portable_document(session: Portable, cover: Callable[[str], str]) -> str:
    """The JSON text, one event per line. ``cover`` masks keys; data that a provider wants back byte for byte is omitted
    if it contains a key."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "session": {
            "id": session.id,
            "title": cover(session.title),
            "name": cover(session.name),
            "cwd": cover(session.cwd),
            "model": session.model,
            "created": session.created,
            "updated": session.updated,
            "swecli": session.swecli,
        },
    }
    events = ",\n".join(
        _event_text(event, cover) for event in session.events if tag_of(event.body) not in _NOT_EXPORTED
    )
    results = ",\n".join(to_text(_result(result, cover)) for result in session.results)
    return visible_json(f'{to_text(head)[:-1]},\n"events":[\n{events}\n],\n"results":[\n{results}\n]}}\n')


def _event_text(event: Event, cover: Callable[[str], str]) -> str:
    body = masked(event.body, cover)
    text = encode_body(body)
    if not isinstance(body, Unknown) and cover(text) != text:  # in data kept byte for byte
        body = _without_keys(body, cover)
        text = encode_body(body)
    else:
        text = encode_body(Unknown(body.tag, masked(body.data, cover))) if isinstance(body, Unknown) else text
    head = {"v": event.v, "seq": event.seq, "ts": event.ts, "turn": event.turn, "agent": event.agent}
    return f'{to_text(head)[:-1]},"body":{text}}}'


def _without_keys(value: Any, cover: Callable[[str], str]) -> Any:
    """``value`` without provider data that contains a key."""
    if isinstance(value, tuple):
        return tuple(_without_keys(each, cover) for each in cast("tuple[Any, ...]", value))
    if isinstance(value, msgspec.Struct):
        changes: dict[str, Any] = {}
        for name in value.__struct_fields__:
            old = getattr(value, name)
            if isinstance(old, Opaque):
                text = to_text(old)
                new = old if cover(text) == text else _emptied(value, name, old)
            else:
                new = _without_keys(old, cover)
            if new is not old:
                changes[name] = new
        return structs.replace(value, **changes) if changes else value
    return value


def _emptied(part: msgspec.Struct, name: str, opaque: Opaque) -> Opaque | None:
    """None if the part is valid without it."""
    optional = any(field.name == name and not field.required for field in structs.fields(part))
    return None if optional else structs.replace(opaque, data=None)


def _result(result: StoredResult, cover: Callable[[str], str]) -> dict[str, str]:
    try:
        text = result.content.decode()
    except UnicodeDecodeError:
        covered = cover(result.content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        return {"id": result.id, "tool": result.tool, "base64": base64.b64encode(covered).decode()}
    return {"id": result.id, "tool": result.tool, "text": cover(text)}


def read_portable(text: str) -> Portable:
    """The session of a document.

    Raises:
        PortableError: it is invalid, of a later version, or has a broken event.
    """
    try:
        document: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PortableError(f"it is not JSON ({error})") from error
    if not isinstance(document, dict):
        raise PortableError("it is not a session export")
    fields = cast("dict[str, Any]", document)
    if fields.get("format") != FORMAT:
        raise PortableError("it is not a session export")
    version = fields.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise PortableError(f"it was written by a newer swecli (version {version} of the format); upgrade this one")
    session, events = fields.get("session"), fields.get("events")
    if not isinstance(session, dict) or not isinstance(events, list):
        raise PortableError("its session or its events are missing")
    row = cast("dict[str, Any]", session)
    identifier = row.get("id")
    if not isinstance(identifier, str) or not _ID.fullmatch(identifier):
        raise PortableError(f"its session has no usable id: {identifier!r}")
    taken = [_event(entry, number, identifier) for number, entry in enumerate(cast("list[Any]", events), 1)]
    if not taken:
        raise PortableError("it has no events")
    if any(after.seq <= before.seq for before, after in itertools.pairwise(taken)):
        raise PortableError("its events are not in order")
    harmless, left_out = without_power(taken)
    return Portable(
        identifier,
        _string(row, "title"),
        _string(row, "cwd"),
        "" if _asked_elsewhere(taken) else _string(row, "model"),
        _time(row.get("created"), taken[0].ts),
        _time(row.get("updated"), taken[-1].ts),
        _string(row, "swecli"),
        harmless,
        tuple(_read_results(fields.get("results"))),
        left_out,
        _string(row, "name"),
    )


def _event(entry: object, number: int, session: str) -> Event:
    try:
        bounded(entry)
        if not isinstance(entry, dict):
            raise CodecError("not a JSON object")
        data = cast("dict[str, Any]", entry)
        body = decode_body(json.dumps(data["body"]))
        seq, turn = data["seq"], data["turn"]
        if not isinstance(seq, int) or not isinstance(turn, int) or not 0 < seq < 2**53 or not 0 <= turn < 2**53:
            raise CodecError("its position is not a number")
        agent = data.get("agent", MAIN)
        if not isinstance(agent, str):
            raise CodecError("its agent is not a string")
        return Event(seq, _time(data.get("ts"), 0.0), session, turn, body, agent, 1)
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise PortableError(f"cannot read event {number} ({error})") from error


DEEPEST: Final = 200
"""Nesting levels accepted in a JSON value; swecli writes far fewer."""


def bounded(value: object) -> None:
    """Raise ``ValueError`` for a JSON value that is nested deeply enough to cause failures later."""
    level: list[object] = [value]
    for _ in range(DEEPEST):
        level = [each for container in level for each in _inside(container)]
        if not level:
            return
    raise ValueError(f"it is nested more than {DEEPEST} levels deep")


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def _read_results(entries: object) -> Iterable[StoredResult]:
    for entry in cast("list[Any]", entries) if isinstance(entries, list) else ():
        result = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
        name, tool = result.get("id"), result.get("tool", "")
        if not isinstance(name, str) or not _REFERENCE.fullmatch(name) or not isinstance(tool, str):
            raise PortableError(f"a stored result has no usable reference: {name!r}")
        try:
            if isinstance(text := result.get("text"), str):
                content = (as_read(text) if _HIDING.search(to_text(text)) else text).encode("utf-8", "replace")
            else:
                content = base64.b64decode(str(result.get("base64", "")), validate=True)
        except (binascii.Error, ValueError) as error:
            raise PortableError(f"cannot read the stored result {name} ({error})") from error
        yield StoredResult(name, tool, content)


_NOT_EXPORTED: Final = (UNREADABLE, "system_prompt_sent")
"""A system prompt has the user's own files word for word, and no other place would use it."""
_IMPORTED: Final = (
    *(SessionStarted, TurnStarted, TurnEnded, StepStarted, StepEnded, ModelResponded, SideAnswered),
    *(ItemStarted, ItemCheckpointed, ItemCompleted, ItemsOffloaded, Notice, UntrustedContent),
    *(PermissionRequested, PermissionResolved, QuestionAsked, QuestionAnswered),
    *(ModeChanged, ModelChanged, QueueChanged, Rewound, RewindUndone, FilesRestored, FileChanged, FileRead),
    *(CompactionStarted, CompactionCompleted, CompactionFailed, CompactionUndone, CompactionRedone, ContextEdited),
    *(TodosChanged, ScratchpadChanged, PromptPrefix, CacheBreak, HookRan, AgentStarted, AgentEnded),
)
"""Kinds of events that a file may bring: what was said and done, and what the transcript shows of it. Others would
write into the system prompt, offer tools, name files to read, or act."""
_NOT_IMPORTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "memory_loaded": "memories in the system prompt",
        "system_prompt_sent": "system prompts",
        "tools_changed": "descriptions of tools",
        "plan_changed": "plan files",
        "context_restored": "a restored view",
        "bullets_told": "bullets of a playbook",
        "job_changed": "background jobs",
        "rule_applied": "uses of rules",
    }
)


def without_power(events: Sequence[Event]) -> tuple[tuple[Event, ...], tuple[str, ...]]:
    """Events of a file of the kinds that it may bring, without what would act in a session: rules, waiting messages.
    Also sentences about the omissions."""
    rules = queued = 0
    addresses: dict[str, None] = {}
    harmless: list[Event] = []
    others: dict[str, None] = {}
    ended = {event.body.agent for event in events if isinstance(event.body, AgentEnded)}
    for event in events:
        body = event.body
        if isinstance(body, AgentStarted) and body.agent not in ended:
            others["subagents at work"] = None  # the next start would report to the model what became of them
            continue
        if not isinstance(body, _IMPORTED):
            if (kind := _NOT_IMPORTED.get(tag_of(body), "")) != "":
                others[kind] = None
            continue
        match body:
            case SessionStarted(address=address) | ModelChanged(address=address) if not _is_local_address(address):
                addresses[address] = None
                body = structs.replace(body, address="")
            case PermissionResolved(choice="always", span=span) if span != "turn":
                rules += 1
                body = structs.replace(body, span="turn")
            case TurnStarted(allowed=allowed) if allowed:
                rules += 1
                body = structs.replace(body, allowed=())
            case QueueChanged(queue=queue) if queue:
                queued = max(queued, len(queue))
                body = structs.replace(body, queue=())
            case _:
                pass
        body = _as_seen(body)
        harmless.append(event if body is event.body else structs.replace(event, body=body))
    sentences: list[str] = []
    if addresses:
        sentences.append(
            f"Model addresses were not imported ({', '.join(addresses)}): the session uses the model of your settings."
        )
    if rules:
        sentences.append(f"Permissions of the session were not imported ({rules}).")
    if others:
        sentences.append(f"Not imported, because a file must not bring them: {', '.join(others)}.")
    if queued:
        sentences.append("Queued messages were not imported.")
    return tuple(harmless), tuple(sentences)


_HIDING: Final = lazy_pattern(rf"\\u00(?:0[0-9a-f]|1[0-9a-f]|7f|[89][0-9a-f])|\\[bf]|[\x7f-\x9f{INVISIBLE}]|\\r(?!\\n)")
"""JSON text with characters that act on a terminal or that nobody sees."""


def _as_seen(body: Body | Unknown) -> Body | Unknown:
    """The body with its texts as people see them: those of a file must not tell the model something else."""
    text = encode_body(body)
    if _HIDING.search(text) is None:
        return body
    return decode_body(json.dumps(_texts_as_seen(json.loads(text))))


def _texts_as_seen(value: Any) -> Any:
    if isinstance(value, str):
        return as_read(value)
    if isinstance(value, dict):
        return {key: _texts_as_seen(item) for key, item in cast("dict[str, Any]", value).items()}
    return [_texts_as_seen(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _asked_elsewhere(events: Sequence[Event]) -> bool:
    """Whether the events' newest model was asked at an address that is not imported."""
    named = (event.body for event in reversed(events) if isinstance(event.body, SessionStarted | ModelChanged))
    return any(not _is_local_address(body.address) for body in list(named)[:1])


def _is_local_address(address: str) -> bool:
    """Whether requests to that address stay on this machine."""
    from urllib.parse import urlsplit

    try:
        return not address or (urlsplit(address).hostname or "") in ("127.0.0.1", "::1", "localhost")
    except ValueError:
        return False


def _string(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name, "")
    return value if isinstance(value, str) else ""


def _time(value: object, otherwise: float) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LATEST
    return float(value) if usable and isinstance(value, int | float) else otherwise


# --- export from and import into a store ---------------------------------------------------------------------


def stored_session(store: SessionStore, name: str, report: Callable[[str], None]) -> Portable:
    """A complete stored session. ``report`` gets sentences about unreadable parts.

    Raises:
        SessionError: no session has that name, or several have.
    """
    info = store.get(name)
    events = store.load(info.id, report)
    results = ResultStore(store.database, info.id)
    tools = _tools(store.database, info.id)
    refs = dict.fromkeys([*references(events), *tools])
    stored = results_of(refs, results.get, tools, report)
    return Portable(
        info.id,
        info.title,
        info.cwd,
        info.model,
        info.created,
        info.updated,
        info.swecli,
        tuple(events),
        stored,
        name=info.name,
    )


def results_of(
    refs: Iterable[str],
    get: Callable[[str], bytes | None],
    tools: Mapping[str, str],
    report: Callable[[str], None],
) -> tuple[StoredResult, ...]:
    """The results of these references; missing and damaged ones are reported."""
    from swecli.core.ports import BlobError

    results: list[StoredResult] = []
    for ref in refs:
        try:
            content = get(ref)
        except BlobError as error:
            report(str(error))
            continue
        if content is None:
            report(f"The stored result {ref} is missing, so it is not in the export.")
        else:
            results.append(StoredResult(ref, tools.get(ref, ""), content))
    return tuple(results)


def _tools(database: Database, session: str) -> dict[str, str]:
    with database.read() as connection:
        rows = connection.execute("SELECT id, tool_name FROM tool_result_blobs WHERE session_id = ?", (session,))
        return {str(name): str(tool) for name, tool in rows.fetchall()}


_ADD = (
    "INSERT INTO sessions(id, cwd, model, created, updated, swecli, turns, tokens, cost, size)"
    " VALUES (?, ?, ?, ?, ?, ?, 0, 0, '0', 0)"
)
_SETTLE = "UPDATE sessions SET title = CASE WHEN ? = '' THEN title ELSE ? END, model = ? WHERE id = ?"
"""Runs after the events, which set title and model too: a title of its own stays, and without a model it continues with
that of the settings."""


def take_in(store: SessionStore, session: Portable, cwd: str, cover: Callable[[str], str], origin: str) -> str:
    """Import a session into a store, for the folder ``cwd``; all of it or nothing. It keeps its id if free, and its
    name unless another session has it. ``origin`` is its source: its text counts as untrusted. Returns the id.

    Raises:
        SessionError: it can't be stored; nothing was.
        sqlite3.Error: it can't be stored; nothing was.
    """
    identifier = session.id if session.id and not _exists(store.database, session.id) else _free_id(store.database)
    names = {result.id: result_reference(identifier, _covered(result.content, cover)) for result in session.results}
    changed = {old: new for old, new in names.items() if old != new}
    events = [_renamed(event, identifier, changed) for event in session.events]
    last = events[-1]
    events.append(Event(last.seq + 1, last.ts, identifier, 0, UntrustedContent("", origin)))
    covered = [structs.replace(event, body=masked(event.body, cover)) for event in events]
    with store.database.write() as connection:
        # Marked as used now, so that it is not removed as unused.
        texts = [storable(text) for text in (identifier, cwd, session.model, session.swecli)]
        connection.execute(_ADD, (*texts[:3], session.created, time.time(), texts[3]))
    try:
        store.append(covered)
        with store.database.write() as connection:
            title = storable(cover(session.title))
            connection.execute(_SETTLE, (title, title, storable(session.model), identifier))
        results = ResultStore(store.database, identifier)
        for result in session.results:
            results.put(result.tool, _covered(result.content, cover))
        with contextlib.suppress(SessionError):
            store.rename(identifier, storable(cover(session.name)))
    except BaseException as error:
        with store.database.write() as connection:
            connection.execute("DELETE FROM sessions WHERE id = ?", (identifier,))
        if isinstance(error, sqlite3.Error | SessionError) or not isinstance(error, Exception):
            raise
        raise SessionError(f"Could not store the session ({error}). Nothing was changed.") from error
    return identifier


def _covered(content: bytes, cover: Callable[[str], str]) -> bytes:
    return cover(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _renamed(event: Event, session: str, names: Mapping[str, str]) -> Event:
    """The event in its new session, with the new references to results."""
    body: Body | Unknown = event.body
    if names:
        text = encode_body(body)
        renamed = _REFERENCE.sub(lambda match: names.get(match[0], match[0]), text)
        body = decode_body(renamed) if renamed != text else body
    return structs.replace(event, session=session, body=body)


def _exists(database: Database, session: str) -> bool:
    with database.read() as connection:
        return connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone() is not None


def _free_id(database: Database) -> str:
    while True:
        name = new_session_id(datetime.now(), SystemRandom())
        if not _exists(database, name):
            return name
