"""The only path of events to disk and front-ends: first stored, then shown."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

from msgspec import Struct, json, structs
from msgspec.structs import replace

from swecli.core.ports import BlobRef, BlobStore, Snapshot, SnapshotMeasure, Snapshots
from swecli.core.protocol.events import Event, TurnEnded, begins_turn, is_fact
from swecli.core.protocol.messages import DocumentPart, ImagePart, Opaque
from swecli.core.sessions.store import SessionError
from swecli.steady_clock import SteadyClock

Cover = Callable[[str], str]
T = TypeVar("T")
_EXACT = frozenset(
    (
        "type",
        "id",
        "item",
        "job",
        "call_id",
        "message",
        "response_id",
        "request",
        "binding",
        "sha256",
        "before",
        "after",
    )
)
"""Fields that name something and must stay exact. They contain no text of users or models."""


def masked_events(events: Sequence[Event], cover: Cover) -> list[Event]:
    """The events with every text in them covered. All texts are checked at once, because each check has its fixed
    cost."""
    texts: list[str] = []
    for event in events:
        _add_texts(event.body, texts)
    joined = "\n".join(texts)
    if cover(joined) is joined:
        return list(events)
    return [structs.replace(event, body=masked(event.body, cover)) for event in events]


def _add_texts(value: Any, texts: list[str]) -> None:
    """Add what ``_masked`` would cover."""
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, tuple | list):
        for item in cast("Sequence[Any]", value):
            _add_texts(item, texts)
    elif isinstance(value, Mapping):
        for item in cast("Mapping[Any, Any]", value).values():
            _add_texts(item, texts)
    elif isinstance(value, Struct) and not isinstance(value, Opaque | ImagePart):
        for name in value.__struct_fields__:
            field = getattr(value, name)
            if not (isinstance(field, str) and name in _exact_fields(value)):
                _add_texts(field, texts)


def _exact_fields(value: Struct) -> frozenset[str]:
    return _EXACT | {"data"} if isinstance(value, DocumentPart) else _EXACT


def masked(value: T, cover: Cover) -> T:
    """``value`` with every text in it covered; the same object if nothing needed covering. Data that a provider wants
    back byte for byte, images and files stay unchanged."""
    return cast("T", _masked(value, cover))


def _masked(value: Any, cover: Cover) -> Any:
    if isinstance(value, str):
        return cover(value)
    if isinstance(value, Opaque | ImagePart):
        return value
    if isinstance(value, tuple | list):
        items = cast("Sequence[Any]", value)
        done = [_masked(item, cover) for item in items]
        if all(new is old for new, old in zip(done, items, strict=True)):
            return cast("Any", value)
        return tuple(done) if isinstance(value, tuple) else done
    if isinstance(value, Mapping):
        return {key: _masked(item, cover) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Struct):
        changes: dict[str, Any] = {}
        exact = _exact_fields(value)
        for name in value.__struct_fields__:
            old = getattr(value, name)
            new = old if name in exact and isinstance(old, str) else _masked(old, cover)
            if new is not old and new != old:
                changes[name] = new
        return structs.replace(value, **changes) if changes else value
    return value


class MaskedBlobs:
    """A ``BlobStore`` that stores no API keys."""

    def __init__(self, inner: BlobStore, cover: Cover) -> None:
        self._inner = inner
        self._cover = cover

    def put(self, tool: str, content: bytes) -> BlobRef:
        text = self._cover(content.decode("utf-8", "surrogateescape"))
        return self._inner.put(tool, text.encode("utf-8", "surrogateescape"))

    def get(self, ref: str) -> bytes | None:
        return self._inner.get(ref)


class MaskedSnapshots:
    """``Snapshots`` that store no API keys."""

    def __init__(self, inner: Snapshots, cover: Cover) -> None:
        self._inner = inner
        self._cover = cover

    def save_snapshot(self, snapshot: Snapshot) -> str:
        messages, view = masked((snapshot.messages, snapshot.view), self._cover)
        state = _covered_text(snapshot.state, self._cover)
        return self._inner.save_snapshot(replace(snapshot, messages=messages, view=view, state=state))

    def get_snapshot(self) -> Snapshot | None:
        return self._inner.get_snapshot()

    def get_measure(self) -> SnapshotMeasure | None:
        return self._inner.get_measure()


def _covered_text(text: bytes, cover: Cover) -> bytes:
    """JSON with every text in it covered; the same bytes if nothing needed covering. All texts are checked at once: a
    session has a hundred thousand of them, and hardly ever a key."""
    value: Any = json.decode(text) if text else None
    joined = "\n".join(_texts(value))
    return text if cover(joined) is joined else json.encode(_covered_json(value, cover))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        for name, item in fields.items():
            if not _is_exact(name, item, fields):
                yield from _texts(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item)


def _covered_json(value: Any, cover: Cover) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            name: item if _is_exact(name, item, fields) else _covered_json(item, cover) for name, item in fields.items()
        }
    if isinstance(value, list):
        return [_covered_json(item, cover) for item in cast("list[Any]", value)]
    return cover(value) if isinstance(value, str) else value


def _is_exact(name: str, value: Any, fields: Mapping[str, Any]) -> bool:
    """Whether a field of an object stays exact: names, images, files, data that a provider wants back (``Opaque``)."""
    if fields.get("type") == "document" and name == "data":
        return True
    return name == "opaque" or (name in _EXACT and isinstance(value, str)) or fields.get("type") == "image"


GATHER_SECONDS = 0.002
"""How long events gather for one batch while nobody waits for them: each batch has the fixed cost of a transaction and
of waking both threads."""
RETRY_SECONDS = (0.5, 30.0)
"""First and longest pause between attempts to store pending facts."""


_STORE_ERRORS = (
    sqlite3.Error,
    OSError,
    SessionError,
    ValueError,
    TypeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)
"""All errors of storing, including a value that JSON or SQLite can't represent."""


class _Barrier(Struct, frozen=True):
    reached: asyncio.Future[None]
    last: bool = False
    """Whether the writer ends here."""


class Journal:
    """Takes events in order, stores the facts among them in one transaction per batch, then publishes all.

    One writer thread blocks on its queue. Whatever a front-end shows is already on disk. If the disk fails, events are
    kept in memory and still published, the user is notified once, and storing is retried with growing pauses and at
    ``close``.

    ``write`` stores facts, all or none (``SessionStore.append``); ``read`` returns stored ones (``StoredFacts.read``),
    and ``begin_of`` the start of the newest turns among them (``StoredFacts.begin_of``); ``on_close`` follows the last
    of them. ``publish`` and ``on_trouble`` are called on the event loop that was running when the journal was created.
    """

    def __init__(
        self,
        write: Callable[[Sequence[Event]], None],
        publish: Callable[[Sequence[Event]], None],
        on_trouble: Callable[[str], None],
        *,
        read: Callable[[int, int, int], Sequence[Event]] = lambda after, upto, limit: (),
        begin_of: Callable[[int], int] = lambda turns: 0,
        on_recovery: Callable[[str], None] | None = None,
        on_close: Callable[[], None] = lambda: None,
        retry_seconds: tuple[float, float] = RETRY_SECONDS,
    ) -> None:
        self._write = write
        self._read = read
        self._begin_of = begin_of
        self._publish = publish
        self._on_trouble = on_trouble
        self._on_recovery = on_recovery
        self._on_close = on_close
        self._retry_seconds = retry_seconds
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Event | _Barrier] = SimpleQueue()
        self._awaited = threading.Event()
        """Set once the event loop waits for what is in the queue."""
        self._handed_over = self._published = 0
        """Events passed to the thread, and those it returned. Both belong to the event loop."""
        self._direct: list[Event] = []
        """Events to show but never store, which bypass the thread."""
        self._unsaved: list[Event] = []
        self._pause = 0.0
        """Current pause between attempts in seconds; 0 without failures."""
        self._next_attempt = 0.0
        self._clock = SteadyClock()
        self._closed = False
        self._close_failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="swecli-journal", daemon=True)
        self._thread.start()

    @property
    def degraded(self) -> bool:
        """Whether facts wait in memory because the disk failed."""
        return self._pause > 0

    def append(self, event: Event) -> None:
        """Pass on an event. Returns at once; events after ``close`` are dropped."""
        if self._closed:
            return
        if self._handed_over == self._published and not is_fact(event.body):
            self._direct.append(event)  # it is not stored, and no earlier event waits for the disk
            if len(self._direct) == 1:
                self._loop.call_soon(self._publish_direct)
            return
        if self._direct:
            self._publish_direct()
        self._handed_over += 1
        self._queue.put(event)
        if isinstance(event.body, TurnEnded):
            self._awaited.set()

    def read(self, after: int, upto: int, limit: int) -> Sequence[Event]:
        """Facts above ``after`` up to ``upto``, in order, at most ``limit``: the stored ones, then those waiting to be
        stored. Empty, with a notice to the user, if unreadable. For a thread of its own."""
        waiting = [event for event in list(self._unsaved) if after < event.seq <= upto]  # first: it is stored next
        try:
            stored = self._read(after, upto, limit)
        except _STORE_ERRORS as error:
            text = f"Older parts of the session are not readable right now ({error}). Nothing is lost."
            self._on_loop(self._on_trouble, text)
            stored = ()
        if len(stored) >= limit:
            return stored
        newest = stored[-1].seq if stored else after
        return [*stored, *(event for event in waiting if event.seq > newest)][:limit]

    def begin_of(self, turns: int) -> int:
        """Start of the newest ``turns`` turns; 0 if there are fewer or it is unreadable. Turns waiting to be stored
        count. For a thread of its own."""
        waiting = [event for event in list(self._unsaved) if begins_turn(event)]
        if len(waiting) >= turns:
            return waiting[-turns].seq
        try:
            return self._begin_of(turns - len(waiting))
        except _STORE_ERRORS:
            return 0  # reading will report it

    def report(self, text: str) -> None:
        """Pass a problem on to the user, from any thread."""
        self._on_loop(self._on_trouble, text)

    async def barrier(self, *, last: bool = False) -> None:
        """Wait until all earlier events are published, and stored unless ``degraded``. After the ``last`` barrier the
        thread ends."""
        if self._closed:
            return
        self._closed = last
        if self._direct:
            self._publish_direct()
        reached: asyncio.Future[None] = self._loop.create_future()
        self._queue.put(_Barrier(reached, last))
        self._awaited.set()
        await reached

    async def close(self) -> None:
        """Store and publish the rest, retrying once after a failure, and end the thread, which calls ``on_close`` even
        if this is cancelled meanwhile."""
        if not self._closed:
            await self.barrier(last=True)
            await asyncio.to_thread(self._thread.join)
            if self._close_failure is not None:
                raise self._close_failure

    def _publish_stored(self, events: Sequence[Event], reached: Sequence[asyncio.Future[None]]) -> None:
        try:
            if events:
                self._published += len(events)
                self._publish(events)
        finally:
            for future in reached:
                if not future.done():
                    future.set_result(None)

    def _publish_direct(self) -> None:
        events, self._direct = self._direct, []
        if events:
            self._publish(events)

    # --- on the writer's thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        ended = False
        while not ended:
            batch = self._take()
            events = [entry for entry in batch if isinstance(entry, Event)]
            barriers = [entry for entry in batch if isinstance(entry, _Barrier)]
            ended = any(barrier.last for barrier in barriers)
            self._unsaved.extend(event for event in events if is_fact(event.body))
            self._save(at_once=ended)
            if batch:
                self._on_loop(self._publish_stored, events, [barrier.reached for barrier in barriers])
        try:
            self._on_close()
        except _STORE_ERRORS as error:
            self._close_failure = error

    def _take(self) -> list[Event | _Barrier]:
        """The queue's contents; waits for an event or the next retry."""
        timeout = max(0.0, self._next_attempt - self._clock()) if self._unsaved else None
        batch: list[Event | _Barrier] = []
        try:
            batch.append(self._queue.get(timeout=timeout))
            self._awaited.wait(GATHER_SECONDS)
            self._awaited.clear()
            while True:
                batch.append(self._queue.get_nowait())
        except Empty:
            return batch

    def _save(self, *, at_once: bool) -> None:
        if not self._unsaved or (self._pause and not at_once and self._clock() < self._next_attempt):
            return
        try:
            self._write(self._unsaved)
        except _STORE_ERRORS as error:
            self._failed(error)
            return
        self._unsaved.clear()
        if self._pause:
            self._pause = 0.0
            if self._on_recovery is not None:
                self._on_loop(self._on_recovery, "The session is being stored again; nothing is missing.")

    def _failed(self, error: Exception) -> None:
        first, longest = self._retry_seconds
        reported = self._pause > 0
        self._pause = min(longest, self._pause * 2) if reported else first
        self._next_attempt = self._clock() + self._pause
        if not reported:
            self._on_loop(self._on_trouble, _sentence(error))

    def _on_loop(self, callback: Callable[..., object], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            # The loop was closed: no front-end is left, storing continues.
            return


def _sentence(error: Exception) -> str:
    if isinstance(error, SessionError):
        advice = "Start a new session to continue safely"
    elif "full" in str(error):
        advice = "Free some disk space"
    else:
        advice = "Check the disk and the swecli data folder"
    return (
        f"Cannot store the session right now ({error}). swecli keeps everything in memory and retries. {advice}; "
        "don't quit swecli until then."
    )
