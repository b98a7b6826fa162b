"""``swecli completion``: shell scripts that complete the options, generated from the argument parser."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from swecli.command_line.arguments import SUBCOMMANDS, Parser, main_parser
from swecli.exit_codes import ExitCode

_DIRECTORY, _FILE = ("DIR",), ("FILE",)
_FOLLOWED = {name: each.words for name, each in SUBCOMMANDS.items() if each.words}
_WITH_SETTING = ("config get", "config set", "config unset")
_SETTINGS = """swecli config --json 2>/dev/null | sed 's/^{"key": "\\([^"\\]*\\)".*/\\1/'"""
"""Command that prints the names of all settings, which the installed version and the user's servers determine."""


class Option(Struct, frozen=True):
    """An option of the program. ``value`` is its argument, if it needs one; ``choices`` are the argument's allowed
    values."""

    names: tuple[str, ...]
    help: str
    value: Literal["none", "optional", "text", "choice", "directory", "file"]
    choices: tuple[str, ...] = ()


def completion(arguments: Sequence[str]) -> int:
    parser = Parser(
        prog="swecli completion",
        description='A script for your shell, for example in ~/.bashrc: eval "$(swecli completion bash)"; '
        "for fish: swecli completion fish > ~/.config/fish/completions/swecli.fish",
    )
    parser.add_argument("shell", choices=tuple(SCRIPTS))
    chosen = parser.parse_args(arguments).shell
    sys.stdout.write(SCRIPTS[chosen](options_of(main_parser())))
    return ExitCode.OK


def options_of(parser: argparse.ArgumentParser) -> list[Option]:
    actions = parser._actions  # pyright: ignore[reportPrivateUsage] - argparse has no public list of them
    return [_option(action) for action in actions if action.option_strings and action.help != argparse.SUPPRESS]


def _option(action: argparse.Action) -> Option:
    names, about = tuple(action.option_strings), " ".join((action.help or "").split())
    if action.nargs == 0:
        return Option(names, about, "none")
    if action.choices is not None:
        return Option(names, about, "choice", tuple(str(choice) for choice in action.choices))
    if action.nargs == "?":
        return Option(names, about, "optional")
    kind = "directory" if action.metavar in _DIRECTORY else "file" if action.metavar in _FILE else "text"
    return Option(names, about, kind)


def bash(options: Sequence[Option]) -> str:
    """For bash 3.2 and later."""
    every = [name for option in options for name in option.names]
    cases: list[str] = []
    for option in options:
        made = {
            "choice": _bash_words(option.choices),
            "directory": 'COMPREPLY=($(compgen -d -- "$cur"))',
            "file": 'COMPREPLY=($(compgen -f -- "$cur"))',
            "text": ":",
        }.get(option.value)
        if made:
            cases.append(f"    {'|'.join(option.names)}) {made}; return ;;")
    follow = [f"    {name}) {_bash_words(words)} ;;" for name, words in _FOLLOWED.items()]
    setting, names = "|".join(_lines(name.split()) for name in _WITH_SETTING), _bash_list(f'"$({_SETTINGS})"')
    return "\n".join(
        (
            "_swecli() {",
            '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" IFS=$\'\\n\'',
            "  COMPREPLY=()",
            '  case "$prev" in',
            *cases,
            "  esac",
            '  case "$cur" in',
            f"    -*) {_bash_words(every)}; return ;;",
            "  esac",
            '  case "${COMP_WORDS[*]:1:COMP_CWORD-1}" in',  # the words before, separated by line ends
            f'    "") {_bash_words(tuple(SUBCOMMANDS))} ;;',
            *follow,
            f"    {setting}) {names} ;;",
            '    *) COMPREPLY=($(compgen -f -- "$cur")) ;;',
            "  esac",
            "}",
            "complete -o filenames -F _swecli swecli",
            "",
        )
    )


def _lines(words: Sequence[str]) -> str:
    """Words, separated by line ends."""
    return "$'" + "\\n".join(words) + "'"


def _bash_words(words: Sequence[str]) -> str:
    return _bash_list(_lines(words))


def _bash_list(text: str) -> str:
    """Completes the lines of a shell word, which are no file names: a folder ``config`` would make ``config`` a
    ``config/``. Bash 3.2 can't tell them apart."""
    return f'compopt +o filenames 2>/dev/null; COMPREPLY=($(compgen -W {text} -- "$cur"))'


def zsh(options: Sequence[Option]) -> str:
    """For zsh, to be evaluated or saved in a folder of ``fpath`` as ``_swecli``."""
    values = {
        "none": "",
        "optional": "::text:",
        "text": ":text:",
        "directory": ":folder:_files -/",
        "file": ":file:_files",
    }
    specs: list[str] = []
    for option in options:
        value = f":word:({' '.join(option.choices)})" if option.value == "choice" else values[option.value]
        about = option.help.translate({ord(letter): f"\\{letter}" for letter in "[]:\\"}).replace("'", "'\\''")
        names = f"{{{','.join(option.names)}}}" if len(option.names) > 1 else "".join(option.names)
        specs.append(f"    '*'{names}'[{about}]{value}' \\")
    return "\n".join(
        (
            "#compdef swecli",
            "_swecli() {",
            "  local before=${(j: :)words[2,CURRENT-1]}",
            "  if [[ $words[CURRENT] != -* ]]; then",
            "    case $before in",
            *(f"      {name}) compadd -- {' '.join(words)}; return ;;" for name, words in _FOLLOWED.items()),
            f'      {"|".join(map(repr, _WITH_SETTING))}) compadd -- ${{(f)"$({_SETTINGS})"}}; return ;;',
            "    esac",
            "  fi",
            "  _arguments \\",
            *specs,
            f"    '1:subcommand or message:({' '.join(SUBCOMMANDS)})' \\",
            "    '*:file:_files'",
            "}",
            'if [ "$funcstack[1]" = _swecli ]; then _swecli "$@"; else compdef _swecli swecli; fi',
            "",
        )
    )


def fish(options: Sequence[Option]) -> str:
    lines = [
        "function __swecli_after",
        "  set -l words (commandline -opc)",
        '  test "$words[2..]" = "$argv"',
        "end",
        "function __swecli_settings",
        f"  {_SETTINGS}",
        "end",
        f"complete -c swecli -f -n __fish_use_subcommand -a '{' '.join(SUBCOMMANDS)}'",
    ]
    follow = {
        **{name: " ".join(words) for name, words in _FOLLOWED.items()},
        **dict.fromkeys(_WITH_SETTING, "(__swecli_settings)"),
    }
    lines.extend(f"complete -c swecli -f -n '__swecli_after {name}' -a '{words}'" for name, words in follow.items())
    values = {
        "none": "",
        "optional": "",
        "text": " -x",
        "directory": " -x -a '(__fish_complete_directories)'",
        "file": " -r -F",
    }
    for option in options:
        names = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names)
        value = f" -x -a '{' '.join(option.choices)}'" if option.value == "choice" else values[option.value]
        about = option.help.replace("\\", "\\\\").replace("'", "\\'")
        described = f" -d '{about}'" if about else ""
        lines.append(f"complete -c swecli{names}{value}{described}")
    return "\n".join((*lines, ""))


SCRIPTS: Mapping[str, Callable[[Sequence[Option]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
