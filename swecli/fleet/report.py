"""The report of a run: one self-contained page, or the figures as text; and the comparison of two runs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from msgspec import Struct

from swecli.exit_codes import ExitCode
from swecli.export.page import content_hash
from swecli.figures import dollars, duration, percent, plural, tokens
from swecli.fleet.ledger import read_ledger
from swecli.fleet.statistics import Histogram, histogram, interval, median, paired
from swecli.launch import StartError
from swecli.safe_text import safe_line, sanitise

LONGEST = 40_000
"""Characters of a diff or an output on the page; the files have all of it."""
MOST_DETAILS = 2_000
"""Tasks whose diffs and outputs are on the page; a larger run has those of its failures first."""
_WIDTH, _HEIGHT = 320, 72
"""Pixels of a histogram."""


class Result(Struct, frozen=True):
    """The figures of one ended task. ``line`` is its line of ``results.jsonl``."""

    line: Mapping[str, Any]
    patch: str

    @property
    def name(self) -> str:
        return str(self.line["id"])

    @property
    def status(self) -> str:
        return str(self.line["status"])

    @property
    def seconds(self) -> float:
        return sum(self.line["seconds"].values())

    @property
    def cost(self) -> Decimal | None:
        try:
            return None if self.line["cost"] is None else Decimal(self.line["cost"])
        except InvalidOperation:
            return None

    @property
    def tokens(self) -> int:
        return int(self.line["tokens_in"]) + int(self.line["tokens_out"])

    @property
    def group(self) -> str:
        """What a failure is grouped by."""
        return str(self.line["kind"] or self.line["reason"] or self.status)


class Run(Struct, frozen=True):
    """A run as read from its folder. ``spent`` is the whole run's tokens and dollars, repeated attempts included."""

    folder: Path
    results: Sequence[Result]
    total: int
    spent: tuple[int, Decimal]

    @property
    def counts(self) -> Counter[str]:
        return Counter(result.status for result in self.results)

    @property
    def judged(self) -> list[Result]:
        """Those with a verdict: a broken task says nothing about the agent."""
        return [result for result in self.results if result.status in ("passed", "failed")]

    @property
    def rate(self) -> str:
        """The pass rate in words, with its interval."""
        judged = len(self.judged)
        passed = self.counts["passed"]
        if not judged:
            return "no task was checked"
        low, high = interval(passed, judged)
        rate = percent(passed / judged)
        return f"{passed:,} of {judged:,} passed, {rate} (95 % interval {percent(low)} to {percent(high)})"


def read_run(folder: Path) -> Run:
    """Raises ``StartError`` if it is not a fleet's folder, or nothing has ended."""
    ledger = read_ledger(folder)
    try:
        results = [Result(line, _patch(ledger.patch, line)) for line in ledger.results()]
        run = Run(folder, results, sum(ledger.counts().values()), ledger.spent())
    finally:
        ledger.close()
    if not results:
        raise StartError(f"No task of {folder} has ended yet.", ExitCode.BAD_INPUT)
    return run


def _patch(read: Any, line: Mapping[str, Any]) -> str:
    try:
        return read(line).decode("utf-8", "replace")
    except OSError:
        return ""


class Comparison(Struct, frozen=True):
    """How the second run differs: tasks that only one of them passed, of those that both judged."""

    both: int
    gained: Sequence[str]
    lost: Sequence[str]

    @property
    def words(self) -> str:
        chance = paired(len(self.gained), len(self.lost))
        verdict = "chance explains this badly" if chance < 0.05 else "this may be chance"
        shown = f"{chance:.3f}" if chance >= 0.001 else "< 0.001"
        return (
            f"Of {plural(self.both, 'task')} that both runs judged, the second passes {len(self.gained):,} that the "
            f"first did not, and fails {len(self.lost):,} that the first passed. McNemar's exact test: p = {shown}; "
            f"{verdict}."
        )


def compared(first: Run, second: Run) -> Comparison:
    before = {result.name: result.status for result in first.judged}
    after = {result.name: result.status for result in second.judged}
    both = [name for name in before if name in after]
    gained = [name for name in both if before[name] == "failed" and after[name] == "passed"]
    lost = [name for name in both if before[name] == "passed" and after[name] == "failed"]
    return Comparison(len(both), gained, lost)


def failures(run: Run) -> list[tuple[str, str, list[Result]]]:
    """The results that did not pass, grouped by status and kind, the largest group first."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in run.results:
        if result.status not in ("passed", "unchecked"):
            groups.setdefault((result.status, result.group), []).append(result)
    return sorted(((*key, results) for key, results in groups.items()), key=lambda group: -len(group[2]))


# --- as text ----------------------------------------------------------------------------------------------------


def report_text(folders: Sequence[Path]) -> str:
    """The figures of one run, or of two and their comparison. Raises ``StartError`` as ``read_run`` does."""
    runs = [read_run(folder) for folder in folders]
    lines: list[str] = []
    for run in runs:
        lines += [f"{run.folder.name}: {run.rate}", *(f"  {line}" for line in _figures(run))]
        for status, group, results in failures(run):
            named = ", ".join(safe_line(result.name) for result in results[:5])
            more = f" and {len(results) - 5:,} more" if len(results) > 5 else ""
            lines.append(f"  {len(results):,} {status}, {safe_line(group)}: {named}{more}")
    if len(runs) == 2:
        comparison = compared(*runs)
        lines.append(comparison.words)
        lines += [f"  now passed: {safe_line(name)}" for name in comparison.gained]
        lines += [f"  now failed: {safe_line(name)}" for name in comparison.lost]
    return "\n".join(lines) + "\n"


def _figures(run: Run) -> list[str]:
    counts = run.counts
    ended = ", ".join(f"{counts[status]:,} {status}" for status in ("unchecked", "broken", "stopped") if counts[status])
    used, price = run.spent
    seconds = median([result.seconds for result in run.results])
    steps = median([float(result.line["steps"]) for result in run.results])
    return [
        *([ended] if ended else []),
        f"{len(run.results):,} of {plural(run.total, 'task')} ended; {tokens(used)} tokens, "
        f"{dollars(price) if price else 'no known price'}",
        f"median of a task: {duration(seconds or 0)}, {steps or 0:.0f} steps",
    ]


# --- as a page --------------------------------------------------------------------------------------------------


def report_page(folders: Sequence[Path]) -> str:
    """The page. All text from outside is made safe and escaped; nothing is loaded. Raises ``StartError`` as
    ``read_run`` does."""
    runs = [read_run(folder) for folder in folders]
    run = runs[-1]
    style, script = _part("report.css"), _part("report.js")
    return Template(_part("report.html")).substitute(
        title=_line(run.folder.name or "Fleet"),
        style=style,
        script=script,
        style_hash=content_hash(style),
        script_hash=content_hash(script),
        rate=_rate(run),
        figures="".join(f"<li>{_line(line)}</li>" for line in _figures(run)),
        comparison=_comparison(runs) if len(runs) == 2 else "",
        charts="".join(_charts(run)),
        groups="".join(_groups(run)),
        rows="".join(_rows(run)),
    )


def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _line(text: str) -> str:
    return escape(safe_line(text))


def _rate(run: Run) -> str:
    judged = len(run.judged)
    low, high = interval(run.counts["passed"], judged)
    share = run.counts["passed"] / judged if judged else 0.0
    bar = (
        '<svg class="rate" viewBox="0 0 400 14" role="img" aria-label="pass rate">'
        '<rect class="all" width="400" height="14" rx="3"/>'
        f'<rect class="share" width="{share * 400:.1f}" height="14" rx="3"/>'
        f'<path class="interval" d="M{low * 400:.1f} 7H{high * 400:.1f}M{low * 400:.1f} 2v10M{high * 400:.1f} 2v10"/>'
        "</svg>"
    )
    return f"<p>{_line(run.rate)}</p>{bar if judged else ''}"


def _comparison(runs: Sequence[Run]) -> str:
    comparison = compared(runs[0], runs[1])
    lists = "".join(
        f"<h3>{title} ({len(names):,})</h3><ul>{''.join(f'<li>{_line(name)}</li>' for name in names)}</ul>"
        for title, names in (("Now passed", comparison.gained), ("Now failed", comparison.lost))
        if names
    )
    first = f"Compared with {_line(runs[0].folder.name)}: {_line(runs[0].rate)}."
    return f"<h2>Comparison</h2><p>{first}</p><p>{_line(comparison.words)}</p>{lists}"


def _charts(run: Run) -> Iterable[str]:
    values: Mapping[str, tuple[list[float], Any]] = {
        "Duration": ([result.seconds for result in run.results], duration),
        "Steps": ([float(result.line["steps"]) for result in run.results], lambda value: f"{value:.0f}"),
        "Tokens": ([float(result.tokens) for result in run.results], lambda value: tokens(round(value))),
        "Cost": (
            [float(result.cost) for result in run.results if result.cost is not None],
            lambda value: dollars(Decimal(repr(round(value, 4)))),
        ),
    }
    for title, (numbers, shown) in values.items():
        if (drawn := histogram(numbers)) is not None and (len(drawn.counts) > 1 or drawn.high):
            yield _chart(title, drawn, shown)


def _chart(title: str, drawn: Histogram, shown: Any) -> str:
    most, width = max(drawn.counts), _WIDTH / len(drawn.counts)
    step = (drawn.high - drawn.low) / len(drawn.counts)
    bars: list[str] = []
    for at, count in enumerate(drawn.counts):
        height = count / most * _HEIGHT
        about = f"{shown(drawn.low + at * step)} to {shown(drawn.low + (at + 1) * step)}: {plural(count, 'task')}"
        bars.append(
            f'<rect x="{at * width + 1:.1f}" y="{_HEIGHT - height:.1f}" width="{max(1, width - 2):.1f}" '
            f'height="{height:.1f}"><title>{_line(about)}</title></rect>'
        )
    ends = f"<span>{_line(shown(drawn.low))}</span><span>{_line(shown(drawn.high))}</span>"
    picture = f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}">{"".join(bars)}</svg>'
    return f'<figure><figcaption>{title}</figcaption>{picture}<div class="ends">{ends}</div></figure>'


def _groups(run: Run) -> Iterable[str]:
    for status, group, results in failures(run):
        links = ", ".join(f'<a href="#t{_anchor(result.name)}">{_line(result.name)}</a>' for result in results[:200])
        more = f" and {len(results) - 200:,} more" if len(results) > 200 else ""
        yield f'<li><b class="{status}">{len(results):,} {status}</b> {_line(group)}: {links}{more}</li>'


def _anchor(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:16]


def _rows(run: Run) -> Iterable[str]:
    ordered = sorted(run.results, key=lambda result: result.status in ("passed", "unchecked"))
    detailed = {result.name for result in ordered[:MOST_DETAILS]}
    for result in run.results:
        cost, line = result.cost, result.line
        cells = (
            (result.name, f"<b>{_line(result.name)}</b>"),
            (result.status, f'<span class="{escape(result.status)}">{_line(result.status)}</span>'),
            (f"{result.seconds:.3f}", _line(duration(result.seconds))),
            (str(line["steps"]), f"{line['steps']:,}"),
            (str(result.tokens), _line(tokens(result.tokens))),
            (str(cost if cost is not None else -1), _line(dollars(cost))),
            (str(line["attempt"]), f"{line['attempt']}"),
            (str(line["reason"]), _line(str(line["reason"]))),
        )
        inside = "".join(f'<td data-v="{escape(safe_line(value))}">{shown}</td>' for value, shown in cells)
        details = _details(result) if result.name in detailed else ""
        yield f'<tbody id="t{_anchor(result.name)}"><tr>{inside}</tr>{details}</tbody>\n'


def _details(result: Result) -> str:
    parts: list[str] = []
    check = result.line["check"]
    if answer := str(result.line["answer"]).strip():
        parts.append(f"<h4>Answer</h4><pre>{escape(_cut(answer))}</pre>")
    if result.patch:
        parts.append(f"<h4>Diff</h4><pre>{_coloured(_cut(result.patch))}</pre>")
    if check and check["output"].strip():
        ended = "ended after its time" if check["exit_status"] is None else f"status {check['exit_status']}"
        parts.append(f"<h4>Check ({ended})</h4><pre>{escape(_cut(check['output']))}</pre>")
    if not parts:
        return ""
    return f'<tr class="more"><td colspan="8"><details><summary>Details</summary>{"".join(parts)}</details></td></tr>'


def _cut(text: str) -> str:
    shown = sanitise(text)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}\n… {len(shown) - LONGEST:,} more characters"


def _coloured(diff: str) -> str:
    lines: list[str] = []
    for line in diff.split("\n"):
        kind = {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "")
        lines.append(f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line))
    return "\n".join(lines)
