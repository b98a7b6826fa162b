"""What the screens show and change, made up: the same on every machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from swecli.assembly.permissions import RuleRow, Tried
from swecli.assembly.session_list import StoredSession
from swecli.assembly.settings import FileName, Setting, Written
from swecli.assembly.succession import OpenSession
from swecli.core.permissions.types import Rule
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from tests.tui.support import NOW

SETTINGS = (
    Setting(
        "agent.hard_block", "0.98", "0.98", "default", "When nothing is sent until there is room.", "a number", "0.98"
    ),
    Setting(
        "agent.max_steps", "(unset)", "", "default", "Model calls in one turn; unset: no cap.", "a number", "(unset)"
    ),
    Setting(
        "approval.mode",
        "plan",
        '"plan"',
        "/home/me/config.toml:7",
        "What runs without a question.",
        'one of "default", "plan"',
        '"default"',
        ('"default"', '"plan"'),
        "now",
        own="user",
    ),
    Setting(
        "ui.theme", "nord", '"nord"', "/w/.swecli/config.toml:2", "A theme's name.", "a text", '"auto"', effect="now"
    ),
    Setting(
        "providers.p.headers",
        "(not shown)",
        "",
        "/home/me/config.toml:9",
        "Headers of every request.",
        "a table",
        "",
        locked="It may hold keys.",
    ),
)


def rule(effect: str, rule: str, origin: str, uses: int = 0, day: int = 1, *, void: str = "", id: str = "") -> RuleRow:
    """A rule that was last used on this day of November 2023."""
    last = datetime(2023, 11, day).timestamp() if uses else None
    return RuleRow(id, effect, rule, "grant" if id else "user", origin, uses, last, void)


RULES = (
    rule("deny", "Bash(rm -rf *)", "/home/me/config.toml:4", 2, 1),
    rule("allow", "Bash(git log *)", "/home/me/config.toml:5", void="already covered by allow Bash(git *)"),
    rule("allow", "Bash(git *)", "--allowed-tools", 31, 14),
    rule("allow", "Bash(npm test)", "granted 2023-11-10, until 2023-11-17", 4, 13, id="a1b2c3"),
)
SESSIONS = (
    StoredSession("20231114-abc", "Fix the login bug", "/proj", NOW - 90, 4, 54_321, "$0.42", "anthropic/sonnet-5"),
    StoredSession("20231113-def", "日本語 title \x1b[31m", "/proj", NOW - 90_000, 1, 999, "", "openai/gpt-6"),
    StoredSession(
        *("20231112-ghi", "Held", "/proj", NOW - 200_000, 2, 2_500_000, "$3.00", "a/b", "It is open elsewhere"),
        open_elsewhere=True,
    ),
    StoredSession("20231111-jkl", "Far away", "/other", NOW - 86400 * 400, 9, 12_000, "$0.01", "a/b", "Another folder"),
)


@dataclass
class Settings:
    """Refuses "bad"; keeps what was written."""

    settings: list[Setting] = field(default_factory=lambda: list(SETTINGS))
    written: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def files(self) -> dict[FileName, str]:
        return {"user": "/home/me/config.toml", "local": "/w/.swecli/config.local.toml"}

    def read(self) -> Sequence[Setting]:
        return tuple(self.settings)

    def find(self, name: str) -> Setting | None:
        known = name.startswith("models.window.")
        return Setting(name, "(unset)", "", "default", "A window.", "a whole number", "(unset)") if known else None

    def check(self, name: str, text: str, file: FileName) -> str:
        return "must be better than that" if "bad" in text else ""

    def write(self, name: str, text: str, file: FileName) -> Written:
        if refused := self.check(name, text, file):
            raise ValueError(refused)
        self.written.append((name, text, file))
        self.settings = [
            replace(each, shown=text, text=text, own=file, origin=self.files[file]) if each.name == name else each
            for each in self.settings
        ]
        return Written(f"{name} = {text}, written to {self.files[file]}", name, text.strip('"'))

    def unset(self, name: str, file: FileName) -> Written:
        self.written.append((name, "", file))
        return Written(f"{name} taken out", name)


@dataclass
class Permissions:
    rules: list[RuleRow] = field(default_factory=lambda: list(RULES))
    added: list[tuple[str, str]] = field(default_factory=list)

    def read(self, held: Sequence[Rule] = ()) -> Sequence[RuleRow]:
        answered = (RuleRow("", rule.effect, rule.text, "session", "this session", 1, NOW, "") for rule in held)
        return (*self.rules, *answered)

    def try_rule(self, effect: str, rule: str) -> Tried:
        return Tried(3, 120, ("npm run build", "npm run lint"))

    def add(self, how: str, rule: str) -> str:
        self.added.append((how, rule))
        return f"{how} {rule} added"

    def revoke(self, grant: str) -> str:
        self.rules = [rule for rule in self.rules if rule.id != grant]
        return f"Revoked {grant}"


@dataclass
class Sessions:
    opener: Callable[[str], OpenSession]
    sessions: Sequence[StoredSession] = SESSIONS
    refuses: str = ""

    def delete(self, session: StoredSession) -> str:
        if self.refuses:
            raise ValueError(self.refuses)
        self.sessions = [one for one in self.sessions if one.id != session.id]
        return f"Deleted: {session.title}"

    def read(self) -> Sequence[StoredSession]:
        return self.sessions

    def earlier(self, session_id: str) -> Sequence[StoredSession]:
        return [session for session in self.sessions if session.id != session_id]

    def preview(self, session: StoredSession) -> Sequence[DisplayBlock]:
        return (TextBlock(f"› what was asked in {session.id}"), TextBlock("what was answered"))

    def search(self, words: str) -> Mapping[str, str]:
        return {"20231112-ghi": f"where {words} was said"} if words == "needle" else {}

    def stored(self, session_id: str, *, fork: bool = False) -> OpenSession:
        return self.opener(f"fork of {session_id}" if fork else session_id)


def ports(
    settings: Settings | None = None, permissions: Permissions | None = None, sessions: Sessions | None = None
) -> dict[str, Any]:
    """What a program is given to have these."""
    given = {"settings": settings, "permissions": permissions, "sessions": sessions}
    offered: dict[str, Any] = {name: lambda port=port: port for name, port in given.items() if port is not None}
    return offered if sessions is None else {**offered, "stored_session": sessions.stored}
