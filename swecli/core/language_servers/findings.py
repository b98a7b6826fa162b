"""Errors caused by an edit, in words for the model. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from swecli.core.language_servers.protocol import Diagnostic, lines_of
from swecli.core.workspace.command_output import as_read
from swecli.core.workspace.line_diff import changed_spans
from swecli.figures import cut_line, plural

LONGEST: Final = 300
"""Characters of one error."""
_Key = tuple[str, str]


class Finding(Struct, frozen=True):
    """A new error. ``line`` counts from 1. ``unsure``: it may be older than the edit."""

    path: str
    line: int
    message: str
    code: str = ""
    unsure: bool = False


def brought(
    path: str, before: Sequence[Diagnostic], after: Sequence[Diagnostic], old: str, new: str
) -> tuple[Finding, ...]:
    """Errors in ``after`` that are not in ``before``, by line. A moved error is not new; of several with the same text,
    only the surplus counts."""
    if not after:
        return ()
    new_lines = _moved(old, new) if before else {}
    there: dict[_Key, Counter[int]] = {}
    for diagnostic in before:
        there.setdefault(_key(diagnostic), Counter())[new_lines.get(diagnostic.range.start.line, -1)] += 1
    unmatched: list[Diagnostic] = []
    for diagnostic in after:
        lines = there.get(_key(diagnostic))
        if lines is not None and lines[diagnostic.range.start.line] > 0:
            lines[diagnostic.range.start.line] -= 1
        else:
            unmatched.append(diagnostic)
    fresh: list[Diagnostic] = []
    left = {key: lines.total() for key, lines in there.items()}
    for diagnostic in unmatched:
        if left.get(_key(diagnostic), 0) > 0:
            left[_key(diagnostic)] -= 1
        else:
            fresh.append(diagnostic)
    fresh.sort(key=lambda diagnostic: (diagnostic.range.start.line, diagnostic.range.start.character))
    findings = (
        Finding(
            path,
            diagnostic.range.start.line + 1,
            cut_line(as_read(diagnostic.message), LONGEST),
            " ".join(as_read(str(diagnostic.code or "")[:60]).split()),
        )
        for diagnostic in fresh
    )
    return tuple(dict.fromkeys(findings))


def _key(diagnostic: Diagnostic) -> _Key:
    return str(diagnostic.code), diagnostic.message


def _moved(old: str, new: str) -> dict[int, int]:
    """New positions of unchanged lines of the old text."""
    before, after = lines_of(old), lines_of(new)
    moved: dict[int, int] = {}
    at, shift = 0, 0
    for i1, i2, _, j2 in (*changed_spans(before, after), (len(before), len(before), len(after), len(after))):
        moved.update((line, line + shift) for line in range(at, i1))
        at, shift = i2, j2 - i2
    return moved


def findings_text(findings: Sequence[Finding], most: int, server: str, *, late: bool = False) -> str:
    """The report for the model; empty without findings."""
    if not findings:
        return ""
    count = plural(len(findings), "error" if any(finding.unsure for finding in findings) else "new error")
    when = " after an earlier edit" if late else ""
    lines = [f"{server} reports {count}{when}:"]
    for finding in findings[:most]:
        code = f" [{finding.code}]" if finding.code else ""
        unsure = " (perhaps older than the edit)" if finding.unsure else ""
        lines.append(f"{finding.path}:{finding.line}: {finding.message}{code}{unsure}")
    if len(findings) > most:
        lines.append(f"and {len(findings) - most:,} more")
    return "\n".join(lines)
