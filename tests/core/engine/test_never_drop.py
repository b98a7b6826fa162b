"""What a rule never drops stays word for word, whatever way the rest is compacted."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from swecli.core.config.settings import RetentionSettings
from swecli.core.context_management.compaction.options import CompactionOptions, StrategyName
from swecli.core.protocol.commands import Compact
from swecli.core.protocol.events import CompactionCompleted, CompactionFailed
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Bench, bench, until
from tests.core.engine.test_compaction import BIG, call, fill

RULE = RetentionSettings(tool="run_command", never_drop=True)
SCRIPT = BIG.replace(call("read_file", "f3"), call("run_command", "f3"))
SAY = "Read the files f0 to f11, and do not change any of them."


async def compacted(b: Bench, times: int, without_model: bool) -> None:
    fill(b, 12)
    await b.say(SAY)
    for number in range(times):
        b.send(Compact("", without_model=without_model))
        await until(
            lambda number=number: (
                len(b.bodies(CompactionCompleted)) + len(b.bodies(CompactionFailed)) > number
                and not b.session.view.busy
            )
        )


@pytest.mark.parametrize("strategy", ["chain", "truncation", "summarization"])
@pytest.mark.parametrize("way", ["by hand", "without a model"])
async def test_it_stays_and_its_call_with_it(
    tmp_path: Path, strategy: StrategyName, way: Literal["by hand", "without a model"]
) -> None:
    changes: dict[str, Any] = {"compaction": CompactionOptions(strategy=strategy, retention=(RULE,), keep_recent=4)}
    async with bench(SCRIPT, tmp_path, **changes) as b:
        b.allow_all = True
        await compacted(b, 2, way == "without a model")
        assert b.bodies(CompactionCompleted)
        messages = tuple(b.session.view.messages)
        check_valid(messages)
        results = {result.text for message in messages for result in message.tool_results}
        assert b.gates.outputs["f3"] in results
        assert b.gates.outputs["f2"] not in results
        calls = [call for message in messages for call in message.tool_calls if "f3" in call.arguments]
        assert len(calls) == 1
