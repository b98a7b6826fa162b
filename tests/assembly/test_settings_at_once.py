"""Every setting either counts at once in a running session or says that it counts from the next one on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.app import open_session
from swecli.assembly.live_settings import adjustable
from swecli.assembly.models import ModelSupply, supply_of
from swecli.assembly.settings import SettingsFiles, counts_at_once
from swecli.assembly.startup import startup_of
from swecli.core.config.change import set_value
from swecli.core.config.settings import NAMED, SECTIONS, Settings
from swecli.core.engine.model_access import ModelUnavailable
from swecli.core.engine.session import Session
from swecli.core.engine.settings import Adjustable
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import TurnEnded
from swecli.core.protocol.messages import Usage
from swecli.core.tools.run_command import RunCommand
from swecli.core.validation import InvalidError, choices, default_of, fields_by_name, validated
from swecli.features.sentinel.companion import Sentinel
from swecli.launch import LaunchOptions
from swecli.tui.preferences import Preferences, read_preferences

MODEL = "openai/gpt-6-sol"
OTHER: dict[str, Any] = {
    "web_search.url": "http://localhost:8888/search",
    "web_search.allowed_domains": ["docs.python.org"],
    "web_search.blocked_domains": ["example.org"],
    "telemetry.endpoint": "http://127.0.0.1:4318",
    "model.name": "openai/gpt-6-luna",
    "model.summary": "openai/gpt-6-luna",
    "model.small": "openai/gpt-6-luna",
    "model.fallback": ["openai/gpt-6-luna"],
    "subagents.model": "openai/gpt-6-luna",
    "models.aliases": {"mine": MODEL},
    "models.effort": {MODEL: "high"},
    "models.window": {MODEL: 50_000},
    "models.profile": {MODEL: "lean"},
    "models.price": {MODEL: {"input": 1.0, "output": 2.0}},
    "models.capabilities": {MODEL: {"binding": True}},
    "providers.mine": {"base_url": "http://127.0.0.1:9/v1"},
    "mcp.mine": {"command": "true"},
    "context.retention": [{"keep_turns": 3}],
    "context.limits": {"system": 4_000},
    "context.server_clearing": {"enabled": True},
    "context.sentinel_silenced": ["stale"],
    "agent.hard_block": 0.99,
    "approval.allow": ["Bash(npm test)"],
    "approval.ask": ["Bash(npm run *)"],
    "approval.deny": ["Bash(rm *)"],
    "keys": {"find": ["f5"]},
    "log.max_bytes": 20_000,
    "language_servers.mine": {"command": "true"},
}
"""Values of settings that a type alone does not give."""
BY_TYPE = (True, False, 7, 5_000, 1_499, 0.9, "vim", "full", "split", "off", "plan", "nord", "/x", ["/x"], ["a/b"])
SCREEN = ("ui", "keys")


def every_key() -> list[str]:
    keys: list[str] = []
    for section, kind in SECTIONS.items():
        if section not in (*NAMED, "keys"):
            keys += [f"{section}.{name}" for name in fields_by_name(kind)]
        else:
            keys.append(next((key for key in OTHER if key.startswith(f"{section}.")), section))
    return keys


def other_value(key: str) -> Any:
    """A value that differs from the default, and that the setting takes."""
    if key in OTHER:
        return OTHER[key]
    section, _, name = key.partition(".")
    if section == "hooks" and name != "user_claude":
        return [{"command": "true"}]
    kind = SECTIONS[section]
    for value in (*choices(fields_by_name(kind)[name].type), *BY_TYPE):
        try:
            given = tuple(value) if isinstance(value, list) else value
            checked = validated(Settings, {section: {name: given}})
        except InvalidError:
            continue
        if getattr(getattr(checked, section), name) != default_of(kind, name):
            return value
    raise AssertionError(f"{key} needs a value in OTHER")


class Place:
    """A home and a folder, and the services that a session would begin with there."""

    def __init__(self, base: Path) -> None:
        self.home, folder = base / "home", base / "work"
        for one in (self.home, folder):
            one.mkdir(exist_ok=True)
        self.file = self.home / "config.toml"
        self.environment = {"SWECLI_HOME": str(self.home), "OPENAI_API_KEY": "k"}
        self.options = LaunchOptions(cwd=folder, trust="session", store=False)
        startup = startup_of(self.options, self.environment)
        self.supply = supply_of(self.options, startup)

    def write(self, values: Mapping[str, Any]) -> None:
        self.file.write_text("")
        for key, value in values.items():
            for name, one in value.items() if isinstance(value, dict) and key.count(".") == 0 else (("", value),):
                set_value(self.file, f"{key}.{name}" if name else key, one)

    def taken_over(self) -> tuple[object, ...]:
        """What a running session goes by once it has read the settings."""
        startup = startup_of(self.options, self.environment)
        self.supply.adopt(startup.loaded.settings)
        values = adjustable(self.options, startup)
        rules = tuple((rule.effect, rule.text) for rule in values.rules)
        return (replace(values, rules=()), rules, *known_of_models(self.supply))


def known_of_models(supply: ModelSupply) -> tuple[object, ...]:
    access = supply.access()
    try:
        alias = access.make_client("mine").info.ref
    except ModelUnavailable:
        alias = ""
    return access.effort(MODEL), access.price(MODEL, Usage(input_total=1_000, output_total=10)), alias


def test_every_field_says_truly_whether_it_counts_at_once(tmp_path: Path) -> None:
    place = Place(tmp_path)
    before, shown = place.taken_over(), preferences_of(place)
    wrong: list[str] = []
    keys = every_key()
    assert len(keys) > 80
    for key in keys:
        place.write({key: other_value(key)})
        parts = (*key.split("."), "x")[:2]
        if parts[0] in SCREEN:
            takes = preferences_of(place) != shown
        elif key in ("approval.mode", "model.name", "model.effort"):
            takes = True  # the screen sends these to the session as commands
        else:
            takes = place.taken_over() != before
        if takes != counts_at_once(parts):
            wrong.append(f"{key} counts {'at once' if takes else 'in the next session'}")
    assert wrong == []


def preferences_of(place: Place) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWECLI_HOME", str(place.home))
        return read_preferences(place.options)


def test_the_interface_knows_which_variables_hold_keys(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write({"providers.gate.base_url": "http://127.0.0.1:1/v1", "providers.gate.api_key_env": "GATEWAY"})
    found = preferences_of(place)
    assert isinstance(found, Preferences)
    assert found.key_variables == {"GATEWAY"}


def test_the_screen_says_of_each_setting_when_it_counts(tmp_path: Path) -> None:
    place = Place(tmp_path)
    effects = {one.name: one.effect for one in SettingsFiles(place.options, place.environment).read()}
    assert effects["context.warn"] == effects["approval.deny"] == effects["ui.density"] == "now"
    assert effects["sandbox.mode"] == effects["subagents.enabled"] == effects["checkpoints.enabled"] == "session"


SCRIPT = """
name = "scripted"
window = 30000

[[step]]
text = "Done."
"""


def held(session: Session) -> Adjustable:
    """What a session goes by, read where it is used."""
    services = session._services
    now = services.settings.now
    command = services.toolset.tools.get(RunCommand.name)
    assert isinstance(command, RunCommand)
    assert services.toolset.context.limits == services.toolset.context._prompt.limits
    assert session._jobs.jobs.processes == now.process_limit
    return Adjustable(
        services.toolset.context.limits,
        services.toolset.context._advice,
        now.compaction,
        now.limits,
        now.offload_threshold,
        now.process_limit,
        command.seconds,
        now.tool_deferral,
        now.subagents,
        now.attribution,
        services.permissions.rules(now),
        tuple(now.fallback),
        session._connection._side_models,
        now.sentinel,
    )


async def test_a_running_session_goes_by_the_settings_as_a_new_one_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path)
    monkeypatch.setenv("SWECLI_HOME", str(place.home))
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)
    options = replace(place.options, script=script)
    session = await open_session(options)
    before = held(session)
    changed = {
        key: other_value(key)
        for key in every_key()
        if counts_at_once((*key.split("."), "x")[:2]) and key.partition(".")[0] not in ("ui", "keys", "models")
    }
    changed |= {"agent.compact_trigger": 0.97, "agent.hard_block": 0.98, "context.warn": 0.5}
    changed |= {"context.keep_recent_tokens": 2_000, "agent.max_output_tokens": 900, "agent.context_budget": 9_000}
    place.write(changed)
    await session.follow_settings()
    fresh = await open_session(options)
    for name in Adjustable.__struct_fields__:
        now, wanted = (getattr(held(one), name) for one in (session, fresh))
        assert now == wanted, name
        assert now != getattr(before, name) or name == "plans", name  # which follows trust, not a setting
    budget = session.view.budget
    assert budget is not None
    assert budget.window == 9_000
    await asyncio.gather(session.close(), fresh.close())


async def test_settings_that_cannot_be_read_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    monkeypatch.setenv("SWECLI_HOME", str(place.home))
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)
    session = await open_session(replace(place.options, script=script))
    before = held(session)
    place.file.write_text("[agent]\nmax_steps = -1\n")
    with pytest.raises(ValueError, match=r"agent\.max_steps"):
        await session.follow_settings()
    assert held(session) == before
    await session.close()


async def test_a_rule_settles_the_question_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    monkeypatch.setenv("SWECLI_HOME", str(place.home))
    script = tmp_path / "script.toml"
    script.write_text(
        'name = "scripted"\n[[step]]\ncall = [{ tool = "run_command", arguments = { command = "touch made" } }]\n'
        '[[step]]\ntext = "Done."\n'
    )
    session = await open_session(replace(place.options, script=script))
    events = session.subscribe()
    session.send(Submit("go"))
    place.write({"approval.allow": ["Bash(touch *)"]})
    async for event in events:
        if session.view.permission is not None:
            await session.follow_settings()
        if isinstance(event.body, TurnEnded):
            break
    assert (place.options.cwd / "made").exists()
    await session.close()


def sentinel_of(session: Session) -> Sentinel:
    sentinel = session.companion(Sentinel)
    assert sentinel is not None
    return sentinel


async def test_what_is_silenced_stays_so_in_the_next_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    monkeypatch.setenv("SWECLI_HOME", str(place.home))
    script = tmp_path / "script.toml"
    script.write_text('name = "scripted"\n' + '[[step]]\ntext = "Yes."\n' * 2)
    options = replace(place.options, script=script)
    place.file.write_text("# mine\n")
    for silenced in (False, True):
        session = await open_session(options)
        sentinel = sentinel_of(session)
        for text in ("Always use tabs.", "Never use tabs."):
            session.send(Submit(text))
            await session.worked()
        told = session.view.suggestion
        assert (told is None) == silenced
        if told is not None:
            assert told.kind == "contradiction"
            assert await sentinel.silence([told.kind]) == str(place.file)
            assert session.view.suggestion is None
        await session.close()
    assert place.file.read_text() == '# mine\n\n[context]\nsentinel_silenced = ["contradiction"]\n'
    session = await open_session(options)
    place.file.write_text("[context\n")
    with pytest.raises(ValueError, match=r"config\.toml"):
        await sentinel_of(session).silence(["stale"])
    assert sentinel_of(session).silenced == ("contradiction",)
    await session.close()
