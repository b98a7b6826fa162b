"""Completion in the prompt: slash commands, their arguments, and files, ranked and shown above the editor."""

from __future__ import annotations

import asyncio
import os
import re
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from swecli.lazy_pattern import lazy_pattern
from swecli.tui.keymap import Keymap
from swecli.tui.line_input import Row, Rows
from swecli.tui.prompt.editor import PromptEditor

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand, Word


def score(query: str, name: str) -> tuple[int, int, str] | None:
    """Match score, smaller is better; None if the letters of ``query`` don't occur in ``name`` in order.

    A name whose last part starts with the query ranks first, then one that contains it, then scattered letters, closest
    together first; shorter names win ties.
    """
    text = name.casefold()
    return score_folded(query.casefold(), text, last_part(text), name)


def last_part(text: str) -> str:
    return text.rstrip("/").rsplit("/", 1)[-1]


def score_folded(wanted: str, text: str, base: str, name: str) -> tuple[int, int, str] | None:
    """As ``score``, for a casefolded query and name; ``base`` is the last part of the name."""
    if not wanted:
        return (0, len(name), name)
    if base.startswith(wanted):
        return (0, len(name), name)
    if text.startswith(wanted):
        return (1, len(name), name)
    if wanted in base:
        return (2, len(name), name)
    if wanted in text:
        return (3, len(name), name)
    position = start = -1
    for letter in wanted:
        position = text.find(letter, position + 1)
        if position < 0:
            return None
        if start < 0:
            start = position
    return (SCATTERED + position - start, len(name), name)


SCATTERED = 4
"""Rank of letters in order with others in between."""


def best(query: str, names: Iterable[str], limit: int) -> list[str]:
    ranked = ((rank, name) for name in names if (rank := score(query, name)) is not None)
    return [name for _, name in nsmallest(limit, ranked)]


LIMIT = 8
"""Suggestions shown at once."""

_SLASH = lazy_pattern(r"/([A-Za-z0-9_:?-]*)\Z")
_ARGUMENT = lazy_pattern(r"/([A-Za-z0-9_:?-]+) +(.*)\Z")
_MENTION = lazy_pattern(r"""(?:^|(?<=\s))@(?:"((?:[^"\\]|\\.)*\\?)(?:(?<=/)")?|((?:[^\s@"]|(?<=/)@)*))\Z""")
"""A quoted name may contain blanks; it goes on behind the quote that ends a folder."""


class Token(Struct, frozen=True):
    """The part before the cursor to complete; ``start`` is its column in the line."""

    kind: Literal["command", "argument", "file"]
    query: str
    start: int
    command: str = ""
    """Name of the command whose argument it is."""


class Suggestion(Struct, frozen=True):
    """``insert`` replaces the token; ``label`` and ``detail`` are shown. ``runs`` marks a command without required
    arguments, which Enter may run at once; ``begins`` one that begins with the typed text."""

    label: str
    insert: str
    detail: str = ""
    runs: bool = False
    begins: bool = False


def token_before(text: str, row: int, column: int) -> Token | None:
    """The token that ends at the cursor (``text`` is the cursor's line), or None."""
    before = text[:column]
    if row == 0 and (match := _SLASH.fullmatch(before)):
        return Token("command", match.group(1), 0)
    if match := _MENTION.search(before):
        from swecli.core.workspace.text_file import unescaped  # not needed by the first frame

        quoted, plain = match.groups()
        return Token("file", plain if quoted is None else unescaped(quoted), match.start())
    if row == 0 and (match := _ARGUMENT.fullmatch(before)):
        return Token("argument", match.group(2), match.start(2), match.group(1))
    return None


def commands(query: str, known: Sequence[SlashCommand]) -> list[Suggestion]:
    """Slash commands for ``query``: by name, then by alias, prefix matches first; an empty query lists all listed ones
    in their order. An unlisted one is offered once its name is begun."""
    ranked: list[tuple[tuple[int, int, str], SlashCommand]] = []
    for command in known:
        if command.under and not (query and command.name.startswith(query.lower())):
            continue
        ranks = [score(query, command.name)]
        for alias in command.aliases:
            rank = score(query, alias)
            ranks.append(None if rank is None else (rank[0] + 1, rank[1], rank[2]))
        matching = [rank for rank in ranks if rank is not None]
        if matching:
            ranked.append((min(matching), command))
    if query:
        ranked.sort(key=lambda entry: entry[0])
    return [
        Suggestion(
            usage_of(command),
            f"/{command.name} " if command.arguments else f"/{command.name}",
            command.summary,
            runs=not command.arguments or command.arguments.startswith("["),
            begins=any(name.startswith(query.lower()) for name in (command.name, *command.aliases)),
        )
        for _, command in ranked
    ]


def arguments(query: str, words: Iterable[Word]) -> list[Suggestion]:
    """The words that begin with ``query``, then those that contain it."""
    wanted = query.casefold()
    fitting = [word for word in words if wanted in word.text.casefold()]
    fitting.sort(key=lambda word: not word.text.casefold().startswith(wanted))
    return [Suggestion(word.text, word.text, word.meaning) for word in fitting]


_TESTS = lazy_pattern(r"(?:^|/)(?:tests?|__tests__|specs?|testing)/|(?:^|/)test_[^/]*$|[_.](?:test|spec)\.[^/.]+$")
_DOCS = lazy_pattern(
    r"(?:^|/)(?:docs?|examples?|samples?|\.[^/]+)(?:/|$)|\.(?:md|rst|txt|adoc|lock|sum)$|[-.]lock\.(?:json|ya?ml)$"
    r"|(?:^|/)(?:README|LICEN[SC]E|COPYING|AUTHORS|CONTRIBUTORS|MAINTAINERS|CHANGE(?:LOG|S)|HISTORY|NEWS|NOTICE|TO-?DO)$",
    re.IGNORECASE,
)


def place(path: str) -> int:
    """0 for source, 1 for docs, examples, lock files and settings such as ``.github``, 2 for tests."""
    return 2 if _TESTS.search(path) else 1 if _DOCS.search(path) else 0


def best_files(query: str, paths: Iterable[str], limit: int) -> list[str]:
    """As ``best``, but among equally good names source precedes docs, and docs precede tests. Letters scattered over
    folders rank below those in the name, however close together they are."""
    ranked = ((rank, path) for path in paths if (rank := _file_rank(query, path)) is not None)
    return [path for _, path in nsmallest(limit, ranked)]


def _file_rank(query: str, path: str) -> tuple[int, int, int, int, str] | None:
    rank = score(query, path)
    if rank is None:
        return None
    kind, length, _ = rank
    if 0 < kind < SCATTERED and _private(last_part(path)).casefold().startswith(query.casefold()):
        kind = 0
    if kind < SCATTERED:
        return (kind, place(path), 0, length, path)
    in_name = score(query, last_part(path))
    if in_name is not None:
        return (SCATTERED, place(path), in_name[0], length, path)
    return (SCATTERED + 1, place(path), kind, length, path)


def _private(name: str) -> str:
    """The name without leading underscores: ``_utils.py`` begins with ``util`` too."""
    return name.lstrip("_")


class OrderedPaths:
    """Many paths, in the order of equally good matches, so that a search ends with the last one shown."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._paths = sorted(paths)
        self._paths.sort(key=lambda path: place(path) << 16 | len(path))  # numbers: a sort of tuples blocks the screen
        self._folded = [path.casefold() for path in self._paths]
        self._begins = array("L", (text.rstrip("/").rfind("/") + 1 for text in self._folded))
        """Where the last parts begin."""
        self._letters = array(
            "L", (len(text) - len(_private(text[at:])) for text, at in zip(self._folded, self._begins, strict=True))
        )
        """The same without leading underscores."""

    def best(self, query: str, limit: int) -> list[str]:
        """As ``best_files``; of paths with scattered letters, only the first ``MOST_SCATTERED`` are compared."""
        wanted = query.casefold()
        flat = "/" not in wanted  # else no last part has it
        begin = (path for path, text, at in self._entries(wanted) if flat and text.startswith(wanted, at))
        matches = list(islice(begin, limit))
        if len(matches) < limit:
            rest = [entry for entry in self._entries() if wanted in entry[1]]
            tests: tuple[Callable[[str, int], bool], ...] = (
                lambda text, at: text.startswith(wanted),
                lambda text, at: flat and text.find(wanted, at) >= 0,
                lambda text, at: True,
            )
            for test in tests:
                fitting = (path for path, text, at in rest if test(text, at) and path not in matches)
                matches += list(islice(fitting, limit - len(matches)))
        if len(matches) < limit:
            letters = "".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in wanted[1:])
            in_order = re.compile(f"{re.escape(wanted[:1])}{letters}")
            scattered = (path for path, text, _ in self._entries() if wanted not in text and in_order.search(text))
            matches += best_files(query, islice(scattered, MOST_SCATTERED), limit - len(matches))
        return matches

    def _entries(self, wanted: str = "_") -> Iterator[tuple[str, str, int]]:
        begins = self._begins if wanted.startswith("_") else self._letters
        return zip(self._paths, self._folded, begins, strict=True)


MOST_SCATTERED = 5_000


def files(query: str, paths: Sequence[str]) -> list[Suggestion]:
    """Files and directories (a trailing slash) for ``query``, without names that no mention can express."""
    from swecli.core.workspace.mentions import mention_of  # not needed by the first frame

    mentions = ((path, mention_of(path)) for path in best_files(query, paths, LIMIT))
    return [Suggestion(path, f"{mention}{'' if path.endswith('/') else ' '}") for path, mention in mentions if mention]


FRESH = 15.0
"""Seconds before a list is read again."""

SOON = 0.3
"""Seconds after which the first listing is announced."""

LISTING = "Listing the files…"

FILE_LIMIT = 200_000
"""Maximum number of paths offered."""


def walk(root: Path) -> list[str]:
    """Files below ``root`` as relative paths, without directories of generated or foreign files."""
    from swecli.core.workspace.walk import NOT_OWN  # not needed by the first frame

    paths: list[str] = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in NOT_OWN)
        base = os.path.relpath(folder, root)
        prefix = "" if base == "." else f"{base}/"
        paths.extend(prefix + name for name in sorted(files))
        if len(paths) >= FILE_LIMIT:
            return paths[:FILE_LIMIT]
    return paths


def with_folders(paths: Sequence[str]) -> tuple[str, ...]:
    """The paths and their directories (with a trailing slash), without duplicates; paths may name directories too."""
    folders: dict[str, None] = {}
    for path in paths:
        slash = path.rfind("/")
        while slash > 0:
            folder = path[: slash + 1]
            if folder in folders:
                break
            folders[folder] = None
            slash = path.rfind("/", 0, slash)
    return tuple(dict.fromkeys((*paths, *folders)))


class FileIndex:
    """Paths of the workspace. ``read`` runs in a thread."""

    def __init__(self, read: Callable[[], Sequence[str]], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._read_at = -FRESH
        self._running: asyncio.Task[None] | None = None
        self._known: Sequence[str] = ()
        self.paths = OrderedPaths()
        self.is_slow = False
        """Whether the first listing is under way and takes long."""

    def refresh(self, then: Callable[[], None]) -> None:
        """Reload an outdated list; ``then`` is called in the event loop after that, and when ``is_slow`` changes."""
        if self._clock() - self._read_at < FRESH or (self._running is not None and not self._running.done()):
            return
        self._running = asyncio.create_task(self._load(then))

    async def _load(self, then: Callable[[], None]) -> None:
        known, paths = self._known, self.paths

        def load() -> None:
            nonlocal known, paths
            fresh = self._read()
            if fresh != known:  # ordering many takes longer than finding them
                known, paths = fresh, OrderedPaths(with_folders(fresh))

        def announce() -> None:
            self.is_slow = True
            then()

        timer = asyncio.get_running_loop().call_later(SOON, announce) if self._read_at < 0 else None
        try:
            await asyncio.to_thread(load)
        except OSError:
            known, paths = (), OrderedPaths()
        finally:
            if timer is not None:
                timer.cancel()
            self.is_slow = False
        self._known, self.paths = known, paths
        self._read_at = self._clock()
        then()


HINT = 16
"""Characters of a command's arguments in the list: more would leave its meaning no room."""


def usage_of(command: SlashCommand) -> str:
    """A command in a list: its name with the beginning of its arguments."""
    hint = command.arguments
    hint = hint if len(hint) <= HINT else f"{hint[: HINT - 1].rstrip(' |')}…"
    return f"/{command.name} {hint}".rstrip()


class Suggestions(Rows):
    """Completes the text of ``editor``, which keeps the focus."""

    DEFAULT_CSS = "Suggestions { display: none; }"

    def __init__(self, editor: PromptEditor, files: Callable[[], Sequence[str]], keymap: Keymap) -> None:
        super().__init__(limit=LIMIT, id="suggestions")
        self._editor = editor
        self._keymap = keymap
        self._files = FileIndex(files)
        self._entries: list[Suggestion] = []
        self._notice = ""
        """Shown while there are no entries."""
        self._token: Token | None = None
        self._dismissed: tuple[str, int] | None = None
        self._chosen = False
        self.commands: Callable[[], Sequence[SlashCommand]] = tuple
        self.look: Callable[[], object] = lambda: None
        """Called when the user starts typing a command, because the commands may have changed."""
        self.mentionables: Callable[[], Sequence[str]] = tuple
        """Mentionable words besides files."""
        self.words: Callable[[str], Iterable[Word]] = lambda command: ()
        """Words that the arguments of the command with this name may begin with."""

    @property
    def is_open(self) -> bool:
        return bool(self._entries)

    def follow(self) -> None:
        """Update after a change of text or cursor."""
        editor = self._editor
        row, column = editor.cursor_location
        line = editor.document.get_line(row)
        before, token = self._token, token_before(line, row, column) if line else None
        self._token = token
        if token is not None and token.kind == "command" and (before is None or before.kind != "command"):
            self.look()
        if token is None:
            self._dismissed = None
            if self.display:
                self._offer([])
        elif self._dismissed == (token.kind, token.start):
            self._offer([])
        elif token.kind != "file":
            alone = editor.document.line_count == 1 and column == len(line)
            self._offer(self._of_line(token) if alone else [])
        else:
            self._files.refresh(self.follow)
            matches = self._files.paths.best(token.query, LIMIT)
            self._offer(files(token.query, (*self.mentionables(), *matches)), LISTING if self._files.is_slow else "")

    def _of_line(self, token: Token) -> list[Suggestion]:
        if token.kind == "command":
            return commands(token.query, self.commands())
        suggestions = arguments(token.query, self.words(token.command))
        return (
            [] if [suggestion.insert for suggestion in suggestions] == [token.query] else suggestions
        )  # nothing is left to complete

    def close(self) -> None:
        """Offer nothing until the text changes."""
        self._offer([])

    def dismiss(self) -> None:
        """Offer nothing more for this token."""
        if self._token is not None:
            self._dismissed = (self._token.kind, self._token.start)
        self.close()

    def take_key(self, key: str) -> bool:
        """Select or accept; returns whether the popup handled the key."""
        action = self._keymap.action("list", key) or self._keymap.action("prompt", key)
        if not self.is_open:
            return bool(self._notice) and action == "complete"  # there is nothing to complete with yet
        match action:
            case "previous":
                self._chosen = True
                self.move(-1)
            case "next":
                self._chosen = True
                self.move(1)
            case "complete":
                self._accept()
            case "send":
                self._run()
            case _:
                return False
        return True

    @property
    def behind(self) -> bool:
        """Whether the list lags behind the text, because keys arrived together."""
        row, column = self._editor.cursor_location
        return token_before(self._editor.document.get_line(row), row, column) != self._token

    def _run(self) -> None:
        """Handle Enter: send the text as is if the name is complete, if a command matches only by scattered letters and
        the user did not select it, or if no argument is selected; otherwise run or insert the suggestion."""
        chosen, token = self._entries[self.selected], self._token
        if token is None:
            self.close()
            return
        if token.kind == "argument":
            if self._chosen:
                self._accept()
            self.close()
            self._editor.submit()
            return
        command = token.kind == "command"
        row, column = self._editor.cursor_location
        complete = chosen.insert.rstrip() == self._editor.document.get_line(row)[token.start : column]
        if complete or (command and not (chosen.begins or self._chosen)):
            self.close()
            self._editor.submit()
        elif command and chosen.runs:
            self.close()
            self._editor.put(chosen.insert.rstrip())
            self._editor.submit()
        else:
            self._accept()

    def _accept(self) -> None:
        chosen, token = self._entries[max(0, self.selected)], self._token
        self.close()
        if token is not None:
            row, column = self._editor.cursor_location
            self._editor.replace(chosen.insert, (row, token.start), (row, column), maintain_selection_offset=False)

    def _offer(self, entries: list[Suggestion], notice: str = "") -> None:
        notice = "" if entries else notice
        if entries or self._entries or notice != self._notice:
            self._chosen = self._chosen and entries == self._entries
            self._entries, self._notice = entries, notice
            self.display = bool(entries or notice)
            self.show([Row(entry.label, entry.detail) for entry in entries] or [Row(notice)] * bool(notice))
            free = self._token is not None and self._token.kind == "argument"
            if notice or (free and not self._chosen):
                self.selected = -1
