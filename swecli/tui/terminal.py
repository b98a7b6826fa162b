"""The terminal around the screen: driver, input filter, title, progress, notifications, signals."""

from __future__ import annotations

import contextlib
import math
import os
import re
import selectors
import signal
import sys
import threading
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct
from textual import constants, events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.message import Message

from swecli import stopping
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import safe_line
from swecli.tui.boot import KEYS_OFF, KEYS_ON
from swecli.tui.compat import DrawingApp
from swecli.tui.keymap import Keymap, event_name
from swecli.tui.preferences import Notify, Preferences, Progress

if TYPE_CHECKING:
    from textual.app import App

    from swecli.core.engine.session_view import SessionView
    from swecli.tui.session_state import UiState
    from swecli.tui.status_bar import Facts, StatusScript


PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"

KEYBOARD_ON, KEYBOARD_QUERY, KEYBOARD_OFF = "\x1b[>1u", "\x1b[?u", "\x1b[<u"
"""Request unambiguous keys in kitty's form, ask what the terminal reports, and undo the request. Only keys without text
are reported in this form: terminals that report letters too, but not their text, would lose what is typed."""
_ASKED = 1
_TEXTUALS_REQUEST = lazy_pattern(r"\x1b\[>\d+u")

_ESCAPED = lazy_pattern(
    r"\x1b(?:"
    r"[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)"  # a string, such as a report
    r"|\[<[-\d;]*[mM]"  # a mouse, whose pixels are negative outside of the window
    r"|\[M[^\x1b]{3}|\[\[[A-E]|\[\d+\$(?!y)"  # keys and mouse in forms older than the standard
    r"|\[[0-?]*[ -/]*[@-~]"
    r"|O\d?[ -~]"
    r"|[^\x1b]"  # a key with Alt
    r")?"
)
"""What Esc begins, or Esc alone."""
_UNFINISHED = lazy_pattern(r"\x1b(?:\[(?:[0-?]*[ -/]*|<[-\d;]*|M[^\x1b]{0,2}|\[)|[\]P_^X](?:[^\x07\x1b]*\x1b?)|O)?\Z")
_MAX_ALONE = 2
"""Characters up to which an unfinished sequence may be a key: Esc, or Alt and a bracket."""
ESCAPE_TIME = 0.2
"""Seconds after which a lone Esc is the key: over a slow line the rest of a report comes that much later."""
SEQUENCE_TIME = 0.5
"""Seconds after which nothing more is expected of a longer one."""
_REST = lazy_pattern(
    r"\[<\d+;-?\d+;-?\d+[mM]|\[[?>][\d;]+(?:\$y|[cnu])|\[48;[\d:;]+t|\[200~"  # unmistakable reports, and a paste
    r"|(?:\]\d+;|[P_])[^\x07\x1b]*(?:\x07|\x1b\\)"  # others
    r"|(?:\[[<?>]?[\d;:]*[ -/]*[@-~]|O[A-DFHP-S])(?=\x1b|\Z)"  # a key, or another report
    r"|(?:\[<[-\d;]*|\[[?>][\d;:$]*|\[\d[\d;:]*|\]\d+(?:;[^\x07\x1b]*\x1b?)?)\Z"  # the beginning of one
)
"""What comes separately from its Esc, and is not typed within one read."""
_REPORT_BEGINS = ("\x1b[<", "\x1b[?", "\x1b]")
_REPORT_ENDS = lazy_pattern(r"(?:[-\d;:$]+[A-Za-z]|[mM]|[^\x07\x1b]*(?:\x07|\x1b\\))(?=\x1b|\Z)")
PASTE_TIME = 1.0
"""Seconds without input after which what came of a paste counts, because its end may never come."""
_REPORT = lazy_pattern(r"\x1b\]1[01];(?:rgb:([0-9a-fA-F/]{5,14}))?[^\x07\x1b]*(?:\x07|\x1b\\)")
_ALT_NAMES = {"\x7f": "backspace", "\r": "enter", "\n": "enter"}
_XTERM_KEY = lazy_pattern(r"\x1b\[27;(\d{1,3});(\d{1,7})~")
"""A modified key in xterm's older form."""
_KEY = lazy_pattern(r"\x1b\[(\d{0,7})[\d:]*(?:;(\d{0,4})(?::(\d*))?(?:;([\d:]*))?)?([u~A-HPQRS])", re.ASCII)
"""A key of kitty's protocol: code, modifiers, event, text, form."""
_RELEASED = "3"
_OTHER_MODIFIERS = 0b111110
"""Alt, Ctrl, Super, Hyper and Meta in the modifiers of a key; what is left are Shift and the locks."""
_SHIFT, _CAPS_LOCK = 1, 64
_SHIFTED = dict(zip("1234567890-=[]\\;',./`", '!@#$%^&*()_+{}|:"<>?~', strict=True))
"""The usual second characters of keys whose terminal does not tell them."""
_KEYPAD = dict(enumerate("0123456789./*-+", 57399)) | {57415: "=", 57416: ","}
_KEYBOARD_REPORT = lazy_pattern(r"\x1b\[\?(\d{1,4})u")
_NO_KEY_REPORT = lazy_pattern(
    r"\x1b\[(?:<[-\d;]*[mM]|[\d;]*M|M...|\?\d+;\d\$y|48;[\d:;]*t|\d+;\d+R|20[01]~|[@-~])", re.S
)
"""What the key parser reads besides keys: mouse, modes, sizes, positions, the end of a paste, the focus."""
_BOUND_NEWLINE = "\\\r\n"
"""Sequence that some editors' terminals are configured to send for Shift+Enter; counts as one newline."""
_RUN = lazy_pattern(r"[^\x00-\x1f\x7f-\x9f]{33,}")
"""More letters than a person types between two reads: a paste from a terminal without bracketed paste."""
MOST_TYPED_LINES = 4
"""Lines that a person may have typed before the program read its first key."""
_NOT_A_NUMBER = lazy_pattern(r"\x1b\[<[^mM\x1b]{0,24}NaN[^mM\x1b]{0,24}[mM]")


class Keys(Struct, frozen=True):
    """Input for the key parser."""

    text: str


class Escape(Struct, frozen=True):
    """The key Esc: nothing follows that belongs to it."""


class EscapeSeen(Struct, frozen=True):
    """Probably the key Esc, unless the rest of a report follows: ``Escape`` or ``EscapeWithdrawn`` decides."""


class EscapeWithdrawn(Struct, frozen=True):
    """The Esc that was seen was the beginning of something else."""


class Alt(Struct, frozen=True):
    """A key with Alt, which terminals send as Esc and the key; ``key`` is its name."""

    key: str


class Pasted(Struct, frozen=True):
    """A bracketed paste: the whole, or what came of it up to a pause."""

    text: str


class Run(Struct, frozen=True):
    """Many letters received at once."""

    text: str


class Background(Struct, frozen=True):
    """The terminal's background colour as three shares, 0..1."""

    red: float
    green: float
    blue: float

    @property
    def dark(self) -> bool:
        return 0.2126 * self.red + 0.7152 * self.green + 0.0722 * self.blue < 0.5


Piece = Keys | Escape | EscapeSeen | EscapeWithdrawn | Alt | Pasted | Run | Background


class InputFilter:
    """Splits decoded input into keys, pastes and reports, and leaves out what is none of them, such as a terminal's
    answers and released keys: the key parser would type it. A key parser that walks a paste by character takes seconds
    for some megabytes; here a paste costs one search for its end."""

    def __init__(
        self, patience: float = 0.0, wait: float = 0.0, is_bound: Callable[[str], bool] = lambda key: True
    ) -> None:
        """``patience``: seconds after which Esc belongs to no letter that follows; ``wait``: those after which it is
        the key, if that is more. ``is_bound``: whether a key such as "alt+b" has a meaning; Esc and a letter that have
        none together are two keys that came at once."""
        self._patience = patience
        self._wait = max(wait, patience)
        self._is_bound = is_bound
        self.keyboard: int | None = None
        """How the terminal reports keys, in the bits of kitty's protocol; None if it has not said so."""
        self._held = ""
        self._seen = False
        """The lone Esc that is held back has been announced."""
        self._late = False
        """The newest key was a lone Esc: a report whose beginning it was may still come."""
        self._stale = False
        """Nothing followed the held-back beginning of a report in time."""
        self._paste: list[str] | None = None
        self._paused = False
        """The paste was interrupted: what comes next is its rest or a key."""
        self._burst = False
        """The newest read was a part of a paste without brackets, whose rest may still come."""

    def feed(self, text: str) -> list[Piece]:
        """Add a chunk; an unfinished sequence at its end is held back until more arrives or ``flush``."""
        if not text:
            return []
        if self._paused and _is_one_key(text):
            self._paste, self._held = None, ""
        self._paused = False
        out: list[Piece] = []
        if self._paste is None:
            text = self._after_pause(text, out)
        text, self._held = self._held + text, ""
        self._burst = self._paste is None and "\x1b" not in text and (self._burst or _is_burst(text))
        if self._burst:
            out.append(_pasted((text.replace("\r\n", "\n").replace("\r", "\n"),)))
            return out
        while text:
            text = self._outside(text, out) if self._paste is None else self._inside(text, out)
        return _joined(out)

    def _after_pause(self, text: str, out: list[Piece]) -> str:
        """The chunk, with Esc before it if that came alone some time ago and this is its rest. Decides about the Esc
        and the beginning of a report that are held back."""
        late, self._late = self._late, False
        seen, self._seen = self._seen, False
        stale, self._stale = self._stale, False
        if late and _REST.match(text):
            return f"\x1b{text}"
        if stale and not _REPORT_ENDS.match(text):
            self._held = ""
        elif seen:
            rest = self._held[1:] + text
            if _REST.match(rest):
                out.append(EscapeWithdrawn())
            elif rest in ("[", "]"):
                self._seen = True
            else:
                self._held = ""
                out.append(Escape())
                return rest
        return text

    def flush(self, idle: float = math.inf) -> list[Piece]:
        """Return the held-back input as keys, or what came of a paste: nothing followed it for ``idle`` seconds.

        A line that broke sends no end of the paste, and a slow one sends the rest later: its newlines must not become
        Enter. So the paste ends for good only with a key on its own."""
        self._burst = False
        if self._paste is not None:
            return [] if self._paused or idle < PASTE_TIME else self._interrupted()
        pending = self._held
        if not pending:
            return []
        if self._seen or pending == "\x1b":
            return self._lone_escape(idle)
        if idle < SEQUENCE_TIME:
            return []
        if pending.startswith(_REPORT_BEGINS) and len(pending) > _MAX_ALONE:
            self._stale = True  # its rest would be typed, so it waits for that
            return []
        self._held = ""
        out: list[Piece] = []
        if len(pending) > _MAX_ALONE:
            out.append(Keys(pending))
        else:
            self._add_sequence(pending, out)
        return out

    def _lone_escape(self, idle: float) -> list[Piece]:
        """What Esc is, alone or with a bracket that came after a pause, when nothing has followed for ``idle``."""
        reported = self.keyboard is not None and self.keyboard & _ASKED
        if idle < (SEQUENCE_TIME if reported else self._wait):  # the key itself comes as a sequence if reported
            if self._seen or idle < self._patience or reported:
                return []
            self._seen = True
            return [EscapeSeen()]
        rest, self._held, self._seen = self._held[1:], "", False
        self._late = not rest
        return [Escape(), Keys(rest)] if rest else [Escape()]

    def _interrupted(self) -> list[Piece]:
        assert self._paste is not None
        out: list[Piece] = [_pasted(self._paste)] if any(self._paste) else []
        self._paste, self._paused = [], True
        if self._held == "\x1b":
            out.append(Escape())
            self._paste, self._held, self._paused = None, "", False
        return out

    def _outside(self, text: str, out: list[Piece]) -> str:
        before, marker, rest = text.partition(PASTE_START)
        if marker:
            self._paste = []
        elif unfinished := _UNFINISHED.search(before):
            before, self._held = before[: unfinished.start()], unfinished.group()
        if before:
            self._keys(before, out)
        return rest

    def _inside(self, text: str, out: list[Piece]) -> str:
        assert self._paste is not None
        body, marker, rest = text.partition(PASTE_END)
        if marker:
            out.append(_pasted((*self._paste, body)))
            self._paste = None
            return rest
        keep = next((n for n in range(min(len(PASTE_END) - 1, len(body)), 0, -1) if PASTE_END.startswith(body[-n:])), 0)
        if keep:
            body, self._held = body[:-keep], body[-keep:]
        self._paste.append(body)
        return ""

    def _keys(self, text: str, out: list[Piece]) -> None:
        if "NaN" in text:
            text = _NOT_A_NUMBER.sub("", text)
        if _BOUND_NEWLINE in text:
            text = text.replace(_BOUND_NEWLINE, "\x1b\r")
        position = 0
        for match in _ESCAPED.finditer(text):
            _add_letters(text[position : match.start()], out)
            position = match.end()
            self._add_sequence(match[0], out)
        _add_letters(text[position:], out)

    def _add_sequence(self, sequence: str, out: list[Piece]) -> None:
        """Add what a whole sequence means. A key with Alt is split off: a key parser that waits for more of them loses
        the rest of the same read."""
        if sequence == "\x1b":
            out.append(Escape())
        elif len(sequence) == _MAX_ALONE and (name := _with_alt(sequence[1])):
            bound = self._is_bound(f"alt+{name}")
            out.extend((Alt(name),) if bound else (Escape(), Keys(sequence[1])))
        elif sequence[1] in "]P_^X" and len(sequence) > _MAX_ALONE:
            report = _REPORT.fullmatch(sequence)
            if report is not None and report[1] and (colour := _colour(report[1])):
                out.append(colour)
        elif report := _KEYBOARD_REPORT.fullmatch(sequence):
            self.keyboard = int(report[1])
        elif key := _readable(sequence):
            out.append(Keys(key))


def _pasted(parts: Iterable[str]) -> Pasted:
    return Pasted("".join(parts).replace("\x00", ""))


def _is_burst(text: str) -> bool:
    """Whether so many lines came in one read that nobody typed them: a paste from a terminal without bracketed paste,
    or before it was asked for that. As keys each of its lines would be sent."""
    lines = text.replace("\r", "\n").split("\n")
    return len(lines) > MOST_TYPED_LINES and sum(map(bool, lines)) > MOST_TYPED_LINES


def _is_one_key(text: str) -> bool:
    """Whether this read is a key that somebody pressed, not a part of a paste."""
    return len(text) == 1 or (text.startswith("\x1b") and not PASTE_END.startswith(text[: len(PASTE_END)]))


def _joined(pieces: list[Piece]) -> list[Piece]:
    """The pieces, with neighbouring keys as one."""
    out: list[Piece] = []
    keys: list[str] = []
    for piece in (*pieces, None):
        if isinstance(piece, Keys):
            keys.append(piece.text)
            continue
        if keys:
            out.append(Keys("".join(keys)))
            keys.clear()
        if piece is not None:
            out.append(piece)
    return out


def _add_letters(text: str, out: list[Piece]) -> None:
    """Add text without sequences; long runs of letters on their own."""
    position = 0
    for match in _RUN.finditer(text):
        if match.start() > position:
            out.append(Keys(text[position : match.start()]))
        out.append(Run(match[0]))
        position = match.end()
    if position < len(text):
        out.append(Keys(text[position:]))


def _with_alt(letter: str) -> str:
    """The name of a key, as events have it after "alt+"; empty for control characters."""
    if letter in _ALT_NAMES or not letter.isprintable():
        return _ALT_NAMES.get(letter, "")
    return f"shift+{letter.lower()}" if letter.isupper() else event_name(letter)


def _readable(sequence: str) -> str:
    """The sequence as the key parser reads it; empty if that does not know it."""
    if xterm := _XTERM_KEY.fullmatch(sequence):
        sequence = _newer_form(xterm)
    if sequence[:2] not in ("\x1b[", "\x1bO") or sequence in ANSI_SEQUENCES_KEYS or _NO_KEY_REPORT.fullmatch(sequence):
        return sequence
    key = _KEY.fullmatch(sequence)
    if key is None or key[3] == _RELEASED:
        return ""
    code, modifiers, _, text, form = key.groups(default="")
    typed = ":".join(part for part in text.split(":") if part and _is_letter(int(part)))
    if form == "u" and not typed and (letter := _letter(key[0], int(code or 0), int(modifiers or 1) - 1)):
        return letter
    known = f"{code or 1}{form}" in FUNCTIONAL_KEYS or (form == "u" and (_is_letter(int(code or 0)) or typed))
    return f"\x1b[{code or 1};{modifiers or 1}{f';{typed}' if typed else ''}{form}" if known else ""


def _letter(sequence: str, code: int, modifiers: int) -> str:
    """The letter that a key reported without its text stands for; empty for other keys. ``modifiers`` are bits."""
    if modifiers & _OTHER_MODIFIERS:
        return ""
    if letter := _KEYPAD.get(code, ""):
        return letter
    if f"{code}u" in FUNCTIONAL_KEYS or not _is_letter(code) or not (letter := chr(code)).isprintable():
        return ""
    if modifiers & _SHIFT and not letter.isalpha():
        _, other, *_ = (*sequence[2:].split(";")[0].rstrip("u").split(":"), "")
        return chr(int(other)) if other and _is_letter(int(other)) else _SHIFTED.get(letter, letter)
    return letter.upper() if bool(modifiers & _SHIFT) != bool(modifiers & _CAPS_LOCK) else letter


def _is_letter(code: int) -> bool:
    return 0 < code <= sys.maxunicode and not 0xD800 <= code < 0xE000


def _newer_form(match: re.Match[str]) -> str:
    """The key in the form that most terminals send today. A character that only Shift produced is sent as that
    character."""
    modifiers, code = int(match[1]), int(match[2])
    if modifiers == 2 and code > 32 and code != 127 and _is_letter(code):
        return chr(code)
    return f"\x1b[{code};{modifiers}u"


def _colour(text: str) -> Background | None:
    parts = text.split("/")
    if len(parts) != 3 or not all(parts):
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in parts)
    return Background(red, green, blue)


def through(sequence: str, environ: Mapping[str, str]) -> str:
    """The sequence wrapped to pass through tmux (with ``allow-passthrough``) or screen."""
    if environ.get("TMUX"):
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    if environ.get("STY"):
        return f"\x1bP{sequence}\x1b\\"
    return sequence


Activity = Literal["idle", "busy", "waiting"]

MAX_TEXT = 120
"""Maximum characters of a notification or title."""

_OSC9 = frozenset(("iTerm.app", "WezTerm", "ghostty", "WarpTerminal"))
_OSC777 = ("foot", "rxvt")
_PROGRESS = frozenset(("ghostty", "WezTerm"))
_MARKS: Mapping[Activity, str] = {"idle": "", "busy": "● ", "waiting": "? "}
_STATES: Mapping[Activity, str] = {"idle": "0;0", "busy": "3;0", "waiting": "4;100"}
"""State and share of the progress sequence: none, indeterminate, paused."""
_OUTCOMES = {
    "done": "has finished",
    "interrupted": "was interrupted",
    "blocked": "is blocked",
    "limit": "reached a limit",
    "error": "ended with an error",
}


class Announcer:
    """Derives title, progress and notifications from the state. ``place`` names the folder in titles and
    notifications."""

    def __init__(
        self,
        environ: Mapping[str, str],
        place: str,
        *,
        notify: Notify = "off",
        title: bool = False,
        progress: Progress = "off",
    ) -> None:
        self._environ = environ
        self._place = place
        self._notify = usual_notification(environ) if notify == "auto" else notify
        self._title = title and environ.get("TERM", "") not in ("", "linux", "dumb", "unknown")
        self._progress = shows_progress(environ) if progress == "auto" else progress == "on"
        self._activity: Activity = "idle"
        self._titled = ""
        self._busy = False
        self._asked: str | None = None

    def follow(self, state: UiState, *, watched: bool) -> str:
        """Sequences to write for this state; ``watched``: the terminal has the focus."""
        out = "" if watched else self._notification(state)
        self._busy = state.busy
        self._asked = state.requests[0].request if state.requests else None
        activity: Activity = "waiting" if state.requests else "busy" if state.busy else "idle"
        if self._title:
            out += self._retitle(f"{_MARKS[activity]}{self._place}")
        if self._progress and activity != self._activity:
            out += self._osc(f"9;4;{_STATES[activity]}")
        self._activity = activity
        return out

    def farewell(self) -> str:
        """Sequences that undo everything written, for exit. Safe at any moment."""
        out = ""
        if self._progress and self._activity != "idle":
            out += self._osc("9;4;0;0")
        return out + ("\x1b[23;0t" if self._titled else "")

    def _retitle(self, title: str) -> str:
        if title == self._titled:
            return ""
        # Push the shell's title on the terminal's stack before setting the first one.
        save = "" if self._titled else "\x1b[22;0t"
        self._titled = title
        text = safe_line(title)[:MAX_TEXT]
        screen = bool(self._environ.get("STY")) and not self._environ.get("TMUX")
        return save + (f"\x1bk{text}\x1b\\" if screen else f"\x1b]0;{text}\x07")

    def _notification(self, state: UiState) -> str:
        asked = state.requests[0].request if state.requests else None
        if asked is not None and asked != self._asked:
            return self._notify_sequence(f"{self._place}: needs your answer")
        if self._busy and not state.busy and not state.requests and state.ended is not None:
            return self._notify_sequence(f"{self._place}: the turn {_OUTCOMES.get(state.ended.outcome, 'has ended')}")
        return ""

    def _notify_sequence(self, text: str) -> str:
        shown = safe_line(text)[:MAX_TEXT]
        match self._notify:
            case "bell":
                return "\x07"
            case "osc9":
                return self._osc(f"9;{shown}")
            case "osc777":
                return self._osc(f"777;notify;swecli;{shown.replace(';', ',')}")
            case _:
                return ""

    def _osc(self, body: str) -> str:
        # Ends with BEL: an ST would end screen's own wrapping.
        return through(f"\x1b]{body}\x07", self._environ)


def usual_notification(environ: Mapping[str, str]) -> Notify:
    """The notification that this terminal is known to support, or else the bell."""
    if environ.get("TERM_PROGRAM") in _OSC9 or environ.get("WEZTERM_PANE") or environ.get("KITTY_WINDOW_ID"):
        return "osc9"
    if environ.get("TERM", "").startswith(_OSC777):
        return "osc777"
    return "bell"


def shows_progress(environ: Mapping[str, str]) -> bool:
    """Whether this terminal is known to have a progress bar. Others may show the sequence as a notification."""
    if environ.get("TMUX") or environ.get("STY"):
        return False
    return bool(environ.get("WT_SESSION") or environ.get("ConEmuANSI")) or environ.get("TERM_PROGRAM") in _PROGRESS


class TerminalStatus:
    """Updates title, progress, notifications and the status line. ``write`` sends a sequence to the terminal,
    ``show_line`` replaces the status bar (None restores it), and ``complain`` reports something once."""

    def __init__(
        self,
        write: Callable[[str], None],
        show_line: Callable[[str | None], None],
        complain: Callable[[str], None],
    ) -> None:
        self._write = write
        self._show_line = show_line
        self._complain = complain
        self._announcer = Announcer(os.environ, Path.cwd().name or "/")
        self._script: StatusScript | None = None
        self._command: tuple[str, float, frozenset[str]] | None = None

    def adopt(self, preferences: Preferences) -> None:
        self._write(self._announcer.farewell())
        self._announcer = Announcer(
            os.environ,
            Path.cwd().name or "/",
            notify=preferences.notify,
            title=preferences.title,
            progress=preferences.progress,
        )
        text = (preferences.status_line or "").strip()
        command = (text, preferences.status_line_timeout, preferences.key_variables) if text else None
        if command != self._command:
            self._replace_script(command)

    def follow(self, state: UiState, facts: Facts, view: SessionView | None, *, watched: bool, columns: int) -> None:
        """Update for the state on the screen. Never blocks."""
        if sequences := self._announcer.follow(state, watched=watched):
            self._write(sequences)
        if self._script is not None:
            from swecli.tui.status_bar import document

            self._script.update(document(facts, view, columns), Path.cwd() if view is None else view.cwd)

    async def close(self) -> None:
        if self._script is not None:
            await self._script.close()

    def farewell(self) -> str:
        """Sequence that restores the terminal's own title. Safe at any moment."""
        return self._announcer.farewell()

    def _replace_script(self, command: tuple[str, float, frozenset[str]] | None) -> None:
        from swecli.tui.status_bar import StatusScript

        if self._script is not None:
            self._script.stop()
        self._command = command
        self._show_line(None)
        self._script = None if command is None else StatusScript(*command, self._show_line, self._complain)


ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

SIGNAL_STEPS = 4
"""Steps of asyncio's loop in which a signal that has arrived calls its handler: reading it, queueing it, calling it."""
JOB_CONTROL = (signal.SIGTSTP, signal.SIGCONT)

GRACE = 0.8
"""Seconds from a signal to the forced end, whatever the event loop does."""


def exit_code(number: int) -> int:
    """The shell's exit code for this signal."""
    return 128 + number


@contextlib.contextmanager
def handled(end: Callable[[int], None], interrupt: Callable[[], None], restore: Callable[[], None]) -> Iterator[None]:
    """Handle signals while the block runs.

    ``end`` is called with the exit code on SIGTERM, SIGHUP and SIGQUIT and starts an orderly shutdown; if that takes
    longer than ``GRACE`` seconds, ``restore`` is called and the process ends at once, with its commands. ``interrupt``
    is called on SIGINT. Both run in a thread, so they must only hand over to the event loop.
    """
    codes: list[int] = []

    def act(number: int) -> float | None:
        if number == signal.SIGINT:
            interrupt()
            return None
        codes.append(exit_code(number))
        end(codes[-1])
        return time.monotonic() + GRACE

    def hard_end() -> None:
        restoring = threading.Thread(target=restore, daemon=True)  # a terminal that nobody reads takes nothing
        restoring.start()
        restoring.join(GRACE)
        stopping.hard_end(codes[0])

    with stopping.Watch(act, hard_end) as watch:

        def note(number: int, _frame: FrameType | None) -> None:
            watch.note(number)

        before = {number: signal.signal(number, note) for number in (*ENDING, signal.SIGINT)}
        before |= {number: signal.getsignal(number) for number in JOB_CONTROL}  # the driver sets these
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


READ_SIZE = 1 << 16
POLL = 0.05
"""Seconds without input after which held-back input is looked at."""


class BackgroundReported(Message):
    """The terminal reported its background colour."""

    def __init__(self, dark: bool) -> None:
        super().__init__()
        self.dark = dark


class EscapeAnnounced(Message):
    """Esc was probably pressed; its key event follows unless this is ``withdrawn``."""

    def __init__(self, *, withdrawn: bool = False) -> None:
        super().__init__()
        self.withdrawn = withdrawn


def posted(pieces: Iterable[Piece], parser: XTermParser) -> Iterator[Message]:
    """The app's messages for what was read."""
    for piece in pieces:
        if isinstance(piece, Keys):
            yield from parser.feed(piece.text)
        elif isinstance(piece, Escape):
            yield events.Key("escape", "\x1b")
        elif isinstance(piece, Alt):
            yield events.Key(f"alt+{piece.key}", None)
        elif isinstance(piece, Pasted | Run):
            yield events.Paste(piece.text)
        elif isinstance(piece, EscapeSeen | EscapeWithdrawn):
            yield EscapeAnnounced(withdrawn=isinstance(piece, EscapeWithdrawn))
        else:
            yield BackgroundReported(piece.dark)


def is_bound_in(app: App[Any], key: str) -> bool:
    """Whether a key has a meaning in the app; also if that is unknown."""
    keymap = getattr(app, "keymap", None)
    return not isinstance(keymap, Keymap) or keymap.is_bound(key)


class Driver(LinuxDriver):
    """Reads keys in its thread and posts them to the app."""

    shell_attributes: ClassVar[list[Any] | None] = None
    """Line settings from before the splash, restored while the program is suspended."""

    _away = False
    _pausing = False
    """Whether the application mode ends only for a while."""
    _wish: object = None
    """What the newest signal of job control wants."""
    _stopped = False
    """Whether it stopped itself."""

    typed: ClassVar[bytes] = b""
    """Type-ahead from before the program read keys."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        # Textual's own handlers write and join threads wherever they interrupt the program, which may be inside the
        # lock that they need. And they start the application mode a second time after a stop that no handler saw.
        self._loop.add_signal_handler(signal.SIGTSTP, self._job_control, True)
        self._loop.add_signal_handler(signal.SIGCONT, self._job_control, False)

    def _job_control(self, stop: bool) -> None:
        self._wish = object()
        self._loop.call_soon(self._stop_or_continue, stop, self._wish)

    def _stop_or_continue(self, stop: bool, wish: object) -> None:
        """Do what a signal wants, unless another one has come since."""
        if wish is not self._wish:
            return
        if stop:
            if self._auto_restart and not self._away and self._key_thread is not None:
                self.suspend_application_mode()
                self._must_signal_resume = self._stopped = True
            self._stop_after(SIGNAL_STEPS, wish)
        elif self._stopped:
            self._stopped = False
            self.resume_application_mode()
        elif (
            self._auto_restart and not self._away and self._key_thread is not None
        ):  # stopped from outside: the shell has had the terminal
            self.suspend_application_mode()
            self._must_signal_resume = True
            self.resume_application_mode()

    def _stop_after(self, steps: int, wish: object) -> None:
        """Stop, unless another signal has come in the meantime, after the steps in which the loop takes it up."""
        if steps:
            self._loop.call_soon(self._stop_after, steps - 1, wish)
        elif wish is self._wish:
            os.kill(os.getpid(), signal.SIGSTOP)

    def start_application_mode(self) -> None:
        super().start_application_mode()
        if self.shell_attributes is not None:
            self.attrs_before = self.shell_attributes
        self.write(KEYS_ON + KEYBOARD_QUERY)
        self.flush()
        if isinstance(self._app, DrawingApp):
            self._app.forget_screen()
        self.follow_size()

    def follow_size(self) -> None:
        """Report the window's size to the app now and after every change.

        The event loop reads the size, not the signal handler: a second signal could interrupt a handler between reading
        and reporting, so that the older size would be reported last and remain. And the loop receives the signal,
        because a handler of Python's would run only after the next key if the signal came just before the loop begins
        to wait.
        """
        self._loop.add_signal_handler(signal.SIGWINCH, self._size_changed)
        self._loop.call_soon_threadsafe(self._report_size)

    def leave_size(self) -> None:
        """Stop following the window's size. A loop that closes with a handler would be told of later signals through a
        closed file, and Python would print a complaint for each."""
        self._loop.remove_signal_handler(signal.SIGWINCH)

    def _size_changed(self) -> None:
        if not self._in_band_window_resize:
            self._report_size()

    def _get_terminal_size(self) -> tuple[int, int]:
        """The window's own size. Textual asks COLUMNS and LINES first, but what a shell exported does not follow it."""
        with contextlib.suppress(OSError):
            size = os.get_terminal_size(self.fileno)
            if all(size):
                return size
        return super()._get_terminal_size()

    def _report_size(self) -> None:
        size = Size(*self._get_terminal_size())
        self.send_message(events.Resize(size, size))

    def stop_application_mode(self) -> None:
        self.leave_size()
        if not self._pausing:
            for number in JOB_CONTROL:
                self._loop.remove_signal_handler(number)
        self.write(KEYS_OFF)
        super().stop_application_mode()

    def suspend_application_mode(self) -> None:
        """Suspend output while another program has the terminal, and redraw afterwards."""
        self._pausing = True
        super().suspend_application_mode()
        self._pausing = False
        self._away = True

    def resume_application_mode(self) -> None:
        self._away = False
        super().resume_application_mode()

    def use_mouse(self, on: bool) -> None:
        """Report mouse events to the program, or let the terminal select text by itself."""
        if on != self._mouse:
            self._disable_mouse_support()
            self._mouse = on
            self._enable_mouse_support()

    def write(self, data: str) -> None:
        if not self._away:
            super().write(KEYBOARD_ON if _TEXTUALS_REQUEST.fullmatch(data) else data)

    def run_input_thread(self) -> None:
        try:
            self._read_keys()
        except Exception as error:  # noqa: BLE001 - a defect ends the program, with its report, and not only the thread
            defect = error

            def fail() -> None:
                raise defect

            self._app.call_later(fail)

    def _read_keys(self) -> None:
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        cutter = InputFilter(constants.ESCAPE_DELAY, ESCAPE_TIME, lambda key: is_bound_in(self._app, key))
        idle, reported = 0.0, cutter.keyboard

        def handle(pieces: list[Piece]) -> None:
            for message in posted(pieces, parser):
                self.process_message(message)

        handle(cutter.feed(decode(self._take_typed())))
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(POLL):
                    idle = 0.0
                    try:
                        data = os.read(self.fileno, READ_SIZE)
                    except OSError:
                        data = b""
                    if not data:  # the terminal is gone; SIGHUP ends the program
                        self.exit_event.wait(0.1)
                        continue
                    handle(cutter.feed(decode(data)))
                    if reported != (reported := cutter.keyboard) and (reported or 0) & ~_ASKED:
                        self.write(KEYBOARD_OFF)  # it reports more than was asked for
                else:
                    idle += POLL
                    handle(cutter.flush(idle))
                for message in parser.tick():
                    self.process_message(message)
        try:
            for _ in parser.feed(""):
                pass
        except (EOFError, ParseError):
            pass

    @classmethod
    def _take_typed(cls) -> bytes:
        typed, cls.typed = cls.typed, b""
        return typed


def keep_timers_steady() -> None:
    """Let Textual's timers, which read this clock, outlast one that jumps: a step back would stop them."""
    from textual import _time

    from swecli.steady_clock import SteadyClock

    _time.get_time = SteadyClock(_time.get_time)


def prepare(attributes: list[Any], typed: bytes) -> None:
    """Set the state known before the first driver starts: the shell's line settings and the type-ahead."""
    Driver.shell_attributes = [*attributes[:6], list(attributes[6])]
    Driver.typed = typed
