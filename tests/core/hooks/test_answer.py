"""Exit codes and JSON of hooks, and what several decide together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swecli.core.hooks.answer import MOST_CONTEXT, NOTHING, Answer, Ran, decide, read_answer
from swecli.core.hooks.hook import HookEvent


def said(data: object, event: HookEvent = "PreToolUse", **more: Any) -> Answer:
    return read_answer(event, Ran("exited", 0, json.dumps(data), **more))


def permission(decision: object, **more: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision, **more}}


@pytest.mark.parametrize(
    ("data", "wish", "reason"),
    [
        ({}, "none", ""),
        (permission("deny", permissionDecisionReason="no"), "block", "no"),
        (permission("ask", permissionDecisionReason="look"), "ask", "look"),
        (permission("allow"), "allow", ""),
        ({"decision": "block", "reason": "old form"}, "block", "old form"),
        ({"decision": "approve", "reason": "x"}, "allow", "x"),
        ({"decision": "block"}, "block", "It gave no reason."),
        ({"systemMessage": "not so", **permission("deny")}, "block", "not so"),
        ({"decision": "block", **permission("allow")}, "allow", ""),
    ],
)
def test_decisions_before_a_call(data: dict[str, Any], wish: str, reason: str) -> None:
    answer = said(data)
    assert (answer.wish, answer.reason, answer.problem) == (wish, reason, "")


@pytest.mark.parametrize("data", [permission("denied"), permission(3), permission(None), {"decision": ["block"]}])
def test_a_decision_that_means_nothing_is_named(data: dict[str, Any]) -> None:
    answer = said(data)
    assert answer.wish == "none"
    assert "ignored" in answer.problem or data == permission(None)


def test_a_refused_permission_request() -> None:
    data = {"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "not now"}}}
    answer = said(data, "PermissionRequest")
    assert (answer.wish, answer.reason) == ("block", "not now")
    allowed = said({"hookSpecificOutput": {"decision": {"behavior": "allow"}}}, "PermissionRequest")
    assert allowed.wish == "allow"


def test_everything_else_that_json_can_say() -> None:
    data = {
        "continue": False,
        "stopReason": "enough",
        "systemMessage": "hello",
        "suppressOutput": True,
        **permission("allow", updatedInput={"command": "ls"}, additionalContext="more"),
    }
    answer = said(data)
    assert (answer.stop, answer.stop_reason, answer.message, answer.quiet) == (True, "enough", "hello", True)
    assert (answer.updated, answer.context) == ({"command": "ls"}, "more")


def test_values_of_wrong_types_are_ignored_and_named() -> None:
    answer = said({"systemMessage": 3, "reason": [], "hookSpecificOutput": {"updatedInput": "x"}})
    assert "systemMessage" in answer.problem
    assert answer.updated is None


@pytest.mark.parametrize(
    "text",
    [
        "Loading nvm...\n{}",
        "{}\nbye",
        "\ufeff{}",
        "start\r\n{}\r\nend",
    ],
)
@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Stop"])
def test_a_decision_counts_beside_what_a_start_up_file_writes(event: HookEvent, text: str) -> None:
    said = '{\n"decision": "Block", "reason": "no"\n}'
    answer = read_answer(event, Ran("exited", 0, text.replace("{}", said)))
    assert (answer.wish, answer.reason, answer.problem) == ("block", "no", "")


def test_words_with_a_brace_are_no_decision() -> None:
    assert read_answer("PreToolUse", Ran("exited", 0, "checked\n{ all fine")) == Answer()
    two = read_answer("PreToolUse", Ran("exited", 0, '{"decision": "block"} {"decision": "block"}'))
    assert (two.wish, "text follows on the line" in two.problem) == ("none", True)


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "PreCompact"])
def test_exit_2_blocks_with_what_is_on_stderr(event: HookEvent) -> None:
    answer = read_answer(event, Ran("exited", 2, "{}", "why\n"))
    assert (answer.wish, answer.reason) == ("block", "why")


@pytest.mark.parametrize("event", ["SessionStart", "SessionEnd", "Notification", "PostCompact", "SubagentStart"])
def test_where_nothing_can_be_blocked_the_user_reads_it(event: HookEvent) -> None:
    answer = read_answer(event, Ran("exited", 2, "", "why"))
    assert (answer.wish, answer.problem) == ("none", "exit 2: why")


@pytest.mark.parametrize(
    ("ran", "problem"),
    [
        (Ran("exited", 1, "", "broken\nhere"), "exit 1: broken here"),
        (Ran("exited", 127, "", "x: not found"), "exit 127 (not found): x: not found"),
        (Ran("exited", 126), "exit 126 (not executable)"),
        (Ran("exited", 137), "killed by signal 9"),
        (Ran("exited", 255), "exit 255"),
        (Ran("timeout", None, duration=60.2), "stopped after 60 s, its time limit"),
        (Ran("skipped"), "skipped by you"),
        (Ran("not started", problem="no such folder"), "no such folder"),
        (Ran("exited", 0, '{"decision": "block"'), "its output looks like JSON but is not"),
        (Ran("exited", 0, "{" * 100_000), "its output looks like JSON but is not"),
        (Ran("exited", 0, '{"a": "x', cut=True), "too long"),
    ],
)
def test_what_goes_wrong_decides_nothing_and_is_one_line(ran: Ran, problem: str) -> None:
    answer = read_answer("PreToolUse", ran)
    assert answer.problem.startswith(problem) or problem in answer.problem
    assert "\n" not in answer.problem
    unable = ran.ending in ("timeout", "not started") or ran.exit_status in (126, 127, 137)
    wish = "ask" if unable else "none"  # it came to no word about the call
    assert (answer.wish, answer.context, answer.stop) == (wish, "", False)
    assert read_answer("PostToolUse", ran).wish == "none"


@pytest.mark.parametrize(
    ("event", "context"),
    [
        *((event, "the sprint") for event in ("UserPromptSubmit", "SessionStart", "PreCompact")),
        *((event, "") for event in ("PreToolUse", "Stop", "Notification")),
    ],
)
def test_plain_text_is_context_where_the_model_is_about_to_read(event: HookEvent, context: str) -> None:
    assert read_answer(event, Ran("exited", 0, "the sprint\n")).context == context


def test_context_is_bounded() -> None:
    context = read_answer("SessionStart", Ran("exited", 0, "x" * 50_000)).context
    assert len(context) < MOST_CONTEXT + 100
    assert "40,000 more characters" in context


def test_the_strictest_wins_with_all_its_reasons_whatever_the_order() -> None:
    answers = [Answer("allow"), Answer("block", "one"), Answer("ask", "look"), Answer("block", "two"), Answer()]
    for order in (answers, answers[::-1]):
        verdict = decide(order)
        assert verdict.wish == "block"
        assert set(verdict.reason.split("\n")) == {"one", "two"}
    assert decide([Answer("allow"), Answer("ask", "look")]).wish == "ask"
    assert decide([]) == NOTHING


def test_contexts_join_and_the_first_input_counts() -> None:
    verdict = decide(
        [Answer(context="a", updated={"x": 1}), Answer(context="b", updated={"x": 2}), Answer(context="a")]
    )
    assert (verdict.context, verdict.updated) == ("a\nb", {"x": 1})
    assert decide([Answer(), Answer(stop=True, stop_reason="enough")]).stop_reason == "enough"
