"""Reports of subagents to the session that started them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from swecli.core.engine.state import AgentRecord
from swecli.core.tools.bounding import bound_result
from swecli.core.workspace.command_output import as_read
from swecli.core.worktrees import whereabouts
from swecli.figures import plural
from swecli.safe_text import printable_line, printable_name

_NAMED = 12
"""Most changed files named in a report."""


class Report(Struct, frozen=True):
    """Report of a subagent. ``answer`` is its last message; ``folder`` is its own work tree if that was kept,
    ``branch`` the branch checked out there."""

    record: AgentRecord
    answer: str
    changed: tuple[str, ...] = ()
    folder: str = ""
    branch: str = ""

    @property
    def done(self) -> bool:
        return self.record.outcome == "done"

    @property
    def whereabouts(self) -> str:
        return whereabouts(self.folder, self.branch)

    @property
    def detail(self) -> str:
        """Outcome and usage, in short."""
        record = self.record
        cost = f" · ${record.tally.cost:.4f}" if record.tally.cost else ""
        state = "done" if self.done else record.outcome or "interrupted"
        return f"{state} · {plural(record.steps, 'step')} · {record.tokens:,} tokens{cost}"


def report_text(report: Report, most: int, count: Callable[[str], int]) -> str:
    """Report for the parent agent, with at most ``most`` tokens as counted by ``count``."""
    record = report.record
    why = f": {record.reason}" if record.reason else ""
    how = "is done" if report.done else f"ended early ({record.outcome}{why})"
    lines = [
        f"[{record.id} ({record.started.profile}) {how}: {plural(record.steps, 'step')}, {record.tokens:,} tokens. "
        f'Its transcript: read_result with ref_id "{record.id}"]'
    ]
    if report.changed:
        more = f" and {len(report.changed) - _NAMED} more" if len(report.changed) > _NAMED else ""
        lines.append(f"Files it changed: {', '.join(map(printable_name, report.changed[:_NAMED]))}{more}")
    if report.folder:
        lines.append(printable_line(report.whereabouts))
    if not report.done and report.answer:
        lines.append("It did not finish. Its last words:")
    lines.append(as_read(report.answer) or "It gave no answer.")
    text = "\n".join(lines)
    size = len(text.encode("utf-8", "replace"))
    while (tokens := count(text)) > most and size > 100:
        size = min(size - 1, int(size * min(0.9, most / tokens)))
        text = bound_result("\n".join(lines), size, size)
    return text
