"""Reading scripts, and what a wrong one is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swecli.core.llm.script import Condition, Fault, ScriptError, load_script, parse_script


def test_a_script_with_everything() -> None:
    script = parse_script(
        """
        name = "fix"
        window = 32000
        chunk = 3
        delay = 0.1

        [[step]]
        reasoning = "hm"
        text = "look"
        delay = 0
        call = [{ tool = "search", arguments = { pattern = "grüß", n = 3 }, id = "c" }]
        expect = { last_user = ["a", "b"], tools = true }

        [[step]]
        chunk = "whole"
        fault = { kind = "cut", after = 4, in_arguments = true }
        """
    )
    first, second = script.steps
    assert (script.name, script.window, first.chunk, first.delay, second.delay) == ("fix", 32000, 3, 0, 0.1)
    assert json.loads(first.calls[0].arguments) == {"pattern": "grüß", "n": 3}
    assert "grüß" in first.calls[0].arguments
    assert first.expect == Condition(last_user=("a", "b"), tools=True)
    assert (second.chunk, second.fault) == ("whole", Fault("cut", after=4, in_arguments=True))


def test_the_interpreter_is_the_only_thing_that_is_filled_in() -> None:
    script = parse_script(
        'step = [{text = "{python} {other}", call = [{tool = "run", arguments = {command = "{python} t.py"}}]}]',
        python="'/odd \"path\"/python'",
    )
    step = script.steps[0]
    assert step.text == "'/odd \"path\"/python' {other}"
    assert json.loads(step.calls[0].arguments) == {"command": "'/odd \"path\"/python' t.py"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("[[step]\n", r"s\.toml: .*line 1"),
        ('[[step]]\ntext = "a"\n\n[[step]]\n', r"s\.toml: line 4, step 2: nothing to answer with"),
        ("[[step]]\ntext = 3\n", r"s\.toml: line 1, step 1: text must be a text, not 3"),
        ('[[step]]\ntexts = "a"\ntext = "b"\n', r"line 1, step 1: unknown key texts"),
        ("[[step]]\ncall = [{arguments = {}}]\n", r"line 1, step 1, call 1: the tool's name is missing"),
        ('[[step]]\ncall = [{tool = "a", arguments = 3}]\n', r"step 1, call 1: arguments must be a table"),
        ('[[step]]\nfault = {kind = "boom"}\n', r"step 1, fault: kind must be one of overflow, "),
        ("[[step]]\nfault = {after = 1}\n", r"step 1, fault: the kind is missing"),
        ('[[step]]\ntext = "a"\nwhen = {last_error = "yes"}\n', r"when: last_error must be true or false"),
        ("chunk = 0\n", r"chunk must be"),
        ("window = -1\n", r"window must be a whole number from 1"),
        ("delay = true\n", r"delay must be a number of seconds"),
        ("unknown = 1\n", r"s\.toml: unknown key unknown"),
        ("step = 3\n", r"step must be a list"),
        ("step = [3]\n", r"step 1: a table is expected, not 3"),
        ('[[step]]\ntext = "a"\nusage = {input = -1}\n', r"usage: input must be a whole number from 0"),
    ],
)
def test_a_wrong_script_names_file_line_and_step(source: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        parse_script(source, origin="s.toml")


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"none\.toml: can't be read"):
        load_script(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScriptError, match=r"binary\.toml: can't be read"):
        load_script(tmp_path / "binary.toml")
    (tmp_path / "good.toml").write_text('[[step]]\ntext = "a"\n')
    assert load_script(tmp_path / "good.toml").steps[0].text == "a"
