"""The settings of a folder for a person who reads or changes them, and the trust that they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from msgspec import Struct

from swecli.assembly.rules import rule_notice
from swecli.assembly.startup import Startup, flags_of, startup_of, theme_folders
from swecli.core.config.change import Described, describe, instead_of, meaning, own_name, set_value, unset_value
from swecli.core.config.load import ConfigError, key_parts, load, toml_text, typed_value
from swecli.core.config.paths import keep_unshared, project_folder, user_file, user_paths
from swecli.core.config.trust import is_led_away, loosens
from swecli.core.permissions.rules import RuleError, rule_pattern
from swecli.core.permissions.types import Rule, RuleEffect
from swecli.launch import LaunchOptions, StartError
from swecli.themes.names import unknown_theme

FileName = Literal["user", "local"]
"""The user's own settings file, or the project's unshared one."""

Effect = Literal["now", "session"]
"""When a changed setting applies: at once, or when a session opens."""


class Setting(Struct, frozen=True):
    """One setting. ``text`` is its value as TOML, empty if unset; ``locked`` says why it can't be changed here, ``own``
    whether one of the two files sets it."""

    name: str
    shown: str
    text: str
    origin: str
    about: str
    takes: str
    default: str
    choices: tuple[str, ...] = ()
    effect: Effect = "session"
    locked: str = ""
    own: FileName | None = None


class Written(Struct, frozen=True):
    """Result of a change: a sentence, and the effective value."""

    message: str
    name: str
    value: object = None


LARGEST_FILE = 1_000_000
"""Largest file that can be approved, in bytes."""


NOW = frozenset(("ui", "keys", "agent", "context", "subagents", "tools"))
"""Sections that take effect at once."""
NOW_KEYS = frozenset(
    (
        *("approval.mode", "approval.allow", "approval.ask", "approval.deny"),
        *("model.name", "model.effort", "model.summary", "model.small", "model.fallback"),
        *("models.aliases", "models.effort", "models.price"),
    )
)
"""Other settings that do; of ``models`` with every name in them."""
LATER = frozenset(("subagents.enabled", "tools.web_fetch", "context.retrieval", "context.retrieval_model"))
"""Settings of those sections that affect the model's tool descriptions or parts built at the start: these stay fixed in
a session."""


def counts_at_once(key: tuple[str, ...]) -> bool:
    """Whether a running session applies a changed setting; others take effect in the next session."""
    name = ".".join(key[:2])
    return (key[0] in NOW or name in NOW_KEYS) and name not in LATER


SECRET = "Not shown, because it may contain keys; change it in the file."


class SettingsFiles:
    """The settings of the folder of ``options``, those of the run: their flags count as origins, too. Methods raise
    ``ValueError`` with a sentence."""

    def __init__(self, options: LaunchOptions, environment: Mapping[str, str]) -> None:
        self._options = options
        self._environment = environment

    @property
    def files(self) -> Mapping[FileName, str]:
        own = user_file(self._environment)
        return {"user": str(own), "local": str(project_folder(self._options.cwd) / "config.local.toml")}

    def read(self) -> Sequence[Setting]:
        return [self._setting(each) for each in describe(self._startup().loaded)]

    def described(self) -> Sequence[Described]:
        """All settings known to the core.

        Raises:
            ValueError: the files can't be read; ready to be shown.
        """
        return describe(self._startup().loaded)

    def find(self, name: str) -> Setting | None:
        """A valid setting that the list lacks, such as one of a new provider."""
        meant = meaning(key_parts(own_name(name)))
        return None if meant is None else self._setting(meant)

    def check(self, name: str, text: str, file: FileName) -> str:
        """Why this value would be refused; empty if it is valid."""
        try:
            self._checked(own_name(name), text, file)
        except ValueError as error:
            return str(error)
        return ""

    def write(self, name: str, text: str, file: FileName) -> Written:
        name = own_name(name)
        value = self._checked(name, text, file)
        path = self._path(file)
        try:
            if file == "local":
                keep_unshared(Path(path).parent)
            set_value(Path(path), name, value)
        except OSError as error:
            raise ValueError(f"cannot be written to {error.filename} ({error.strerror}); nothing was changed") from None
        except ConfigError as error:
            raise ValueError(str(error)) from None
        notice = f"{name} = {toml_text(value)}, written to {path}"
        if key_parts(name)[:1] == ("approval",) and isinstance(value, list):
            notice = " ".join((*map(rule_notice, map(str, cast("list[object]", value))), notice)).lstrip()
        return self._written(name, file, notice, value)

    def unset(self, name: str, file: FileName) -> Written:
        name, path = own_name(name), self._path(file)
        try:
            there = unset_value(Path(path), name)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        if not there:
            known = meaning(key_parts(name)) is not None
            problem = f"is not set in {path}; nothing was changed" if known else self._unknown(name)
            raise ValueError(f"{name} {problem}")
        return self._written(name, file, f"{name} removed from {path}")

    def _path(self, file: FileName) -> str:
        """The file to change.

        Raises:
            ValueError: it is the project's, and a link could lead anywhere.
        """
        path = self.files[file]
        if file == "local" and is_led_away(Path(path)):
            raise ValueError(f"cannot be set in {path}: it is a link or inside one, and swecli does not read it")
        return path

    def _written(self, name: str, file: FileName, notice: str, given: object = None) -> Written:
        """The value in force after a change, to ``given`` unless it was removed; another layer may override it. That
        comes first in the notice, because a narrow line shows only its beginning."""
        try:
            startup = self._startup()
        except ValueError as error:
            return Written(f"{notice}; the settings still have an error: {error}", name)
        now = next((each for each in describe(startup.loaded) if each.name == name), None)
        if now is None:
            return Written(notice, name)
        value: Any = startup.loaded.settings
        for part in now.key:
            value = cast("Any", value[part] if isinstance(value, dict) else getattr(value, part))
        entries = cast("list[object]", given) if isinstance(given, list) else []
        added = bool(entries) and isinstance(value, tuple) and all(entry in value for entry in entries)
        if now.origin.layer not in (file, "default") and not added:
            notice = f"No effect: {now.origin} sets {now.shown}. {notice}"
        elif file == "local" and now.origin.layer == "default" and given is not None:
            notice = f"No effect until you trust this folder. {notice}"
        return Written(notice, name, value)

    def _unknown(self, name: str) -> str:
        """The end of a sentence about a name that is no setting."""
        return f"is not a setting; {instead_of(name, (each.name for each in self.described()))}"

    def _checked(self, name: str, text: str, file: FileName) -> object:
        """The value in writable form.

        Raises:
            ValueError: it is invalid; a sentence that continues the setting's name.
        """
        key = key_parts(name)
        about = meaning(key)
        if about is None:
            raise ValueError(self._unknown(name))
        if about.secret:
            raise ValueError(f"cannot be set here. {SECRET}")
        words = "text" in about.takes or any(choice.startswith('"') for choice in about.choices)
        several = about.takes.startswith(("a list", "a table"))
        try:
            switch = set(about.choices) == {"true", "false"}
            value = typed_value(text, words=words, many=about.takes.startswith("a list"), switch=switch)
        except ValueError as error:
            if not text.strip():
                raise
            if several:
                raise ValueError(f"takes {about.takes}; {text.strip()!r} {error}") from None
            raise ValueError(f"takes {about.takes}, not {text.strip()!r}") from None
        if file == "local" and loosens(key, value, self._own_value(key)):
            raise ValueError("cannot be set in a project, whose files can only tighten; set it in your own file")
        if key[:1] == ("approval",) and isinstance(value, list):
            _check_rules("allow" if key[1] == "allow" else "deny", cast("list[object]", value))
        startup = self._startup()
        try:
            load(
                startup.paths,
                self._options.cwd,
                environment=self._environment,
                trusted=startup.trust.trusts,
                accepted=startup.trust.accepted,
                flags={flag: given for flag, given in flags_of(self._options).items() if flag != name},
                tried={key: value},
                more=self._options.settings,
                safe=self._options.safe_mode,
            )
        except ConfigError as error:
            raise ValueError(_sentence(error, name)) from None
        if name == "ui.theme" and (problem := unknown_theme(str(value), theme_folders(self._options, startup))):
            raise ValueError(problem)
        return value

    def _own_value(self, key: tuple[str, ...]) -> object:
        """The value in force without the project's files.

        Raises:
            ValueError: the user's file can't be read.
        """
        try:
            loaded = load(user_paths(self._environment), self._options.cwd, environment=self._environment)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        value: Any = loaded.settings
        for part in key:
            value = value.get(part) if isinstance(value, dict) else getattr(value, part, None)
        return value

    def _setting(self, each: Described) -> Setting:
        layer = each.origin.layer
        return Setting(
            each.name,
            "(not shown)" if each.secret and each.shown else each.shown,
            each.text,
            str(each.origin),
            each.about,
            each.takes,
            each.default,
            each.choices,
            "now" if counts_at_once(each.key) else "session",
            SECRET if each.secret else "",
            "user" if layer == "user" else "local" if layer == "local" else None,
        )

    def _startup(self) -> Startup:
        try:
            return startup_of(self._options, self._environment)
        except StartError as error:
            raise ValueError(str(error)) from None


def _check_rules(effect: RuleEffect, rules: Sequence[object]) -> None:
    for rule in rules:
        if not isinstance(rule, str):
            raise ValueError("must be a list of rules such as Bash(npm test *)")
        try:
            rule_pattern(Rule(effect, rule, "user"))
        except RuleError as error:
            raise ValueError(f"contains {rule}, which is not a rule: {error}") from None


def _sentence(error: ConfigError, name: str) -> str:
    """The problem of the typed value, without a place, which it does not have yet. It has the setting's name only where
    it is about a part of the value."""
    problem = next((each for each in error.problems if name in each.message), error.problems[0])
    rest = problem.message.removeprefix(name)
    return problem.message if rest.startswith(".") else rest.strip()
