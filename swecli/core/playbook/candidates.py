"""From evidence to the sentence that it supports. Pure.

Sentences consist of commands that ran, error signatures, paths, names and the user's own words; no prose from a tool's
output can get into one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from swecli.core.playbook.bullet import LONGEST, PREFERENCES, Bullet, Expiry, Guard, Source, Trigger
from swecli.core.playbook.commands import is_usual, parsed
from swecli.core.playbook.evidence import Evidence
from swecli.core.playbook.likeness import words
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import printable_line

LONGEST_COMMAND: Final = 90
_SECTIONS: Final = {"test": "testing"}
_TOPICS: Final = {
    "test": ("test", "suite", "pytest", "spec", "green", "pass"),
    "lint": ("lint", "style", "check"),
    "types": ("type", "typecheck"),
    "format": ("format", "style"),
    "install": ("install", "dependency", "package", "setup"),
    "migrate": ("migration", "migrate", "database"),
    "build": ("build", "compile", "bundle"),
    "run": ("run", "start", "serve", "server"),
}
_ELSEWHERE: Final = lazy_pattern(r"(?:^|[\s='\":`(,@])(?:/(?:home|Users|root|tmp|var|private|mnt)/|~/|[A-Za-z]:\\)")
_OPENING: Final = lazy_pattern(
    r"^(?:(?:no|nope|wrong|stop|actually|hey|ok|okay|please|well|and|but|so|sorry)\b[\s,.!:;-]*)+", re.IGNORECASE
)
_MOST_KEYWORDS: Final = 14


def candidate(evidence: Evidence, source: Source, cwd: str, holds: Callable[[Expiry], bool]) -> Bullet | None:
    """The complete bullet for a piece of evidence; None if it supports none. ``holds`` checks whether files with these
    relative names exist and contain the symbol."""
    make = _MAKERS[evidence.what]
    bullet = make(_local(evidence, cwd))
    if bullet is None or not bullet.content or len(bullet.content) > LONGEST or _ELSEWHERE.search(bullet.content):
        return None
    paths = [path for path in (*bullet.trigger.paths, *_files_of(bullet.guard.command)) if holds(Expiry((path,)))]
    bullet.evidence = (source,)
    if not bullet.expiry.paths:
        bullet.expiry = Expiry(tuple(dict.fromkeys(paths))[:3], bullet.expiry.symbol)
    declared = _declared(bullet.guard.command)
    if not bullet.expiry.paths and declared.paths and holds(declared):
        bullet.expiry = declared
    return bullet


_RUNNERS: Final = (
    (lazy_pattern(r"make ([A-Za-z][\w.-]*)"), "Makefile", "{}:"),
    (lazy_pattern(r"just ([A-Za-z][\w-]*)"), "justfile", "{}"),
    (lazy_pattern(r"task ([A-Za-z][\w:-]*)"), "Taskfile.yml", "{}:"),
    (lazy_pattern(r"(?:npm|pnpm|yarn|bun) run ([\w:.-]+)"), "package.json", '"{}"'),
    (lazy_pattern(r"tox -e ([\w.-]+)"), "tox.ini", "{}"),
)


def _declared(command: str) -> Expiry:
    """Where a task runner's target is declared, and as what; empty for other commands."""
    for pattern, file, form in _RUNNERS:
        if match := pattern.match(" ".join(parsed(command).words)):
            return Expiry((file,), form.format(match[1]))
    return Expiry()


def _local(evidence: Evidence, cwd: str) -> Evidence:
    """Commands without the project's absolute path, which differs elsewhere."""

    def shortened(command: str) -> str:
        for prefix in (f"cd {cwd} && ", f"cd {cwd}; ", f"cd '{cwd}' && ", f'cd "{cwd}" && '):
            command = command.removeprefix(prefix)
        return command.replace(f"{cwd}/", "")

    return replace(evidence, failed=tuple(map(shortened, evidence.failed)), worked=shortened(evidence.worked))


def _files_of(command: str) -> tuple[str, ...]:
    return tuple(word for word in parsed(command).operands if not word.startswith(("/", "~")) and ":" not in word)


def _fits(*commands: str) -> bool:
    """Whether commands fit into a sentence: one short line of plain text each."""
    return all(
        printable_line(command) == command and command and len(command) <= LONGEST_COMMAND and "`" not in command
        for command in commands
    )


def _keywords(evidence: Evidence, *commands: str) -> tuple[str, ...]:
    keywords: list[str] = []
    for command in commands:
        about = parsed(command)
        keywords += [*_TOPICS.get(about.intent, ()), *sorted(words(" ".join(about.parts)))]
    keywords += words(evidence.task)[:8]
    return _kept(keywords)


def _kept(keywords: Iterable[str]) -> tuple[str, ...]:
    """Words that may be stored, without long ones and ones that look like keys."""
    plain_words = (word for word in keywords if len(word) <= 16 and (word.isalpha() or len(word) <= 6))
    return tuple(dict.fromkeys(plain_words))[:_MOST_KEYWORDS]


def _section(command: str) -> str:
    return _SECTIONS.get(parsed(command).intent, "shell_commands")


def _fixed(evidence: Evidence) -> Bullet | None:
    failed, worked = evidence.failed, evidence.worked
    if not _fits(worked, *failed):
        return None
    errors = evidence.errors or ("",) * len(failed)
    for tried, why in ((failed, errors), (failed, ()), (failed[-1:], errors[-1:]), (failed[-1:], ())):
        text = f"{_failing(tried, why)}; use `{worked}`."
        if len(text) <= LONGEST:
            told = tuple(dict.fromkeys(filter(None, errors)))
            trigger = Trigger((), failed, told, _keywords(evidence, worked))
            return Bullet("", _section(worked), text, type="command", trigger=trigger, guard=Guard(command=worked))
    return None


def _failing(commands: Sequence[str], errors: Sequence[str]) -> str:
    """ "These commands fail here", each with its own error; a single or shared error follows at the end."""
    verb = "fails" if len(commands) == 1 else "fail"
    shared = len(set(errors)) == 1 and errors[0]
    behind = f" ({errors[0]})" if shared else ""
    own = [f" ({error})" if error and not shared else "" for error in errors] or [""] * len(commands)
    names = (f"`{command}`{error}" for command, error in zip(commands, own, strict=True))
    return f"{' and '.join(names)} {verb} here{behind}"


def _changed(evidence: Evidence) -> Bullet | None:
    before, worked = evidence.failed[0], evidence.worked
    if not _fits(before, worked):
        return None
    text = f"Run `{worked}` rather than `{before}`: the user changed it."
    trigger = Trigger((), (before,), (), _keywords(evidence, worked))
    return Bullet("", _section(worked), text, type="command", trigger=trigger, guard=Guard(command=worked))


def _corrected(evidence: Evidence) -> Bullet | None:
    statement = printable_line(_OPENING.sub("", printable_line(evidence.words)))
    if not statement or len(statement.split()) < 2:
        return None
    statement = f"{statement[0].upper()}{statement[1:]}".rstrip(".! ")
    about = next((f"`{subject}`" for subject in (*evidence.failed, *evidence.paths) if _fits(subject)), "")
    text = f"{statement}."
    if about and about not in text and len(text) + len(about) + 22 <= LONGEST:
        text = f"About {about} the user said: {text}"
    trigger = Trigger(evidence.paths, evidence.failed, (), _kept(words(f"{statement} {evidence.task[:300]}")))
    guard = Guard(path=evidence.paths[0]) if evidence.paths else Guard()
    made = Bullet("", PREFERENCES, text, type="preference", trigger=trigger, guard=guard)
    if evidence.failed or evidence.paths:  # a word with a refusal may be about this one call only
        made.status = "offered"
    return made


def _edits(evidence: Evidence) -> Bullet | None:
    path = evidence.paths[0]
    text = f"Edits of `{path}` did not apply {evidence.count} times; read its current lines right before each edit."
    return _about_path("file_operations", text, evidence, "gotcha")


def _taken_back(evidence: Evidence) -> Bullet | None:
    text = f"The user undid a change of `{evidence.paths[0]}`; ask before changing it again."
    return _about_path("file_operations", text, evidence, "gotcha")


def _searched(evidence: Evidence) -> Bullet | None:
    symbol = f" (`{evidence.symbol}`)" if evidence.symbol else ""
    text = f"A search for `{evidence.words}` finds nothing; its code is in `{evidence.paths[0]}`{symbol}."
    return _about_path("code_navigation", text, evidence, "location") if _fits(evidence.words) else None


def _read_again(evidence: Evidence) -> Bullet | None:
    path, symbol = evidence.paths[0], evidence.symbol
    text = f"`{symbol}` took {evidence.count} reads of `{path}` to find; search for its name, the file is long."
    return _about_path("code_navigation", text, evidence, "location")


def _about_path(section: str, text: str, evidence: Evidence, kind: str) -> Bullet | None:
    path = evidence.paths[0]
    if not _fits(path):
        return None
    keywords = _kept(words(f"{path} {evidence.words} {evidence.symbol} {evidence.task[:300]}"))
    bullet = Bullet("", section, text, trigger=Trigger((path,), keywords=keywords))
    bullet.type = "location" if kind == "location" else "gotcha"
    bullet.guard, bullet.expiry = Guard(path=path), Expiry((path,), evidence.symbol)
    return bullet


def _timed_out(evidence: Evidence) -> Bullet | None:
    worked = evidence.worked
    text = f"`{worked}` takes about {evidence.count} s here; give it a timeout above that or run it in the background."
    trigger = Trigger((), (worked,), (), _keywords(evidence, worked))
    made = Bullet("", _section(worked), text, type="gotcha", trigger=trigger, guard=Guard(command=worked))
    return made if _fits(worked) else None


def _turned_green(evidence: Evidence) -> Bullet | None:
    """Which check covers which file, if neither its name nor convention shows that."""
    worked, paths = evidence.worked, evidence.paths
    if len(paths) > 2 or not _fits(worked, *paths) or is_usual(worked) or _named_after(worked, paths):
        return None
    text = (
        f"`{worked}` checks {' and '.join(f'`{path}`' for path in paths)}: "
        "it failed before a change and passed after it."
    )
    trigger = Trigger(paths, (), (), _keywords(evidence, worked, *paths))
    return Bullet("", _section(worked), text, type="command", trigger=trigger, guard=Guard(command=worked))


def _named_after(command: str, paths: Sequence[str]) -> bool:
    """Whether a check's name reveals which of these files it covers, or names none of them."""
    targets = {part for word in parsed(command).operands for part in words(word)}
    return not targets or any(set(words(path.rpartition("/")[2].partition(".")[0])) <= targets for path in paths)


_MAKERS: Final[dict[str, Callable[[Evidence], Bullet | None]]] = {
    "fixed": _fixed,
    "changed by the user": _changed,
    "corrected by the user": _corrected,
    "edit did not apply": _edits,
    "taken back": _taken_back,
    "searched in vain": _searched,
    "read again": _read_again,
    "timed out": _timed_out,
    "turned green": _turned_green,
}
