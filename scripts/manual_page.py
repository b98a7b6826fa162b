"""The manual page, from the argument parser: roff for man and mandoc, the same on every version of Python.

It takes actions from the parser, and not argparse's own help text, whose form changes between versions.
"""

from __future__ import annotations

import argparse
import re

from swecli import __version__
from swecli.command_line.arguments import SUBCOMMANDS, main_parser

FILES = (
    (".swecli/config.toml", "the project's settings, read once you trust the folder"),
    ("~/.config/swecli/config.toml", "your settings; swecli config path prints where they are"),
    (
        "OPENCLI.md, AGENTS.md, CLAUDE.md, GEMINI.md",
        "the project's instructions, the first that exists in each folder",
    ),
)
EXAMPLES = (
    ("swecli", "start in this folder"),
    ('swecli -p "why does the login test fail?"', "print one answer"),
    ("git diff | swecli -p 'review this' --output-format json", "in a script"),
    ("swecli -c", "continue the folder's newest conversation"),
    ("swecli demo", "try it without a key"),
)


def manual_page() -> str:
    parser = main_parser()
    # One page for all of them: subcommands have --help, and their own options change more often than their names.
    lines = [
        f'.TH SWECLI 1 "" "swecli {__version__}" "User Commands"',
        ".SH NAME",
        rf"swecli \- {_text('a coding agent for the terminal, whose context you can see, trust and take back')}",
        ".SH SYNOPSIS",
        r".B swecli",
        r"[\fIOPTIONS\fR] [\fIMESSAGE\fR]",
        ".br",
        r".B swecli",
        r"\fISUBCOMMAND\fR [\fIARGUMENTS\fR]",
        ".SH DESCRIPTION",
        _text(parser.description or ""),
        "Without a message it opens its interface. With",
        r".B \-p",
        "or without a terminal it prints one answer and exits.",
    ]
    for group in parser._action_groups:  # pyright: ignore[reportPrivateUsage] - argparse has no public list of them
        actions = [each for each in group._group_actions if each.help != argparse.SUPPRESS]  # pyright: ignore[reportPrivateUsage]
        options = [each for each in actions if each.option_strings]
        if options:
            title = "OPTIONS" if group.title == "options" else f"OPTIONS: {(group.title or '').upper()}"
            lines += [f".SH {_text(title)}", *(line for each in options for line in _option(each))]
    lines.append(".SH SUBCOMMANDS")
    for each in SUBCOMMANDS.values():
        if each.usage:
            lines += [".TP", rf"\fBswecli {_text(each.usage.strip())}\fR", _text(each.summary)]
    lines += [".PP", rf"Each has its own help: \fBswecli {_text('NAME')} \-\-help\fR."]
    variables, _, status = (parser.epilog or "").partition("\n\n")[2].partition("Exit status: ")
    lines += [".SH ENVIRONMENT", _text(variables), ".SH EXIT STATUS"]
    for code in re.split(r",\s+(?=\d)", " ".join(status.split()).rstrip(".")):
        number, _, meaning = code.partition(" ")
        if number == "130":
            number, meaning = "130, 143", "stopped by a signal"
        lines += [".TP", rf"\fB{number}\fR", _text(meaning)]
    for title, rows in (("FILES", FILES), ("EXAMPLES", EXAMPLES)):
        lines.append(f".SH {title}")
        for head, meaning in rows:
            lines += [".TP", rf"\fB{_text(head)}\fR", _text(meaning)]
    return "\n".join((*lines, ""))


def _option(action: argparse.Action) -> list[str]:
    names = ", ".join(rf"\fB{_text(name)}\fR" for name in action.option_strings)
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    shown = "" if action.nargs == 0 else rf" \fI{_text(str(value))}\fR"
    about = _text(" ".join((action.help or "").split()))
    if action.choices and action.metavar:
        about += rf" ({_text(', '.join(map(str, action.choices)))})"
    return [".TP", f"{names}{f' [{shown.strip()}]' if action.nargs == '?' else shown}", about or r"\&"]


def _text(text: str) -> str:
    """Plain text as roff: hyphens that can be copied, and no line that begins a request."""
    escaped = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    return rf"\&{escaped}" if escaped.startswith((".", r"\(aq")) else escaped
