"""`swecli permissions`: rules, grants, trust, and verdicts about commands without running them."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from msgspec.structs import asdict, replace

from swecli.command_line.arguments import Parser, UsageError, folder_parser, run_word, working_directory
from swecli.command_line.permission_import import import_rules
from swecli.command_line.standard_streams import complain, input_lines, print_lines, print_rows
from swecli.core.permissions.rules import RuleError, parse_rule, starts_others
from swecli.core.permissions.types import Policy
from swecli.core.protocol.blocks import DisplayBlock
from swecli.core.protocol.events import Mode
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError
from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.assembly.permissions import FolderRules
    from swecli.core.config.trust import PendingItem
    from swecli.core.permissions.check import PolicyOf


def list_rules(arguments: Sequence[str]) -> int:
    parser = folder_parser("swecli permissions list", "List this folder's permission rules.")
    parser.add_argument("--json", action="store_true", help="one JSON line per rule")
    chosen = parser.parse_args(arguments)
    rules = _rules(working_directory(chosen.cwd))
    if chosen.json:
        return print_lines(json.dumps(asdict(row)) for row in rules.rows())
    from swecli.block_text import block_lines

    return print_rows(block_lines(rules_block(rules)))


def rules_block(rules: FolderRules) -> DisplayBlock:
    from swecli.core.protocol.blocks import TableBlock, TextBlock

    cells = tuple((row.id, row.effect, row.rule, row.origin, row.used, row.void or "in force") for row in rules.rows())
    if not cells:
        return TextBlock("No rules yet. swecli asks before anything it can't prove is read-only.")
    return TableBlock(("Id", "", "Rule", "From", "Used", "Effect"), cells)


def _rules(folder: Path) -> FolderRules:
    from swecli.assembly.permissions import FolderRules

    return FolderRules(LaunchOptions(cwd=folder), dict(os.environ))


@contextmanager
def _told(rule: str = "") -> Generator[None]:
    """A bad rule, or a change that can't be stored, as an error of the program."""
    try:
        yield
    except RuleError as error:
        raise UsageError(f"{rule}: {error}") from error
    except OSError as error:
        raise StartError(f"The change cannot be stored: {error}. Nothing was changed.") from error


def try_rule(arguments: Sequence[str]) -> int:
    """Number of the newest commands that a rule matches."""
    parser = folder_parser("swecli permissions test", "Show which of the last 200 commands a rule matches.")
    parser.add_argument("rule", help="for example 'Bash(npm run *)'")
    parser.add_argument("--as", dest="effect", choices=("allow", "ask", "deny"), default="allow")
    chosen = parser.parse_args(arguments)
    with _told(chosen.rule):
        matches, total = _rules(working_directory(chosen.cwd)).matches(chosen.effect, chosen.rule)
    writes = [match.call.effects.command or "" for match in matches if not match.reads]
    rest = f", {len(writes)} of which may write:" if writes else "."
    first = f"{chosen.rule} would have matched {len(matches)} of the last {total} commands{rest}"
    return print_rows((first, *(f"  {safe_line(text)[:200]}" for text in writes[:10])))


def grant(arguments: Sequence[str]) -> int:
    """Allow something in this folder for seven days or until revoked."""
    parser = folder_parser("swecli permissions grant", "Allow something in this folder without approval.")
    parser.add_argument("rule", help="for example 'Bash(npm run *)'")
    parser.add_argument(
        "--for", dest="span", choices=("week", "project"), default="week", help="7 days, or until revoked"
    )
    chosen = parser.parse_args(arguments)
    from swecli.assembly.permissions import checked_rule
    from swecli.assembly.rules import rule_notice

    with _told(chosen.rule):
        checked_rule("allow", chosen.rule)
        reach = starts_others(parse_rule(chosen.rule))
        note = rule_notice(chosen.rule) or (f"{reach}." if reach else "")
        stored = _rules(working_directory(chosen.cwd)).grants.add(chosen.rule, chosen.span)
    status = print_rows([f"{stored.id}  allow {stored.rule}: {stored.origin}"])
    if note:
        sys.stderr.write(f"{safe_line(note)}\n")
    return status


def revoke(arguments: Sequence[str]) -> int:
    """Revoke a grant. Running sessions ask again from their next call on."""
    parser = folder_parser("swecli permissions revoke", "Revoke a grant in this folder.")
    parser.add_argument("name", help="the grant's id or its rule, as `swecli permissions` shows them")
    chosen = parser.parse_args(arguments)
    with _told():
        revoked = _rules(working_directory(chosen.cwd)).grants.revoke(chosen.name)
    if not revoked:
        raise UsageError(f"No grant matches {chosen.name!r}; `swecli permissions` lists them")
    return print_rows(f"revoked: {each.rule}" for each in revoked)


_WORDS: dict[str, Literal["trusted", "declined", "unknown"]] = {
    "trust": "trusted",
    "decline": "declined",
    "forget": "unknown",
}


def set_trust(word: str, arguments: Sequence[str]) -> int:
    """Remember, refuse or forget trust in a folder; ``word`` is trust, decline or forget."""
    parser = folder_parser(
        f"swecli permissions {word}",
        "Trust decides whether swecli uses a folder's settings and instructions. It is stored for you, outside the "
        "folder.",
        "for this folder",
    )
    if word == "trust":
        parser.add_argument("--below", action="store_true", help="include all subfolders, present and future")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    from swecli.assembly.trust import extension_digests
    from swecli.core.config.paths import user_paths
    from swecli.core.config.trust import accept_items, trust_key, write_trust

    below = bool(word == "trust" and chosen.below)
    powers = _asked_for(folder) if word == "trust" else ()
    with _told():
        if word == "trust":
            accept_items(user_paths(os.environ).data, folder, extension_digests(folder))
        notice = write_trust(user_paths(os.environ).data, folder, _WORDS[word], below=below)
    if notice:
        complain(f"warning: {notice}")
    what = {
        "trust": "is trusted",
        "decline": "is not trusted and will not ask again",
        "forget": "will ask about trust again",
    }
    hooks = _hooks_accepted(folder) if word == "trust" else ()
    lines = [*powers, f"{trust_key(folder)}{' and everything below' if below else ''} {what[word]}."]
    lines += (f"Its hook for {item.key.partition('.')[2]} will run: {item.value}" for item in hooks)
    return print_rows(lines)


def _asked_for(folder: Path) -> list[str]:
    """The list that the interface shows before its question."""
    from swecli.assembly.powers import trust_lines

    lines = trust_lines(folder, dict(os.environ), with_hooks=True)
    return ["These files change how swecli works:", *(f"  {line}" for line in lines)] if lines else []


def _hooks_accepted(folder: Path) -> tuple[PendingItem, ...]:
    """Consent to a trusted folder's hooks in their present form; changed ones need consent again."""
    from swecli.assembly.startup import read_startup

    try:
        items = read_startup(folder, dict(os.environ), {}).hooks.pending
    except StartError as error:  # trust is stored; every start reports the settings' errors
        complain(f"warning: {error}")
        return ()
    if items:
        accept_pending(folder, items)
    return items


def accept(arguments: Sequence[str]) -> int:
    """Show the project's settings that await consent, or consent to some of them."""
    parser = folder_parser(
        "swecli permissions accept",
        "swecli ignores project settings that name programs or addresses, or skip questions, until you "
        "accept each one. Without a key, this lists them. A changed setting asks again.",
        "for this folder",
    )
    parser.add_argument("keys", nargs="*", metavar="KEY", help="for example approval.allow")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    pending = pending_items(folder)
    if not chosen.keys:
        shown = [line for item in pending for line in (f"{item.key} = {item.value}", f"    {item.origin}")]
        return print_rows(shown or ["No project settings are waiting for your consent."])
    unknown = [key for key in chosen.keys if key not in {item.key for item in pending}]
    if unknown:
        raise UsageError(f"No pending setting matches {', '.join(unknown)}; `swecli permissions accept` lists them")
    wanted = [item for item in pending if item.key in chosen.keys]
    accept_pending(folder, wanted)
    return print_rows(f"accepted: {item.key} = {item.value}" for item in wanted)


def pending_items(folder: Path) -> tuple[PendingItem, ...]:
    """Settings of a trusted folder that await consent.

    Raises:
        StartError: the folder is not trusted, or its settings are broken.
    """
    from swecli.assembly.startup import read_startup

    startup = read_startup(folder, dict(os.environ), {})
    if not startup.trust.trusts:
        raise StartError(
            f"{folder} is not trusted, so its settings are ignored. Trust it first: swecli permissions trust",
            ExitCode.UNTRUSTED,
        )
    return startup.pending


def accept_pending(folder: Path, items: Sequence[PendingItem]) -> None:
    """Store consent to exactly these.

    Raises:
        StartError: it can't be stored.
    """
    from swecli.core.config.paths import user_paths
    from swecli.core.config.trust import accept_items

    with _told():
        accept_items(user_paths(os.environ).data, folder, [item.digest for item in items])


_DESCRIPTION = """Show and change what runs without approval.

  swecli permissions                       list the rules here: origin, uses, and why one has no effect
  swecli permissions test RULE             show which of the last 200 commands it matches
  swecli permissions grant RULE            allow for 7 days, or with --for project until revoked; revoke ID
  swecli permissions check -- COMMAND      print the verdict for a command without running it
  swecli permissions check --batch         read JSON lines {"command", "cwd", "mode"}, write verdicts
  swecli permissions trust [--below]       trust this folder's settings and instructions; also decline, forget
  swecli permissions import                list and copy the rules of Claude Code's settings
  swecli permissions accept [KEY]          accept single project settings that need your consent
"""


def permissions(arguments: Sequence[str]) -> int:
    return run_word("swecli permissions", _DESCRIPTION, _COMMANDS, arguments, "list")


def _check(arguments: Sequence[str]) -> int:
    parser = Parser(
        prog="swecli permissions check",
        description="Show the verdict for a command without running it.",
        allow_abbrev=False,
    )
    parser.add_argument("--mode", choices=get_args(Mode), help="as in this mode")
    parser.add_argument("--json", action="store_true", help="print the verdict as one line of JSON")
    parser.add_argument("--batch", action="store_true", help="read JSON lines from standard input")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="as in this folder")
    parser.add_argument("command", nargs="*", help="the command as one shell string or as separate words")
    chosen = parser.parse_args(arguments)
    if chosen.batch:
        if chosen.command:
            raise UsageError("--batch reads commands from standard input")
        from swecli.core.permissions.check import judge_lines

        return print_lines(judge_lines(input_lines(), policies()))
    if not chosen.command:
        raise UsageError("A command is missing: swecli permissions check -- COMMAND")
    # Several words were already split by the user's shell.
    command = chosen.command[0] if len(chosen.command) == 1 else shlex.join(chosen.command)
    return _check_one(command, working_directory(chosen.cwd), chosen.mode, as_json=chosen.json)


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
    if decision.offer_note:
        lines.append(f"  {decision.offer_note}")
    return print_rows(lines)


def policies() -> PolicyOf:
    """The initial policy of a session in each folder, read once, with its sandbox."""
    from functools import cache

    from swecli.assembly.sandbox import sandbox_state
    from swecli.core.permissions.check import BadCheck

    @cache
    def policy_of(folder: Path) -> Policy:
        rules = _rules(folder)
        try:
            startup = rules.startup()
            state = sandbox_state(rules.options, startup)
            return replace(rules.policy(startup), sandbox=state.level, holds=state.holds, masks=state.masks)
        except StartError as error:
            raise BadCheck(str(error)) from error

    return policy_of


_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "check": _check,
    **{word: partial(set_trust, word) for word in ("trust", "decline", "forget")},
    "accept": accept,
    "list": list_rules,
    "test": try_rule,
    "grant": grant,
    "revoke": revoke,
    "import": import_rules,
}
