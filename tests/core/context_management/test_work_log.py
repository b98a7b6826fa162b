"""Which lines of an output tell what went wrong."""

from __future__ import annotations

import pytest

from swecli.core.context_management.work_log import error_lines


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (
            "npm error code ENOENT\nnpm error A complete log of this run can be found in: /x/debug-0.log",
            "npm error code ENOENT",
        ),
        ("make: *** No rule to make target 'check'.  Stop.", "make: *** No rule to make target 'check'. Stop."),
        ("bash: line 1: ruff: command not found", "bash: line 1: ruff: command not found"),
        ("E   assert 1 == 2\nFor more details on this error see the docs", "E assert 1 == 2"),
    ],
)
def test_the_last_line_that_tells_what_went_wrong_and_not_where_more_stands(output: str, told: str) -> None:
    assert error_lines(output, 1) == [told]


def test_an_output_without_errors_has_no_such_line() -> None:
    assert error_lines("3 passed\nfine") == []
