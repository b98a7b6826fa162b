"""Replacement for the content removed by a compaction: earlier user messages, the summary, the state block, files.

Code, never a model, writes the state block from the record, from scratch at each compaction, so that its facts do not
decay however often a session is compacted.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, field

from swecli.core.context_management.compaction.clearing import NEWLINE
from swecli.core.context_management.compaction.options import Allowances, EntrySizes
from swecli.core.context_management.ledger import ItemRecord, Ledger, is_statement
from swecli.core.context_management.prompts import harmless, is_pointers, is_report, unmarked
from swecli.core.context_management.work_log import TouchedFile, WorkLog, newest_user_texts, user_texts, weightiest
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import PlanChanged
from swecli.core.protocol.messages import ImagePart, Part, TextPart
from swecli.core.workspace.text_file import NotRegularError, TooLargeError, decode, read_bytes
from swecli.figures import plural
from swecli.lazy_pattern import lazy_pattern

OPENING = (
    "The older part of this conversation was compacted to make room. What follows replaces it. The requests in "
    "it are history: what was done is done, do not do it again. The newest messages follow word for word. IDs in "
    "brackets name the source of a line; `recall` shows it."
)


REPORTED = 200
"""Most characters of a cut report."""


class Attachment(Struct, frozen=True):
    """A file of the working set as it is on disk now: ``path`` as the model wrote it, ``file`` with all links followed,
    ``sha256`` of its bytes."""

    path: str
    text: str
    file: str = ""
    sha256: str = ""

    @property
    def lines(self) -> int:
        """Lines of the file; the last one counts even without a line end."""
        return self.text.count("\n") + (not self.text.endswith("\n"))


class Package(Struct, frozen=True):
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

    ``removed`` are the ids of the ledger entries that the package replaces.
    """
    quoted, kept, shortened, left = _user_messages(ledger, set(removed), sizes, allowances.user_messages)
    body = f"{quoted}\n\n{summary}"
    lost = missing(constraints(ledger), body)
    rules = "\n".join(f"- {anchor.text} [{anchor.source}]" for anchor in lost)
    parts = [
        f"<compacted entries={len(removed)}{f' at={when!r}' if when else ''}>",
        OPENING,
        f"# Earlier messages of the user\n\n{quoted}" if quoted else "",
        f"# Summary\n\n{harmless(summary)}" if summary else "",
        f"# Rules the user asked you to follow\n\n{harmless(rules)}" if rules else "",
        f"# State, from the record\n\n{harmless(state)}" if (state := state_block(ledger, facts)) else "",
        _findings(ledger, set(removed), facts, body, sizes, max(left, allowances.user_messages // 2)),
        f"# Notes of swecli\n\n{told}" if (told := _notes(ledger, set(removed), sizes, allowances)) else "",
        *map(_attached, attachments),
        "</compacted>",
    ]
    return Package("\n\n".join(part for part in parts if part), kept, shortened)


FOLDED = "These messages were folded into a few lines; IDs in brackets name the source of a line; `recall` shows it."
FOLDED_QUOTE = 160
"""Characters of a folded message of the user that are quoted."""


def folded(ledger: Ledger, removed: Sequence[str], summary: str, when: str = "") -> str:
    """What replaces a stretch of the conversation: the beginnings of the user's messages in it, the rules among them
    word for word, and the few lines."""
    removed_ids = set(removed)
    quotes = [
        f"[{source}] {harmless(line if len(line) <= FOLDED_QUOTE else f'{line[:FOLDED_QUOTE]}… (cut)')}"
        for source, text in user_texts(ledger)
        if source in removed_ids and (line := " ".join(text.split()))
    ]
    told = "\n".join((*quotes, summary))
    rules = [
        f"- {anchor.text} [{anchor.source}]"
        for anchor in missing(constraints(ledger), told)
        if anchor.source in removed_ids
    ]
    parts = [
        f"<compacted entries={len(removed)}{f' at={when!r}' if when else ''}>",
        FOLDED,
        "\n".join(quotes),
        harmless("\n".join(rules)),
        harmless(summary),
        "</compacted>",
    ]
    return "\n\n".join(part for part in parts if part)


def _findings(
    ledger: Ledger, removed: set[str], facts: SessionFacts, told: str, sizes: EntrySizes, allowance: int
) -> str:
    """What the model stated in its own earlier words, as far as ``told`` lacks it: the most definite statements that
    have room, of equal ones the newest. A summary loses just these."""
    present = " ".join(told.casefold().split())
    findings = [statement for statement in facts.work(ledger).findings.values() if statement.item in removed]
    lines = {
        statement.text: f"- {harmless(statement.text)} [{statement.item}]"
        for statement in findings
        if statement.text.casefold() not in present
    }
    chosen: set[str] = set()
    for finding in weightiest(findings):
        if finding.text in lines and (allowance := allowance - sizes.stub(lines[finding.text])) >= 0:
            chosen.add(finding.text)
    shown = [line for text, line in lines.items() if text in chosen]
    return "\n".join(("# What you found and decided, in your words then\n", *shown)) if shown else ""


def _attached(file: Attachment) -> str:
    path = harmless(file.path.replace('"', "'"))
    return f'<file path="{path}" note="as it is on disk now">\n{harmless(file.text)}\n</file>'


def _notes(ledger: Ledger, removed: set[str], sizes: EntrySizes, allowances: Allowances) -> str:
    """swecli's notes to the model: nothing else in the conversation repeats them. Those on a topic are left out: what
    still holds is said again. All others are word for word, except that of the subagents' reports, which can be any
    number, only the newest are, and the older ones by their first lines."""
    notes = [
        entry
        for entry in ledger.entries.values()
        if entry.kind == "note" and not is_statement(entry) and entry.id in removed - ledger.dropped
    ]
    told: list[str] = []
    left, earlier = allowances.reports, 0
    for entry in reversed(notes):
        text = "\n".join(part.text for part in entry.parts if isinstance(part, TextPart))
        if is_pointers(text):
            continue
        note = harmless(unmarked(text))
        if is_report(text):
            size = sizes.text(note)
            if size > left:
                note = f"{note[:REPORTED].partition(NEWLINE)[0]} … (cut) [{entry.id}]"
                size = sizes.text(note)
            if size > left:
                earlier += 1
                continue
            left -= size
        told.append(note)
    if earlier:
        told.append(f"({plural(earlier, 'earlier report')} left out; `recall` finds them.)")
    return "\n\n".join(reversed(told))


MOST_IN_VAIN = 40
"""Messages of the user without room, one after another, that are tried for a quote."""


def _user_messages(
    ledger: Ledger, removed: set[str], sizes: EntrySizes, allowance: int
) -> tuple[str, tuple[str, ...], tuple[str, ...], int]:
    """Quotes newest first until the allowance is used; older ones by their first line. Then what is left of the
    allowance. Once many in a row had no room, still older ones are not tried: their number grows with the session."""
    quotes: list[str] = []
    in_vain = 0
    kept: list[str] = []
    shortened: list[str] = []
    left = allowance
    for source, text in reversed([(source, text) for source, text in user_texts(ledger) if source in removed]):
        if in_vain == MOST_IN_VAIN:
            shortened.append(source)
            continue
        images = "".join(map(_gone_image, ledger.entries[source].parts))
        quote = f"[{source}] " + f"{harmless(text.strip())}{images}".strip()
        size = sizes.text(quote)
        if size <= left:
            kept.append(source)
        else:
            line = " ".join(text.split())
            quote = f"[{source}] {harmless(line[:120])}… (cut){images}"
            size = sizes.text(quote)
            shortened.append(source)
            if size > left:
                in_vain += 1
                continue
        in_vain = 0
        left -= size
        quotes.append(quote)
    return "\n\n".join(reversed(quotes)), tuple(reversed(kept)), tuple(reversed(shortened)), left


def _gone_image(part: Part) -> str:
    """What the model reads in place of an image that left with its message."""
    return f" [image {harmless(part.name or part.media_type)}, no longer shown]" if isinstance(part, ImagePart) else ""


CONSTRAINT = lazy_pattern(
    r"\b(never|always|must(?:n't| not)?|don'?t|do not|only|without|instead of|prefer|avoid|make sure|keep|no longer)\b",
    re.I,
)
SENTENCE = lazy_pattern(r"(?<=[.!?])\s+|\n+")
ANCHORS_LONGEST = 300
"""Characters of one constraint."""
MOST = 40


class Anchor(Struct, frozen=True):
    """One thing to keep, with the ledger id it comes from."""

    text: str
    source: str


def constraints(ledger: Ledger) -> list[Anchor]:
    """Sentences of the user that forbid, demand or prefer something, the newest last; of many the newest."""
    anchors: dict[str, Anchor] = {}
    for source, text in newest_user_texts(ledger):
        for clean in reversed(_demands(text)):
            anchors.setdefault(clean.casefold(), Anchor(clean, source))
        if len(anchors) >= MOST:
            break
    return list(anchors.values())[MOST - 1 :: -1]


_REMEMBERED = 4_000
"""Most characters of a message with remembered parts."""
_MOST_REMEMBERED = 8_192
"""Messages with remembered parts: about 2 MB."""


def remembered(parts: Callable[[str], tuple[str, ...]]) -> Callable[[str], tuple[str, ...]]:
    """Cached ``parts`` of a message, because each step of a compaction needs them again, of all messages so far. The
    texts themselves are not kept: a long session has put them away."""
    cache: OrderedDict[tuple[int, int], tuple[str, ...]] = OrderedDict()

    def cached(text: str) -> tuple[str, ...]:
        if len(text) > _REMEMBERED:
            return parts(text)
        key = (len(text), hash(text))
        result = cache.get(key)
        if result is None:
            result = cache[key] = parts(text)
            if len(cache) > _MOST_REMEMBERED:
                cache.popitem(last=False)
        return result

    return cached


@remembered
def _demands(text: str) -> tuple[str, ...]:
    sentences = (" ".join(sentence.split()) for sentence in SENTENCE.split(text))
    return tuple(
        sentence
        for sentence in sentences
        if sentence and len(sentence) <= ANCHORS_LONGEST and CONSTRAINT.search(sentence)
    )


def missing(anchors: list[Anchor], text: str) -> list[Anchor]:
    """Anchors that the text does not contain, ignoring line breaks and case."""
    present = " ".join(text.casefold().split())
    return [anchor for anchor in anchors if anchor.text.casefold() not in present]


BRANCHED = (
    "The user went back to before an earlier message and continues from there. What was said and done since is no "
    "longer in the conversation. What follows is the record of it, written by code. Files are as they are on disk now, "
    "so read one again before you change it, and do not repeat what has failed."
)
ASKED_SINCE = 20
"""Newest user messages to list."""
QUOTED = 240
"""Characters of each of them."""


def branch_note(ledger: Ledger, item: str, facts: SessionFacts) -> str:
    """Note to the model about the content that the conversation loses when it goes back to before the entry
    ``item``."""
    order = list(ledger.entries)
    since = set(order[order.index(item) :]) if item in ledger.entries else set[str]()
    asked = [" ".join(text.split()) for source, text in user_texts(ledger) if source in since]
    quoted = [text if len(text) <= QUOTED else f"{text[:QUOTED]}… (cut)" for text in asked if text][-ASKED_SINCE:]
    parts = (BRANCHED, _section("Asked since", quoted), state_block(ledger, facts))
    head, *rest = (part for part in parts if part)
    return "\n\n".join((head, *map(harmless, rest)))


MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
FILES = 60
"""Files to list, most recently touched first."""
PLAN = 8_000
"""Characters of a plan to keep; its file has all."""


class SessionFacts(Struct, frozen=True):
    """Facts for a summary. For one ledger only."""

    mode: str = "default"
    todos: tuple[Todo, ...] = ()
    jobs: tuple[str, ...] = ()
    plan: PlanChanged | None = None
    """The plan, until it is carried out."""
    log: WorkLog = field(default_factory=WorkLog)
    """Work so far, with as much of the ledger as it has seen."""

    def work(self, ledger: Ledger) -> WorkLog:
        """The ledger's work log: reads only what the ``log`` has not seen yet."""
        self.log.absorb(ledger)
        return self.log


def state_block(ledger: Ledger, facts: SessionFacts) -> str:
    """Files, checks, decisions, open errors, todos, mode, jobs; without empty sections."""
    log, left = facts.work(ledger), ledger.left
    sections = [
        _section("Files", _file_lines(log.files(left))),
        _section("Last test and build commands", _command_lines(log.checks(left))),
        _section("Open errors", log.open_errors(left)),
        _section("Decisions of the user", log.decisions(left)),
        _plan(facts.plan),
        _section("Todo list", [f"{MARKS[todo.status]} {todo.text}" for todo in facts.todos]),
        _section("Background jobs", facts.jobs),
        _section("Permission mode", [facts.mode] if facts.mode != "default" else []),
    ]
    return "\n\n".join(section for section in sections if section)


def _section(title: str, lines: Iterable[str]) -> str:
    body = "\n".join(f"- {line}" for line in lines)
    return f"## {title}\n{body}" if body else ""


def _plan(plan: PlanChanged | None) -> str:
    if plan is None:
        return ""
    state = "the user agreed to it and you are carrying it out" if plan.accepted else "the user has not agreed to it"
    where = f" It is in {plan.path}." if plan.path else ""
    text = plan.text if len(plan.text) <= PLAN else f"{plan.text[:PLAN]}… (cut)"
    quoted = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
    return f"## Plan\n- {state}.{where}\n\n{quoted}"


def _file_lines(files: Sequence[TouchedFile]) -> list[str]:
    lines = [
        f"{file.path}: {', '.join(file.operations)}{f' (sha256 {file.digest}…)' if file.digest else ''}"
        for file in reversed(files[-FILES:])
    ]
    if len(files) > FILES:
        lines.append(f"and {len(files) - FILES} more, touched earlier")
    return lines


def _command_lines(commands: Sequence[tuple[str, ItemRecord]]) -> list[str]:
    return [
        f"`{command}` -> {'exit ' + str(record.exit_status) if record.exit_status is not None else record.status}"
        for command, record in reversed(commands)
    ]


MOST_FILES = 3
MOST_BYTES = 200_000


def attachments(files: Sequence[TouchedFile], cwd: Path, sizes: EntrySizes, allowance: int) -> tuple[Attachment, ...]:
    """Up to three of these files that were edited, or read more than once, the last first, within ``allowance`` tokens.

    Reads the disk: not for the event loop.
    """
    chosen: list[Attachment] = []
    left = allowance
    for file in reversed(files):
        if len(chosen) == MOST_FILES:
            break
        edited = "edited" in file.operations or "written" in file.operations
        if not edited and file.reads < 2:
            continue
        attached = _as_on_disk(file.path, cwd)
        size = sizes.text(attached.text) if attached else 0
        if attached and size <= left:
            chosen.append(attached)
            left -= size
    return tuple(chosen)


def _as_on_disk(path: str, cwd: Path) -> Attachment | None:
    """The file as it is now; None if it is gone, empty, special, too large or not text."""
    try:
        resolved = (cwd / Path(os.path.expanduser(path))).resolve()
        data, _ = read_bytes(resolved, MOST_BYTES)
    except (OSError, NotRegularError, TooLargeError, ValueError, RuntimeError):
        return None
    if not data or b"\0" in data[:4096]:
        return None
    return Attachment(path, decode(data).text, str(resolved), sha256(data).hexdigest())
