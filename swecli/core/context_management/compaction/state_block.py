"""The state block: what happened, written by code from the record, never by a model.

It is made anew at each compaction, so its facts do not decay however often a session is compacted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from swecli.core.context_management.compaction.clearing import arguments_of, target_of
from swecli.core.context_management.ledger import ItemRecord, Ledger
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart

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
    """Error lines of the checks whose newest run failed."""
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
    """Answers to questions and words that went with rejections."""
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
