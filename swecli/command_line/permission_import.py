"""`swecli permissions import`: rules of Claude Code's settings, shown and copied on request."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from swecli.command_line.arguments import Parser, UsageError, working_directory
from swecli.command_line.standard_streams import print_lines
from swecli.core.permissions.rules import READERS, RuleError, parse_rule
from swecli.launch import LaunchOptions, StartError
from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.core.hooks.claude_settings import ClaudeRule

Place = Literal["user", "local", "grants"]
_PLACES: dict[Place, str] = {
    "user": "your settings",
    "local": "this folder's .swecli/config.local.toml",
    "grants": "grants for this folder",
}


class Candidate(Struct, frozen=True):
    """A rule and the place that it would go to. ``trouble`` is the reason why ``--all`` leaves it out."""

    rule: ClaudeRule
    place: Place
    trouble: str = ""
    invalid: bool = False

    @property
    def line(self) -> str:
        where = f"left out: {self.trouble}" if self.trouble else f"to {_PLACES[self.place]}"
        return f"{self.rule.effect:5}  {self.rule.text}  ({self.rule.file}; {where})"


def import_rules(arguments: Sequence[str]) -> int:
    parser = Parser(
        prog="swecli permissions import",
        description="List the permission rules of Claude Code's settings; copy them with --all or --only.",
        allow_abbrev=False,
    )
    parser.add_argument("--all", action="store_true", help="copy all; without it, only list them")
    parser.add_argument("--only", action="append", default=[], metavar="RULE", help="copy this one")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="in this folder")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    candidates = list(dict.fromkeys(_candidates(folder)))
    if not candidates:
        return print_lines(["Claude Code's settings have no permission rules, neither yours nor this folder's."])
    texts = {candidate.rule.text for candidate in candidates}
    if unknown := [text for text in chosen.only if text not in texts]:
        raise UsageError(f"There is no rule {', '.join(unknown)}; without --only, the command lists them")
    if not (chosen.all or chosen.only):
        return print_lines(
            safe_line(line) for line in (*(candidate.line for candidate in candidates), "Copy them with --all.")
        )
    wanted = [
        candidate
        for candidate in candidates
        if (candidate.rule.text in chosen.only if chosen.only else not candidate.trouble)
    ]
    if bad := next((candidate for candidate in wanted if candidate.invalid), None):
        raise UsageError(f"{bad.rule.text}: {bad.trouble}")
    lines = [
        line
        for target in _PLACES
        for line in _copied(folder, target, [candidate for candidate in wanted if candidate.place == target])
    ]
    left = () if chosen.only else (candidate.line for candidate in candidates if candidate.trouble)
    return print_lines(safe_line(line) for line in (*(lines or ["Nothing was copied."]), *left))


def _candidates(folder: Path) -> Iterator[Candidate]:
    from swecli.core.hooks.claude_settings import FILES, read_claude_rules

    own = Path.home() / FILES[0]
    for file in dict.fromkeys([own, *(folder / name for name in FILES)]):
        try:
            rules = read_claude_rules(file)
        except ValueError as error:
            raise StartError(f"{error}. Nothing was changed.") from error
        for rule in rules:
            target: Place = "user" if file == own else "grants" if rule.effect == "allow" else "local"
            trouble = _invalid(rule)
            yield Candidate(rule, target, trouble or _wide(rule), bool(trouble))


def _invalid(rule: ClaudeRule) -> str:
    from swecli.assembly.permissions import checked_rule

    try:
        checked_rule(rule.effect, rule.text)
    except RuleError as error:
        return str(error)
    return ""


def _wide(rule: ClaudeRule) -> str:
    """A clause if the rule allows every call of a tool that acts, however that is spelled; else empty."""
    if rule.effect != "allow" or rule.text.startswith("mcp__"):
        return ""
    pattern = parse_rule(rule.text)
    match pattern.kind:
        case "tool":
            wide = not set(pattern.tools) <= set(READERS)
        case "command":
            wide = not pattern.words
        case "write":
            wide = pattern.path is None or not pattern.path.text.strip("/*")
        case _:
            wide = False
    name = rule.text.partition("(")[0]
    return f"it allows every call of {name}; --only {shlex.quote(rule.text)} copies it" if wide else ""


def _copied(folder: Path, target: Place, rules: Sequence[Candidate]) -> Iterator[str]:
    """Copy rules to one place; yields what was done."""
    if target == "grants":
        from swecli.core.config.paths import user_paths
        from swecli.core.config.trust import GRANTS_FILE, GrantStore

        store = GrantStore(user_paths(os.environ).workspace_data(folder) / GRANTS_FILE)
        for candidate in rules:
            try:
                grant = store.add(candidate.rule.text, "project")
            except OSError as error:
                raise StartError(f"The grant {candidate.rule.text} cannot be stored: {error}") from error
            yield f"{grant.id}  allow {grant.rule}: {grant.origin}"
        return
    from swecli.assembly.settings import SettingsFiles
    from swecli.core.config.load import ConfigError, read_toml, toml_text

    files = SettingsFiles(LaunchOptions(cwd=folder), dict(os.environ))
    for effect in ("deny", "ask", "allow"):
        new = [candidate.rule.text for candidate in rules if candidate.rule.effect == effect]
        if not new:
            continue
        try:
            content, _ = read_toml(Path(files.files[target])) or ({}, "")
            table: dict[str, Any] = content.get("approval", {})
            known = [str(text) for text in table.get(effect, [])]
            value = list(dict.fromkeys([*known, *new]))
            yield files.write(f"approval.{effect}", toml_text(value), target).message
        except (ValueError, ConfigError) as error:
            raise StartError(f"approval.{effect} {error}. Rules of other kinds may have been copied.") from error
