"""What a found command really starts: wrappers, shells, eval, find -exec and xargs looked through."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from swecli.core.permissions.shell.found import Found, ScanError, ScanWord
from swecli.core.permissions.shell.scan import scan

MAX_UNPACKED = 2_000

SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "pwsh"))
_WRAPPERS = frozenset(
    (
        *("env", "timeout", "gtimeout", "nice", "nohup", "stdbuf", "setsid", "ionice", "time", "command", "builtin"),
        *("exec", "sudo", "doas", "xargs", "chroot", "unshare", "nsenter", "strace", "ltrace", "chrt", "taskset"),
        *("busybox", "toybox", "watch", "parallel", "flock", "script", "su", "ssh", "caffeinate", "firejail", "bwrap"),
        *("proot", "fakeroot", "systemd-run", "runuser", "pkexec", "numactl", "prlimit", "setarch", "linux32"),
        *("linux64", "valgrind", "gdb", "perf", "hyperfine", "entr", "docker", "podman", "kubectl", "xvfb-run"),
        *("rlwrap", "unbuffer", "start-stop-daemon", "torsocks", "proxychains", "proxychains4", "trap", "noglob"),
        *("nocorrect", "then", "do", "else", "dbus-run-session", "sg", "newgrp", "daemonize", "tmux", "screen", "at"),
        *("batch", "wsl", "arch"),
    )
)
_RUNNERS = frozenset(
    (
        *("mise", "asdf", "direnv", "uv", "poetry", "pipenv", "conda", "npx", "bunx", "pnpm", "yarn", "npm", "ts-node"),
        *("nix-shell", "nix", "guix", "devbox", "bundle", "rbenv", "pyenv", "nvm"),
    )
)
"""Programs that start another one among many other things: a computed argument of theirs is rarely a program."""
_SCRIPT_TAKERS = SHELLS | {
    *("su", "script", "watch", "parallel", "ssh", "flock", "env", "trap", "sg", "eval", "tmux", "screen", "xargs"),
    *("nix-shell", "docker", "podman", "kubectl", "entr", "hyperfine", "npx", "wsl"),
    *(".", "source", "alias"),
}
_SPLIT_OPTION = re.compile(r"--split-string=|-S(?=.)")
_PROGRAM_OPTION = re.compile(
    r"(?:-I|-e|--(?:filter|to-command|use-compress-program|compress-program|rsh-command|info-script|new-volume-script"
    r"|checkpoint-action|rsh|pre|hostname-bin)(?:=|$))(?:exec=)?"
)
"""An option of the programs below with what they start; it may be the next word."""
_SHORT_OPTION = {"-I": ("tar", "gtar", "bsdtar"), "-e": ("rsync",)}
_PROGRAM_OPTION_TAKERS = frozenset(("tar", "gtar", "bsdtar", "split", "sort", "rsync", "rg"))
_GIT_KEYS = re.compile(
    r"alias|pager|editor|command|fsmonitor|external|textconv|helper|program|cmd|proxy|filter|driver|askpass|exec",
    re.IGNORECASE,
)
_SED_RUNS = re.compile(r"(?:^|[;{}\s\d$/!|,])e(?:\s|$)|[^\w\s\\][gpiImM0-9]*e[gpiImM0-9]*(?:[\s;}]|$)")
_SED_OPTION = re.compile(r"-[nErsuz]*e?|--expression")
_GIT_RUNS = frozenset(("-x", "--exec", "--extcmd", "--tree-filter", "--index-filter", "--msg-filter", "--env-filter"))
_EXEC = frozenset(("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"))


@dataclass(frozen=True, slots=True)
class Started:
    """A command that may run. ``name`` is the program without its directory, empty when it is computed.
    ``computed`` says that a shell gets text that is not known."""

    name: str
    words: tuple[ScanWord, ...]
    found: Found
    computed: bool = False


def started(text: str, known: Mapping[str, str]) -> tuple[Started, ...]:
    """Every command that the text may start.

    Raises:
        ScanError: it can't be read.
    """
    result: list[Started] = []
    pending: list[tuple[Found, int]] = [(found, 0) for found in scan(text, known)]
    while pending:
        found, depth = pending.pop(0)
        for item, scripts in _unpacked(found):
            if len(result) >= MAX_UNPACKED or depth > 6:
                raise ScanError("it starts too many commands through others")
            result.append(item)
            for script in scripts:
                pending += [(inner, depth + 1) for inner in scan(script, known)]
    return tuple(result)


def _unpacked(found: Found) -> Iterator[tuple[Started, list[str]]]:
    """The command itself, then what it wraps, each with the scripts that it hands to a shell."""
    for words in _suffixes(found.words):
        name = _name(words[0])
        item = Started(name, words, found)
        scripts: list[str] = []
        if name in _SCRIPT_TAKERS:
            scripts, computed = _scripts(name, words, found)
            item = replace(item, computed=computed)
        elif name == "git":
            scripts = _git_scripts(words)
        elif name in _PROGRAM_OPTION_TAKERS:
            scripts = _started_by_options(words)
        elif name in ("sed", "gsed"):
            item = replace(item, computed=any(_sed_may_run(word.text) for word in words[1:]))
        yield item, scripts
    if not found.words and (found.writes or found.reads):
        yield Started(":", (ScanWord(":"),), found), []


def _suffixes(words: tuple[ScanWord, ...]) -> Iterator[tuple[ScanWord, ...]]:
    if not words:
        return
    yield words
    name = _name(words[0])
    runner = name in _RUNNERS or re.fullmatch(r"python[\d.]*", name) is not None
    if name in _WRAPPERS or runner:
        for index in range(1, min(len(words), 40)):
            word = words[index]
            if word.text.startswith("-") or re.match(r"[A-Za-z_]\w*=", word.text):
                continue
            if word.known and re.search(r"\s", word.text):
                # No program is named like this; texts that a shell would run are read elsewhere.
                continue
            if word.known or not runner:
                yield words[index:]
    if name in ("find", "fd", "fdfind", "gfind"):
        for index, word in enumerate(words[:-1]):
            if word.text in _EXEC:
                stop = next((i for i in range(index + 1, len(words)) if words[i].text in (";", "+")), len(words))
                if words[index + 1 : stop]:
                    yield from _suffixes(words[index + 1 : stop])


def _started_by_options(words: tuple[ScanWord, ...]) -> list[str]:
    scripts: list[str] = []
    for index, word in enumerate(words[1:], 1):
        match = _PROGRAM_OPTION.match(word.text)
        if match is not None and (match.group() not in ("-I", "-e") or _name(words[0]) in _SHORT_OPTION[match.group()]):
            following = words[index + 1].text if index + 1 < len(words) else ""
            scripts.append(word.text[match.end() :] or following)
    return scripts


def _sed_may_run(word: str) -> bool:
    """Whether a word of sed may be a script that starts programs; ``-e`` alone only announces one."""
    return _SED_OPTION.fullmatch(word) is None and _SED_RUNS.search(word) is not None


def _is_git_program(text: str) -> bool:
    """Whether it is a setting whose value git may start."""
    key, equals, _ = text.partition("=")
    return bool(equals) and len(key) < 200 and "." in key and _GIT_KEYS.search(key) is not None


def _git_scripts(words: tuple[ScanWord, ...]) -> list[str]:
    """Texts among the words of git that it may hand to a shell: values of settings, and commands of some commands."""
    texts = [word.text for word in words]
    scripts = [text.partition("=")[2].lstrip().removeprefix("!") for text in texts if _is_git_program(text)]
    scripts += [text.partition("=")[2] for text in texts if text.partition("=")[0] in _GIT_RUNS]
    scripts += [value for option, value in pairwise(texts) if option in _GIT_RUNS]
    for start in (["bisect", "run"], ["submodule", "foreach"]):
        if texts[1:3] == start:
            rest = [text for text in texts[3:] if text not in ("--recursive", "--quiet")]
            scripts.append(rest[0] if len(rest) == 1 else " ".join(map(shlex.quote, rest)))
    return scripts


def _name(word: ScanWord) -> str:
    if not word.known or word.glob or re.search(r"\s", word.text):
        return ""
    return word.text.rpartition("/")[2].casefold() or ""


def _scripts(name: str, words: tuple[ScanWord, ...], found: Found) -> tuple[list[str], bool]:
    """Texts that a shell would run, and whether some of it is computed."""
    arguments = words[1:]
    if name in (".", "source"):
        elsewhere = any(not word.known or word.text.startswith(("/dev/", "/proc/")) for word in arguments)
        return [found.stdin] if found.stdin is not None else [], elsewhere
    if name == "alias":
        return [word.text.partition("=")[2] for word in arguments], any(not word.known for word in arguments)
    if name == "eval":
        arguments = arguments[1:] if arguments and arguments[0].text == "--" else arguments
        return [" ".join(word.text for word in arguments)], any(not word.known for word in arguments)
    scripts = [
        re.sub(_SPLIT_OPTION, "", word.text)
        for word in arguments
        if not word.text.startswith("-") or _SPLIT_OPTION.match(word.text)
    ]
    if name not in SHELLS:
        return [script for script in scripts if re.search(r"\s", script)], False
    inline = any(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word.text) for word in arguments)
    computed = inline and any(not word.known for word in arguments)
    named = [word for word in arguments if not word.text.startswith("-")]
    if not inline and (not named or any(word.text in ("-s", "-") for word in arguments)):
        if found.stdin is not None:
            scripts.append(found.stdin)
        computed |= found.piped or any(read.text for read in found.reads)
    computed |= any(not word.known and not word.text for word in named)
    return scripts, computed
