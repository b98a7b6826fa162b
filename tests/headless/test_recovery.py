"""Work that stumbles comes to its end, and nothing is asked that need not be."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.recovery import FAULTS, MODES, Case, cases, recovered
from swecli.core.protocol.events import Mode
from tests.support import bubblewrap
from tests.support.thorough import examples

STEP = examples(11, 1)
"""Every eleventh task, each fault at least once over both modes; ``make soak`` does all."""


def test_there_are_a_hundred_and_fifty_of_which_none_is_the_same() -> None:
    assert len({case.name for case in cases()}) == 150
    assert {case.fault for case in cases()} == FAULTS.keys()


@pytest.mark.parametrize(
    ("case", "mode"),
    [(case, mode) for shift, mode in enumerate(MODES) for case in cases()[shift * 5 :: STEP]],
    ids=lambda value: value.name if isinstance(value, Case) else value,
)
async def test_it_comes_to_its_end(case: Case, mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if mode == "auto" and case.task.name == "command" and not bubblewrap.works():
        pytest.skip("Landlock alone lets no command make a file in the top folder")
    monkeypatch.setenv("HOME", str(tmp_path))
    one = await recovered(case, mode)
    assert one.problems == ()
    assert (one.spurious, one.missing) == (0, 0)
