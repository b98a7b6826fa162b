"""Commands whose arguments are a small language of their own: find, sed, awk, jq, test, ps, tar and the like."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from swecli.core.permissions.shell.expand import Situation
from swecli.core.permissions.shell.listed import NAME_TO_COME, check_executed
from swecli.core.permissions.shell.places import check_content, check_name, check_tree
from swecli.core.permissions.shell.syntax import UnprovenError
from swecli.core.permissions.shell.tables import tables

Check = Callable[[list[str], Situation], None]

# --- find ----------------------------------------------------------------------------------------------------------


def check_find(arguments: list[str], situation: Situation) -> list[list[str]]:
    """Raise unless find only lists. Returns the commands that it starts, which have to be judged as well."""
    starts: list[str] = []
    started: list[list[str]] = []
    rest, follow = list(arguments), False
    lists = tables().lists
    while rest and rest[0] in ("-P", "-L", "-H"):
        follow |= rest.pop(0) != "-P"
    while rest and not rest[0].startswith(("-", "(", "!", ",")):
        starts.append(rest.pop(0))
    while rest:
        word = rest.pop(0)
        if word == "-follow":
            follow = True
        elif word == "-exec":
            stop = next((index for index, item in enumerate(rest) if item in (";", "+")), None)
            if stop is None:
                raise UnprovenError("find -exec is not closed")
            started.append([NAME_TO_COME if item == "{}" else item for item in rest[:stop]])
            if any("{}" in item and item != NAME_TO_COME for item in started[-1]):
                raise UnprovenError("find -exec builds words from names")
            del rest[: stop + 1]
        elif word in lists["find_value"] or word in lists["find_file"]:
            if not rest:
                raise UnprovenError(f"find {word} lacks its value")
            value = rest.pop(0)
            if word in lists["find_file"]:
                check_name(value, situation)
        elif word not in lists["find_alone"]:
            raise UnprovenError(f"find {word} is not known to only read")
    for start in starts or ["."]:
        check_name(start, situation)
        if follow:
            check_tree(start, situation)
    for inner in started:
        check_executed(inner, arguments, starts, situation)
    return started


# --- sed -----------------------------------------------------------------------------------------------------------

_SED_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n\[]|\\[^\n]|\[\^?[^\]/\\\n]+\])*/I?)"
_SED_PREFIX = re.compile(rf"\s*(?:{_SED_ADDRESS}\s*(?:,\s*(?:[+~]?\d+|{_SED_ADDRESS})\s*)?)?!?\s*")
_SED_COMMAND = re.compile(r"[pPdDnNgGhHxlz=qQ]\s*\d*")
_SED_PART = r"(?:(?!{d})[^\\\n\[]|\\[^\n]|\[\^?(?:(?!{d})[^\]\\\n])+\])*"
_SED_TEXT = r"(?:(?!{d})[^\\\n]|\\[^\n])*"


def _sed_script_is_harmless(script: str) -> bool:
    """Whether a script only has addresses, prints, deletes, hold-space commands, y and s without w and e."""
    at = 0
    while True:
        prefix = _SED_PREFIX.match(script, at)
        at = prefix.end() if prefix else at
        if at >= len(script):
            return True
        letter = script[at]
        if letter in "sy":
            delimiter = script[at + 1 : at + 2]
            if not delimiter or delimiter.isalnum() or delimiter in "\\\n []-^$.*+?(){}":
                return False
            quoted = re.escape(delimiter)
            part, text = _SED_PART.replace("{d}", quoted), _SED_TEXT.replace("{d}", quoted)
            match = re.compile(rf"{part}{quoted}{text}{quoted}[gpiI0-9]*\s*").match(script, at + 2)
        else:
            match = _SED_COMMAND.match(script, at)
        if match is None:
            return False
        at = match.end()
        if at < len(script) and script[at] != ";":
            return False
        at += 1


def _sed(arguments: list[str], situation: Situation) -> None:
    scripts: list[str] = []
    operands: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-n", "-E", "-r", "-s", "-u", "-z", "--quiet", "--silent", "--regexp-extended", "--posix"):
            continue
        if word in ("--separate", "--unbuffered", "--null-data", "--sandbox", "-nE", "-nr", "-En", "-rn"):
            continue
        if word in ("-e", "--expression", "-ne", "-Ene", "-nEe"):
            if not rest:
                raise UnprovenError("sed lacks a script")
            scripts.append(rest.pop(0))
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif word == "--":
            operands += rest
            break
        elif word != "-" and word.startswith("-"):
            raise UnprovenError(f"the option {word} of sed is not known to be harmless")
        else:
            operands.append(word)
    if not scripts:
        if not operands:
            raise UnprovenError("sed lacks a script")
        scripts.append(operands.pop(0))
    if not all(_sed_script_is_harmless(script) for script in scripts):
        raise UnprovenError("the sed script is not known to only print")
    for operand in operands:
        check_content(operand, situation)


# --- awk -----------------------------------------------------------------------------------------------------------

_AWK_EFFECT = re.compile(
    r"system|getline|close|fflush|ENVIRON|ARG[VC]|ARGIND|PROCINFO|SYMTAB|FUNCTAB|extension|load|include|eval|exec|@|\\\n|&\||\|&"
)


def _awk_program_is_harmless(program: str) -> bool:
    """Whether a program can neither start programs, write or read other files, nor see the environment."""
    if _AWK_EFFECT.search(program) or "|" in program.replace("||", "") or "\\" in re.sub(r"\\[^\n]", "", program):
        return False
    if ">" not in program:
        return True
    # Outside of an action > compares. Only where nothing could hide the end of the pattern.
    pattern, _, action = program.partition("{")
    return ">" not in action and not any(char in pattern for char in "\"'/}\n;")


def _awk(arguments: list[str], situation: Situation) -> None:
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        if word in ("-F", "-v"):
            if not rest:
                raise UnprovenError(f"awk {word} lacks its value")
            value = rest.pop(0)
        elif word.startswith(("-F", "-v")):
            value = word[2:]
        else:
            raise UnprovenError(f"the option {word} of awk is not known to be harmless")
        if word.startswith("-v") and not re.fullmatch(
            r"[a-z_][A-Za-z0-9_]*=[^\n]*|[NOF]S=[^\n]*|[OR]+FS=[^\n]*", value
        ):
            raise UnprovenError(f"the awk variable {value} is not known to be harmless")
    if not rest or not _awk_program_is_harmless(rest[0]):
        raise UnprovenError("the awk program is not known to only print")
    for operand in rest[1:]:
        if re.match(r"[A-Za-z_]\w*=", operand):
            raise UnprovenError(f"awk takes {operand} as an assignment")
        check_content(operand, situation)


# --- jq ------------------------------------------------------------------------------------------------------------

_JQ_FLAGS = frozenset("rcsSneajMCR")
_JQ_EFFECT = re.compile(r"\benv\b|\$ENV|\$__|\b(import|include|input_filename|get_search_list|modulemeta)\b")


def _jq(arguments: list[str], situation: Situation) -> None:
    operands: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("--arg", "--argjson"):
            if len(rest) < 2:
                raise UnprovenError(f"jq {word} lacks its values")
            del rest[:2]
        elif word == "--indent":
            del rest[:1]
        elif word in tables().lists["jq_long"]:
            continue
        elif word.startswith("-") and word != "-":
            if word.startswith("--") or not set(word[1:]) <= _JQ_FLAGS:
                raise UnprovenError(f"the option {word} of jq is not known to be harmless")
        else:
            operands.append(word)
    if not operands:
        if "--version" in arguments or "--help" in arguments:
            return
        raise UnprovenError("jq lacks a filter")
    if _JQ_EFFECT.search(operands[0]):
        raise UnprovenError("the jq filter may read the environment or other files")
    for operand in operands[1:]:
        check_content(operand, situation)


# --- test ----------------------------------------------------------------------------------------------------------

_TEST_FILE = frozenset(f"-{letter}" for letter in "abcdefghkpLrsSuwxOGN")
_TEST_TEXT = frozenset(("-n", "-z"))
_TEST_BETWEEN = frozenset(("=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"))


def _test(arguments: list[str], situation: Situation) -> None:
    if arguments[:1] == ["!"]:
        arguments = arguments[1:]
    match arguments:
        case [] | [_]:
            return
        case [operator, value] if operator in _TEST_TEXT:
            del value
        case [operator, value] if operator in _TEST_FILE:
            check_name(value, situation)
        case [_, operator, _] if operator in _TEST_BETWEEN:
            return
        case _:
            raise UnprovenError("this test is not understood")


def _bracket(arguments: list[str], situation: Situation) -> None:
    if not arguments or arguments[-1] != "]":
        raise UnprovenError("[ is not closed")
    _test(arguments[:-1], situation)


def _double_bracket(arguments: list[str], situation: Situation) -> None:
    if not arguments or arguments[-1] != "]]":
        raise UnprovenError("[[ is not closed")
    inner = arguments[:-1]
    if inner[:1] == ["!"]:
        inner = inner[1:]
    # Between two words [[ ]] does arithmetic and matches patterns, which can run commands.
    if len(inner) != 2 or inner[0] not in _TEST_FILE | _TEST_TEXT:
        raise UnprovenError("this [[ ]] is not understood")
    _test(inner, situation)


# --- others --------------------------------------------------------------------------------------------------------


def _printf(arguments: list[str], situation: Situation) -> None:
    del situation
    if arguments[:1] == ["--"]:
        arguments = arguments[1:]
    if not arguments or arguments[0].startswith("-"):
        raise UnprovenError("printf with an option may change a variable")
    if re.search(r"%[-+ #0-9.*'hlLqjzt]*n", arguments[0]):
        raise UnprovenError("printf %n changes a variable")


def _command(arguments: list[str], situation: Situation) -> None:
    del situation
    if arguments[:1] not in (["-v"], ["-V"]):
        raise UnprovenError("command starts another program")


def _ps(arguments: list[str], situation: Situation) -> None:
    del situation
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-o", "-p", "-u", "-U", "-C", "-g", "-G", "-t", "--sort", "--ppid", "--pid", "--format"):
            if rest and re.search(r"env", rest[0]):
                raise UnprovenError("ps would show environments")
            del rest[:1]
        elif re.fullmatch(r"--(sort|pid|ppid|forest|no-headers|headers|user|format|width|cols)(=[^\s]*)?", word):
            if "env" in word:
                raise UnprovenError("ps would show environments")
        elif re.fullmatch(r"-[aAedfxTHjlw]*o|[aAdfxTHjlw]*o", word):
            if not rest or "env" in rest.pop(0):
                raise UnprovenError("ps would show environments")
        elif not re.fullmatch(r"-[AaedfFHjlLMTwyZ]+|-?[auxfjlrTvw]+|\d+", word):
            raise UnprovenError(f"{word} of ps is not known to be harmless")


def _printenv(arguments: list[str], situation: Situation) -> None:
    del situation
    allowed = {"PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "PWD", "EDITOR", "LOGNAME", "VIRTUAL_ENV", "TZ", "CI"}
    if not arguments or not set(arguments) <= allowed:
        raise UnprovenError("printenv may show secrets")


def _yq(arguments: list[str], situation: Situation) -> None:
    operands = [word for word in arguments if word not in ("-r", "-c")]
    # Two programs have this name; both only read with a filter of keys, indexes and pipes.
    if not operands or not re.fullmatch(r"(\.[\w-]*|\.?\[\d*\]|\.\"[\w -]+\"|\s*\|\s*|keys|length)+", operands[0]):
        raise UnprovenError("the yq filter is not known to only read")
    for operand in operands[1:]:
        if operand.startswith("-"):
            raise UnprovenError(f"the option {operand} of yq is not known to be harmless")
        check_content(operand, situation)


def _tar(arguments: list[str], situation: Situation) -> None:
    match arguments:
        case ["-tf" | "tf" | "-tvf" | "tvf" | "-tzf" | "tzf" | "-tzvf" | "tzvf" | "-tjf" | "-tJf" | "-ztf", archive]:
            if ":" in archive:
                raise UnprovenError("tar takes a name with a colon as another machine")
            check_content(archive, situation)
        case ["--list", "--file", archive] if ":" not in archive:
            check_content(archive, situation)
        case _:
            raise UnprovenError("only listing an archive is known to be harmless")


def _ip(arguments: list[str], situation: Situation) -> None:
    del situation
    rest = [
        word for word in arguments if word not in ("-4", "-6", "-br", "-brief", "-o", "-s", "-c", "-j", "-json", "-p")
    ]
    if not rest or rest[0] not in ("a", "addr", "address", "r", "route", "link", "l", "neigh", "n"):
        raise UnprovenError("this use of ip is not known to only show")
    if rest[1:] and (rest[1] not in ("show", "list", "ls") or len(rest) > 4):
        raise UnprovenError("this use of ip is not known to only show")


def _git_config(arguments: list[str], situation: Situation) -> None:
    del situation
    scopes = ("--global", "--local", "--system", "--show-origin", "--show-scope", "--name-only", "-z", "--null")
    rest = [word for word in arguments if word not in scopes]
    if rest in (["--list"], ["-l"], ["list"]):
        return
    if rest[:1] in (["--get"], ["--get-all"], ["get"]):
        rest = rest[1:]
    if len(rest) != 1 or not re.fullmatch(r"[A-Za-z][A-Za-z0-9.-]*\.[A-Za-z0-9][A-Za-z0-9-]*", rest[0]):
        raise UnprovenError("this use of git config is not known to only read")
    if re.search(r"extraheader|token|password|secret|credential", rest[0], re.IGNORECASE):
        raise UnprovenError(f"{rest[0]} may hold secrets", soft=True)


PROGRAMS: Mapping[str, Check] = {
    "sed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "jq": _jq,
    "test": _test,
    "[": _bracket,
    "[[": _double_bracket,
    "printf": _printf,
    "command": _command,
    "ps": _ps,
    "printenv": _printenv,
    "tar": _tar,
    "ip": _ip,
    "yq": _yq,
    "git config": _git_config,
}
"""Programs by name; the functions raise ``UnprovenError``."""

BUILTINS = frozenset(("test", "[", "[[", "printf", "command"))
"""Those of them that the shell itself runs."""

MAY_BE_UNKNOWN: Mapping[str, Callable[[Sequence[str | None]], bool]] = {
    "printf": lambda arguments: bool(arguments) and arguments[0] is not None,
    "[": lambda arguments: len(arguments) == 3 and arguments[0] in _TEST_TEXT and arguments[2] == "]",
    "test": lambda arguments: len(arguments) == 2 and arguments[0] in _TEST_TEXT,
}
"""Where an argument whose text is not known does no harm."""
