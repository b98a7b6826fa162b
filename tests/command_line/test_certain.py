"""The decision before the parser is loaded never contradicts the parser."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.cli import FLAGS, MAY_HAVE_VALUE, WITH_VALUE, surely_interactive
from swecli.command_line.arguments import SUBCOMMANDS, UsageError, launch_options, main_parser
from tests.support.thorough import examples

WORDS = sorted(
    {*SUBCOMMANDS, *FLAGS, *WITH_VALUE, *MAY_HAVE_VALUE}
    | {option for action in main_parser()._actions for option in action.option_strings}
    | {"fix it please", "word", "", "-", "--", "-1", "-p now", "--model=a/b", "-ma/b", ".", "a/b", "text", "-h"}
)


@pytest.mark.parametrize(
    "arguments",
    [[], ["-c"], ["demo"], ["-r"], ["-r", "1a2b"], ["fix the tests"], ["-m", "a/b", "-C", ".."], ["-c", "and go on"]],
)
def test_the_usual_ways_into_the_interface_are_certain(arguments: list[str]) -> None:
    assert surely_interactive(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-p"],
        ["-p", "fix it"],
        ["fix it", "-p"],
        ["demo", "-p"],
        ["config"],
        ["--help"],
        ["--plain"],
        ["-m"],
        ["-m", "-p"],
    ],
)
def test_everything_else_is_not(arguments: list[str]) -> None:
    assert not surely_interactive(arguments)


@settings(deadline=None, max_examples=examples(120, 600))
@given(st.lists(st.sampled_from(WORDS), max_size=5))
def test_what_is_certain_is_interactive_or_an_error(arguments: list[str]) -> None:
    if not surely_interactive(arguments) or arguments == ["demo"]:
        return
    assert not arguments or arguments[0] not in SUBCOMMANDS
    with contextlib.suppress(UsageError):
        options = launch_options(main_parser().parse_args(arguments), {}, is_root=False)
        assert not any((options.headless, options.plain, options.dry_run, options.compact_dry_run))
