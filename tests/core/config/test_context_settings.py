"""The context's settings: both sections, what contradicts, and rules with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.assembly.live_settings import context_limits
from swecli.core.config.load import ConfigError, Loaded, load, origins
from swecli.core.config.paths import user_paths
from swecli.core.config.settings import RetentionSettings
from swecli.core.context_management.budget import ComponentLimits
from swecli.core.llm.types import ServerClearing


def loaded(home: Path, text: str, flags: dict[str, object] | None = None) -> Loaded:
    (home / "config.toml").write_text(text)
    variables = {"SWECLI_HOME": str(home)}
    return load(user_paths(variables), home, environment=variables, flags=flags)


def error(home: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(home, text)
    return str(caught.value)


@pytest.mark.parametrize("section", ["agent", "context"])
def test_what_belongs_to_the_context_may_stand_in_either_section(tmp_path: Path, section: str) -> None:
    text = (
        f"[{section}]\nauto_compact = false\ncontext_budget = 50_000\nmax_output_tokens = 4_000\nwarn = 0.5\n"
        "compact_trigger = 0.6\nhard_block = 0.7\ntarget_tokens = 20_000\nresult_offload_threshold = 99\n"
    )
    result = loaded(tmp_path, text)
    agent, context = result.settings.agent, result.settings.context
    assert (agent.context_budget, agent.max_output_tokens, agent.result_offload_threshold) == (50_000, 4_000, 99)
    assert (context.warn, agent.compact_trigger, agent.hard_block) == (0.5, 0.6, 0.7)
    assert (context.auto_compact, context.target_tokens) == (False, 20_000)
    assert result.notices == ()
    rows = {key: (value, origin) for key, value, origin in origins(result)}
    assert rows["context.warn"] == ("0.5", f"{tmp_path / 'config.toml'}:5")


def test_other_names_lead_to_the_same_settings(tmp_path: Path) -> None:
    result = loaded(tmp_path, '[context]\nmax_context_tokens = 32_000\nsummary_model = "a/b"\n')
    assert result.settings.agent.context_budget == 32_000
    assert result.settings.model.summary == "a/b"
    assert loaded(tmp_path, "", {"context.context_budget": 9_000}).settings.agent.context_budget == 9_000


def test_the_table_of_the_design_is_read_as_it_is(tmp_path: Path) -> None:
    result = loaded(
        tmp_path,
        "[agent]\ncontext_budget = 100_000\nmax_output_tokens = 4_096\ncompact_trigger = 0.9\nhard_block = 0.97\n"
        "result_offload_threshold = 5_000\ntool_deferral_threshold = 0.2\n",
    )
    agent, tools = result.settings.agent, result.settings.tools
    assert result.notices == ()
    assert (agent.context_budget, agent.max_output_tokens) == (100_000, 4_096)
    assert (agent.compact_trigger, agent.hard_block, agent.result_offload_threshold) == (0.9, 0.97, 5_000)
    assert tools.tool_deferral_threshold == 0.2


def test_one_setting_under_two_names_in_one_file_is_an_error_with_both_lines(tmp_path: Path) -> None:
    message = error(tmp_path, "[agent]\nwarn = 0.5\n[context]\nwarn = 0.6\n")
    assert message.startswith(f"{tmp_path / 'config.toml'}:4: context.warn is already set in line 2 under another name")
    assert "line 2" in message


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[agent]\ncompact_trigger = 0.99\n", 2, "must not exceed agent.hard_block 0.98"),
        ("[agent]\nhard_block = 0.9\n", 2, "(with agent.compact_trigger) 0.95 must not exceed"),
        ("[context]\nwarn = 0.97\n", 2, "must not exceed agent.compact_trigger"),
        ("[context]\ncontext_budget = 8_000\ntarget_tokens = 9_000\n", 3, "leaves no space"),
        ("[context]\ncontext_budget = 8_000\nmax_output_tokens = 8_000\n", 3, "leaves no space"),
        ("[context]\ncontext_budget = 8_000\nkeep_recent_tokens = 9_000\n", 3, "leaves no space"),
        ('context.context_budget = 90_000\nmodel.name = "x/m"\n[providers.x]\nwindow = 8_192\n', 1, "8,192 tokens"),
        (
            'context.context_budget = 9_000\nmodel.name = "x/m"\n[models.window]\n"x/m" = 8_192\n',
            1,
            "exceed the model's window",
        ),
        ("[context]\nmin_score_threshold = 0.9\nuser_message_score = 0.5\ntool_use_score = 0.5\n", 2, "every score"),
        ('[context]\nstrategy = "magic"\n', 2, '"chain"'),
        ('[context]\nauto_compact = "no"\n', 2, "must be true or false"),
        ("[context]\nkeep_recent = 0\n", 2, "at least 1"),
        ("[context]\nmin_score_threshold = 2\n", 2, "at most 1"),
        ("\n[context]\nretention = [{ tool = 'search' }]\n", 3, "exactly one of"),
        ("[[context.retention]]\nkeep_turns = 1\n\n[[context.retention]]\ntool = 'x'\n", 4, "exactly one of"),
        ("[[context.retention]]\nkeep_turns = 1\nkeep_last = 2\n", 1, "not keep_turns and keep_last"),
        ("[[context.retention]]\nkeep_turns = 1\n[[context.retention]]\nkeep_last = 0\n", 4, "at least 1"),
        ("[[context.retention]]\nkeep_turns = 1\nfor = 'ever'\n", 3, "unknown key"),
        ("[context]\nretention = 3\n", 2, "must be"),
        ("[context.limits]\ntools = 1.5\n", 2, "at most 1"),
        ("[context.limits]\ntools = 0\n", 2, "at least 1"),
        ("[context.limits]\ntools = true\n", 2, "a whole number from 1 or a number above 0 to 1"),
        ("[context.limits]\ncookies = 3\n", 2, "unknown key"),
        ("[context.server_clearing]\ntrigger_tokens = 5\n", 2, "at least 1,000"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    message = error(tmp_path, text)
    assert message.startswith(f"{tmp_path / 'config.toml'}:{line}: ")
    assert words in message


def test_rules_of_a_later_layer_take_the_place_of_earlier_ones(tmp_path: Path) -> None:
    rules = loaded(tmp_path, "[[context.retention]]\ntool = 'search'\nkeep_turns = 3\n").settings.context.retention
    assert rules == (RetentionSettings(tool="search", keep_turns=3),)
    assert str(rules[0]) == "search: keep_turns 3"
    assert str(RetentionSettings(never_drop=True)) == "everything: never_drop"


def test_limits_of_parts_are_shares_or_tokens(tmp_path: Path) -> None:
    text = "[context.limits]\ntools = 0.1\ntool_result = 1\ntool_results = 1.0\ninstructions = 4_000\n"
    limits = context_limits(loaded(tmp_path, text).settings).components
    assert limits == ComponentLimits(tools=0.1, tool_result=1, tool_results=1.0, instructions=4_000)
    assert (limits.of_result(5_000), limits.of_component("tool results")) == (1, 1.0)
    assert context_limits(loaded(tmp_path, "").settings).components == ComponentLimits()


def test_the_providers_own_clearing_is_off_unless_it_is_wished_for(tmp_path: Path) -> None:
    assert context_limits(loaded(tmp_path, "").settings).server_clearing is None
    text = "[context.server_clearing]\nenabled = true\nkeep_tool_uses = 5\n"
    assert context_limits(loaded(tmp_path, text).settings).server_clearing == ServerClearing(100_000, 5, ("memory",))
