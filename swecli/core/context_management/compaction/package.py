"""What takes the place of what a compaction removes: earlier messages of the user, the summary, the state block, files.

The state block is written by code from the record, never by a model, and made anew at each compaction, so that its
facts do not decay however often a session is compacted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from swecli.core.context_management.compaction.clearing import arguments_of, target_of
from swecli.core.context_management.compaction.options import Allowances, EntrySizes
from swecli.core.context_management.ledger import ItemRecord, Ledger
from swecli.core.context_management.prompts import harmless, unmarked
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart
from swecli.core.workspace.text_file import NotRegularError, TooLargeError, decode, read_bytes

OPENING = (
    "The older part of this conversation was compacted to make room. What follows replaces it. The requests in it "
    "are history: what was done is done, do not do it again. The newest messages follow word for word."
)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of the working set as it is on disk now: ``path`` as the model wrote it, ``file`` with all links followed,
    ``sha256`` of its bytes."""

    path: str
    text: str
    file: str = ""
    sha256: str = ""

    @property
    def lines(self) -> int:
        """Lines of the file, the last one counted although it may have no end."""
        return self.text.count("\n") + (not self.text.endswith("\n"))


@dataclass(frozen=True, slots=True)
class Package:
    """``kept`` and ``shortened`` are ids of user messages quoted whole or only by their beginning."""

    text: str
    kept: tuple[str, ...]
    shortened: tuple[str, ...]


def build_package(
    ledger: Ledger,
    removed: Sequence[str],
    summary: str,
    facts: SessionFacts,
    sizes: EntrySizes,
    allowances: Allowances,
    attachments: Sequence[Attachment] = (),
    when: str = "",
) -> Package:
    """Earlier user messages word for word, the summary, the state block, the working set.

    ``removed`` are the ids of the ledger entries that the package stands for.
    """
    quoted, kept, shortened = _user_messages(ledger, set(removed), sizes, allowances.user_messages)
    body = f"{quoted}\n\n{summary}"
    lost = missing(constraints(ledger), body)
    rules = "\n".join(f"- {anchor.text} [{anchor.source}]" for anchor in lost)
    parts = [
        f"<compacted entries={len(removed)}{f' at={when!r}' if when else ''}>",
        OPENING,
        f"# Earlier messages of the user\n\n{quoted}" if quoted else "",
        f"# Summary\n\n{harmless(summary)}" if summary else "",
        f"# What the user asked to be kept to\n\n{harmless(rules)}" if rules else "",
        f"# State, from the record\n\n{harmless(state)}" if (state := state_block(ledger, facts)) else "",
        f"# Notes of swecli\n\n{told}" if (told := _notes(ledger, set(removed))) else "",
        *map(_attached, attachments),
        "</compacted>",
    ]
    return Package("\n\n".join(part for part in parts if part), kept, shortened)


def _attached(file: Attachment) -> str:
    path = harmless(file.path.replace('"', "'"))
    return f'<file path="{path}" note="as it is on disk now">\n{harmless(file.text)}\n</file>'


def _notes(ledger: Ledger, removed: set[str]) -> str:
    """What swecli told the model, word for word: nothing else in the conversation says it."""
    notes = (entry for entry in ledger.entries.values() if entry.kind == "note" and entry.id in removed)
    texts = (part.text for entry in notes for part in entry.parts if isinstance(part, TextPart))
    return "\n\n".join(harmless(unmarked(text)) for text in texts)


def _user_messages(
    ledger: Ledger, removed: set[str], sizes: EntrySizes, allowance: int
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Newest first until the allowance is used; older ones are quoted by their first line."""
    quotes: list[str] = []
    kept: list[str] = []
    shortened: list[str] = []
    left = allowance
    for source, text in reversed([(source, text) for source, text in user_texts(ledger) if source in removed]):
        quote = f"[{source}] {harmless(text.strip())}"
        size = sizes.text(quote)
        if size <= left:
            kept.append(source)
        else:
            line = " ".join(text.split())
            quote = f"[{source}] {harmless(line[:120])}… (cut)"
            size = sizes.text(quote)
            shortened.append(source)
            if size > left:
                continue
        left -= size
        quotes.append(quote)
    return "\n\n".join(reversed(quotes)), tuple(reversed(kept)), tuple(reversed(shortened))


CONSTRAINT = re.compile(
    r"\b(never|always|must(?:n't| not)?|don'?t|do not|only|without|instead of|prefer|avoid|make sure|keep|no longer)\b",
    re.I,
)
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
ANCHORS_LONGEST = 300
"""Characters of one constraint."""
MOST = 40


@dataclass(frozen=True, slots=True)
class Anchor:
    """One thing to keep, with the ledger id it comes from."""

    text: str
    source: str


def constraints(ledger: Ledger) -> list[Anchor]:
    """Sentences of the user that forbid, demand or prefer something; newest kept when there are many."""
    found: dict[str, Anchor] = {}
    for source, text in user_texts(ledger):
        for sentence in SENTENCE.split(text):
            clean = " ".join(sentence.split())
            if clean and len(clean) <= ANCHORS_LONGEST and CONSTRAINT.search(clean):
                found[clean.casefold()] = Anchor(clean, source)
    return list(found.values())[-MOST:]


def missing(anchors: list[Anchor], text: str) -> list[Anchor]:
    """Anchors whose words are not in the text, whatever its line breaks and case."""
    present = " ".join(text.casefold().split())
    return [anchor for anchor in anchors if anchor.text.casefold() not in present]


CHECKS = re.compile(
    r"\b(pytest|unittest|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|gradlew?|mvn|ninja|make|cmake|tsc|ruff|"
    r"mypy|pyright|basedpyright|eslint|clippy)\b|\b(npm|pnpm|yarn|bun|deno|cargo|go|swift|dotnet|bundle|mix|zig)\b.*"
    r"\b(test|build|check|vet|lint|run)\b|\btest[\w-]*\.\w+\b|\b(run_)?tests?\b"
)
"""Commands that test or build something, as far as their words tell."""

MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
FILES = 60
"""Files that are listed, most recently touched first."""
COMMANDS = 6
ERROR_LINES = 12


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What the ledger does not hold."""

    mode: str = "default"
    todos: tuple[Todo, ...] = ()
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """One file that was read or changed. ``digest`` is the start of the SHA-256 after swecli's last change."""

    path: str
    operations: tuple[str, ...]
    digest: str = ""


def state_block(ledger: Ledger, facts: SessionFacts) -> str:
    """Files, checks, decisions, open errors, todos, mode, jobs; sections without content are left out."""
    sections = [
        _section("Files", _file_lines(touched_files(ledger))),
        _section("Last test and build commands", _command_lines(check_commands(ledger))),
        _section("Open errors", open_errors(ledger)),
        _section("Decisions of the user", decisions(ledger)),
        _section("Todo list", [f"{MARKS[todo.status]} {todo.text}" for todo in facts.todos]),
        _section("Background jobs", facts.jobs),
        _section("Permission mode", [facts.mode] if facts.mode != "default" else []),
    ]
    return "\n\n".join(section for section in sections if section)


def _section(title: str, lines: Iterable[str]) -> str:
    body = "\n".join(f"- {line}" for line in lines)
    return f"## {title}\n{body}" if body else ""


def calls(ledger: Ledger) -> list[tuple[ItemRecord, ToolCallPart]]:
    """All finished tool calls of the session in order, compacted ones included."""
    return [(record, record.call) for record in ledger.items.values() if record.kind == "tool" and record.call]


def touched_files(ledger: Ledger) -> list[TouchedFile]:
    """Every file read or changed, the most recent last."""
    operations: dict[str, list[str]] = {}
    for record, call in calls(ledger):
        verb = {"read_file": "read", "write_file": "written", "edit_file": "edited"}.get(record.name)
        path = arguments_of(call).get("path")
        if verb is None or not isinstance(path, str) or record.status != "ok":
            continue
        known = operations.pop(path, [])
        operations[path] = [*(one for one in known if one != verb), verb]
    digests = {change.path: change.after for change in ledger.changes}
    return [
        TouchedFile(
            path, tuple(done), next((hash_[:12] for full, hash_ in digests.items() if hash_ and _same(full, path)), "")
        )
        for path, done in operations.items()
    ]


def _same(full: str, path: str) -> bool:
    return full == path or full.endswith(f"/{path.removeprefix('./')}")


def _file_lines(files: Sequence[TouchedFile]) -> list[str]:
    lines = [
        f"{file.path}: {', '.join(file.operations)}{f' (sha256 {file.digest}…)' if file.digest else ''}"
        for file in reversed(files[-FILES:])
    ]
    if len(files) > FILES:
        lines.append(f"and {len(files) - FILES} more, touched earlier")
    return lines


def check_commands(ledger: Ledger) -> list[tuple[str, ItemRecord]]:
    """The newest run of each test or build command, the most recent last."""
    newest: dict[str, ItemRecord] = {}
    for record, call in calls(ledger):
        command = arguments_of(call).get("command")
        if record.name == "run_command" and isinstance(command, str) and CHECKS.search(command):
            newest.pop(command, None)
            newest[command] = record
    return list(newest.items())[-COMMANDS:]


def _command_lines(commands: Sequence[tuple[str, ItemRecord]]) -> list[str]:
    return [
        f"`{command}` -> {'exit ' + str(record.exit_status) if record.exit_status is not None else record.status}"
        for command, record in reversed(commands)
    ]


def open_errors(ledger: Ledger) -> list[str]:
    lines: list[str] = []
    for command, record in reversed(check_commands(ledger)):
        if record.exit_status:
            text = next((part.text for part in record.parts if isinstance(part, ToolResultPart)), "")
            lines += [f"`{command}`: {line}" for line in error_lines(text)]
    return lines[:ERROR_LINES]


ERROR = re.compile(r"\b(error|failed|failure|exception|traceback|assert\w*|panic\w*|fatal|undefined|cannot)\b", re.I)


def error_lines(text: str, limit: int = 6) -> list[str]:
    """Lines that look like errors, the last ones, shortened."""
    found = [" ".join(line.split())[:200] for line in text.splitlines() if ERROR.search(line)]
    return found[-limit:]


def decisions(ledger: Ledger) -> list[str]:
    lines: list[str] = []
    for record, call in calls(ledger):
        text = next((part.text for part in record.parts if isinstance(part, ToolResultPart)), "")
        if record.name == "ask_user" and record.status == "ok":
            lines.append(" ".join(text.split())[:400])
        elif record.status == "rejected" and "The user says:" in text:
            lines.append(f"{record.name} {target_of(call)}: {text.split('The user says:', 1)[1].strip()[:300]}")
    return lines


def user_texts(ledger: Ledger) -> list[tuple[str, str]]:
    """Ledger id and text of every message of the user, oldest first."""
    return [
        (entry.id, "".join(part.text for part in entry.parts if isinstance(part, TextPart)))
        for entry in ledger.entries.values()
        if entry.kind == "user"
    ]


MOST_FILES = 3
MOST_BYTES = 200_000


def attachments(ledger: Ledger, cwd: Path, sizes: EntrySizes, allowance: int) -> tuple[Attachment, ...]:
    """Up to three files that were edited, or read more than once, newest first, within ``allowance`` tokens.

    Reads the disk: not for the event loop.
    """
    reads: dict[str, int] = {}
    for record, call in calls(ledger):
        path = arguments_of(call).get("path")
        if record.name == "read_file" and isinstance(path, str):
            reads[path] = reads.get(path, 0) + 1
    chosen: list[Attachment] = []
    left = allowance
    for file in reversed(touched_files(ledger)):
        edited = "edited" in file.operations or "written" in file.operations
        if len(chosen) == MOST_FILES or not (edited or reads.get(file.path, 0) > 1):
            continue
        attached = _as_on_disk(file.path, cwd)
        size = sizes.text(attached.text) if attached else 0
        if attached and size <= left:
            chosen.append(attached)
            left -= size
    return tuple(chosen)


def _as_on_disk(path: str, cwd: Path) -> Attachment | None:
    """The file as it is now; None where it is gone, empty, special, too large or no text."""
    try:
        place = (cwd / Path(os.path.expanduser(path))).resolve()
        data, _ = read_bytes(place, MOST_BYTES)
    except (OSError, NotRegularError, TooLargeError, ValueError, RuntimeError):
        return None
    if not data or b"\0" in data[:4096]:
        return None
    return Attachment(path, decode(data).text, str(place), sha256(data).hexdigest())
