"""The decision about shell commands: what they start, what they touch, and whether they are proven to only read."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from swecli.core.permissions.paths import is_secret_in, within_text
from swecli.core.permissions.rules import Pattern, RuleError, active_rules, parse_rule, rule_pattern, words_rule
from swecli.core.permissions.shell.destructive import Danger, Place, dangers, place_of
from swecli.core.permissions.shell.lexer import read_script
from swecli.core.permissions.shell.offers import offered_words
from swecli.core.permissions.shell.proof import Part, prove
from swecli.core.permissions.shell.scan import ScanError, ScanWord
from swecli.core.permissions.shell.syntax import UnprovenError
from swecli.core.permissions.shell.unpack import Started, started
from swecli.core.permissions.types import Call, Policy, Rule

_QUOTED = re.compile(r"""["']([^"'\n]{1,200})["']""")
"""Texts in code that is given to an interpreter: they may be names of files."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known about a command. ``unread`` is why its commands could not be found, ``unproven`` why it as a
    whole is not proven; ``parts`` is empty then."""

    started: tuple[Started, ...]
    unread: str | None
    parts: tuple[Part, ...]
    unproven: str | None
    dangers: tuple[Danger, ...]
    place: Place

    @property
    def proven(self) -> bool:
        return self.unproven is None and all(part.reason is None for part in self.parts)

    @property
    def reason(self) -> str:
        """The first objection, as a clause."""
        return self.unproven or next((part.reason for part in self.parts if part.reason is not None), "")

    @property
    def only_reads_elsewhere(self) -> bool:
        """Whether all objections are about what is read, not about what is done."""
        return self.unproven is None and all(part.reason is None or part.soft for part in self.parts)

    @property
    def opaque(self) -> bool:
        """Whether rules about words may not see all that runs."""
        return self.computed or self.unproven is not None or any(part.fixed and part.reason for part in self.parts)

    @property
    def computed(self) -> bool:
        return self.unread is not None or any(not item.name or item.computed for item in self.started)


def judge(policy: Policy, call: Call) -> Judgement:
    command = call.effects.command or ""
    known = {"PWD": call.cwd, **({"HOME": policy.home} if policy.home else {})}
    items: tuple[Started, ...] = ()
    unread: str | None = None
    try:
        items = started(command, known)
    except ScanError as error:
        unread = str(error)
    place = place_of(items, policy.facts, call.cwd, call.roots, policy.home, policy.own_dirs)
    parts: tuple[Part, ...] = ()
    unproven: str | None = None
    try:
        parts = prove(read_script(command), policy.facts, call.cwd, call.roots, policy.home)
    except UnprovenError as error:
        unproven = error.reason
    return Judgement(items, unread, parts, unproven, tuple(dangers(items, place)), place)


# --- rules ---------------------------------------------------------------------------------------------------------


def forbids(rule: Rule, policy: Policy, call: Call, judgement: Judgement) -> bool:
    """Whether a deny or ask rule speaks about anything that the command would do."""
    try:
        pattern = parse_rule(rule.text)
    except RuleError:
        return False
    if pattern.kind == "command":
        pattern = pattern.at_home(policy.home)
        return pattern.matches_tool(call.tool) and any(_word_forms_match(pattern, item) for item in judgement.started)
    if (
        pattern.kind in ("read", "write")
        and pattern.path is not None
        and (not pattern.tools or call.tool in pattern.tools)
    ):
        writing = pattern.kind == "write"
        paths = _named_paths(judgement, writing_only=writing)
        return any(pattern.path.matches(path, call.roots, policy.home, wide=True) for path in paths)
    return False


def _word_forms_match(pattern: Pattern, item: Started) -> bool:
    # A word that is computed may be nothing at all.
    words = [word.text for word in item.words if word.known or word.text]
    forms = [words, [item.name, *words[1:]]]
    if item.name == "git":
        rest = list(words[1:])
        while rest and rest[0].startswith("-"):
            del rest[: 2 if rest[0] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1]
        forms.append(["git", *rest])
    return any(pattern.matches_words(form, wide=True) for form in forms)


def _named_paths(judgement: Judgement, *, writing_only: bool) -> set[str]:
    """Paths that words of the command may mean, as written and with links followed."""
    place, found = judgement.place, set[str]()
    for item in judgement.started:
        words = list(item.found.writes)
        if not writing_only:
            words += item.found.reads
        if not (writing_only and judgement.proven):
            words += item.words[1:]
        words += [ScanWord(text) for word in item.words[1:] for text in _QUOTED.findall(word.text)]
        for word in words:
            for text in dict.fromkeys(
                (word.text, word.text.partition("=")[2], word.text.rpartition(":")[2], word.text[2:], word.text[1:])
            ):
                if text and len(text) < 1_000 and "\n" not in text:
                    found |= _meanings(ScanWord(text, word.known, word.glob), place)
    return found


def named_secret(judgement: Judgement, roots: Sequence[str]) -> str | None:
    return next(
        (path for path in sorted(_named_paths(judgement, writing_only=False)) if is_secret_in(path, roots)), None
    )


def _meanings(word: ScanWord, place: Place) -> set[str]:
    found: set[str] = set()
    for base in place.bases:
        path = within_text(word.text, base, place.home)
        found |= {path, place.facts.resolve(posixpath.join(base, word.text))}
        if word.glob or not word.known:
            folder, _, name = path.rpartition("/")
            names = place.facts.names(folder or "/") or ()
            found |= {posixpath.join(folder, each) for each in names if fnmatchcase(each, name or "*")}
    return found


def allowed_by(rules: Sequence[Rule], policy: Policy, call: Call, judgement: Judgement) -> Rule | None:
    """The rule by which the command runs: every part of it is covered by a rule or proven."""
    patterns: list[tuple[Rule, Pattern]] = []
    for rule in rules:
        try:
            patterns.append((rule, rule_pattern(rule).at_home(policy.home)))
        except RuleError:
            continue
    whole = next(
        (rule for rule, pattern in patterns if pattern.kind == "tool" and pattern.matches_tool(call.tool)), None
    )
    if whole is not None:
        return whole
    if judgement.unproven is not None:
        return None
    used: Rule | None = None
    for part in judgement.parts:
        if part.reason is None:
            continue
        rule = _part_rule(part, patterns, policy, call)
        if rule is None:
            return None
        used = used or rule
    return used


def _part_rule(part: Part, patterns: Sequence[tuple[Rule, Pattern]], policy: Policy, call: Call) -> Rule | None:
    if part.fixed or not part.words:
        return None
    for path in part.writes:
        if not any(
            pattern.kind == "write"
            and pattern.path is not None
            and pattern.path.matches(path, call.roots, policy.home, wide=False)
            for _, pattern in patterns
        ):
            return None
    # A rule speaks about words; an argument that is not known is none.
    words = [word for word in part.words if word is not None]
    if len(words) != len(part.words):
        return None
    for rule, pattern in patterns:
        if pattern.matches_tool(call.tool) and pattern.matches_words(words):
            return rule
    return None


def offer(policy: Policy, call: Call, judgement: Judgement) -> str | None:
    """The rule that would let this command run next time, if one rule can."""
    if judgement.unproven is not None or judgement.dangers or judgement.computed:
        return None
    open_parts = [
        part
        for part in judgement.parts
        if part.reason is not None
        and allowed_by(active_rules(policy, "allow"), policy, call, _only(judgement, part)) is None
    ]
    if not open_parts or any(part.soft or part.fixed or part.writes for part in open_parts):
        return None
    texts: set[str | None] = set()
    for part in open_parts:
        words = offered_words(part.words)
        texts.add(None if words is None else words_rule(words[0], rest=words[1]))
    if len(texts) != 1:
        return None
    text = texts.pop()
    rule = Rule("allow", text or "", "session")
    rules = (*active_rules(policy, "allow"), rule)
    return text if text is not None and allowed_by(rules, policy, call, judgement) is not None else None


def _only(judgement: Judgement, part: Part) -> Judgement:
    return Judgement(judgement.started, judgement.unread, (part,), None, judgement.dangers, judgement.place)
