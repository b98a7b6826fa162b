"""``swecli permissions``: what would be asked, by which rules, and what was granted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from swecli.command_line.arguments import Parser, UsageError, working_directory
from swecli.command_line.permissions_rules import grant, list_rules, revoke, try_rule
from swecli.command_line.permissions_trust import accept, set_trust
from swecli.command_line.printing import input_lines, print_lines
from swecli.core.protocol.events import Mode
from swecli.exit_codes import ExitCode
from swecli.launch import StartError

if TYPE_CHECKING:
    from swecli.core.permissions.check import PolicyOf
    from swecli.core.permissions.types import Policy

_DESCRIPTION = """What would be asked about, by which rules, and what was granted.

  swecli permissions                       the rules that hold here: origin, uses, and what makes one void
  swecli permissions test RULE             which of the last 200 commands it would have matched
  swecli permissions grant RULE            allow for 7 days, or with --for project until revoked; revoke ID
  swecli permissions check -- COMMAND      the verdict about a command, which is not run
  swecli permissions check --batch         JSON lines {"command", "cwd", "mode"} in, verdicts out
  swecli permissions trust [--below]       settings and instructions of this folder count; decline, forget
  swecli permissions accept [KEY]          single settings of the project that need your consent
"""


def permissions(arguments: Sequence[str]) -> int:
    """``swecli permissions``: the exit status."""
    name = arguments[0] if arguments and not arguments[0].startswith("-") else "list"
    rest = arguments[1:] if arguments and not arguments[0].startswith("-") else arguments
    if "-h" in arguments[:1] or "--help" in arguments[:1]:
        sys.stdout.write(_DESCRIPTION)
        return ExitCode.OK
    run = _COMMANDS.get(name)
    if run is None:
        raise UsageError(f"swecli permissions has no {name!r}: there are {', '.join(_COMMANDS)}")
    return run(rest)


def _check(arguments: Sequence[str]) -> int:
    parser = Parser(
        prog="swecli permissions check", description="The verdict about a command. Nothing is run.", allow_abbrev=False
    )
    parser.add_argument("--mode", choices=get_args(Mode), help="as if this were the mode")
    parser.add_argument("--json", action="store_true", help="the verdict as one line of JSON")
    parser.add_argument("--batch", action="store_true", help="read JSON lines from standard input")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="as it would be in this folder")
    parser.add_argument("command", nargs="*", help="one text for the shell, or its words one by one")
    chosen = parser.parse_args(arguments)
    if chosen.batch:
        if chosen.command:
            raise UsageError("--batch reads its commands from standard input")
        from swecli.core.permissions.check import judge_lines

        return print_lines(judge_lines(input_lines(), policies()))
    if not chosen.command:
        raise UsageError("a command is missing: swecli permissions check -- COMMAND")
    return _check_one(_as_text(chosen.command), working_directory(chosen.cwd), chosen.mode, as_json=chosen.json)


def _as_text(words: Sequence[str]) -> str:
    """What the shell would get. Several words were already taken apart by the user's shell."""
    import shlex

    return words[0] if len(words) == 1 else shlex.join(words)


def _check_one(command: str, folder: Path, mode: Mode | None, *, as_json: bool) -> int:
    from swecli.core.permissions.check import BadCheck, CommandCheck, decision_data, judge_command

    try:
        decision = judge_command(CommandCheck(command, folder, mode), policies())
    except BadCheck as error:
        raise StartError(str(error), ExitCode.CONFIG) from error
    if as_json:
        return print_lines([json.dumps({"command": command, **decision_data(decision)})])
    lines = [f"{decision.outcome}: {decision.reason}", *(f"  {line}" for line in decision.evidence)]
    if decision.offer is not None:
        lines.append(f'  "always" would add: {decision.offer}')
    return print_lines(_safe(line) for line in lines)


def policies() -> PolicyOf:
    """The policy of each folder, read once, with the sandbox that a session would find there."""
    from functools import cache

    from swecli.core.permissions.check import BadCheck

    @cache
    def policy_of(folder: Path) -> Policy:
        try:
            return folder_policy(folder, sandboxed=True)
        except StartError as error:
            raise BadCheck(str(error)) from error

    return policy_of


def folder_policy(folder: Path, *, sandboxed: bool = False) -> Policy:
    """The policy that a session in this folder would start with; ``sandboxed`` looks for its sandbox too, which may
    take a moment.

    Raises:
        StartError: its settings are broken.
    """
    from dataclasses import replace

    from swecli.assembly.grants import grant_rules, grants_of
    from swecli.assembly.services import build_policy
    from swecli.assembly.startup import read_startup
    from swecli.core.workspace.environment import scrubbed_environment
    from swecli.launch import LaunchOptions

    environment = dict(os.environ)
    startup = read_startup(folder, environment, {})
    options = LaunchOptions(cwd=folder)
    policy = build_policy(options, startup, scrubbed_environment(environment))
    if sandboxed:
        from swecli.assembly.sandbox import sandbox_state

        policy = replace(policy, sandbox=sandbox_state(options, startup).level)
    return replace(policy, rules=(*policy.rules, *grant_rules(grants_of(startup, folder))))


_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "check": _check,
    **{word: partial(set_trust, word) for word in ("trust", "decline", "forget")},
    "accept": accept,
    "list": partial(list_rules, folder_policy),
    "test": partial(try_rule, folder_policy),
    "grant": partial(grant, folder_policy),
    "revoke": partial(revoke, folder_policy),
}


def _safe(text: str) -> str:
    from swecli.safe_text import safe_line

    return safe_line(text)
