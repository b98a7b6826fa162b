"""A command's output: both ends in memory, all of it up to a cap on disk."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
import tempfile
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from swecli.core.atomic_text import make_private
from swecli.figures import plural
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import sanitise

COLOURS: Final = lazy_pattern("\x1b\\[([0-9;:]{0,60})m")
"""Sequences that set colours and weights."""
_MOVES: Final = "\x1b\\[\\?[0-9;]{1,12}[hl]|\x1b\\[[0-9]{0,4}[ABCDEFG]|\x1b\\(B"
_ERASURES: Final = lazy_pattern("\x1b\\[[0-3]?[JK]|" + _MOVES)
"""Progress-bar sequences without meaning once each line is drawn only once: erasing, moving, modes."""


def last_states(text: str) -> str:
    """Each line as a terminal shows it after carriage returns, backspaces and erasures, with a note where other words
    than its own were overwritten: nobody reads what the other does not. Colours stay."""
    text = text.replace("\r\n", "\n")
    if "\x1b" not in text and "\r" not in text and "\b" not in text:
        return text
    return "\n".join(map(_last_state, text.split("\n")))


def as_read(text: str) -> str:
    """The text as the screen shows it, without colours and with tabs; control and invisible characters get a visible
    stand-in."""
    plain = COLOURS.sub("", last_states(text))
    return "\t".join(map(sanitise, plain.split("\t")))


def _last_state(line: str) -> str:
    if "\r" in line or "\b" in line:
        return _Overprinted().drawn(line)
    return _ERASURES.sub("", line) if "\x1b" in line else line


_ACTS: Final = lazy_pattern("\r|\b+|\t|\x1b\\[[0-9;:]{0,60}m|\x1b\\[[0-3]?[JK]|" + _MOVES)
"""What acts on a line: the rest of it is text."""
_WORD: Final = lazy_pattern(r"[^\W\d_]{2,}")
_UNITS: Final = frozenset(
    (
        *("at", "avg", "bytes", "done", "elapsed", "eta", "gb", "gib", "in", "it", "kb", "kib", "left", "mb", "mib"),
        *("min", "mins", "ms", "of", "ok", "remaining", "sec", "secs", "total"),
    )
)
"""Words of progress bars that come and go."""
_MOST_SHOWN: Final = 3
_MOST_NOTED: Final = 200
"""Overwritten texts of one line that its note spells out, and their characters; beyond that it counts them."""
_MOST_LOOKED_AT: Final = 20_000_000
"""Characters of overwritten texts that are looked at in one line."""
_TAB: Final = 8
_WIDEST: Final = 1_000_000
"""Columns of a line."""


class _Overprinted:
    """One line while it is drawn: the character of each column, with the colours in force there. A wide character has
    an empty column behind it."""

    def __init__(self) -> None:
        self._cells: list[str] = []
        self._colours: list[str] = []
        self._column = 0
        self._colour = ""
        self._overwritten: dict[str, None] = {}
        """Texts that stood there when the line was overwritten, without repetitions that only count on."""
        self._skeletons: set[frozenset[str]] = set()
        self._newest = ""
        """The newest of them that was not blank."""
        self._budget = _MOST_LOOKED_AT

    def drawn(self, line: str) -> str:
        at = 0
        for match in _ACTS.finditer(line):
            self._write(line[at : match.start()])
            at = match.end()
            self._act(match[0])
        self._write(line[at:])
        if not "".join(self._cells).strip() and self._newest:  # a progress bar that removes itself
            self._cells, self._colours = [*self._newest], [""] * len(self._newest)
        return self._text() + self._note()

    def _act(self, sign: str) -> None:
        match sign[0]:
            case "\r":
                self._remember()
                self._column = 0
            case "\b":
                self._remember()
                self._column = max(0, self._column - len(sign))
            case "\t":
                self._column = min(_WIDEST, self._column - self._column % _TAB + _TAB)
            case _ if sign.endswith("m"):
                known = self._colour if sign not in ("\x1b[m", "\x1b[0m") else ""
                self._colour = (known + sign)[-_MOST_NOTED:] if known else sign
            case _ if sign[-1] in "JK":
                self._erase(sign[2:-1] or "0")
            case _:  # movement is not followed, so that nothing disappears by it
                pass

    def _erase(self, part: str) -> None:
        if part == "0":  # what is behind the column stood there when the line was begun anew
            del self._cells[self._column :], self._colours[self._column :]
            return
        self._remember()
        if part == "1":
            self._put([" "] * (end := min(self._column + 1, len(self._cells))), 0, end)
        else:
            self._cells, self._colours = [], []

    def _write(self, text: str) -> None:
        if not text or self._column >= _WIDEST:
            return
        cells = list(text) if text.isascii() else self._columns(text)
        self._put(cells, self._column, len(cells))
        self._column += len(cells)

    def _columns(self, text: str) -> list[str]:
        """One text for each column: a wide character has an empty one behind it, a mark is added to its character."""
        cells: list[str] = []
        for character in text:
            if unicodedata.east_asian_width(character) in "WF":
                cells += (character, "")
            elif cells and unicodedata.category(character) in ("Mn", "Me", "Cf"):
                cells[-1 if cells[-1] or len(cells) == 1 else -2] += character
            else:
                cells.append(character)
        return cells

    def _put(self, cells: list[str], start: int, size: int) -> None:
        missing = start - len(self._cells)
        if missing > 0:
            self._cells += [" "] * missing
            self._colours += [""] * missing
        self._cells[start : start + size] = cells
        self._colours[start : start + size] = [self._colour] * len(cells)

    def _remember(self) -> None:
        self._budget -= len(self._cells)
        if not self._cells or self._budget < 0:
            return
        state = "".join(self._cells).strip()
        self._newest = state or self._newest
        skeleton = frozenset(_WORD.findall(state.lower())) - _UNITS
        if skeleton and skeleton not in self._skeletons:
            self._skeletons.add(skeleton)
            self._overwritten[state] = None

    def _text(self) -> str:
        if not any(self._colours) and not self._colour:
            return "".join(self._cells)
        pieces: list[str] = []
        colour = ""
        for cell, wanted in zip(self._cells, self._colours, strict=True):
            if wanted != colour:
                pieces += (_RESET, wanted) if wanted else (_RESET,)
                colour = wanted
            pieces.append(cell)
        if self._colour != colour:
            pieces += (_RESET, self._colour)
        return "".join(pieces)

    def _note(self) -> str:
        """What was overwritten although the line does not say the same, in brackets; empty for a progress bar."""
        last = "".join(self._cells).lower()
        words = _WORD.findall(last)
        lost = [state for state in self._overwritten if not _is_told(state.lower(), words)]
        if self._budget < 0:
            return " [more was overwritten than swecli looks at]"
        if not lost:
            return ""
        if len(lost) <= _MOST_SHOWN and sum(map(len, lost)) <= _MOST_NOTED:
            return f" [overwritten: {' | '.join(lost)}]"
        return f" [{plural(len(lost), 'text')} overwritten]"


_RESET: Final = "\x1b[0m"


def _is_told(state: str, words: Sequence[str]) -> bool:
    """Whether a line of these words says what an earlier state of it did: each of its words is one of them, or the
    beginning of one that was typed on."""
    return all(word in _UNITS or any(known.startswith(word) for known in words) for word in _WORD.findall(state))


HEAD = 200_000
TAIL = 200_000


class OutputRing:
    """Buffer that keeps the first ``head`` and the last ``tail`` bytes."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._head_size, self._tail_size = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        free = self._head_size - len(self._head)
        if free > 0:
            self._head += data[:free]
            data = data[free:]
        if data:
            self._tail += data[-self._tail_size :]
            if len(self._tail) > 2 * self._tail_size:
                del self._tail[: -self._tail_size]

    @property
    def omitted(self) -> int:
        """Bytes in neither part."""
        return max(0, self.total - len(self._head) - min(len(self._tail), self._tail_size))

    def text(self) -> str:
        """The kept text, with a line that gives the missing amount. Invalid bytes become U+FFFD."""
        tail = bytes(self._tail[-self._tail_size :])
        if not self.omitted:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        return joined(bytes(self._head), tail, self.omitted)


def joined(head: bytes, tail: bytes, omitted: int) -> str:
    """Both ends of an output around a line that gives the missing amount. Invalid bytes become U+FFFD."""
    # The end may begin inside a character: drop its stray continuation bytes.
    cut = next((index for index, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0)
    beginning = head.decode("utf-8", "ignore")
    return f"{beginning}\n[… {omitted:,} bytes of output not kept …]\n{tail[cut:].decode('utf-8', 'replace')}"


class LiveText:
    """Live text of a running program: decoded as it arrives, only the newest if there is too much."""

    def __init__(self, limit: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._limit = limit
        self._pending = ""
        self._skipped = 0

    def add(self, data: bytes) -> None:
        self._pending += self._decoder.decode(data)
        surplus = len(self._pending) - self._limit
        if surplus > 0:
            self._skipped += surplus
            self._pending = self._pending[surplus:]

    @property
    def waiting(self) -> bool:
        return bool(self._pending)

    def take(self) -> str:
        """Text since the last call, at most the limit."""
        text, skipped = self._pending, self._skipped
        self._pending, self._skipped = "", 0
        return f"\n[… {skipped:,} characters …]\n{text}" if skipped else text


CAP = 64_000_000
PIECE = 1 << 18
"""Bytes buffered before a write is worthwhile; a short output never reaches the disk."""
HIGH = 1 << 20
"""Bytes that may wait for a slow disk; above that, callers must pause until it has caught up."""


class OutputSpill:
    """Call ``add`` on one thread, ``write`` and ``read`` on any. A failing disk loses the middle, never the end."""

    def __init__(self, folder: Path | None = None, cap: int = CAP) -> None:
        """``folder`` is the place of the file, created on demand; None for the system's temporary directory."""
        self._folder = folder
        self._head = cap // 2
        self._ring = cap - self._head
        self._file: IO[bytes] | None = None
        self._waiting = bytearray()
        self._writing = b""
        self._written = 0
        self._closed = False
        self._base = 0
        """Offset of the bytes in memory: beyond ``_written`` only after a failure."""
        self._memory = threading.Lock()
        self._disk = threading.Lock()
        self.total = 0
        self.failure = ""
        """Why writing stopped; empty if it works."""

    def add(self, data: bytes) -> None:
        with self._memory:
            self.total += len(data)
            if self._closed:
                return
            self._waiting += data
            surplus = len(self._waiting) - HIGH
            if self.failure and surplus > 0:
                del self._waiting[:surplus]
                self._base += surplus

    @property
    def wants_writing(self) -> bool:
        return len(self._waiting) >= PIECE and not self.failure

    @property
    def full(self) -> bool:
        return len(self._waiting) >= HIGH and not self.failure

    def write(self) -> None:
        """Write buffered bytes to the disk. A failure is stored in ``failure``."""
        with self._disk:
            with self._memory:
                self._writing, self._waiting = bytes(self._waiting), bytearray()
            try:
                self._store(self._writing)
            except OSError as error:
                with self._memory:
                    self.failure = error.strerror or str(error)
                    self._waiting[:0] = self._writing
                    self._writing = b""
                return
            with self._memory:
                self._written += len(self._writing)
                self._base = self._written
                self._writing = b""

    def _store(self, data: bytes) -> None:
        if self._file is None:
            if self._folder is not None:
                make_private(self._folder)
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - lives as long as this
        at, view = self._written, memoryview(data)
        while view:
            offset, room = self._place(at)
            done = os.pwrite(self._file.fileno(), view[:room], offset)
            at, view = at + done, view[done:]

    def _place(self, at: int) -> tuple[int, int]:
        """Position of output byte ``at`` in the file, and how many bytes follow contiguously."""
        if at < self._head:
            return at, self._head - at
        inside = (at - self._head) % self._ring
        return self._head + inside, self._ring - inside

    def read(self, offset: int, size: int) -> tuple[int, bytes]:
        """Up to ``size`` bytes from ``offset``, and their real start: later than ``offset`` if that was dropped. Ends
        early before a gap.

        Raises:
            OSError: the file can't be read.
        """
        with self._disk:
            with self._memory:
                memory, base = self._writing + bytes(self._waiting), self._base
            if self._closed:
                return self.total, b""
            for start, end in self._kept(base, len(memory)):
                at = max(offset, start)
                if at < end:
                    size = min(size, end - at)
                    return at, self._stored(at, min(size, base - at)) + memory[
                        max(0, at - base) : max(0, at + size - base)
                    ]
            return self.total, b""

    def _kept(self, base: int, memory: int) -> list[tuple[int, int]]:
        """The available ranges, in order."""
        parts = [
            (0, min(self._head, self._written)),
            (max(self._head, self._written - self._ring), self._written),
            (base, base + memory),
        ]
        ranges: list[tuple[int, int]] = []
        for start, end in parts:
            if start >= end:
                continue
            if ranges and ranges[-1][1] == start:
                ranges[-1] = (ranges[-1][0], end)
            else:
                ranges.append((start, end))
        return ranges

    def _stored(self, at: int, size: int) -> bytes:
        pieces: list[bytes] = []
        while size > 0 and self._file is not None:
            offset, room = self._place(at)
            piece = os.pread(self._file.fileno(), min(size, room), offset)
            if not piece:
                break
            pieces.append(piece)
            at, size = at + len(piece), size - len(piece)
        return b"".join(pieces)

    @property
    def mode(self) -> int | None:
        """Permission bits of the file; None before it exists."""
        return None if self._file is None else os.fstat(self._file.fileno()).st_mode & 0o777

    def close(self) -> None:
        with self._disk, self._memory:
            self._closed = True
            self._waiting = bytearray()
            if self._file is not None:
                self._file.close()
                self._file = None


class CommandOutput:
    """Add bytes with ``add`` on the event loop; ``write`` and ``text`` may wait for a disk."""

    def __init__(self, folder: Path | None = None, *, cap: int = CAP) -> None:
        """``folder`` stores long output while swecli runs."""
        self._ring = OutputRing(HEAD, TAIL)
        self._spill = OutputSpill(folder, cap)

    def add(self, data: bytes) -> None:
        self._ring.add(data)
        self._spill.add(data)

    @property
    def total(self) -> int:
        return self._ring.total

    @property
    def wants_writing(self) -> bool:
        return self._spill.wants_writing

    @property
    def full(self) -> bool:
        return self._spill.full

    def write(self) -> None:
        self._spill.write()

    def text(self, head: int = HEAD, tail: int = TAIL, start: int = 0, end: int | None = None) -> tuple[str, int]:
        """The output from byte ``start`` to ``end`` (None: the newest): whole, or its first ``head`` and last ``tail``
        bytes around a line that gives the missing amount; and the size of the missing range in bytes."""
        total = self.total if end is None else min(end, self.total)
        if start >= total:
            return "", 0
        try:
            first = self._piece(start, min(head + tail, total - start))
            if len(first) == total - start:
                return first.decode("utf-8", "replace"), 0
            first = first[:head]
            last = self._piece(total - tail, tail)
        except OSError:
            return self._ring.text(), self._ring.omitted
        omitted = total - start - len(first) - len(last)
        if not start and ((head and not first) or (tail and not last)):  # the disk failed; memory still has both ends
            return self._ring.text(), self._ring.omitted
        return joined(first, last, omitted), omitted

    def _piece(self, start: int, size: int) -> bytes:
        at, data = self._spill.read(start, size)
        return data if at == start else b""

    @property
    def failure(self) -> str:
        return self._spill.failure

    def close(self) -> None:
        self._spill.close()


_PIECE = 1 << 16
_PIECES = 4
"""Pieces read before the event loop's other work gets its turn."""
_LIVE_INTERVAL = 0.05
"""Seconds between two pieces of live text, each at most ``_LIVE_LIMIT`` characters."""
_LIVE_LIMIT = 8_000
_DETACHED_PAUSE = 0.05


class OutputPipe:
    """Reader of the output until its end or ``close``. If the disk lags or the output is not shown, it reads slowly,
    and the command waits."""

    def __init__(self, descriptor: int, output: CommandOutput, show: Callable[[str], None] | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._output = output
        self._show = show
        self._live = LiveText(_LIVE_LIMIT)
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[None] | None = None
        self._detached = False
        self._resting = False
        self._closed = False
        self.ended = asyncio.Event()
        """Set when everything was read and stored."""
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def _read(self) -> None:
        for _ in range(_PIECES):
            try:
                data = os.read(self._descriptor, _PIECE)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self._end()
                break
            self._output.add(data)
            if self._show is not None:
                self._live.add(data)
        else:
            if self._detached:
                self._rest()
        self._write()
        if self._show is not None and self._live.waiting and self._timer is None:
            self._timer = self._loop.call_later(_LIVE_INTERVAL, self._flush)

    def _rest(self) -> None:
        """Pause, so that a flood in the background does not take the event loop's time."""
        self._resting = True
        self._loop.remove_reader(self._descriptor)
        self._loop.call_later(_DETACHED_PAUSE, self._rested)

    def _rested(self) -> None:
        self._resting = False
        self._resume()

    def _resume(self) -> None:
        if not self._closed and not self._resting and not self._output.full:
            self._loop.add_reader(self._descriptor, self._read)

    def _write(self) -> None:
        if self._writing is None and self._output.wants_writing:
            self._writing = self._loop.run_in_executor(None, self._output.write)
            self._writing.add_done_callback(self._written)
        if self._writing is not None and self._output.full and not self._closed:
            self._loop.remove_reader(self._descriptor)

    def _written(self, writing: asyncio.Future[None]) -> None:
        self._writing = None
        if not writing.cancelled():
            writing.result()
        self._write()
        self._resume()
        if self._closed and self._writing is None:
            self.ended.set()

    def _flush(self) -> None:
        self._timer = None
        if self._show is not None and self._live.waiting:
            self._show(self._live.take())

    def _end(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
        if self._writing is None:
            self.ended.set()

    async def drained(self, limit: float) -> None:
        """Wait for the end of the output, at most ``limit`` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self.ended.wait()

    def close(self) -> None:
        """Stop reading; a program that still writes gets a broken pipe."""
        self.detach()
        self._end()

    def detach(self) -> None:
        """Stop showing and read a flood slowly: the command continues in the background."""
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
        self._show = None
        self._detached = True


_ERROR_BYTES = 16_384
_END_SECONDS = 2.0
"""Time limit for the end of a killed program."""


class Captured(Struct, frozen=True):
    """``status`` is None if the program was stopped: at its time limit or because it wrote too much."""

    status: int | None
    output: bytes
    errors: bytes
    timed_out: bool = False
    overflowed: bool = False


async def capture(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    timeout: float,
    limit: int,
    stdin: bytes = b"",
) -> Captured:
    """Run ``argv`` to its end, at most ``timeout`` seconds and ``limit`` bytes of output.

    Raises:
        OSError: it can't be started.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=dict(environment),
        stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=os.name == "posix",
    )
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = bytearray(), bytearray()
    tasks = (
        asyncio.ensure_future(_read(process.stdout, output, limit)),
        asyncio.ensure_future(_read(process.stderr, errors, _ERROR_BYTES)),
    )
    timed_out = overflowed = False
    try:
        async with asyncio.timeout(timeout):
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    process.stdin.write(stdin)
                    await process.stdin.drain()
                process.stdin.close()
            overflowed = not await tasks[0]
            if not overflowed:
                await tasks[1]
                await process.wait()
    except TimeoutError:
        timed_out = True
    finally:
        for task in tasks:
            task.cancel()
        stopped = process.returncode is None
        if stopped:
            _kill(process)
            await asyncio.gather(*tasks, return_exceptions=True)
            await _gone(process)
    return Captured(None if stopped else process.returncode, bytes(output), bytes(errors), timed_out, overflowed)


async def _gone(process: asyncio.subprocess.Process) -> None:
    """Wait for the end of a killed program. Its remaining output is read: with a full pipe the event loop never sees
    the end. A process that survives elsewhere with the pipe open is not waited for."""
    streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            await asyncio.gather(*map(_discard, streams))
            await process.wait()


async def _discard(stream: asyncio.StreamReader) -> None:
    while await stream.read(65_536):
        pass


def _kill(process: asyncio.subprocess.Process) -> None:
    """End the program, and on POSIX its children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


async def _read(stream: asyncio.StreamReader, into: bytearray, limit: int) -> bool:
    """True at the end of the stream, False if ``limit`` was reached first."""
    while piece := await stream.read(65_536):
        into += piece[: max(0, limit - len(into))]
        if len(into) >= limit:
            return False
    return True
