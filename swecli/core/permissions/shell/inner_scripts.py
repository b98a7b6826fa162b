"""The texts that a command gives to a shell: arguments, values of options, its input and variables that it sets.

It serves deny and ask rules and the search for dangerous commands: a text too many only makes the outcome stricter.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from swecli.core.permissions.shell.scan import PROGRAM_SETTING, FoundCommand, ScanWord, is_long_option
from swecli.core.permissions.shell.tables import tables
from swecli.lazy_pattern import lazy_pattern

_TAR = (
    *("-I", "-F", "--use-compress-program", "--to-command", "--rsh-command", "--info-script", "--new-volume-script"),
    "--checkpoint-action",
)
_OPTIONS = {
    "bsdtar": _TAR,
    "compgen": ("-C",),
    "complete": ("-C",),
    "gtar": _TAR,
    "make": ("--eval", "-E"),
    "man": ("-P", "--pager"),
    "mapfile": ("-C",),
    "npm": ("-c", "--call"),
    "pnpm": ("-c", "--call"),
    "readarray": ("-C",),
    "rg": ("--pre", "--hostname-bin"),
    "rsync": ("-e", "--rsh"),
    "sort": ("--compress-program",),
    "split": ("--filter",),
    "tar": _TAR,
    "zip": ("-TT", "--unzip-command"),
}
"""Options whose value a program runs: the text after them or after ``=``, otherwise the next word."""
_SHELL_ESCAPES = frozenset(
    ("vi", "vim", "view", "vimdiff", "gvim", "nvim", "ex", "rvim", "ed", "red", "dc", "less", "more", "most", "gdb")
)
"""Programs in whose commands ``!`` starts a shell command."""
_ESCAPES_OF_INPUT = frozenset(("dc", "ed", "red"))
"""Those of them that take their commands from another program."""
_ESCAPED = lazy_pattern(r"(?:!+|\bshell\s)\s*([^\n]+)")
_EDITORS = frozenset(("vi", "vim", "view", "vimdiff", "gvim", "nvim", "ex", "rvim", "emacs"))
_EDITOR_RUNS = lazy_pattern(
    r"\b(?:systemlist|system|job_?start|term_start|termopen|delete|writefile|rename|execute|luaeval|py3?eval)\s*\("
    r"|\((?:(?:async-)?shell-command|call-process|start-process|make-process|delete-file|delete-directory)\b"
)
"""Calls in the code of an editor that start programs, remove or write files."""
_AWK = lazy_pattern(r"[gmn]?awk")
_AWK_TEXT = lazy_pattern(r'"([^"\\\n]*(?:\\.[^"\\\n]*)*)("?)')
"""A string, or the start of one that is not closed: then all of its line, so that no quote is read twice."""
_AWK_PIPE = lazy_pattern(r"(?<!\|)\|&?\s*\Z")
_AWK_GETLINE = lazy_pattern(r"\s*\|&?\s*getline\b")
_AWK_COMPUTED_INPUT = lazy_pattern(r"[\w)\]]\s*\|&?\s*getline\b")
_AWK_PRINT = lazy_pattern(r"\bprintf?\b([^/]*)")
_AWK_COMPUTED_OUTPUT = lazy_pattern(r"(?<!\|)\|&?\s*[A-Za-z_$(]")
_RECIPE = lazy_pattern(r"^\t[@+-]+", re.MULTILINE)
_MAKE_CALL = lazy_pattern(r"\$([({])shell\s+")
_MAKE_VARIABLE = lazy_pattern(r"\$[({](\w+)[)}]|\$([@<^?*%+])")
_SPLIT_OPTION = lazy_pattern(r"--split-string=|-S(?=.)")
_GIT_KEYS = lazy_pattern(
    r"alias|pager|editor|command|fsmonitor|external|textconv|helper|program|cmd|proxy|filter|driver|askpass|exec",
    re.IGNORECASE,
)
_GIT_RUNS = frozenset(("-x", "--exec", "--extcmd", "--tree-filter", "--index-filter", "--msg-filter", "--env-filter"))
_GIT_OPENS = lazy_pattern(r"(?:-O|--open-files-in-pager=)(.+)", re.DOTALL)
_SED_RUNS = lazy_pattern(r"(?:^|[;{}\s\d$/!|,])e(?:\s|$)|[^\w\s\\][gpiImM0-9]*e[gpiImM0-9]*(?:[\s;}]|$)")
_SED_OPTION = lazy_pattern(r"-[nErsuz]*e?|--expression")


_EVALUATING = frozenset(("declare", "typeset", "local", "readonly", "read", "printf", "test", "[", "[["))
"""Builtins in some of whose words bash looks for code once more."""
_DECLARED = lazy_pattern(r"[A-Za-z_]\w*\+?=")


def program_name(word: ScanWord) -> str:
    """The program that a word names, without its directory; empty if it is computed."""
    # xargs and find put a name or a whole text where {} stands.
    if not word.known or word.glob or "{}" in word.text or re.search(r"\s", word.text):
        return ""
    return word.text.rpartition("/")[2].casefold() or ""


def inner_scripts(words: Sequence[ScanWord], found: FoundCommand) -> tuple[list[str], bool]:
    """Texts that the command ``words`` gives to a shell, and whether it may give it a text that is not known.
    ``found`` is the command as written, which may begin with wrappers."""
    name, arguments = program_name(words[0]), words[1:]
    texts = [word.text for word in arguments]
    scripts = list(_values_of_options(texts, _OPTIONS.get(name, ())))
    computed = False
    if name in tables().lists["shells"]:
        scripts, computed = _of_shell(arguments, found)
    elif name in (".", "source"):
        scripts = [found.stdin] if found.stdin is not None else []
        computed = any(not word.known or word.text.startswith(("/dev/", "/proc/")) for word in arguments)
    elif name == "alias":
        scripts = [text.partition("=")[2] for text in texts]
        computed = any(not word.known for word in arguments)
    elif name == "eval":
        scripts = [" ".join(texts[1:] if texts[:1] == ["--"] else texts)]
        computed = any(not word.known for word in arguments)
    elif name in _EVALUATING:
        computed = _evaluates(name, arguments)
    elif name == "hash":
        scripts = [path for option, path in pairwise(texts) if option == "-p"]
    elif name == "git":
        scripts = _of_git(texts)
    elif name == "make":
        makefiles = [*scripts, *([found.stdin] if _reads_makefile(texts) and found.stdin is not None else [])]
        scripts = [_recipes(text) for text in makefiles]
    elif name in ("sed", "gsed"):
        # ``-e`` alone only announces a script.
        computed = any(_SED_OPTION.fullmatch(text) is None and _SED_RUNS.search(text) is not None for text in texts)
    elif _AWK.fullmatch(name):
        scripts, computed = _of_awk(texts)
    elif name in tables().lists["script_takers"]:
        scripts += [text for text in _operands(texts) if re.search(r"\s", text)]
    elif name in _ESCAPES_OF_INPUT:
        computed = found.piped
    elif name in _EDITORS:
        computed = any(_EDITOR_RUNS.search(text) for text in (*texts, found.stdin or ""))
    if name in _SHELL_ESCAPES:
        scripts += [each for text in (*texts, found.stdin or "") for each in _ESCAPED.findall(text)]
    return scripts, computed


def set_for_programs(found: FoundCommand) -> tuple[list[str], bool]:
    """Values of the variables that the command sets and that programs run as commands, and whether one is not
    known."""
    settings = [word for word in (*found.settings, *found.words) if PROGRAM_SETTING.match(word.text)]
    values = [word.text.partition("=")[2].lstrip("|-!") for word in settings]
    return [value for value in values if value], any(not word.known for word in settings)


def _values_of_options(texts: Sequence[str], options: Iterable[str]) -> Iterator[str]:
    for option in options:
        for index, text in enumerate(texts):
            if option.startswith("--") and is_long_option(text, option):
                value = text.removeprefix(text.partition("=")[0])
            elif text.startswith(option):
                value = text.removeprefix(option)
            else:
                continue
            if not value:
                yield from texts[index + 1 : index + 2]
            elif value.startswith("=") or not option.startswith("--"):
                yield value.removeprefix("=").removeprefix("exec=")


def _operands(texts: Sequence[str]) -> list[str]:
    """The arguments without options; of ``-S``, which splits a text into words, the text."""
    return [_SPLIT_OPTION.sub("", text) for text in texts if not text.startswith("-") or _SPLIT_OPTION.match(text)]


def _of_shell(arguments: Sequence[ScanWord], command: FoundCommand) -> tuple[list[str], bool]:
    if len(arguments) == 2 and arguments[0] == ScanWord("-n") and re.match("[^+-]", arguments[1].text):
        return [], False  # it reads the script without running it
    scripts = _operands([word.text for word in arguments])
    inline = any(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word.text) for word in arguments)
    computed = inline and any(not word.known for word in arguments)
    named = [word for word in arguments if not word.text.startswith("-")]
    if not inline and (not named or any(word.text in ("-s", "-") for word in arguments)):
        if command.stdin is not None:
            scripts.append(command.stdin)
        computed |= command.piped or any(read.text for read in command.reads)
    computed |= any(not word.known and not word.text for word in named)
    return scripts, computed


def _evaluates(name: str, arguments: Sequence[ScanWord]) -> bool:
    """Whether bash may run code in a computed word: in a subscript of a variable's name, in a list for an array, in a
    number or in the name that a reference stands for."""
    options = [word.text for word in arguments if word.known and word.text.startswith(("-", "+"))]
    if name in ("printf", "test", "[", "[["):
        return any(before.text == "-v" and not word.known for before, word in pairwise(arguments))
    if name == "read":
        pairs = pairwise((ScanWord(""), *arguments))
        return any(not word.known and not re.fullmatch("-[a-zA-Z]*[dinNptu]", before.text) for before, word in pairs)
    named = [word for word in arguments if not word.known]
    if any(re.search("[aAin]", option[1:]) for option in options):
        return bool(named)
    return any(_DECLARED.match(word.text) is None for word in named)


def _of_git(texts: Sequence[str]) -> list[str]:
    """Values of settings, and arguments of some subcommands."""
    scripts = [text.partition("=")[2].lstrip().removeprefix("!") for text in texts if _is_git_program(text)]
    scripts += [text.partition("=")[2] for text in texts if "=" in text and _is_git_run(text)]
    scripts += [value for option, value in pairwise(texts) if "=" not in option and _is_git_run(option)]
    scripts += [text[2:] for text in texts if text.startswith("-x") and texts[0] in ("rebase", "difftool")]
    if "grep" in texts:
        scripts += [match.group(1) for text in texts if (match := _GIT_OPENS.fullmatch(text))]
    for start in (["bisect", "run"], ["submodule", "foreach"]):
        if texts[:2] == start:
            rest = [text for text in texts[2:] if text not in ("--recursive", "--quiet")]
            scripts.append(rest[0] if len(rest) == 1 else " ".join(map(shlex.quote, rest)))
    return scripts


def _is_git_run(text: str) -> bool:
    """Whether the text is an option of git whose value it runs."""
    return any(text == option or (option != "-x" and is_long_option(text, option)) for option in _GIT_RUNS)


def _is_git_program(text: str) -> bool:
    """Whether the text is a setting whose value git may start."""
    key, equals, _ = text.partition("=")
    return bool(equals) and len(key) < 200 and "." in key and _GIT_KEYS.search(key) is not None


def _of_awk(texts: Sequence[str]) -> tuple[list[str], bool]:
    """The commands behind a ``|`` of the code, as the end of a pipeline, and whether one is computed."""
    scripts: list[str] = []
    computed = False
    for text in texts:
        plain: list[str] = []
        end = 0
        for string in _AWK_TEXT.finditer(text):
            before, end = text[end : string.start()], string.end()
            plain += (before, '""')
            if _AWK_PIPE.search(before) or _AWK_GETLINE.match(text, end):
                scripts.append(f": | {string[1]}")
        statements = re.split(r"[;{}\n]", "".join((*plain, text[end:])))
        computed |= any(_AWK_COMPUTED_INPUT.search(statement) for statement in statements)
        printed = [match[1] for statement in statements if (match := _AWK_PRINT.search(statement))]
        computed |= any(_AWK_COMPUTED_OUTPUT.search(rest) for rest in printed)
    return scripts, computed


def _reads_makefile(texts: Sequence[str]) -> bool:
    return any(re.search(r"(?:^-f|^--(?:make)?file=|^)(?:-|/dev/stdin|/dev/fd/0)$", text) for text in texts)


def _recipes(makefile: str) -> str:
    """Text of a makefile as a shell may read it: without marks before a recipe and with plain names for variables."""
    text = _MAKE_VARIABLE.sub(lambda match: match.group(1) or "x", _RECIPE.sub("\t", makefile))
    return _MAKE_CALL.sub(r"$\1", text).replace("$$", "$")
