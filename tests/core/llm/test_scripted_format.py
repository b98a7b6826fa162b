"""Reading scripts, and what a wrong one is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swecli.core.llm.scripted import Condition, Fault, ScriptError, load_script, parse_script


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
        ('[[step]]\ntext = "a"\n\n[[step]]\n', r"s\.toml: line 4, step 2: no answer given"),
        ("[[step]]\ntext = 3\n", r"s\.toml: line 1, step 1, text: expected `str`, got `int`"),
        ('[[step]]\ntexts = "a"\ntext = "b"\n', r"line 1, step 1: object contains unknown field `texts`"),
        ("[[step]]\ncall = [{arguments = {}}]\n", r"line 1, step 1, call 1: object missing required field `tool`"),
        ('[[step]]\ncall = [{tool = "a", arguments = 3}]\n', r"step 1, call 1, arguments: expected a table"),
        (
            '[[step]]\nfault = {kind = "boom"}\n',
            r"step 1, fault, kind: invalid enum value 'boom' \(allowed: overflow, ",
        ),
        ("[[step]]\nfault = {after = 1}\n", r"step 1, fault: object missing required field `kind`"),
        ('[[step]]\ntext = "a"\nwhen = {last_error = "yes"}\n', r"when, last_error: expected `bool"),
        ("chunk = 0\n", r"s\.toml, chunk: expected `int` >= 1 \(allowed: words, whole"),
        ("window = -1\n", r"s\.toml, window: expected `int` >= 1"),
        ("delay = true\n", r"s\.toml, delay: expected `float`, got `bool`"),
        ("unknown = 1\n", r"s\.toml: object contains unknown field `unknown`"),
        ("step = 3\n", r"step must be a list"),
        ("step = [3]\n", r"step 1: expected `table`, got `int`"),
        ('[[step]]\ntext = "a"\nwhen = {last_user = [3]}\n', r"step 1, when, last_user: expected a text or a list"),
        ('[[step]]\ntext = "a"\nusage = {input = -1}\n', r"usage, input: expected `int` >= 0"),
    ],
)
def test_a_wrong_script_names_file_line_and_step(source: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        parse_script(source, origin="s.toml")


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"cannot read .*none\.toml"):
        load_script(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScriptError, match=r"cannot read .*binary\.toml"):
        load_script(tmp_path / "binary.toml")
    (tmp_path / "good.toml").write_text('[[step]]\ntext = "a"\n')
    assert load_script(tmp_path / "good.toml").steps[0].text == "a"
