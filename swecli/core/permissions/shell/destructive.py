"""Commands that destroy, escape or persist: most always ask, a few are refused."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase, translate
from functools import cache
from itertools import takewhile

from msgspec import Struct

from swecli.core.permissions.facts import BlastRadius, FileFacts
from swecli.core.permissions.paths import inside, is_own
from swecli.core.permissions.protected import protected_reason
from swecli.core.permissions.shell.losses import REMOTE, Extent, Loss, beyond_files, counted, extent, of_git, of_rsync
from swecli.core.permissions.shell.offers import spelled_out
from swecli.core.permissions.shell.outputs import Output, copied, counts, in_place, outputs
from swecli.core.permissions.shell.programs import PROGRAMS
from swecli.core.permissions.shell.scan import ScanWord, is_long_option
from swecli.core.permissions.shell.started import Started
from swecli.core.permissions.shell.subcommands import program, without_global_options
from swecli.core.permissions.shell.tables import tables
from swecli.core.permissions.shell.unpacking import unpacking
from swecli.core.permissions.shell.versions import tells_about_itself
from swecli.figures import cut, plural
from swecli.lazy_pattern import lazy_pattern

MAX_SHOWN = 20
_LONGEST_PATTERN = 1_000
"""Characters of a wildcard that is expanded."""


def matching(path: str, facts: FileFacts) -> list[str]:
    """Paths that a wildcard in the last name matches; the path itself if none, as in the shell."""
    folder, _, name = path.rpartition("/")
    names = facts.names(folder or "/")
    if names is None or not 0 < len(name) <= _LONGEST_PATTERN:
        return [path]
    hidden = name.startswith(".")
    matches = [each for each in names if fnmatchcase(each, name) and (hidden or not each.startswith("."))]
    return [posixpath.join(folder or "/", each) for each in sorted(matches)] or [path]


def blast_radius_lines(found: Extent, *, filtered: bool = False) -> tuple[str, ...]:
    """One line with count and bytes, then the paths, for people. ``filtered``: only part of it is meant."""
    shown = found.paths[:MAX_SHOWN]
    more = [f"… and {len(found.paths) - len(shown):,} more"] if len(found.paths) > len(shown) else []
    summary = _summary(found.amount, bool(found.there))
    return (f"a part of {summary}" if filtered and found.there else summary, *shown, *more)


def _summary(total: BlastRadius, anything: bool) -> str:
    if not anything:
        return "None of it exists now."
    least = "" if total.whole else "at least "
    files = plural(total.files, "file")
    folders = f" in {plural(total.folders, 'folder')}" if total.folders else ""
    return f"{least}{files}{folders}, {plural(total.size, 'byte')}"


_DEVICES = lazy_pattern(r"/dev/(null|stdout|stderr|stdin|tty|fd/\d+)")
_CONNECTION = lazy_pattern(r"/dev/(?:tcp|udp)/([^/]+)/")
_IN_PLACE = frozenset(("sed", "perl", "ruby"))

_GIT_RUNS = lazy_pattern(
    r"core\.(fsmonitor|pager|editor|sshcommand|askpass|hookspath|gitproxy|alternaterefscommand)|pager\..+|alias\..+"
    r"|sequence\.editor|diff\.(external|.+\.(command|textconv))|(difftool|mergetool|guitool|browser|man)\..+\.(cmd|path)"
    r"|filter\..+\.(clean|smudge|process)|merge\..+\.driver|gpg\.(.+\.)?(program|defaultkeycommand)|credential\.(.+\.)?helper"
    r"|interactive\.difffilter|uploadpack\.packobjectshook|remote\..+\.(uploadpack|receivepack|vcs)"
    r"|protocol\.(.+\.)?allow|include\.path|includeif\..+\.path|trailer\..+\.(cmd|command)|submodule\..+\.update"
    r"|init\.templatedir|sendemail\..+|(web|help)\.browser|tar\..+\.command|hook\..+\.command|imap\.tunnel|instaweb\.httpd",
    re.IGNORECASE,
)
"""Keys of git's settings whose value is a program, or leads to one."""
_GIT_RUNS_NOTHING = frozenset(("", "cat", "less", "true", "false", ":", "0", "/dev/null"))
_FIND_ACTIONS = frozenset(("-delete", "-exec", "-execdir", "-ok", "-okdir"))


class Danger(Struct, frozen=True):
    """``reason`` is a sentence. ``refuse``: no rule or mode lifts it. ``spelled``: only an allow rule beginning with
    these very words lifts it. ``loss`` is the predicted loss, if known. ``edits``: it only changes the content of
    files, which a command proven to be an edit may. ``undone``: /undo would restore all of it, so it is worth a warning
    but no question of its own. ``lasting``: it asks only because /undo could not restore the ``loss``. ``harmless``: it
    warns of nothing, but no sandbox could run it. ``confined``: a full sandbox, which has a ``/tmp`` of its own, has
    nothing to lose there."""

    reason: str
    refuse: bool = False
    evidence: tuple[str, ...] = ()
    spelled: tuple[str, ...] = ()
    loss: Loss | None = None
    edits: bool = False
    undone: bool = False
    lasting: bool = False
    harmless: bool = False
    confined: bool = False


class Place(Struct, frozen=True):
    """Where a command would run. ``bases`` are the possible bases of relative names; ``resolve`` is that of the facts,
    asked once for each path. ``restores``: whether /undo could restore all of these paths afterwards."""

    facts: FileFacts
    resolve: Callable[[str], str]
    roots: tuple[str, ...]
    home: str
    own_dirs: tuple[str, ...]
    bases: tuple[str, ...]
    certain: bool = True
    """False if the script changes to an unknown directory."""
    restores: Callable[[Sequence[str]], bool] = lambda paths: False
    undoes: bool = False
    """Whether there is an /undo at all, so that a file which it could not restore is an exception."""


class _Lists(Struct, frozen=True):
    names: Mapping[str, frozenset[str]]
    interpreters: re.Pattern[str]
    always: Mapping[str, str]
    conditional: Mapping[str, tuple[tuple[str, ...], ...]]
    harmless: Mapping[str, tuple[tuple[str, ...], ...]]
    code: re.Pattern[str]


@cache
def _lists() -> _Lists:
    import tomllib
    from pathlib import Path

    data = tomllib.loads(Path(__file__).with_name("destructive.toml").read_text(encoding="utf-8"))
    always = {name: reason for reason, names in data["always"].items() for name in names.split()}
    conditional, harmless = (
        {name: tuple(tuple(entry.split()) for entry in entries) for name, entries in data[table].items()}
        for table in ("with", "harmless")
    )
    names = {name: frozenset(words.split()) for name, words in data["names"].items()}
    interpreters = re.compile(
        "|".join(re.escape(name) for name in names["interpreters"]) + r"|(python|pypy|perl|ruby|php|lua)[\d.]*"
    )
    return _Lists(
        names, interpreters, always, conditional, harmless, re.compile(data["code"]["pattern"].replace("\\\n", ""))
    )


def place_of(
    items: Sequence[Started], facts: FileFacts, cwd: str, roots: tuple[str, ...], home: str, own_dirs: tuple[str, ...]
) -> Place:
    """The place with every directory that the script may have changed to."""
    bases, certain = [cwd], True
    for item in items:
        if item.name not in ("cd", "pushd"):
            continue
        targets = [word for word in item.words[1:] if not word.text.startswith("-") or word.text == "-"]
        if len(targets) != 1 or not targets[0].known or targets[0].glob or targets[0].text == "-":
            certain &= bool(home) and not targets
            bases += [home] if home and not targets else []
            continue
        bases += [posixpath.normpath(posixpath.join(base, targets[0].text)) for base in bases[:8]]
    return Place(facts, cache(facts.resolve), roots, home, own_dirs, tuple(dict.fromkeys(bases)), certain)


def dangers(items: Iterable[Started], place: Place) -> list[Danger]:
    """All dangers of the commands, refusals first."""
    result: list[Danger] = []
    for item in items:
        result += _redirects(item, place)
        result += _of_command(item, place)
    return sorted(dict.fromkeys(result), key=lambda danger: not danger.refuse)


def _of_command(item: Started, place: Place) -> Iterable[Danger]:
    if item.computed:
        yield Danger(f"{item.name} runs text computed at run time.")
    if not item.name:
        yield Danger("The program's name is computed.")
        return
    lists, harmless = _lists(), _harmless_use(item)
    if item.name in lists.always or item.name.startswith("mkfs"):
        reason = f"{item.name} {lists.always.get(item.name, 'overwrites devices or whole files')}."
        if harmless is not None:
            reason = reason if "through" in reason else f"{item.name} cannot work in a sandbox."
            yield Danger(reason, spelled=_spelled(item) or (item.name, *harmless), harmless=True)
        else:
            yield Danger(reason, spelled=_spelled(item), loss=_loss(item, place))
    if item.name == "find":
        yield from _find(item, place)
    if item.name in lists.names["removers"] and harmless is None:
        yield from _remover(item, item.words[1:], place)
    if harmless is None and (
        _conditional(item, lists.conditional.get(item.name, ())) or _checks_out_files(item, place)
    ):
        if item.name in _IN_PLACE:
            yield _in_place(item, place)
        else:
            yield Danger(f"{_shown(item)} {_does(item)}.", loss=_loss(item, place))
    if item.name == "git":
        yield from _git_settings(item)
    yield from _outputs(item, place)
    if item.name in ("mv", "gmv"):
        yield from _moved_away(item, place)
    if lists.interpreters.fullmatch(item.name):
        yield from _interpreter(item, lists.code)
    protected = list(_protected(item, place))
    yield from protected or _protected_outputs(item, place)


def _deletion(affected: Extent, place: Place, *, some: bool = False) -> Loss | None:
    return counted("deletes", affected, place.facts, place.bases[0], some=some) if affected.there else None


def _loss(item: Started, place: Place) -> Loss | None:
    """What a command known to be dangerous would destroy, as far as it can be determined."""
    if item.name in ("git", "rsync"):
        words = list(item.words[1:])
        if not place.certain or len(place.bases) != 1 or not all(word.known and not word.glob for word in words):
            return None
        judge = of_git if item.name == "git" else of_rsync
        return judge([word.text for word in words], place.facts, place.bases[0])
    beyond = beyond_files(item.name)
    return Loss(beyond=beyond) if beyond else None


def _spelled(item: Started) -> tuple[str, ...]:
    if item.words[0].text != item.name or not all(word.known for word in item.words):
        return ()
    return spelled_out([word.text for word in item.words], item.name)


# --- arguments -----------------------------------------------------------------------------------------------------


def _conditional(item: Started, entries: Iterable[tuple[str, ...]]) -> bool:
    words = [word.text for word in _without_globals(item) if word.known or word.text]
    if item.name == "tar" and words and words[0].isalpha():
        words[0] = f"-{words[0]}"  # the first word holds options anyway
    plain = [word for word in words if not word.startswith("-") or word == "--"]
    if item.name == "git" and plain[:1] == ["clean"] and any(_is_option(word, "n", "--dry-run") for word in words):
        return False
    # Other programs have options with values before their subcommand.
    depth = 1 if item.name == "git" else 3
    return any(_entry_matches(entry, words, plain, depth) for entry in entries)


def _harmless_use(item: Started) -> tuple[str, ...] | None:
    """The first words, without the program, of a use that does no harm as far as its words show: it shows help, lists
    something or only says what it would do. None for any other use."""
    lists = _lists()
    if not all(word.known and not word.glob for word in item.words):
        return None
    words = [word.text for word in _without_globals(item)]
    if words in (["--help"], ["--version"], ["version"]) or tells_about_itself(item.name, words):
        return tuple(words) if item.name not in lists.names["starters"] else None
    if words[-1:] == ["--help"] and not _RUNS.intersection(words):
        names = all(re.fullmatch(r"[a-z][a-z0-9-]{0,30}", word) for word in words[:-1])  # of subcommands, not of files
        takes_files = item.name in lists.names["removers"] or lists.always.get(item.name, "").startswith("overwrites")
        starts = item.name in lists.names["starters"]
        return tuple(words) if names and len(words) <= 4 and not (takes_files or starts) else None
    uses = (_named_use(entry, words) for entry in lists.harmless.get(item.name, ()))
    return next((use for use in uses if use is not None), None)


_RUNS = frozenset(("run", "exec", "shell", "attach"))


def _named_use(entry: tuple[str, ...], words: list[str]) -> tuple[str, ...] | None:
    """The first words if an entry of the harmless uses covers these words."""
    named = tuple(token for token in entry if token[0] not in "-~!.")
    if tuple(words[: len(named)]) != named:
        return None
    rest = words[len(named) :]
    options = list(takewhile(lambda word: word != "--", rest))
    fits = True
    for token in entry[len(named) :]:
        if token == ".":
            fits &= len(words) == len(entry) - 1
        elif token.startswith("!"):
            fits &= not any(_token_matches(token[1:], word) for word in rest)
        elif token.startswith("~"):
            flags, _, letter = token[2:].partition("]")
            cluster = rf"-[{flags}{letter}]*{letter}[{flags}{letter}]*"
            fits &= any(re.fullmatch(cluster, word) is not None for word in options)
        else:
            fits &= token in options
    return (named or tuple(words[:1])) if fits else None


def _does(item: Started) -> str:
    """What a use of a program that is dangerous with these words does, as a clause without its subject."""
    if item.name == "gio" and item.words[1].text == "trash":
        return "moves files to the trash"
    if item.name in REMOTE:
        return "may change something on other machines"
    return "can destroy work or change what other programs do"


def _without_globals(item: Started) -> list[ScanWord]:
    words = list(item.words[1:])
    if item.name != "git":
        return words
    return words[without_global_options(item.name, [word.text for word in words]) :]


def _git_settings(item: Started) -> Iterable[Danger]:
    """Dangers of settings for one call that make git run a program, or read settings from elsewhere."""
    words = list(item.words[1:])
    while words and words[0].text.startswith("-"):
        option = words.pop(0).text
        if option.startswith(("--exec-path=", "--config-env")):
            yield Danger(f"git {option.partition('=')[0]} can make git run another program.")
        value = words.pop(0) if option in program("git").options.valued and words else None
        if option != "-c" or value is None:
            continue
        key, _, setting = value.text.partition("=")
        if not value.known:
            yield Danger("git -c gets a setting computed at run time.")
        elif _GIT_RUNS.fullmatch(key) is not None and setting not in _GIT_RUNS_NOTHING:
            yield Danger(f"git -c {key} can make git run another program.")


def _checks_out_files(item: Started, place: Place) -> bool:
    """Whether ``git checkout`` without ``--`` names a file or folder, whose changes it would discard."""
    words = [word.text for word in _without_globals(item)] if item.name == "git" else []
    if words[:1] != ["checkout"] or any(word.startswith(("-b", "-B", "--orphan")) for word in words):
        return False
    names = [word for word in words[1:] if word and not word.startswith("-")]
    paths = (posixpath.join(base, name) for base in place.bases for name in names)
    return any(place.facts.kind(place.resolve(path)) != "missing" for path in paths)


_INFORMATION = frozenset(("--version", "--help", "-h", "version", "help"))


def _entry_matches(entry: tuple[str, ...], words: list[str], plain: list[str], depth: int) -> bool:
    if entry == ("*",):
        return not words or not set(words) <= _INFORMATION
    head, rest = entry[0], entry
    if not head.startswith(("-", "~")) and ":" not in head:
        matches = _token(head).match
        position = next((at for at, word in enumerate(plain[:depth]) if matches(word)), None)
        if position is None:
            return False
        words = words[words.index(plain[position]) + 1 :]
        rest = entry[1:]
    return all(any(_token_matches(token, word) for word in words) for token in rest)


def _token_matches(token: str, word: str) -> bool:
    if _token(token).match(word):
        return True
    return token.startswith("--") and is_long_option(word, token.rstrip("*"))


@cache
def _token(token: str) -> re.Pattern[str]:
    """What matches all words that a token of the tables means, apart from shortened options."""
    if token.startswith("~["):
        flags, _, letter = token[2:].partition("]")
        return re.compile(rf"-[{flags}]*{re.escape(letter)}.*\Z")
    if token.startswith("~"):
        return re.compile(rf"-[^-]*{re.escape(token[1:].rstrip('*'))}.*\Z")
    return re.compile(translate(token))


def _is_option(word: str, letter: str, long: str) -> bool:
    return word == long or re.fullmatch(rf"-[a-zA-Z]*{letter}[a-zA-Z]*", word) is not None


def _shown(item: Started) -> str:
    return cut(" ".join(word.text if word.known else "…" for word in item.words), 80)


def acts_elsewhere(name: str) -> str:
    """What a program does that acts through another process, as a clause without its subject; empty for others."""
    does = _lists().always.get(name, "")
    return does if does.startswith("acts through") else ""


# --- removing ------------------------------------------------------------------------------------------------------


def _remover(item: Started, words: Sequence[ScanWord], place: Place) -> Iterable[Danger]:
    options = [word.text for word in words if word.text.startswith("-") and word.known]
    targets = [word for word in words if not word.text.startswith("-") or not word.known]
    recursive = any(_is_option(option, "[rR]", "") or is_long_option(option, "--recursive") for option in options)
    for target in targets:
        # The part that a variable prepends is unknown, so such a word asks instead of being refused.
        for path in _possible_paths(target, place):
            special = _never_removed(path, place)
            if special is not None:
                yield Danger(f"{item.name} would remove {path}: {special}.", refuse=True, evidence=(path,))
    if not targets:
        if item.found.words != item.words or item.name == "rm":
            yield Danger(f"{item.name} removes files named only at run time.")
        return
    reason = None
    if recursive:
        reason = "removes whole directories"
    elif any(not target.known or target.glob or "{}" in target.text for target in targets) or not place.certain:
        reason = "removes files named only at run time"
    elif any(inside(path, place.roots) is None for target in targets for path in _paths(target, place)):
        reason = "removes something outside the workspace"
    elif item.name != "rmdir" and item.name not in ("rm", "unlink"):
        reason = "removes files permanently"
    if item.name in _lists().names["trashers"]:
        reason = "moves files to the trash"
    if reason is not None:
        known = all(target.known and "{}" not in target.text for target in targets) and place.certain
        affected = extent(_removed(targets, place), place.facts)
        loss = _deletion(affected, place) if known else None
        plain = known and all(target.text.startswith("/tmp/") and not target.glob for target in targets)
        confined = plain and all(is_temporary(path, place.facts, place.roots) for path in affected.paths)
        evidence = _blast_radius(targets, affected)
        yield Danger(f"{_shown(item)} {reason}.", evidence=evidence, loss=loss, confined=confined)
    elif item.name != "rmdir":
        yield from _gone(item, "remove", _removed(targets, place), place)


def _moved_away(item: Started, place: Place) -> Iterable[Danger]:
    """The loss of files that a command moves out of the workspace: a full sandbox has a ``/tmp`` that ends with it."""
    copy = copied(item.name, item.words[1:])
    if copy is None or not all(word.known for word in (*copy[0], copy[1])):
        return
    if all(inside(path, place.roots) is None for path in _paths(copy[1], place)):
        yield from _gone(item, "move away", _removed(copy[0], place), place)


def _gone(item: Started, verb: str, paths: Sequence[str], place: Place) -> Iterable[Danger]:
    """The loss of files in the workspace that /undo could not restore as it would others."""
    files = [path for path in paths if inside(path, place.roots) is not None and place.facts.size(path)]
    if place.undoes and files and not place.restores(files):
        affected = extent(files, place.facts)
        reason = f"{item.name} would {verb} {_one_or_many(files)}, which /undo could not restore."
        yield Danger(reason, evidence=affected.there[:MAX_SHOWN], loss=_deletion(affected, place), lasting=True)


def _one_or_many(paths: Sequence[str]) -> str:
    return paths[0] if len(paths) == 1 else f"{len(paths)} files"


def is_temporary(path: str, facts: FileFacts, roots: Sequence[str]) -> bool:
    """Whether this can only be a file of the sandbox's own ``/tmp``: there is none of this name outside of it."""
    return (
        inside(path, ("/tmp",)) is not None
        and path != "/tmp"
        and inside(path, roots) is None
        and not any(inside(root, (path,)) for root in roots)
        and facts.kind(path) == "missing"
    )


def _possible_paths(target: ScanWord, place: Place) -> list[str]:
    """The paths that a known word means: wildcards as written and as expanded now."""
    if not target.known:
        return []
    paths = _paths(target, place)
    if target.glob:
        paths += [each for path in paths for each in matching(path, place.facts)]
    return list(dict.fromkeys(paths))


def _find(item: Started, place: Place) -> Iterable[Danger]:
    words = [word.text for word in item.words[1:]]
    removing = "-delete" in words or any(word.rpartition("/")[2] in _lists().names["removers"] for word in words)
    if not removing:
        return
    # A filter after the action does not limit it.
    filters = [
        word
        for word in takewhile(lambda word: word not in _FIND_ACTIONS, words)
        if re.fullmatch(r"-(i?name|i?path|i?regex|size|[acm](time|min)|newer.*|empty|user)", word)
    ]
    starts: list[ScanWord] = []
    for word in item.words[1:]:
        if word.text.startswith(("-", "(", "!")):
            break
        starts.append(word)
    for start in starts or [ScanWord(".")]:
        for path in _paths(start, place):
            special = _never_removed(path, place)
            if special is not None and not filters:
                yield Danger(f"find would remove everything in {path}: {special}.", refuse=True, evidence=(path,))
    affected = extent(_removed(starts or [ScanWord(".")], place), place.facts)
    evidence = _blast_radius(starts, affected, filtered=bool(filters))
    known = all(start.known for start in starts) and place.certain
    loss = _deletion(affected, place, some=bool(filters)) if known else None
    yield Danger(f"{_shown(item)} removes what it finds there.", evidence=evidence, loss=loss)


def _blast_radius(targets: Sequence[ScanWord], affected: Extent, *, filtered: bool = False) -> tuple[str, ...]:
    """What was found for the words, with count and bytes; a computed word can't be counted."""
    unknown = any(not target.known or "{}" in target.text for target in targets)
    note = ("Part of what it removes is computed at run time.",) if unknown else ()
    return (*note, *(blast_radius_lines(affected, filtered=filtered) if affected.paths else ()))


def _removed(targets: Sequence[ScanWord], place: Place) -> tuple[str, ...]:
    """The paths that the known words match now."""
    paths = [path for target in targets if target.known for path in _paths(target, place)]
    globs = {path for target in targets if target.known and target.glob for path in _paths(target, place)}
    return tuple(each for path in paths for each in (matching(path, place.facts) if path in globs else [path]))


def _paths(word: ScanWord, place: Place) -> list[str]:
    """The absolute paths that a word may mean, with links followed except in the last name."""
    text = word.text
    if not word.known and not text:
        return []
    paths: list[str] = []
    for base in place.bases:
        joined = posixpath.join(base, text)
        folder, _, name = joined.rstrip("/").rpartition("/")
        if name in ("", ".", "..") or text.endswith("/"):
            paths.append(place.resolve(joined))
        else:
            paths.append(posixpath.join(place.resolve(folder or "/"), name))
    return list(dict.fromkeys(paths))


def _never_removed(path: str, place: Place) -> str | None:
    """Why this path must never be removed; None for most paths."""
    folder, _, name = path.rpartition("/")
    wildcard = name in ("*", ".*", "**", "?*", "{*,.*}", "*.*") or name.startswith((".[", "..?"))
    target = (folder or "/") if wildcard else path
    if target in ("/", "//"):
        return "that is the whole system"
    if place.home and target == place.home:
        return "that is your home directory"
    if target.rpartition("/")[2].casefold() == ".git":
        return "that is the repository's history"
    for root in place.roots:
        if root == target and not wildcard:
            return "that is the workspace itself"
        if root != target and root.startswith(target.rstrip("/") + "/"):
            return "the workspace is in it"
    if place.home and place.home.startswith(target.rstrip("/") + "/"):
        return "your home directory is in it"
    return None


# --- writing -------------------------------------------------------------------------------------------------------


def _redirects(item: Started, place: Place) -> Iterable[Danger]:
    if item.words != item.found.words and item.found.words:
        return
    for target in (*item.found.reads, *item.found.writes):
        if (connection := _CONNECTION.match(target.text)) is not None:
            yield Danger(f"The shell would connect to {connection[1]}.", evidence=(target.text,))
    for target in item.found.writes:
        if not target.known or target.glob:
            yield Danger("The output's target is computed.")
            continue
        if _DEVICES.fullmatch(target.text) or _CONNECTION.match(target.text):
            continue
        for path in _paths(target, place):
            resolved = place.resolve(path)
            yield from _written(path, resolved, place)
            if item.found.truncates and place.facts.size(resolved):
                yield _overwriting("The output", (resolved,), place)
            if inside(resolved, place.roots) is None and inside(resolved, ("/tmp",)) is None:
                yield Danger(f"The output would go to {resolved}, outside the workspace.", evidence=(resolved,))


def _overwriting(what: str, paths: Sequence[str], place: Place) -> Danger:
    """The loss of what is in files, however the command spells that it writes them."""
    affected = extent(paths, place.facts)
    loss = counted("overwrites", affected, place.facts, place.bases[0])
    has = "has" if len(affected.there) == 1 else "have"
    reason = f"{what} would overwrite {_one_or_many(affected.there)}, which {has} content."
    undone = place.restores(affected.there)
    return Danger(reason, evidence=affected.there[:MAX_SHOWN], loss=loss, undone=undone, lasting=not undone)


def _outputs(item: Started, place: Place) -> Iterable[Danger]:
    """The loss of the content of files, or of whole folders, that the words of a command name as its output."""
    paths: list[str] = []
    emptied: list[str] = []
    for output in _named(item):
        for path in () if output.appends else _paths(output.word, place):
            if output.numbered:
                folder, _, prefix = path.rpartition("/")
                names = place.facts.names(folder or "/") or ()
                paths += [posixpath.join(folder, name) for name in names if counts(name, prefix)]
            elif output.emptied:
                emptied += [path] if place.facts.names(path) != () else []
            else:
                for name in _files_of(output, path, place):
                    target = place.resolve(name)
                    paths += [target] if target == name or not output.itself else []  # a replaced link has no content
    paths += _unpacked(item, place, replaced=True)
    lost = [path for path in dict.fromkeys(paths) if place.facts.kind(path) == "file" and place.facts.size(path)]
    if lost:
        yield _overwriting(item.name, lost, place)
    if emptied:
        affected = extent(emptied, place.facts)
        reason = f"{item.name} would remove everything in {_one_or_many(emptied)}."
        yield Danger(reason, evidence=blast_radius_lines(affected), loss=_deletion(affected, place))


def _named(item: Started) -> Iterable[Output]:
    """The files that a command would write, as far as they are known."""
    return (
        output
        for output in outputs(item.name, item.words[1:])
        if output.word.known and output.word.text and not output.word.glob
    )


def _files_of(output: Output, path: str, place: Place) -> list[str]:
    """The files that a command would write at the path of its output: names in it, if it is a folder."""
    resolved = place.resolve(path)
    if place.facts.kind(resolved) != "directory":
        return [path]
    return [posixpath.join(resolved, each) for each in output.within]


def _protected_outputs(item: Started, place: Place) -> Iterable[Danger]:
    """Dangers of places, protected or outside the workspace, that a command names as its output within a word, in a
    script or behind an option, or unpacks into."""
    for output in _named(item):
        for path in _paths(output.word, place):
            for name in _files_of(output, path, place):
                resolved = place.resolve(name)
                told = list(_written(name, resolved, place))
                yield from told
                if not told and inside(resolved, (*place.roots, "/tmp", "/dev")) is None:
                    yield Danger(f"{item.name} would write {resolved}, outside the workspace.", evidence=(resolved,))
    for name in _unpacked(item, place):
        yield from _written(name, place.resolve(name), place)


def _unpacked(item: Started, place: Place, *, replaced: bool = False) -> list[str]:
    """The files that an archive would make or, with ``replaced``, replace, as far as it can be listed now."""
    unpacked = unpacking(item.name, item.words[1:])
    if unpacked is None or (replaced and not unpacked.replaces):
        return []
    paths: list[str] = []
    for base in place.bases:
        folder = posixpath.join(base, unpacked.folder.text)
        names = place.facts.members(posixpath.join(base, unpacked.archive.text)) or ()
        targets = [target for name in names if (target := unpacked.target(name))]
        paths += [posixpath.normpath(posixpath.join(folder, target)) for target in targets]
    return paths


def _in_place(item: Started, place: Place) -> Danger:
    """The rewriting of files that a command names."""
    words = in_place(item.words[1:])
    known = place.certain and all(word.known for word in words)
    paths = [place.resolve(each) for word in words for each in _possible_paths(word, place)]
    files = tuple(path for path in dict.fromkeys(paths) if place.facts.kind(path) == "file")
    undone = known and bool(files) and place.restores(files)
    return Danger(f"{item.name} -i rewrites files in place.", edits=True, undone=undone)


def _written(path: str, resolved: str, place: Place) -> Iterable[Danger]:
    for each in (path, resolved):
        if is_own(each, place.own_dirs):
            yield Danger(
                f"{each} is swecli's own configuration or data; only you can change it.", refuse=True, evidence=(each,)
            )
            return
        reason = protected_reason(each, place.roots, place.home)
        if reason is not None:
            yield Danger(f"Writing {each} always asks: {reason}.", evidence=(each,))
            return


def _protected(item: Started, place: Place) -> Iterable[Danger]:
    """Dangers of protected places named by a command that may write there."""
    names = _lists().names
    if item.name not in names["steered_readers"] and (
        item.name in tables().commands or (item.name in PROGRAMS or item.name == "find") or item.name == "cd"
    ):
        return
    writer = item.name in names["writers"] or item.name in names["removers"]
    runs = item.name in _SHELLS or _lists().interpreters.fullmatch(item.name) is not None
    reads_first = item.name in (".", "source")  # into the shell that runs this, so it writes nothing there
    for at, word in enumerate(item.words[1:]):
        value = re.sub(r"^(-[A-Za-z]|[A-Za-z_-]+=)", "", word.text) if word.known else ""
        for text in dict.fromkeys((word.text, value)):
            if not text or text.startswith("-") or not word.known or len(text) > 1_000 or "\n" in text:
                continue
            for path in _paths(ScanWord(text), place):
                resolved = place.resolve(path)
                if runs and at == 0 and _SKILL_FILE.search(path) and _SKILL_FILE.search(resolved):
                    continue  # it runs the script, which is what skills are for
                if reads_first and at == 0 and not any(is_own(each, place.own_dirs) for each in (path, resolved)):
                    continue
                yield from _protected_path(item, path, resolved, writer, place)


_SHELLS = ("sh", "bash", "dash", "zsh")
_SKILL_FILE = lazy_pattern(r"/\.(?:claude|agents|swecli)/skills/[^/]+/.", re.IGNORECASE)


def _protected_path(item: Started, path: str, resolved: str, writer: bool, place: Place) -> Iterable[Danger]:
    for each in dict.fromkeys((path, resolved)):
        if is_own(each, place.own_dirs):
            yield Danger(f"{item.name} uses {each}, which belongs to swecli.", refuse=writer, evidence=(each,))
        elif each not in place.roots and (reason := protected_reason(each, place.roots, place.home)) is not None:
            yield Danger(f"{item.name} names {each}: {reason}.", evidence=(each,))
        elif (
            writer
            and item.name != "git"
            and inside(each, (*place.roots, "/tmp")) is None
            and place.facts.kind(each) != "missing"
        ):
            yield Danger(f"{item.name} names {each}, outside the workspace.", evidence=(each,))


# --- code ----------------------------------------------------------------------------------------------------------


def _interpreter(item: Started, pattern: re.Pattern[str]) -> Iterable[Danger]:
    code = [word.text for word in item.words[1:]]
    if item.found.stdin is not None:
        code.append(item.found.stdin)
    elif item.found.piped and not any(not word.startswith("-") for word in code):
        yield Danger(f"{item.name} runs the output of another command.")
    for text in code:
        match = pattern.search(text) if re.search(r"[\s(;.]", text) and not re.fullmatch(r"[\w./-]+", text) else None
        if match is not None:
            beyond = beyond_files(item.name)
            loss = Loss(beyond=beyond) if beyond else None
            yield Danger(f"The {item.name} code contains {_whole_call(text, match)!r}.", loss=loss)


def _whole_call(code: str, match: re.Match[str]) -> str:
    """What was found in the code, up to the bracket that closes what it opens, where that is near and on its line."""
    opening = match.group()
    rest = re.match(r"[^)\n]{0,40}\)", code[match.end() :]) if opening.count("(") > opening.count(")") else None
    return opening + rest.group() if rest is not None else opening
