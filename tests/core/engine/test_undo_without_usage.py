"""An undo brings a view back whole if its next request would be sent as it is, also if the server reports no usage."""

from pathlib import Path

import pytest

from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.protocol.commands import Compact, UndoCompaction
from swecli.core.protocol.events import CompactionCompleted, CompactionUndone
from tests.core.engine.support import Bench, bench, call, until
from tests.core.engine.test_compaction import SUMMARY

SILENT = "usage = { silent = true }"


def steps(turns: int) -> str:
    calls = (f"[[step]]\ncall = [{call('read_file', f'f{turn}')}]\n{SILENT}" for turn in range(turns))
    made = "\n".join(f"{one}\n[[step]]\ntext = 'It is read.'\n{SILENT}" for one in calls)
    return f"window = 32000\nmax_output = 2000\n{made}\n[[step]]\ntext = '''{SUMMARY}'''\n{SILENT}"


def upper(b: Bench) -> float:
    budget = b.session.view.budget
    assert budget is not None
    return budget.upper / budget.effective


@pytest.mark.parametrize(("least", "most", "auto"), [(0.82, 0.90, True), (0.90, 0.95, True), (0.95, 0.98, False)])
async def test_a_view_that_was_answered_comes_back_whole(tmp_path: Path, least: float, most: float, auto: bool) -> None:
    async with bench(steps(60), tmp_path, compaction=CompactionOptions(auto=auto)) as b:
        for turn in range(60):
            b.gates.outputs[f"f{turn}"] = f"line of f{turn} with words\n" * 60
            assert (await b.say(f"Read f{turn}.")).outcome == "done"
            if upper(b) >= least:
                break
        assert upper(b) < most
        assert not b.bodies(CompactionCompleted)
        whole = tuple(b.session.view.messages)
        b.send(Compact(without_model=True))
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        b.send(UndoCompaction())
        await until(lambda: bool(b.bodies(CompactionUndone)))
        assert tuple(b.session.view.messages) == whole
