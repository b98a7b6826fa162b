"""Files whose content a command replaces because its words name them: the other spellings of ``> FILE``."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.permissions.shell.scan import ScanWord, is_long_option
from swecli.lazy_pattern import lazy_pattern


class Output(Struct, frozen=True):
    """A file that is written from its beginning. ``within``: if it is a folder, these names in it are written instead.
    ``numbered``: it is the beginning of several names that end in a count, such as ``xaa``. ``itself``: a link of this
    name is replaced, not what it leads to. ``appends``: it is written at its end instead, so nothing is lost.
    ``emptied``: it is a folder that is removed with everything in it."""

    word: ScanWord
    within: tuple[str, ...] = ()
    numbered: bool = False
    itself: bool = False
    appends: bool = False
    emptied: bool = False


_NAMED_BY_OPTION: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("sort", "curl", "pandoc", "patch", "shuf", "base64", "iconv", "gpg", "gpg2"), ("-o", "--output")),
    **dict.fromkeys(("dot", "tree", "zstd"), ("-o",)),
    **dict.fromkeys(("git", "xmllint", "diff"), ("--output",)),
    **dict.fromkeys(("ruff", "eslint", "stylelint"), ("-o", "--output-file")),
    **dict.fromkeys(("openssl", "terraform", "tofu"), ("-out",)),
    "less": ("-o", "-O", "--log-file", "--LOG-FILE"),
    "wget": ("-O", "--output-document"),
    "pg_dump": ("-f", "--file"),
    "mysqldump": ("-r", "--result-file"),
    **dict.fromkeys(("pytest", "py.test"), ("--junitxml", "--junit-xml", "--log-file", "--debug", "--report-log")),
    "mypy": ("--junit-xml",),
    "go": ("-coverprofile", "-cpuprofile", "-memprofile", "-blockprofile", "-mutexprofile", "-trace"),
}
"""Programs with the options that name the files they write. A letter may stand in a cluster."""
_CLUSTERED: Final[Mapping[str, str]] = {
    "sort": "bdfgiMhnRrVcCmsuz",
    "curl": "0123446aBfgGIijJklLnNOpqRsSvVZ#",
    "wget": "bcdEFHkKLmNpqrSvVx46",
}
"""Letters without a value, which may stand before that letter in one word."""
_COPIES: Final = frozenset(("cp", "mv", "install", "gcp", "gmv", "ginstall"))
_KEEPS: Final = lazy_pattern(r"-[a-zA-Z]*[nb][a-zA-Z]*|--no-clobber|--backup.*|--update=none.*|-S.*|--suffix.*")
"""Options of copies that keep what is there."""
_INSTALL_VALUES: Final = frozenset(("-m", "-o", "-g", "--mode", "--owner", "--group"))
_SED_WRITES: Final = lazy_pattern(r"(?:(?<=[\s;{\d$/!,|#:@])|(?<=[/|#,:@][gpiImMe\d])|^)[wW][ \t]+([^\n;}]+)")
_AWK_WRITES: Final = lazy_pattern(r"(?<!>)>[ \t]*\"([^\"\n]+)\"")
_AWK_APPENDS: Final = lazy_pattern(r">>[ \t]*\"([^\"\n]+)\"")
_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("gzip", "gunzip"), (".gz",)),
    **dict.fromkeys(("xz", "unxz"), (".xz", ".lzma")),
    **dict.fromkeys(("bzip2", "bunzip2"), (".bz2",)),
    **dict.fromkeys(("zstd", "unzstd"), (".zst",)),
}
"""Suffixes of programs that compress a file or unpack it beside itself; the first one is added."""
_COMPRESSES: Final = lazy_pattern(
    r"-[a-zA-Z0-9]*|--(force|decompress|uncompress|compress|keep|quiet|verbose|rm|best|fast)"
)
_COUNT: Final = lazy_pattern(r"[a-z0-9]{2,5}")


def outputs(name: str, arguments: Sequence[ScanWord]) -> Iterator[Output]:
    """The files that the program would write from their beginning, as far as the words name them."""
    if name == "tee":
        yield from _of_tee(arguments)
    elif name in _COPIES:
        yield from _of_copy(name, arguments)
    elif name in ("ln", "gln"):
        if any(re.fullmatch(r"-[a-zA-Z]*f[a-zA-Z]*", word.text) or word.text == "--force" for word in arguments):
            yield from _of_copy(name, arguments)
    elif name in ("sed", "gsed"):
        yield from _quoted(arguments, _SED_WRITES)
    elif name in ("awk", "gawk", "mawk", "nawk"):
        yield from _quoted(arguments, _AWK_WRITES)
        yield from (replace(output, appends=True) for output in _quoted(arguments, _AWK_APPENDS))
    elif name == "split":
        operands = _operands(arguments, values="abClnt")
        yield Output(operands[1] if len(operands) > 1 else ScanWord("x"), numbered=True)
    elif name == "csplit":
        named = _values(arguments, ("-f", "--prefix"), "ksz")
        yield Output(named[-1] if named else ScanWord("xx"), numbered=True)
    elif name == "uniq":
        yield from (Output(word) for word in _operands(arguments, values="fsw")[1:2])
    elif name == "xxd":
        yield from (Output(word) for word in _operands(arguments, values="cglsoRn")[1:2])
    elif name == "yq":
        if any(re.fullmatch(r"-[a-zA-Z]*i[a-zA-Z]*|--in-?place", word.text) for word in arguments):
            yield from (Output(word) for word in _operands(arguments)[1:])
    elif name == "tar":
        yield from _of_tar(arguments)
    elif name in _SUFFIXES:
        yield from _of_compressor(name, arguments)
    if name == "curl":
        yield from _remote_names(arguments)
    elif name == "git" and any(word.text == "archive" for word in arguments):
        yield from (Output(word) for word in _values(arguments, ("-o",), ""))
    elif name in ("pytest", "py.test"):
        yield from (Output(word, emptied=True) for word in _values(arguments, ("--basetemp",), ""))
    options = _NAMED_BY_OPTION.get(name, ())
    yield from (Output(word) for word in _values(arguments, options, _CLUSTERED.get(name, "")))


def counts(name: str, prefix: str) -> bool:
    """Whether a file name is the prefix with a count."""
    return name.startswith(prefix) and _COUNT.fullmatch(name[len(prefix) :]) is not None


def in_place(arguments: Sequence[ScanWord]) -> tuple[ScanWord, ...]:
    """The words of ``sed -i`` and its like that may name the files it rewrites: all but options."""
    return tuple(word for word in arguments if not word.known or not word.text.startswith("-"))


def _of_tee(arguments: Sequence[ScanWord]) -> Iterator[Output]:
    options = [word.text for word in arguments if word.text.startswith("-")]
    if any(re.fullmatch(r"-[a-z]*a[a-z]*", option) or is_long_option(option, "--append") for option in options):
        return
    yield from (Output(word) for word in _operands(arguments))


def copied(name: str, arguments: Sequence[ScanWord]) -> tuple[list[ScanWord], ScanWord] | None:
    """What ``cp``, ``mv`` or the like copies or moves, and its target or target folder; None if it replaces nothing."""
    folder: ScanWord | None = None
    sources: list[ScanWord] = []
    rest = list(arguments)
    ended = False
    while rest:
        word = rest.pop(0)
        text = word.text
        if ended or not text.startswith("-") or text == "-":
            sources.append(word)
        elif text == "--":
            ended = True
        elif text in ("-t", "--target-directory") and rest:
            folder = rest.pop(0)
        elif text.startswith("--target-directory="):
            folder = ScanWord(text.partition("=")[2], word.known, word.glob)
        elif name.endswith("install") and text in _INSTALL_VALUES and rest:
            rest.pop(0)
        elif (name.endswith("install") and text in ("-d", "--directory")) or _keeps(name, text):
            return None
    if folder is None:
        if len(sources) < 2:
            return None
        folder = sources.pop()
    return sources, folder


def _of_copy(name: str, arguments: Sequence[ScanWord]) -> Iterator[Output]:
    """The target of a copy or a new name, or the names in a target folder."""
    copy = copied(name, arguments)
    if copy is None:
        return
    sources, folder = copy
    names = tuple(posixpath.basename(word.text.rstrip("/")) for word in sources if word.known)
    yield Output(folder, names, itself=name in ("ln", "gln", "mv", "gmv"))


def _keeps(name: str, option: str) -> bool:
    return not name.endswith("install") and _KEEPS.fullmatch(option) is not None


def _of_tar(arguments: Sequence[ScanWord]) -> Iterator[Output]:
    """The archive that ``tar c`` makes."""
    words = [word.text for word in arguments]
    if not words:
        return
    flags = words[0] if re.fullmatch(r"-?[a-zA-Z]+", words[0]) else ""
    if not ("c" in flags or "-c" in words or "--create" in words):
        return
    for at, text in enumerate(words):
        cluster = (at == 0 and bool(flags) and "f" in text) or re.fullmatch(r"-[a-zA-Z]*f", text) is not None
        if (cluster or text == "--file") and at + 1 < len(words):
            yield Output(arguments[at + 1])
        elif text.startswith("--file="):
            yield Output(ScanWord(text.partition("=")[2], arguments[at].known))


def _of_compressor(name: str, arguments: Sequence[ScanWord]) -> Iterator[Output]:
    """The files beside their sources. Only with ``-f``: otherwise these programs ask, and a command has nobody to
    answer."""
    words = [word.text for word in arguments if word.text.startswith("-")]
    letters = {letter for word in words if not word.startswith("--") for letter in word[1:]}
    if not ("f" in letters or "--force" in words) or letters & set("cltroSDM"):
        return
    if not all(_COMPRESSES.fullmatch(word) for word in words):
        return
    unpacks = name.startswith(("un", "gun", "bun")) or "d" in letters
    unpacks |= "--decompress" in words or "--uncompress" in words
    for word in arguments:
        if word.known and not word.text.startswith("-"):
            bare = [word.text.removesuffix(each) for each in _SUFFIXES[name] if word.text.endswith(each)]
            made = bare[:1] if unpacks else [word.text + _SUFFIXES[name][0]]
            yield from (Output(ScanWord(target, glob=word.glob)) for target in made)


def _remote_names(arguments: Sequence[ScanWord]) -> Iterator[Output]:
    """The names that ``curl -O`` takes from addresses."""
    letters = [word.text for word in arguments]
    if any(re.fullmatch(r"-[a-zA-Z#]*O[a-zA-Z]*|--remote-name(-all)?", option) for option in letters):
        for word in arguments:
            if word.known and "/" in word.text and not word.text.startswith("-"):
                yield Output(ScanWord(posixpath.basename(word.text.partition("?")[0])))


def _quoted(arguments: Sequence[ScanWord], pattern: re.Pattern[str]) -> Iterator[Output]:
    """The file names in a script among the words."""
    for word in arguments:
        for match in pattern.finditer(word.text):
            name = next(filter(None, match.groups()), "").strip()
            if name:
                yield Output(ScanWord(name))


def _operands(arguments: Sequence[ScanWord], values: str = "") -> list[ScanWord]:
    """The words that are no options; ``values`` are the letters of options with a value in the next word."""
    operands: list[ScanWord] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word.text == "--":
            return [*operands, *rest]
        if not word.text.startswith("-") or word.text == "-":
            operands.append(word)
        elif len(word.text) == 2 and word.text[1] in values:
            del rest[:1]
    return operands


def _values(arguments: Sequence[ScanWord], options: Sequence[str], before: str) -> list[ScanWord]:
    """The values of options, each a letter, possibly in a cluster behind those of ``before``, or a long form."""
    values: list[ScanWord] = []
    for at, word in enumerate(arguments):
        for option in options:
            value = _attached(word.text, option, before)
            if value is not None:
                values += [ScanWord(value, word.known, word.glob)] if value else arguments[at + 1 : at + 2]
    return values


def _attached(word: str, option: str, before: str) -> str | None:
    """What follows an option in its own word, empty if its value is the next word; None if it is another option."""
    if len(option) == 2:
        match = re.fullmatch(
            rf"-[{re.escape(before)}]*{option[1]}(.*)" if before else rf"{option}(.*)", word, re.DOTALL
        )
        return match[1] if match is not None else None
    name, equals, value = word.partition("=")
    same = is_long_option(name, option) if option.startswith("--") else name == option
    return value if same and (value or not equals) else None
