"""Which lines of an output tell what went wrong."""

from __future__ import annotations

import pytest

from swecli.core.context_management.work_log import WorkLog, error_lines
from tests.support.said import Said


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


def test_a_copy_goes_on_by_itself_and_reads_only_what_is_new() -> None:
    said = Said()
    said.call("read_file", {"path": "a.py"}, "text")
    log = WorkLog.of(said.ledger)
    said.call("read_file", {"path": "a.py"}, "text")
    said.call("edit_file", {"path": "b.py"}, "done")
    copy = log.copy()
    assert copy.absorb(said.ledger)
    assert not copy.absorb(said.ledger)
    assert copy == WorkLog.of(said.ledger)
    assert [(file.path, file.reads) for file in copy.files()] == [("a.py", 2), ("b.py", 0)]
    assert [(file.path, file.reads) for file in log.files()] == [("a.py", 1)]
