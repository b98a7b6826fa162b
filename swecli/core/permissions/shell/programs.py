"""Commands with a small language as arguments: find, sed, awk, jq, test, ps, tar and others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

from swecli.core.permissions.shell.arguments import check_table
from swecli.core.permissions.shell.expand import Situation, check_content, check_git_settings, check_name, check_tree
from swecli.core.permissions.shell.losses import REMOTE
from swecli.core.permissions.shell.syntax import UnprovenError
from swecli.core.permissions.shell.tables import tables
from swecli.core.permissions.shell.unpack import NAME_TO_COME, check_executed
from swecli.lazy_pattern import lazy_pattern

_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n\[]|\\[^\n]|\[\^?(?:[^\]/\\\n]|\\[a-z])+\])*/I?)"
_PREFIX = lazy_pattern(rf"\s*(?:{_ADDRESS}\s*(?:,\s*(?:[+~]?\d+|{_ADDRESS})\s*)?)?!?\s*")
_COMMAND = lazy_pattern(r"[pPdDnNgGhHxlz=qQ]\s*\d*")
_TEXT_COMMAND = lazy_pattern(r"[aic][ \t]*[^\s\\\n][^\\\n]*")
_PART = r"(?:(?!{d})[^\\\n\[]|\\[^\n]|\[\^?(?:(?!{d})[^\]\\\n]|\\[a-z])+\])*"
_TEXT = r"(?:(?!{d})[^\\\n]|\\[^\n])*"


def check_sed(arguments: list[str], situation: Situation) -> None:
    """Raise ``UnprovenError`` unless sed only prints, and only what may be read."""
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
                raise UnprovenError("sed has no script")
            scripts.append(rest.pop(0))
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif word == "--":
            operands += rest
            break
        elif word != "-" and word.startswith("-"):
            raise UnprovenError(f"sed {word} may do more than read")
        else:
            operands.append(word)
    if not scripts:
        if not operands:
            raise UnprovenError("sed has no script")
        scripts.append(operands.pop(0))
    if not all(script_is_harmless(script) for script in scripts):
        raise UnprovenError("the sed script may do more than print")
    for operand in operands:
        check_content(operand, situation)


def script_is_harmless(script: str) -> bool:
    """Whether a script only has addresses, blocks, prints, deletes, hold-space commands, texts, and y and s without w
    and e."""
    at = depth = 0
    while True:
        prefix = _PREFIX.match(script, at)
        at = prefix.end() if prefix else at
        if at >= len(script):
            return depth == 0
        letter = script[at]
        if letter == "{":
            depth, at = depth + 1, at + 1
            continue
        if letter == "}" and depth:
            depth, at = depth - 1, at + 1
        elif letter == ";":
            at += 1
            continue
        elif letter in "aic":
            # Its text extends to the end, so no command follows.
            return depth == 0 and _TEXT_COMMAND.fullmatch(script, at) is not None
        else:
            match = _substitution(script, at) if letter in "sy" else _COMMAND.match(script, at)
            if match is None:
                return False
            at = match.end()
        if at >= len(script) or (script[at] == "}" and depth):
            continue
        if script[at] != ";":
            return False
        at += 1


def _substitution(script: str, at: int) -> re.Match[str] | None:
    delimiter = script[at + 1 : at + 2]
    if not delimiter or delimiter.isalnum() or delimiter in "\\\n []-^$.*+?(){}":
        return None
    quoted = re.escape(delimiter)
    part, text = _PART.replace("{d}", quoted), _TEXT.replace("{d}", quoted)
    return re.compile(rf"{part}{quoted}{text}{quoted}[gpiI0-9]*\s*").match(script, at + 2)


_DELIMITERS = "/|,#@!:%~_="
_LITERALS = {
    False: r"(?:(?!{d})[^\n\\.*\[\]^$]|\\[.*\[\]^$\\/b<>])",
    True: r"(?:(?!{d})[^\n\\.*\[\]^$+?(){{}}|]|\\[.*\[\]^$\\/b<>+?(){{}}|])",
}
"""A character that a regular expression matches literally, or a word boundary; by whether it is an extended one."""
_INSERTION = lazy_pattern(r"[ai][ \t]*[^\s\\\n][^\\\n]*")


def replaces_literally(script: str, *, extended: bool) -> bool:
    """Whether a script of GNU sed only inserts lines and replaces text that it spells out, so that nothing is lost
    which it does not name: ``s`` without classes, dots and repetitions, ``a`` and ``i``, with any addresses."""
    at, has_command = 0, False
    while True:
        prefix = _PREFIX.match(script, at)
        at = prefix.end() if prefix else at
        if at >= len(script):
            return has_command and not (prefix and prefix[0].strip())
        if script[at] in "ai":  # its text extends to the end
            return _INSERTION.fullmatch(script, at) is not None
        delimiter = script[at + 1 : at + 2]
        if script[at] != "s" or not delimiter or delimiter not in _DELIMITERS:
            return False
        quoted = re.escape(delimiter)
        literal = _LITERALS[extended].format(d=quoted)
        text = _TEXT.replace("{d}", quoted)
        pattern = rf"(?!{quoted})\^?{literal}*\$?{quoted}{text}{quoted}[gI0-9]*\s*"
        match = re.compile(pattern).match(script, at + 2)
        if match is None:
            return False
        at, has_command = match.end(), True
        if at < len(script):
            if script[at] != ";":
                return False
            at += 1


_EFFECT = lazy_pattern(
    r"system|getline|close|fflush|ENVIRON|ARG[VC]|ARGIND|PROCINFO|SYMTAB|FUNCTAB|extension|load|include|eval|exec|@|\\\n|&\||\|&"
)
_REGULAR = lazy_pattern(r"/(?:[^/\\\n\[]|\\[^\n]|\[\^?[^\]\[/\\\n]+\])*/")
_BEFORE_REGULAR = lazy_pattern(r"(?:^|[(,{};!~&|\n])[ \t]*$")
_STRING = lazy_pattern(r'"(?:[^"\\\n]|\\[^\n])*"')


def check_awk(arguments: list[str], situation: Situation) -> None:
    """Raise ``UnprovenError`` unless awk only prints, and only what may be read."""
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        if word in ("-F", "-v", "--field-separator"):
            if not rest:
                raise UnprovenError(f"awk {word} has no value")
            value = rest.pop(0)
        elif word.startswith("--field-separator="):
            continue
        elif word.startswith(("-F", "-v")):
            value = word[2:]
        else:
            raise UnprovenError(f"awk {word} may do more than read")
        if word.startswith("-v") and not re.fullmatch(
            r"[a-z_][A-Za-z0-9_]*=[^\n]*|[NOF]S=[^\n]*|[OR]+FS=[^\n]*", value
        ):
            raise UnprovenError(f"the awk variable {value} may do more than set a value")
    if not rest or not program_is_harmless(rest[0]):
        raise UnprovenError("the awk program may do more than print")
    for operand in rest[1:]:
        if re.match(r"[A-Za-z_]\w*=", operand):
            raise UnprovenError(f"awk treats {operand} as an assignment")
        check_content(operand, situation)


def program_is_harmless(program: str) -> bool:
    """Whether a program can neither start programs, nor access other files, nor see the environment."""
    if _EFFECT.search(program) or "\\" in re.sub(r"\\[^\n]", "", program):
        return False
    code = _without_strings(program)
    if "|" in code.replace("||", ""):
        return False
    return ">" not in code or _only_compares(code)


def _without_strings(program: str) -> str:
    """The program with its strings and regular expressions emptied if they can be recognised; else unchanged."""
    code, at = "", 0
    while at < len(program):
        char = program[at]
        if char == "#":
            return program
        if char == '"' or (char == "/" and not _divides(code)):
            literal = (_STRING if char == '"' else _REGULAR).match(program, at)
            if literal is None or (char == "/" and not _BEFORE_REGULAR.search(code)):
                return program
            code, at = code + '""', literal.end()
        else:
            code, at = code + ("÷" if char == "/" else char), at + 1
    return program if "\\" in code else code


def _divides(code: str) -> bool:
    """Whether a slash after this code divides: it does after a name, a number or an index."""
    operand = re.search(r"(?:(?<![\w.])[\w.]+|\])[ \t]*$", code)
    return operand is not None and operand.group().strip() not in tables().lists["awk_no_operands"]


def _only_compares(code: str) -> bool:
    """Whether each ``>`` compares: it does in parentheses and outside actions; elsewhere it may name a file."""
    if any(char in code for char in "/#'\\") or '"' in code.replace('""', ""):
        return False
    braces = parentheses = 0
    for char in code:
        if char in "{}":
            if parentheses:
                return False
            braces += 1 if char == "{" else -1
        elif char in "()":
            parentheses += 1 if char == "(" else -1
        elif char == ">" and braces and not parentheses:
            return False
        if braces < 0 or parentheses < 0:
            return False
    return braces == 0 and parentheses == 0


Check = Callable[[list[str], Situation], None]

# --- find ----------------------------------------------------------------------------------------------------------


def check_find(arguments: list[str], situation: Situation) -> list[list[str]]:
    """Raise unless find only lists. Returns the commands it starts, which must be judged as well."""
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
                raise UnprovenError(f"find {word} has no value")
            value = rest.pop(0)
            if word in lists["find_file"]:
                check_name(value, situation)
        elif word not in lists["find_alone"]:
            raise UnprovenError(f"find {word} may change files")
    for start in starts or ["."]:
        check_name(start, situation)
        if follow:
            check_tree(start, situation)
    for inner in started:
        check_executed(inner, arguments, starts, situation)
    return started


# --- jq ------------------------------------------------------------------------------------------------------------

_JQ_FLAGS = frozenset("rcsSneajMCR")
_JQ_EFFECT = lazy_pattern(
    r"(?<!\.)\benv\b|\$ENV|\$__|(?<!\.)\b(import|include|input_filename|get_search_list|modulemeta)\b"
)


def _jq(arguments: list[str], situation: Situation) -> None:
    operands: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("--arg", "--argjson"):
            if len(rest) < 2:
                raise UnprovenError(f"jq {word} has no value")
            del rest[:2]
        elif word in ("--slurpfile", "--rawfile"):
            if len(rest) < 2:
                raise UnprovenError(f"jq {word} has no value")
            check_content(rest[1], situation)
            del rest[:2]
        elif word == "--indent":
            del rest[:1]
        elif word in tables().lists["jq_long"]:
            continue
        elif word.startswith("-") and word != "-":
            if word.startswith("--") or not set(word[1:]) <= _JQ_FLAGS:
                raise UnprovenError(f"jq {word} may do more than read")
        else:
            operands.append(word)
    if not operands:
        if "--version" in arguments or "--help" in arguments:
            return
        raise UnprovenError("jq has no filter")
    if _JQ_EFFECT.search(operands[0]):
        raise UnprovenError("the jq filter may read the environment or other files")
    for operand in operands[1:]:
        check_content(operand, situation)


# --- test ----------------------------------------------------------------------------------------------------------

TEST_FILE = frozenset(f"-{letter}" for letter in "abcdefghkpLrsSuwxOGN")
TEST_TEXT = frozenset(("-n", "-z"))
_TEST_BETWEEN = frozenset(("=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"))


def _test(arguments: list[str], situation: Situation) -> None:
    joint = next((at for at, word in enumerate(arguments) if word in ("-a", "-o") and 0 < at < len(arguments) - 1), 0)
    if len(arguments) > 3 and joint:
        _test(arguments[:joint], situation)
        _test(arguments[joint + 1 :], situation)
        return
    if arguments[:1] == ["!"]:
        arguments = arguments[1:]
    match arguments:
        case [] | [_]:
            return
        case [operator, value] if operator in TEST_TEXT:
            del value
        case [operator, value] if operator in TEST_FILE:
            check_name(value, situation)
        case [_, operator, _] if operator in _TEST_BETWEEN:
            return
        case [left, "-nt" | "-ot" | "-ef", right]:
            check_name(left, situation)
            check_name(right, situation)
        case _:
            raise UnprovenError("this test is not understood")


def _bracket(arguments: list[str], situation: Situation) -> None:
    if not arguments or arguments[-1] != "]":
        raise UnprovenError("[ is not closed")
    _test(arguments[:-1], situation)


# --- others --------------------------------------------------------------------------------------------------------


def _printf(arguments: list[str], situation: Situation) -> None:
    if arguments[:1] == ["--"]:
        arguments = arguments[1:]
    if not arguments or arguments[0].startswith("-"):
        raise UnprovenError("printf with an option may change a variable")
    if re.search(r"%[-+ #0-9.*'hlLqjzt]*n", arguments[0]):
        raise UnprovenError("printf %n changes a variable")


def _command(arguments: list[str], situation: Situation) -> None:
    if arguments[:1] not in (["-v"], ["-V"]):
        raise UnprovenError("command starts another program")


def _ps(arguments: list[str], situation: Situation) -> None:
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
            raise UnprovenError(f"ps {word} may do more than read")


def _yes(arguments: list[str], situation: Situation) -> None:
    if not situation.cut:
        raise UnprovenError("yes never ends unless head reads its output")


def _go(arguments: list[str], situation: Situation) -> None:
    """Only tells settings that hold no secret, as an address of a proxy may."""
    names = [word for word in arguments[1:] if word != "-json"]
    if arguments[:1] != ["env"]:
        raise UnprovenError(f"go {arguments[0] if arguments else 'alone'} may change files")
    if not names or not tables().lists["go_variables"].issuperset(names):
        raise UnprovenError("this use of go env may show or change other settings")


def _members(name: str, arguments: list[str], situation: Situation) -> None:
    """``ar t ARCHIVE`` and ``jar tf ARCHIVE``, with members to list."""
    if len(arguments) < 2 or not re.fullmatch(r"-?tv?" if name == "ar" else r"-?tv?f", arguments[0]):
        raise UnprovenError(f"{name} may change files unless it lists an archive")
    for word in arguments[1:]:
        if word.startswith(("-", "@")):
            raise UnprovenError(f"{name} {word} may do more than read")
    check_content(arguments[1], situation)


def _openssl(arguments: list[str], situation: Situation) -> None:
    """Only shows a certificate, or the request for one, or a sum of files."""
    rest = arguments[1:]
    if arguments[:1] == ["dgst"] and rest[:1] and re.fullmatch(r"-(md5|sha(1|224|256|384|512))", rest[0]):
        for word in rest[1:]:
            if word.startswith("-") and word not in ("-r", "-hex"):
                raise UnprovenError(f"openssl {word} may do more than read")
            check_content(word, situation)
        return
    if arguments[:1] not in (["x509"], ["req"], ["crl"]) or "-noout" not in rest:
        raise UnprovenError("this use of openssl may do more than show a certificate")
    while rest:
        word = rest.pop(0)
        if word == "-in" and rest:
            check_content(rest.pop(0), situation)
        elif word in tables().lists["certificate_values"] and rest:
            rest.pop(0)
        elif word not in tables().lists["certificate_flags"]:
            raise UnprovenError(f"openssl {word} may do more than read")


_SOCKETS = lazy_pattern(
    r"[<>=!()]+|src|dst|sport|dport|state|exclude|and|or|not|all|connected|synchronized|bucket|big|established|syn-sent"
    r"|syn-recv|fin-wait-[12]|time-wait|closed|close-wait|last-ack|listening|closing|[0-9a-fA-F.:*/\[\]]*[0-9:*][0-9a-fA-F.:*/\[\]]*"
    r"|:[a-z][a-z0-9-]*"
)
"""A word of a filter of ``ss`` that names no machine."""
_OPEN_CONNECTIONS = lazy_pattern(
    r"[46]?(?:tcp|udp)?(?:@(?:localhost|[0-9.]+|\[[0-9a-f:]+\]))?(?::[0-9a-z,-]+)?", re.IGNORECASE
)


def _ss(arguments: list[str], situation: Situation) -> None:
    """Shows connections; a name of a machine in its filter is looked up in the network."""
    for word in arguments:
        if not word.startswith("-") and not all(map(_SOCKETS.fullmatch, word.split())):
            raise UnprovenError(f"ss may look up {word} in the network")
    check_table("ss", tables().commands["ss"], arguments, situation)


def _lsof(arguments: list[str], situation: Situation) -> None:
    """Shows open files; a name of a machine behind ``-i`` is looked up in the network."""
    for before, word in pairwise(("", *arguments)):
        _, found, value = word.partition("i") if re.match("-[A-Za-z]", word) else ("", "", "")
        value = value if found else word if re.fullmatch("-[A-Za-z]*i", before) and not word.startswith("-") else ""
        if not _OPEN_CONNECTIONS.fullmatch(value):
            raise UnprovenError(f"lsof may look up {word} in the network")
    check_table("lsof", tables().commands["lsof"], arguments, situation)


def _shellcheck(arguments: list[str], situation: Situation) -> None:
    """Reads scripts, and those that they source, of which it shows nothing but names."""
    if situation.rules.rules:
        situation.object_to_reading("shellcheck may read other scripts that these source")
    check_table("shellcheck", tables().commands["shellcheck"], arguments, situation)


def _printenv(arguments: list[str], situation: Situation) -> None:
    if not arguments or not set(arguments) <= tables().lists["shown_variables"]:
        raise UnprovenError("printenv may show secrets")


def _yq(arguments: list[str], situation: Situation) -> None:
    operands = [word for word in arguments if word not in ("-r", "-c", "-P", "-o=json", "-o=yaml")]
    if operands[:1] in (["e"], ["eval"]):
        operands = operands[1:]
    # Two programs have this name; both only read if the filter has just keys, indexes and pipes.
    if not operands or not re.fullmatch(r"(\.[\w-]*|\.?\[\d*\]|\.\"[\w -]+\"|\s|\||keys|length)+", operands[0]):
        raise UnprovenError("the yq filter may do more than read")
    for operand in operands[1:]:
        if operand.startswith("-"):
            raise UnprovenError(f"yq {operand} may do more than read")
        check_content(operand, situation)


_TAR_FLAGS = frozenset("tvzjJaZ")


def _tar(arguments: list[str], situation: Situation) -> None:
    """Only lists one archive: ``tvf A``, ``-t -v -f A``, ``--list --file=A``, with members to list."""
    archives: list[str] = []
    lists = False
    rest = list(arguments)
    if rest and not rest[0].startswith("-"):
        rest[0] = f"-{rest[0]}"  # the first word holds options anyway
        if rest[0].count("f") > 1:
            raise UnprovenError("tar may change files unless it lists an archive")
        if "f" in rest[0]:
            rest[0] = rest[0].replace("f", "") + "f"  # its value is the next word
    while rest:
        word = rest.pop(0)
        option, equals, value = word.partition("=")
        if option == "--file" or option == "--exclude":
            value = value if equals else "".join(rest[:1])
            del rest[: 0 if equals else 1]
            archives += [value] if option == "--file" else []
        elif word in tables().lists["tar_long"]:
            lists |= word == "--list"
        elif word.startswith("-"):
            letters, attached, archive = word[1:].partition("f")
            if not letters + attached or not set(letters) <= _TAR_FLAGS:
                raise UnprovenError("tar may change files unless it lists an archive")
            lists |= "t" in letters
            if attached:
                archives.append(archive or "".join(rest[:1]))
                del rest[: 0 if archive else 1]
    if not lists or len(archives) != 1 or not archives[0]:
        raise UnprovenError("tar may change files unless it lists an archive")
    if ":" in archives[0]:
        raise UnprovenError("tar treats a name with a colon as another machine")
    check_content(archives[0], situation)


_COMPRESSOR_LETTERS = frozenset("cdklqtv0123456789")


def _compressor(name: str, arguments: list[str], situation: Situation) -> None:
    """Only prints, lists or tests: a later ``-d`` overrides ``-t`` and ``-l`` and replaces the file, but not ``-c``."""
    options: set[str] = set()
    for word in arguments:
        if word.startswith("--"):
            if word not in tables().lists["compressor_long"]:
                raise UnprovenError(f"{name} {word} may do more than read")
            options.add(word)
        elif word.startswith("-") and word != "-":
            if not set(word[1:]) <= _COMPRESSOR_LETTERS:
                raise UnprovenError(f"{name} {word} may do more than read")
            options.update(f"-{letter}" for letter in word[1:])
        else:
            check_content(word, situation)
    looks = options & {"-t", "-l", "--test", "--list"} and not options & {"-d", "--decompress", "--uncompress"}
    if not looks and not options & {"-c", "--stdout", "--to-stdout"}:
        raise UnprovenError(f"{name} replaces files unless it prints, lists or tests them")


def _ip(arguments: list[str], situation: Situation) -> None:
    rest = [word for word in arguments if word not in tables().lists["ip_options"]]
    if rest[:2] in (["r", "get"], ["route", "get"]) and len(rest) == 3:
        return
    if not rest or rest[0] not in tables().lists["ip_objects"]:
        raise UnprovenError("this use of ip may change something")
    if rest[1:] and (rest[1] not in ("show", "list", "ls", "sh") or len(rest) > 4):
        raise UnprovenError("this use of ip may change something")


def _git_config(arguments: list[str], situation: Situation) -> None:
    scopes = ("--global", "--local", "--system", "--show-origin", "--show-scope", "--name-only", "-z", "--null")
    rest = [word for word in arguments if word not in scopes]
    if rest in (["--list"], ["-l"], ["list"]):
        if "--name-only" not in arguments:
            check_git_settings("git config", situation)
        return
    if len(rest) == 2 and rest[0] == "--get-regexp" and not rest[1].startswith("-"):
        _not_about_secrets(rest[1], situation)
        check_git_settings("git config", situation)
        return
    if rest[:1] in (["--get"], ["--get-all"], ["get"]):
        rest = rest[1:]
    if len(rest) != 1 or not re.fullmatch(r"[A-Za-z][A-Za-z0-9.-]*\.[A-Za-z0-9][A-Za-z0-9-]*", rest[0]):
        raise UnprovenError("this use of git config may change settings")
    _not_about_secrets(rest[0], situation)
    if not re.match(r"(user|core|init|color|push|pull|merge|branch|diff|log|commit)\.", rest[0], re.IGNORECASE):
        check_git_settings("git config", situation)


def _not_about_secrets(key: str, situation: Situation) -> None:
    if re.search(r"extraheader|token|password|secret|credential", key, re.IGNORECASE):
        situation.object_to_reading(f"{key} may hold secrets")


def _npm(arguments: list[str], situation: Situation) -> None:
    """``npm pkg get`` shows package.json; whatever else it does is in the table."""
    if arguments[:2] == ["pkg", "get"] and not any(word.startswith("-") for word in arguments):
        return
    check_table("npm", tables().commands["npm"], arguments, situation)


def _conda(name: str, arguments: list[str], situation: Situation) -> None:
    if arguments[:2] != ["env", "list"] or any(word not in ("--json", "-v") for word in arguments[2:]):
        check_table(name, tables().commands[name], arguments, situation)


_SHELL_OPTIONS = frozenset(("errexit", "errtrace", "nounset", "pipefail"))


def _set(arguments: list[str], situation: Situation) -> None:
    """Only options that end the script early; others change what later commands mean or show."""
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not re.fullmatch(r"[-+](?=.)[euE]*o?", word) or (word.endswith("o") and not rest):
            raise UnprovenError("this use of set may change what follows")
        if word.endswith("o") and rest.pop(0) not in _SHELL_OPTIONS:
            raise UnprovenError("this use of set may change what follows")
    if not arguments:
        raise UnprovenError("set without options shows all variables")


def _test_of_texts(arguments: Sequence[str | None]) -> bool:
    """Whether a test only looks at texts, so that their content does not matter."""
    return (len(arguments) == 2 and arguments[0] in TEST_TEXT) or (
        len(arguments) == 3 and arguments[1] in _TEST_BETWEEN
    )


PROGRAMS: Mapping[str, Check] = {
    "sed": check_sed,
    "awk": check_awk,
    "gawk": check_awk,
    "mawk": check_awk,
    "jq": _jq,
    "test": _test,
    "[": _bracket,
    "printf": _printf,
    "command": _command,
    "ps": _ps,
    "printenv": _printenv,
    "tar": _tar,
    **{name: partial(_compressor, name) for name in ("xz", "unxz", "bzip2", "bunzip2", "zstd", "unzstd")},
    "ip": _ip,
    "yes": _yes,
    "go": _go,
    "openssl": _openssl,
    **{name: partial(_members, name) for name in ("ar", "jar")},
    "yq": _yq,
    "npm": _npm,
    **{name: partial(_conda, name) for name in ("conda", "mamba")},
    "git config": _git_config,
    "set": _set,
    "shellcheck": _shellcheck,
    "ss": _ss,
    "lsof": _lsof,
}
"""Programs by name; the functions raise ``UnprovenError``."""

CONNECTING = REMOTE | frozenset(
    (
        *("curl", "dig", "ftp", "host", "mosh", "nc", "ncat", "netcat", "nslookup", "oc", "ping", "rsync", "socat"),
        *("telnet", "wget", "whois"),
    )
)
"""Programs that exchange data with other machines: what they change there is not in files here."""

OTHERWISE: Mapping[str, str] = {
    **dict.fromkeys(CONNECTING, "exchanges data with other machines"),
    **dict.fromkeys(("kill", "renice"), "acts on other processes"),
    **dict.fromkeys((".", "source"), "runs a script in this shell"),
    "git ls-remote": "exchanges data with other machines",
}
"""What programs do other than changing files, as a clause without its subject."""

BUILTINS = frozenset(("test", "[", "printf", "command", "set"))
"""The programs that the shell itself runs."""

CHECK_SYNTAX = ("bash", "dash", "sh")
"""Shells that with ``-n`` and a script only read it. They are none of the programs above, which only read."""


MAY_BE_UNKNOWN: Mapping[str, Callable[[Sequence[str | None]], bool]] = {
    "printf": lambda arguments: bool(arguments) and arguments[0] is not None,
    "[": lambda arguments: arguments[-1] == "]" and _test_of_texts(arguments[:-1]),
    "test": lambda arguments: _test_of_texts(arguments),
}
"""Programs for which an argument with unknown text is harmless."""
