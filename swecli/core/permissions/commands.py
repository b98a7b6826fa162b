"""Decision about shell commands: what they start, what they touch, and whether they are proven read-only."""

from __future__ import annotations

import contextlib
import posixpath
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.permissions.facts import Reach
from swecli.core.permissions.paths import inside, is_secret_in, within_text
from swecli.core.permissions.rules import (
    NO_READ_RULES,
    Pattern,
    ReadRules,
    RuleError,
    active_rules,
    is_valid,
    matches_tool,
    path_rule,
    read_rules,
    rule_pattern,
    valid_pattern,
    words_rule,
)
from swecli.core.permissions.shell.brought_back import BroughtBack, brought_back
from swecli.core.permissions.shell.destructive import Danger, Place, dangers, is_temporary, place_of
from swecli.core.permissions.shell.lexer import read_script
from swecli.core.permissions.shell.offers import NoOffer, Offered, offered_words
from swecli.core.permissions.shell.proof import REPOSITORY_RUNS, Part, prove
from swecli.core.permissions.shell.readers import (
    Showing,
    git_content,
    is_given_names,
    naming,
    showing,
    tells_by_words,
    unseen,
)
from swecli.core.permissions.shell.scan import ScanError, ScanWord
from swecli.core.permissions.shell.started import Started, started, started_with
from swecli.core.permissions.shell.subcommands import may_match, mentions, without_global_options
from swecli.core.permissions.shell.syntax import UnprovenError
from swecli.core.permissions.types import Call, Policy, Rule, restores_nothing
from swecli.figures import cut
from swecli.lazy_pattern import lazy_pattern

_QUOTED = lazy_pattern(r"""["']([^"'\n]{1,200})["']""")
"""Quoted text in code for an interpreter, which may be a file name."""
_BLANK = lazy_pattern(r"[\s,;()]+")
"""What separates the words of code."""
_OF_PROCESS = lazy_pattern(r"/+proc/[^/]*/(?:task/[^/]*/)?(?:(cwd)|root)(?=/|$)")
"""The directory of a process, or the root of its file system, as a path."""


class Judgement(Struct, frozen=True):
    """Findings about a command. ``unread`` is why its commands could not be found, ``unproven`` why the whole is not
    proven; ``parts`` is then empty."""

    started: tuple[Started, ...]
    unread: str | None
    parts: tuple[Part, ...]
    unproven: str | None
    dangers: tuple[Danger, ...]
    place: Place
    rules: ReadRules = NO_READ_RULES
    """The user's rules about reading."""
    back: BroughtBack | None = None
    """What it may read that git brings back meanwhile."""
    by_proof: tuple[Started, ...] = ()
    """The commands whose words only the proof knows, as those of loops, and what they wrap."""

    @property
    def proven(self) -> bool:
        return self.unproven is None and all(part.reason is None for part in self.parts)

    @property
    def reason(self) -> str:
        """The first objection, as a clause."""
        return self.unproven or next((part.reason for part in self.parts if part.reason is not None), "")

    @property
    def only_reads_elsewhere(self) -> bool:
        """Whether every objection is to what the command reads, not to what it does."""
        return self.unproven is None and not self.effect

    @property
    def effect(self) -> str:
        """The first objection to what it does, not to what it reads, as a clause; empty if there is none."""
        objections = (part.effect if part.soft else part.reason for part in self.parts)
        return self.unproven or next((objection for objection in objections if objection), "")

    @property
    def opaque(self) -> bool:
        """Whether it may run something that command rules can't see."""
        return self.computed or self.unproven is not None or any(part.fixed and part.reason for part in self.parts)

    @property
    def has_computed_words(self) -> bool:
        """Whether a word of a command is known only when it runs."""
        return self.computed or any(not word.known for item in self.started for word in item.words)

    @property
    def computed(self) -> bool:
        """Whether it runs something whose name or text is computed."""
        return self.unread is not None or any(not item.name or item.computed for item in self.started)


def judge(policy: Policy, call: Call) -> Judgement:
    command = call.effects.command or ""
    known = (("PWD", call.cwd), *((("HOME", policy.home),) if policy.home else ()))
    rules = read_rules(policy, call.roots, call.tool)
    items: tuple[Started, ...] = ()
    unread: str | None = None
    try:
        items = started(command, known)
    except ScanError as error:
        unread = str(error)
    place = place_of(items, policy.facts, call.cwd, call.roots, policy.home, policy.own_dirs)

    def restores(paths: Sequence[str]) -> bool:
        return policy.restores(paths, command)

    place = replace(place, restores=restores, undoes=policy.restores is not restores_nothing)
    parts: tuple[Part, ...] = ()
    unproven: str | None = None
    try:
        parts = prove(read_script(command), policy.facts, call.cwd, call.roots, policy.home, rules)
    except UnprovenError as error:
        unproven = error.reason
    back = (
        None if unproven is None and all(part.reason is None for part in parts) else brought_back(items, rules, place)
    )
    if back is not None and unproven is None:
        parts = (*parts, Part((), back.reason, soft=True, fixed=True, git_knows=back.git_knows, rule=back.rule))
    by_proof = _known_by_proof(parts) if any(not word.known for item in items for word in item.words) else ()
    return Judgement(items, unread, parts, unproven, tuple(dangers(items, place)), place, rules, back, by_proof)


def _known_by_proof(parts: Sequence[Part]) -> tuple[Started, ...]:
    proven = dict.fromkeys(part.words for part in parts if part.reason is None and part.words)
    return tuple(item for words in proven for item in started_with(words))


# --- rules ---------------------------------------------------------------------------------------------------------


def forbids(rule: Rule, policy: Policy, call: Call, judgement: Judgement) -> bool:
    """Whether a deny or ask rule matches anything the command would do."""
    pattern = valid_pattern(rule)
    if pattern is None:
        return False
    if pattern.kind == "command":
        pattern = pattern.at_home(policy.home)
        items = (*judgement.started, *judgement.by_proof)
        return pattern.matches_tool(call.tool) and any(words_match(pattern, item) for item in items)
    if (
        pattern.kind in ("read", "write")
        and pattern.path is not None
        and (not pattern.tools or call.tool in pattern.tools)
    ):
        writing = pattern.kind == "write"
        paths = _named_paths(judgement, writing_only=writing)
        return any(pattern.path.matches(path, call.roots, policy.home, wide=True) for path in paths)
    return False


def words_match(pattern: Pattern, item: Started) -> bool:
    """Whether a deny or ask rule matches a simple command, as far as its words are known."""
    # A computed word may expand to nothing.
    words = [word.text for word in item.words if word.known or word.text]
    if any(pattern.matches_words(form, wide=True) for form in (words, [item.name, *words[1:]])):
        return True
    argv = [word.text if word.known or word.text else None for word in item.words[1:]]
    return may_match(pattern, item.name, argv)


def hides(rule: Rule, policy: Policy, call: Call, judgement: Judgement) -> bool:
    """Whether a deny rule about commands may match a part of the command that is computed, or that only bash can
    follow and that has the rule's words."""
    pattern = valid_pattern(rule)
    if pattern is None or pattern.kind != "command" or not pattern.matches_tool(call.tool):
        return False
    pattern = pattern.at_home(policy.home)
    if judgement.computed or any(_may_become(pattern, item) for item in judgement.started):
        return True
    return judgement.opaque and mentions(pattern, call.effects.command or "")


def _may_become(pattern: Pattern, item: Started) -> bool:
    """Whether a rule may match a simple command once its computed words are known."""
    if all(word.known and not word.glob for word in item.words):
        return False
    argv: list[str | None] = []
    for word in item.words[1:]:
        is_setting = word.text.startswith("-") and "=" in word.text
        argv.append(word.text if is_setting or (word.known and not word.glob) else None)
    return may_match(pattern, item.name, argv, computed=True)


def _named_paths(judgement: Judgement, *, writing_only: bool) -> set[str]:
    """Paths that the command's words may mean, as written and with links followed."""
    meant: set[ScanWord] = set()  # a wrapper and what it starts have the same words
    for item in judgement.started:
        words = list(item.found.writes)
        if not writing_only:
            words += (*item.found.reads, *item.found.settings)
        if not (writing_only and judgement.proven):
            words += naming(item)
        words += [ScanWord(text) for word in naming(item) for text in _QUOTED.findall(word.text)]
        if not tells_by_words(item):
            code = (word.text for word in naming(item) if len(word.text) < 1_000)
            words += [ScanWord(text) for each in code if _BLANK.search(each) for text in _BLANK.split(each)]
        for word in words:
            for text in (
                *(word.text, word.text.partition("=")[2], word.text.rpartition(":")[2]),
                word.text.partition("=")[2][1:],
                *(word.text[2:], word.text[1:]),
            ):
                if text and len(text) < 1_000 and "\n" not in text:
                    meant.add(ScanWord(text, word.known, word.glob))
    return {path for word in meant for path in _meanings(word, judgement.place)}


def named_secret(judgement: Judgement, roots: Sequence[str]) -> str | None:
    names = judgement.place.facts.secret_names
    return next(
        (path for path in sorted(_named_paths(judgement, writing_only=False)) if is_secret_in(path, roots, names)), None
    )


_CHANGE_METADATA = frozenset(("chmod", "chown", "chgrp", "chattr", "setfacl", "setfattr", "xattr"))
_SIGNAL = frozenset(("kill", "renice", "fuser"))


def beyond_landlock(judgement: Judgement) -> str | None:
    """Why Landlock alone would not contain a command or would break it, as a clause: it does not restrict signals or
    changes of mode and owner outside, and it blocks git in .git."""
    place = judgement.place
    for item in judgement.started:
        if item.name in _SIGNAL:
            return f"{item.name} acts on other processes"
        if item.name == "git":
            return "Landlock does not let git write in .git"
        for word in item.words[1:] if item.name in _CHANGE_METADATA else ():
            if not word.known or any(inside(path, place.roots) is None for path in _meanings(word, place)):
                return f"{item.name} may change files outside the workspace, which Landlock does not prevent"
    return None


def reads_elsewhere(policy: Policy, call: Call, judgement: Judgement) -> bool:
    """Whether the command reads something outside the workspace or secret. A full sandbox has a ``/tmp`` of its own:
    what is not in the real one, or the command writes there itself, is nothing else."""
    if not any(part.soft for part in judgement.parts):
        return False
    place = judgement.place
    words = [word for item in judgement.started for word in (*item.words[1:], *item.found.reads)]
    written = {word.text for item in judgement.started for word in item.found.writes if word.known and not word.glob}
    named = {word.text for word in words if word.known and not word.glob and word.text.startswith("/tmp/")}
    plain = (path for path in sorted(named | written) if path == posixpath.normpath(path))
    own = [path for path in plain if path in written or is_temporary(path, place.facts, place.roots)]
    if policy.sandbox != "full" or not own:
        return True
    roots = (*call.roots, *(path for path in own if inside(path, ("/tmp",))))
    parts = prove(read_script(call.effects.command or ""), policy.facts, call.cwd, roots, policy.home, judgement.rules)
    return any(part.soft for part in parts)


def _meanings(word: ScanWord, place: Place) -> set[str]:
    paths: set[str] = set()
    for base in place.bases:
        text = _OF_PROCESS.sub(lambda match, base=base: base if match[1] else "", word.text) or "/"
        path = within_text(text, base, place.home)
        paths |= {path, place.resolve(posixpath.join(base, text))}
        if word.glob or not word.known:
            paths |= _matches(path, place)
    return paths


_MOST_MATCHES = 2_000
"""Paths of one wildcard that are looked at."""


def _matches(path: str, place: Place) -> set[str]:
    """The paths that wildcards in any part of a path stand for; an unknown last part stands for all names."""
    paths = [""]
    *folders, last = path.split("/")[1:]
    for name in (*folders, last or "*"):
        if not any(sign in name for sign in "*?["):
            paths = [f"{each}/{name}" for each in paths]
            continue
        names = {each: place.facts.names(each or "/") or () for each in paths}
        paths = [f"{each}/{entry}" for each in paths for entry in names[each] if fnmatchcase(entry, name)]
        paths = paths[:_MOST_MATCHES]
    return {path for each in paths for path in (each, place.resolve(each))}


def allowed_by(rules: Sequence[Rule], policy: Policy, call: Call, judgement: Judgement) -> Rule | None:
    """The rule that lets the command run: rules or the proof cover every part of it."""
    patterns: list[tuple[Rule, Pattern]] = []
    rights = any(rule.scope == "command" for rule in rules) and not _leaves(policy, call, judgement)
    for rule in rules:
        if rule.scope == "command" and not rights:
            continue
        try:
            patterns.append((rule, rule_pattern(rule).at_home(policy.home)))
        except RuleError:
            continue
    tools = ((rule, pattern) for rule, pattern in patterns if pattern.kind == "tool" and rule.scope != "command")
    whole = next((rule for rule, pattern in tools if pattern.matches_tool(call.tool)), None)
    if whole is not None:
        return whole
    if judgement.unproven is not None:
        return None
    used: Rule | None = None
    for part in judgement.parts:
        if part.reason is None:
            continue
        rule = _part_rule(part, patterns, policy, call, judgement.place)
        if rule is None:
            return None
        used = used or rule
    return used


def covered_by_file(rules: Sequence[Rule], policy: Policy, call: Call, judgement: Judgement) -> bool:
    """Whether the user's command or skill would let the command run if its rights were not limited: then a sandbox
    that contains the command suffices."""
    if not any(rule.scope == "command" for rule in rules):
        return False
    unlimited = [replace(rule, scope="session") if rule.scope == "command" else rule for rule in rules]
    return allowed_by(unlimited, policy, call, judgement) is not None


def _leaves(policy: Policy, call: Call, judgement: Judgement) -> bool:
    """Whether a word of the command may name a place outside the workspace, or a file with secrets."""
    known, names = (*call.roots, *policy.readable), judgement.place.facts.secret_names
    paths = _named_paths(judgement, writing_only=False)
    return any(inside(path, known) is None or is_secret_in(path, call.roots, names) for path in paths)


def _spells(part: Part, words: Sequence[str], pattern: Pattern, place: Place) -> bool:
    """Whether a rule is as narrow as the one that swecli would offer for this part, or the part only edits files of
    the workspace."""
    if part.edit is not None:
        return True
    offered = offered_words(words, lambda word: _is_script(word, place))
    return isinstance(offered, Offered) and pattern.words[: len(offered.words)] == offered.words


def _part_rule(
    part: Part, patterns: Sequence[tuple[Rule, Pattern]], policy: Policy, call: Call, place: Place
) -> Rule | None:
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
    # Rules match words, so an unknown argument matches none.
    words = [word for word in part.words if word is not None]
    if len(words) != len(part.words):
        return None
    for rule, pattern in patterns:
        matches = pattern.matches_tool(call.tool) and (pattern.kind == "tool" or pattern.matches_words(words))
        if matches and (rule.scope != "command" or _spells(part, words, pattern, place)):
            return rule
    return None


class Withheld(Struct, frozen=True):
    """A file that a command may show without naming it, and that a rule about reading covers. ``reason`` is a
    sentence; ``certain``: it is among what the command reads now; ``maskable``: a sandbox can hide all such files."""

    rule: Rule
    reason: str
    certain: bool = True
    git_knows: bool = False
    maskable: bool = True


def withheld(judgement: Judgement) -> Withheld | None:
    """What the command may show although a rule about reading covers it; certain findings first."""
    if judgement.proven:
        return None
    back = judgement.back
    if back is not None and back.rule is not None:
        return Withheld(back.rule, f"{back.reason}.", certain=False, git_knows=back.git_knows, maskable=False)
    readers = sorted(_unproven_readers(judgement), key=lambda each: not each.certain)
    ruled = [part for part in judgement.parts if part.rule is not None]
    maskable = all(each.maskable for each in readers) and all(part.words[:1] != ("git",) for part in ruled)
    for part in ruled:
        if part.rule is not None:
            return Withheld(part.rule, f"{part.reason}.", git_knows=part.git_knows, maskable=maskable)
    if not readers:
        return None
    # Where the proof objects to secrets only, it knows that no rule covers what is read as far as it can tell.
    certain = readers[0].certain and not judgement.only_reads_elsewhere
    return Withheld(readers[0].rule, readers[0].reason, certain, maskable=maskable)


def unfollowed(judgement: Judgement) -> Withheld | None:
    """What a command may read without its words telling so; those that no sandbox can mask come first."""
    rule = next(iter(judgement.rules.rules), None)
    if rule is None or judgement.proven:
        return None
    objections = sorted(unseen(_unproven(judgement), judgement.rules), key=lambda each: each.maskable)
    if objections:
        return Withheld(rule, objections[0].reason, certain=False, maskable=objections[0].maskable)
    if judgement.unread is None:
        return None
    return Withheld(rule, f"It may read what your rule {rule.text} covers: {judgement.unread}.", certain=False)


def has_covered_files(judgement: Judgement) -> bool:
    """Whether there may be a file that a rule about reading covers: such a rule may be about other projects."""
    place, rules = judgement.place, judgement.rules
    if any(place.facts.kind(top) != "missing" for _, top in rules.elsewhere()):
        return True
    for root in place.roots:
        secrets = place.facts.secrets_below(root, Reach(links=True), rules)
        if secrets is None or any(rules.covering(path) or rules.covering(place.resolve(path)) for path in secrets):
            return True
    return False


def _unproven_readers(judgement: Judgement) -> list[Showing]:
    """What the commands show that are not proven; the proof of the others knows the rules."""
    return list(showing(_unproven(judgement), judgement.rules, judgement.place))


def shows_history(judgement: Judgement) -> str:
    """The subcommand of a git command that may show what left the tree and is not proven to show no secret; empty if
    there is none."""
    return next((name for item in _unproven(judgement) if (name := git_content(item))), "")


def _unproven(judgement: Judgement) -> list[Started]:
    """The commands that are not proven to only read what may be read."""
    proven = {part.words for part in judgement.parts if part.reason is None}
    items = [item for item in judgement.started if tuple(word.text for word in item.words) not in proven]
    changing = any(item.name == "git" and not _reads(item, judgement, moved=False) for item in items)
    return [item for item in items if item.name != "git" or not _reads(item, judgement, moved=changing)]


_GIT_ELSEWHERE = frozenset(("-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--attr-source"))


def _reads(item: Started, judgement: Judgement, *, moved: bool) -> bool:
    """Whether a git command shows only what it may, whatever its settings for this call and its environment do.
    ``moved``: another git command of the line may change what it shows."""
    if is_given_names(item):
        return False
    words = [word.text for word in item.words]
    before = without_global_options("git", words[1:])
    elsewhere = any(word.partition("=")[0] in _GIT_ELSEWHERE for word in words[1 : 1 + before])
    place = judgement.place
    if elsewhere or not all(word.known and not word.glob for word in item.words) or len(place.bases) != 1:
        return False
    command = shlex.join(["git", *words[1 + before :]])
    try:
        script = read_script(command)
        parts = prove(script, place.facts, place.bases[0], place.roots, place.home, judgement.rules, moved=moved)
    except UnprovenError:
        return False
    return all(part.reason is None for part in parts)


class Offer(Struct, frozen=True):
    """``rules`` together would let a command run next time. ``note`` is a sentence: what else they allow or, without
    rules, why there are none."""

    rules: tuple[str, ...] = ()
    note: str = ""


def only_edits(rules: Sequence[Rule], policy: Policy, call: Call, judgement: Judgement) -> bool:
    """Whether everything neither proven nor allowed edits workspace files, and no rule forbids or asks about all edits.
    Names are judged as they are now, so a command that renames files must not also create some."""
    tight = (*active_rules(policy, "deny"), *active_rules(policy, "ask"))
    if judgement.unproven is not None or judgement.computed or any(matches_tool(rule, "edit_file") for rule in tight):
        return False
    kinds: list[str] = []
    for part in judgement.parts:
        if part.edit is not None and part.reason is not None:
            kinds.append(part.edit)
        elif part.reason is not None and allowed_by(rules, policy, call, _only(judgement, part)) is None:
            return False
    return bool(kinds) and (kinds.count("name") == 0 or (kinds.count("name") == 1 and "file" not in kinds))


_GIT_LOOKS = ("status", "diff", "log", "show")


def offer(policy: Policy, call: Call, judgement: Judgement) -> Offer:
    """The rules that would let this command run next time, if word rules can."""
    why = _why_no_rule(judgement)
    if why:
        return Offer(note=f"Can't be allowed in general: {why}.")
    known = active_rules(policy, "allow")
    offered: dict[str, str] = {}
    for part in judgement.parts:
        if part.reason is None or allowed_by(known, policy, call, _only(judgement, part)) is not None:
            continue
        if part.soft or part.fixed:
            return Offer(note=f"Can't be allowed in general: {part.reason}.")
        if None in part.words:
            return Offer(note="Can't be allowed in general: an argument is computed when it runs.")
        words = offered_words(part.words, lambda word: _is_script(word, judgement.place))
        if isinstance(words, NoOffer):
            return Offer(note=f"Can't be allowed in general: {words.why}.")
        if part.reason.startswith(REPOSITORY_RUNS) and part.words[1] in _GIT_LOOKS:
            # The objection is to the repository, and the next look at it would ask again.
            offered |= {words_rule(("git", name), rest=True): "" for name in _GIT_LOOKS}
            offered[words_rule(("git", "show"), rest=True)] = "all git status, diff, log and show commands"
        else:
            offered[words_rule(words.words, rest=words.rest)] = _also(words)
        for path in part.writes:
            if inside(path, call.roots) is None:
                return Offer(note=f"Can't be allowed in general: it writes {path}, outside the workspace.")
            offered[path_rule("Edit", path, call.roots)] = f"all edits to {posixpath.basename(path)}"
    rules = tuple(offered)
    added = tuple(Rule("allow", text, "session") for text in rules)
    if not all(map(is_valid, added)) or allowed_by((*known, *added), policy, call, judgement) is None:
        return Offer(note="Can't be allowed in general: a rule cannot spell this command.")
    also = ", and ".join(dict.fromkeys(text for text in offered.values() if text))
    return Offer(rules, f"Covers {also}." if also else "Covers exactly this command.")


def _why_no_rule(judgement: Judgement) -> str:
    if judgement.unproven is not None:
        return judgement.unproven
    if judgement.computed:
        return "part of it is computed when it runs"
    danger = next(
        (
            candidate
            for candidate in judgement.dangers
            if not candidate.spelled and (candidate.edits or not candidate.undone)
        ),
        None,
    )
    if danger is None:
        return ""
    if danger.lasting and danger.loss is not None:
        return f"/undo could not restore what it {danger.loss.what}"
    return "swecli always asks about this"


def _also(words: Offered) -> str:
    """What a rule covers besides this command, as the object of a sentence; empty if nothing."""
    name = cut(shlex.join(words.words), 60)
    if words.rest:
        return f"{name} with any arguments"
    return f"{words.script} even after it changes" if words.script else ""


def _is_script(word: str, place: Place) -> bool:
    """Whether a word names a workspace file, other than one with secrets."""
    facts = place.facts
    paths = [facts.resolve(within_text(word, base, place.home)) for base in place.bases]
    if any(is_secret_in(path, place.roots, facts.secret_names) for path in paths):
        return False
    return any(inside(path, place.roots) is not None and facts.kind(path) == "file" for path in paths) or (
        posixpath.splitext(word)[1] != "" and all(inside(path, place.roots) is not None for path in paths)
    )


def lifted(rules: Sequence[Rule], found: Sequence[Danger]) -> bool:
    """Whether the user's rules spell out every always-asking command; a broad one such as ``Bash(*)`` does not."""
    patterns: list[Pattern] = []
    for rule in (rule for rule in rules if rule.scope != "command"):
        with contextlib.suppress(RuleError):
            patterns.append(rule_pattern(rule))
    return all(
        danger.spelled
        and any(
            pattern.kind == "command" and pattern.words[: len(danger.spelled)] == danger.spelled for pattern in patterns
        )
        for danger in found
    )


def _only(judgement: Judgement, part: Part) -> Judgement:
    return replace(judgement, parts=(part,), unproven=None)
