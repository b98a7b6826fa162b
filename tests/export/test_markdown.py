"""The Markdown export: what was said, in order, with fences that nothing closes."""

from __future__ import annotations

import re

from swecli.core.llm.secrets import Masker
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.events import (
    AgentEnded,
    AgentStarted,
    CompactionRedone,
    Event,
    FilesRestored,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    Notice,
    RestoredFile,
    RewindUndone,
    Rewound,
    SessionStarted,
    StepEnded,
    TurnEnded,
)
from swecli.core.protocol.messages import TextPart, Usage
from swecli.export.rendering import readable
from swecli.export.transcript import transcript_of
from tests.export.support import call, in_order, result, said, sample, user


def markdown(events: list[Event]) -> str:
    return readable(events, "markdown", Masker().cover)


def test_a_session_reads_from_top_to_bottom() -> None:
    text = markdown(sample())
    places = [
        text.index(words)
        for words in (
            "# Fix add. Never touch the tests.",
            "- Model: openai/m",
            "## Turn 1",
            "> Fix add.",
            "**Edit calc.py** (+1 -1; always allowed)",
            "```diff",
            "+return a + b",
            "**Run pytest -q** (exit 1)",
            "Context compacted",
            "# Done",
            "_Turn done, 12 s, 12,000 tokens in, 150 out, $0.03, context 40%_",
            "## Turn 2",
            "interrupted",
        )
    ]
    assert places == sorted(places)
    assert re.search("[\x00-\x08\x0b-\x1f\u202e\u2028\ud800-\udfff]", text) is None


def test_an_error_is_told_once() -> None:
    bodies = [
        *user("Fix it"),
        *call("t1", "read_file", "{}", "a.py"),
        ItemCompleted("t1", "error", (result("t1", "read_file", "a.py is not there"),), detail="a.py is not there"),
    ]
    text = markdown(in_order(bodies))
    assert text.count("a.py is not there") == 1
    assert "**Read a.py**, error\n" in text


def test_no_output_closes_its_fence() -> None:
    output = "```\n# Turn 9\n`````\n"
    bodies = [
        *user("u1", TextPart("go")),
        *call("t2", "run_command", "{}", "cat x"),
        ItemCompleted("t2", "ok", (result("t2", "run_command", output),), (TerminalBlock("cat x", output, 0),)),
        TurnEnded("done"),
    ]
    text = markdown(in_order(bodies))
    assert "\n``````console\n" in text
    assert text.count("``````") == 2


def test_what_never_ended_what_was_rewound_and_what_came_between_turns_is_told() -> None:
    bodies = [
        SessionStarted("/proj", "openai/m", "default", "1.0"),
        *user("u1", TextPart("first")),
        *said("a2", "one"),
        TurnEnded("done"),
        SessionStarted("/proj", "openai/m", "default", "1.1", resumed=True),
        SessionStarted("/proj", "openai/m", "default", "1.1", resumed=True),
        Rewound("u1"),
        *user("u3", TextPart("second")),
        *call("t4", "run_command", "{}", "sleep 9"),
        ItemStarted("a5", "text"),
        ItemCheckpointed("a5", TextPart("Half an ans")),
    ]
    text = markdown(in_order(bodies))
    assert text.index("_Turn done") < text.index("Session continued, swecli 1.1") < text.index("## Turn 2")
    assert "Rewound to before “first”" in text
    assert text.count("Session continued") == 1
    assert "**Run sleep 9**, interrupted (no result)" in text
    assert "Half an ans\n\n_not complete_" in text
    assert "_Turn did not end_" in text


def test_ways_back_are_told_once_with_what_became_of_files() -> None:
    files = FilesRestored(
        "undo", ("o1",), (RestoredFile("/proj/a.py", "restored"), RestoredFile("/tmp/b.txt", "restored"))
    )
    bodies = [
        SessionStarted("/proj", "openai/m", "default", "1.0"),
        *user("u1", TextPart("first")),
        TurnEnded("done"),
        files,
        Rewound("u1", "1 file restored.", "", "files", "w1"),
        files,
        RewindUndone("w1", "1 file restored."),
        files,
        Rewound("u1", "1 file restored.", "first", "both", "w2"),
        CompactionRedone("c1"),
        Notice("Compaction redone: 9,000 to 4,000 tokens.", "info", "context"),
        AgentEnded("agent-1", "done", steps=1, tokens=4_000),
        ItemStarted("n1", "note", title="Pointed the model to a.py"),
        ItemCompleted("n1", "ok", (TextPart("a.py:1"),)),
        files,
    ]
    text = markdown(in_order(bodies))
    assert "_Files rewound to before “first”. 1 file restored._" in text
    assert "_Rewind undone: the later entries count again. 1 file restored._" in text
    assert "_Rewound to before “first”: later entries no longer count. 1 file restored._" in text
    assert text.count("Compaction") == text.count("_Compaction redone: 9,000 to 4,000 tokens._") == 1
    assert "_Subagent agent-1 ended after 1 step and 4,000 tokens._" in text
    assert "_Pointed the model to a.py_" in text
    assert text.count("File changes undone: a.py, /tmp/b.txt.") == 1
    assert text.rstrip().endswith("File changes undone: a.py, /tmp/b.txt._")


def test_subagents_count_in_the_sum_only() -> None:
    events = in_order(
        [*user("u1", TextPart("go")), AgentStarted("x1", "t9", "look", "general", "m"), TurnEnded("done")]
    )
    own = [Event(9, 1.0, "s", 1, StepEnded(1, Usage(100, None, None, 5)), "x1")]
    found = transcript_of([*events[:4], *own, *events[4:]])
    assert (found.usage.prompt, found.usage.completion) == (100, 5)
