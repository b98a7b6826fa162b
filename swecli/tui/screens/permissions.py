"""The permission rules with origin, number of decisions and value; rules can be revoked and added."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from swecli.assembly.permissions import FolderRules, RuleRow, Tried
from swecli.core.permissions.rules import ALIASES, RuleError, parse_rule, starts_others
from swecli.core.permissions.types import Rule
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.protocol.commands import Command, RevokeRule
from swecli.tui.screens.list_screen import Entry, ListPage, heading, narrowed, read_or_say

WAYS = {
    "week": ("allow", "allow in this folder for 7 days"),
    "project": ("allow", "allow in this folder until revoked"),
    "ask": ("ask", "always ask, in your settings"),
    "deny": ("deny", "never run, in your settings"),
}
"""Ways to add a rule: effect and label."""

_FORMS = "Rules look like Bash(npm test *), Edit(/src/**) or WebFetch(domain:example.org)."

ADD = "add "
"""Prefix of the names of entries that add something."""


class PermissionsPage(ListPage):
    """``notify`` gets a sentence for the user, ``changed`` is called after a rule was added to the settings. ``held``
    are rules that answers allowed in the session; ``send`` sends the command that revokes one."""

    def __init__(
        self,
        port: FolderRules,
        notify: Callable[[str], None],
        changed: Callable[[], None] = lambda: None,
        held: Callable[[], Sequence[Rule]] = tuple,
        send: Callable[[Command], None] = lambda command: None,
    ) -> None:
        super().__init__("Permissions", "type to search, or a rule to add it: Bash(npm test *)")
        self._port = port
        self._notify = notify
        self._changed = changed
        self._held = held
        self._send = send
        self._rules: dict[str, RuleRow] = {}
        self._read_once = False
        self._tried: dict[str, Sequence[DisplayBlock]] = {}

    def begin(self) -> None:
        self.view.start(self._read)

    async def _read(self) -> None:
        rules = await read_or_say(self, partial(self._port.read, tuple(self._held())))
        if rules is None:
            return
        self._read_once = True
        self._rules = {f"rule {number}": rule for number, rule in enumerate(rules)}
        self.entries = entries(self._rules)
        self.view.show()

    def matching(self, query: str) -> Sequence[Entry]:
        offers = _offers(query)
        return [*([heading("Add this rule"), *offers] if offers else []), *narrowed(self.entries, query)]

    def _about_typed(self) -> Sequence[DisplayBlock]:
        text = self.view.text.strip()
        if _looks_like_rule(text):
            try:
                parse_rule(text)
            except RuleError as error:
                return (TextBlock(f"Not a rule yet: {error}.", "warning"),)
        if text:
            return (TextBlock(f"No rule matches “{text}”. {_FORMS}", "warning"),)
        if self._rules or not self._read_once:
            return ()
        return (
            TextBlock("No rules yet. swecli asks before anything it can't prove is read-only."),
            TextBlock("Type one to add it; `a` in an approval adds the rule shown there.", "dim"),
        )

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        if entry is None:
            return self._about_typed()
        if entry.name.startswith(ADD):
            return self._trial(entry.name)
        rule = self._rules[entry.name]
        lines = [TextBlock(f"{rule.effect} {rule.rule}"), TextBlock(f"From: {rule.origin}. Used: {rule.used}.", "dim")]
        if rule.void:
            lines.append(TextBlock(f"No effect: {rule.void}.", "warning"))
        if rule.effect == "allow" and not rule.void:
            lines += _reach(rule.rule)
        return lines

    def _trial(self, name: str) -> Sequence[DisplayBlock]:
        known = self._tried.get(name)
        if known is None:
            self.view.start(lambda: self._try(name), "try")
            return (TextBlock("…", "dim"),)
        return known

    async def _try(self, name: str) -> None:
        how, _, rule = name.removeprefix(ADD).partition(" ")
        effect = WAYS[how][0]
        try:
            tried = await asyncio.to_thread(self._port.try_rule, effect, rule)
        except ValueError as error:
            self._tried[name] = (TextBlock(str(error), "error"),)
        else:
            self._tried[name] = (*trial_blocks(rule, tried), *(_reach(rule) if effect == "allow" else ()))
        if self.view.chosen is not None and self.view.chosen.name == name:
            self.view.say(self._tried[name])

    def key_note(self, entry: Entry | None) -> str:
        if entry is None:
            return "type a rule to add it"
        if entry.name.startswith(ADD):
            return "enter adds it"
        rule = self._rules[entry.name]
        remove = self.view.keymap.shown("remove") if rule.id or rule.held else ""
        return (f"{remove} revokes · " if remove else "") + "type a rule to add it"

    def choose(self, entry: Entry) -> None:
        if entry.name.startswith(ADD):
            how, _, rule = entry.name.removeprefix(ADD).partition(" ")
            self.view.start(lambda: self._add(how, rule))

    async def _add(self, how: str, rule: str) -> None:
        try:
            message = await asyncio.to_thread(self._port.add, how, rule)
        except ValueError as error:
            self.view.say((TextBlock(str(error), "error"),))
            return
        self._notify(message)
        if how in ("ask", "deny"):
            self._changed()
        self.view.put("")
        await self._read()

    def remove(self, entry: Entry | None) -> None:
        rule = self._rules.get(entry.name) if entry is not None else None
        if rule is None:
            return
        if rule.held:
            self._send(RevokeRule(rule.rule))
            self._notify(f"Revoked: {rule.rule}")
            self.view.start(self._read)
        elif not rule.id:
            self._notify(f"This rule is not a grant: it is set in {rule.origin}; change it there or with /config")
        else:
            self.view.start(lambda: self._revoke(rule.id))

    async def _revoke(self, grant: str) -> None:
        try:
            self._notify(await asyncio.to_thread(self._port.revoke, grant))
        except ValueError as error:
            self.view.say((TextBlock(str(error), "error"),))
            return
        await self._read()


def entries(rules: dict[str, RuleRow]) -> list[Entry]:
    out: list[Entry] = []
    groups = {
        "Allowed by your answers": lambda rule: rule.held,
        "Granted, in this folder": lambda rule: bool(rule.id),
        "Never run": lambda rule: rule.effect == "deny",
        "Always ask": lambda rule: rule.effect == "ask",
        "Allowed": lambda rule: rule.effect == "allow" and not rule.id and not rule.held,
    }
    for title, belongs in groups.items():
        inside = [(name, rule) for name, rule in rules.items() if belongs(rule)]
        if inside:
            out.append(heading(title))
        for name, rule in inside:
            state = "no effect" if rule.void else "active"
            tone = "warning" if rule.void else "plain"
            out.append(Entry(name, (rule.rule, state, rule.used, rule.origin), tone, f"{rule.effect} {rule.void}"))
    return out


def _offers(query: str) -> list[Entry]:
    """Entries to add the typed text if it is a rule."""
    text = query.strip()
    try:
        parse_rule(text)
    except RuleError:
        return []
    if not _looks_like_rule(text):
        return []
    return [Entry(f"{ADD}{how} {text}", (text, meaning), mark="+") for how, (_, meaning) in WAYS.items()]


def _looks_like_rule(text: str) -> bool:
    """Whether this looks like a rule rather than a search word."""
    return "(" in text or text.startswith("mcp__") or text in ALIASES


def _reach(rule: str) -> Sequence[TextBlock]:
    """What a rule that allows covers beyond its program."""
    try:
        reach = starts_others(parse_rule(rule))
    except RuleError:
        return ()
    return (TextBlock(f"{reach}.", "warning"),) if reach else ()


def trial_blocks(rule: str, tried: Tried) -> Sequence[DisplayBlock]:
    if not tried.total:
        return (TextBlock("No commands have run in this folder yet to test the rule on."),)
    first = TextBlock(f"{rule} would have decided {tried.count} of the last {tried.total} commands here.")
    return (first, *(TextBlock(f"  {command}", "dim") for command in tried.commands))
