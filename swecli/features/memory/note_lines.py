"""Session notes from the digest of a conversation's calls."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from swecli.core.context_management.ledger import ItemRecord
from swecli.core.context_management.work_log import LONGEST_LINE, ModifiedFile, Said, WorkLog, error_lines, result_text
from swecli.core.protocol.blocks import Todo
from swecli.features.memory.places import NOTES
from swecli.features.memory.session_notes import DECISIONS, FILES, GOAL, ISSUES, PATTERNS, SECTIONS, TASK
from swecli.figures import cut
from swecli.safe_text import printable_line

_LONGEST_WHY = 70


def notes_lines(
    log: WorkLog,
    todos: Sequence[Todo],
    cwd: Path,
    cover: Callable[[str], str] = str,
    left: Collection[str] = (),
) -> Mapping[str, Sequence[str]]:
    """Session notes by section; empty before any work. ``cover`` hides keys and passwords, ``left`` are items that a
    rewind removed."""
    first, last = log.first_turn, log.last_turn
    if first is None or last is None:
        return {}

    def line(text: str, longest: int = LONGEST_LINE) -> str:
        return cut(printable_line(cover(text).replace("<!--", "").replace("-->", "")).lstrip("#> "), longest)

    requests = {turn: request for turn, request in log.requests.items() if request.holds(left)}
    asked = requests.get(first) or next(iter(requests.values()), None)
    newest = requests.get(last) or next(reversed(requests.values()), None)
    goal = line(asked.text) if asked is not None else ""
    current = next((todo.text for todo in todos if todo.status == "in_progress"), "")
    done = sum(todo.status == "completed" for todo in todos)
    task = f"{line(current)} ({done} of {len(todos)} steps done)" if current else line(newest.text) if newest else ""
    task = task if task != goal else ""
    decided = [decision for decision in (*log.choices.values(), *log.decided) if decision.holds(left)]
    sections = {
        GOAL: [f"{goal} ({_time(asked.at)})"] if asked is not None and goal else [],
        DECISIONS: [
            f"- {line(decision.text)} (decided {_time(decision.at)})"
            for decision in sorted(decided, key=lambda s: s.at)
        ],
        FILES: [
            _file_line(path, file, requests.get(file.turn), cwd, line)
            for path, file in log.modified.items()
            if path.startswith(f"{cwd}{os.sep}") and not ("/.swecli/memory/" in path or path.endswith(f"/{NOTES}"))
        ],
        TASK: [task] if task else [],
        ISSUES: [
            *(f"- [ ] {line(todo.text)}" for todo in todos if todo.status != "completed"),
            *(_issue(command, record, line) for command, record in log.checks(left) if record.exit_status),
        ],
        PATTERNS: [f"- Test or build command: `{line(command)}`" for command in log.passed(left) if "`" not in command],
    }
    return {name: tuple(dict.fromkeys(lines))[-SECTIONS[name] :] for name, lines in sections.items() if lines}


def _file_line(path: str, file: ModifiedFile, request: Said | None, cwd: Path, line: Callable[[str, int], str]) -> str:
    name = os.path.relpath(path, cwd)
    how = "deleted" if file.gone else "created" if file.made else "updated"
    why = line(request.text, _LONGEST_WHY) if request is not None else ""
    return f"- `{line(name, LONGEST_LINE)}` ({how})" + (f" - {why}" if why else "")


def _issue(command: str, record: ItemRecord, line: Callable[[str], str]) -> str:
    error = next(iter(error_lines(result_text(record), 1)), "")
    return line(f"- [ ] `{command}` exits with status {record.exit_status}{f': {error}' if error else ''}")


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
