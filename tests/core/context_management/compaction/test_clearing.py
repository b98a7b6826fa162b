"""Clearing: what becomes a stub, what stays, and when a batch is worth its price."""

from __future__ import annotations

import json

from swecli.core.context_management.compaction.clearing import FAILING_KEPT, Clearing, clear, last_failures
from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.events import Body, Event, ItemCheckpointed, ItemCompleted, ItemStarted, ModelResponded
from swecli.core.protocol.messages import Origin, TextPart, ToolCallPart, ToolResultPart

INFO = ModelInfo("p", "m", 200_000, 8_000)
LONG = "\n".join(f"line {number} with a few more words in it" for number in range(200))


class Said:
    """A ledger that grows by calls and their results."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._seq = 0

    def tell(self, *bodies: Body) -> None:
        for body in bodies:
            self._seq += 1
            self.ledger.apply(Event(self._seq, float(self._seq), "s", 1, body))

    def call(self, item: str, name: str, arguments: dict[str, str], result: str, exit_status: int = 0) -> None:
        part = ToolCallPart(f"c{item}", name, json.dumps(arguments))
        blocks = (TerminalBlock("", result, exit_status),) if name == "run_command" else ()
        self.tell(
            ItemStarted(item, "tool", name),
            ItemCheckpointed(item, part),
            ModelResponded(f"m{item}", (item,), Origin("", "", "m")),
            ItemCompleted(item, "ok", (ToolResultPart(part.call_id, name, result),), blocks),
        )

    def cleared(self, protected: int = 0) -> Clearing:
        return clear(self.ledger, self.ledger.view, EntrySizes(TokenMonitor(), INFO), protected)


def stubs(clearing: Clearing) -> dict[str, str]:
    return {entry.id: entry.text for entry in clearing.view if entry.kind == "stub"}


def test_results_and_arguments_of_every_finished_call_become_stubs() -> None:
    said = Said()
    said.tell(ItemStarted("u1", "user"), ItemCompleted("u1", "ok", (TextPart(LONG),)))
    said.call("t1", "write_file", {"path": "src/a.py", "content": LONG}, "written")
    said.call("t2", "run_command", {"command": f"cat > b.py <<'E'\n{LONG}\nE"}, "")
    said.call("t3", "read_file", {"path": "src/a.py"}, LONG)
    said.call("t4", "update_todos", {"todos": LONG}, LONG)
    said.call("t5", "memory", {"command": "create", "path": "/memories/a.md", "file_text": LONG}, LONG)
    cleared = said.cleared()
    assert set(stubs(cleared)) == {"t1", "t2", "t3.result"}
    written = json.loads(stubs(cleared)["t1"])
    assert written["path"] == "src/a.py"
    assert "id t1" in written["cleared"]
    assert json.loads(stubs(cleared)["t2"])["command"].startswith("cat > b.py")
    result = stubs(cleared)["t3.result"]
    for word in ("id t3.result", "200 lines", '"line 0 with', '"line 199 with'):
        assert word in result
    assert cleared.freed > 4_000
    assert [entry.id for entry in cleared.view] == [entry.id for entry in said.ledger.view]


def test_the_newest_part_is_left_alone_and_a_copy_of_it_is_not() -> None:
    said = Said()
    said.call("t1", "read_file", {"path": "a"}, LONG)
    said.call("t2", "read_file", {"path": "b"}, LONG + "b")
    said.call("t3", "read_file", {"path": "a"}, LONG)
    cleared = said.cleared(protected=1_000_000)
    assert list(stubs(cleared)) == ["t1.result"]
    assert "the same as t3.result" in stubs(cleared)["t1.result"]
    assert said.cleared().cleared == ("t1.result", "t2.result", "t3.result")


def test_what_is_rewritten_does_not_count_what_was_freed() -> None:
    said = Said()
    for number in range(10):
        said.call(f"t{number}", "read_file", {"path": f"f{number}"}, f"{number}\n{LONG}")
    size = EntrySizes(TokenMonitor(), INFO).view(said.ledger.view, said.ledger)
    cleared = said.cleared(protected=size // 2)
    assert size * 0.45 < cleared.freed < size * 0.5
    assert size * 0.5 < cleared.rewritten < size * 0.55
    assert cleared.pays(cleared.freed)
    assert not cleared.pays(cleared.freed + 1)
    assert not Clearing((), (), 100, 201).pays(100)


def test_the_last_failures_stay_whole_and_old_ones_do_not() -> None:
    said = Said()
    said.call("t0", "run_command", {"command": "make once"}, LONG, exit_status=1)
    said.call("t1", "run_command", {"command": "make once"}, LONG)
    for number in range(2, 4 + FAILING_KEPT):
        said.call(f"t{number}", "run_command", {"command": f"make {number} {LONG}"}, LONG + str(number), exit_status=2)
    kept = {f"t{number}.result" for number in range(4, 4 + FAILING_KEPT)}
    assert last_failures(said.ledger) == kept
    gone = set(stubs(said.cleared()))
    assert not gone & kept
    assert not gone & {one.removesuffix(".result") for one in kept}
    assert {"t0.result", "t2", "t2.result", "t3.result"} <= gone
