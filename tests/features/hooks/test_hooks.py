"""Hooks in a session: what they block, ask about, change and add, and that nothing they do breaks it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.context_management.compaction.options import CompactionOptions, CompactResult
from swecli.core.engine.companion import EndReason
from swecli.core.hooks.hook import Hook, HookEvent
from swecli.core.hooks.runner import HookPlace, Hooks
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.permissions.types import Policy, Rule
from swecli.core.permissions.workspace_scripts import workspace_scripts
from swecli.core.protocol.commands import Compact, EditQueue, Interrupt, ReplyPermission, RunShell, Steer, Submit
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    HookRan,
    HooksRunning,
    ItemCompleted,
    JobChanged,
    Notice,
    PermissionRequested,
    Rewound,
)
from swecli.core.protocol.hook_words import hook_line
from swecli.features.hooks.companion import CONTINUATIONS, SessionHooks
from tests.core.engine.support import Bench, bench, call, until
from tests.support.processes import ME, running_with
from tests.support.waiting import PATIENCE

ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath)}
ONE_CALL = f"[[step]]\ncall = [{call('run_command', 'make')}]\n[[step]]\ntext = 'done'\n"
ANSWER = "[[step]]\ntext = 'hello'\n"


def hooks_of(it: Bench) -> SessionHooks:
    made = it.session.companion(SessionHooks)
    assert made is not None
    return made


def hooks(folder: Path, *made: Hook) -> dict[str, Any]:
    """Settings of a session with these hooks, which the user allowed in their present form."""

    bound = [replace(one, scripts=one.scripts or workspace_scripts(one.command, folder)) for one in made]
    return {"hooks": Hooks(bound, HookPlace(folder, ENVIRONMENT))}


def say(data: object) -> str:
    return f"cat > /dev/null; echo '{json.dumps(data)}'"


def decision(word: str, **more: Any) -> str:
    return say({"hookSpecificOutput": {"permissionDecision": word, "permissionDecisionReason": "because", **more}})


def ran(it: Bench) -> list[tuple[str, str]]:
    return [(body.event, body.outcome) for body in it.bodies(HookRan)]


def seen(it: Bench) -> str:
    """What the newest request had of the user's side."""
    return "\n".join(message.text for message in it.session.view.messages if message.role == "user")


ALLOWED = Policy(rules=(Rule("allow", "Bash", "user"), Rule("allow", "run_command", "user")))


async def test_a_blocked_call_does_not_run_and_the_model_reads_why(tmp_path: Path) -> None:
    block = Hook("PreToolUse", "echo 'not in this project' >&2; exit 2")
    async with bench(ONE_CALL, tmp_path, policy=ALLOWED, **hooks(tmp_path, block)) as it:
        ended = await it.say("go")
        assert ended.outcome == "done"
        assert it.gates.started == []
        assert "not in this project" in "".join(it.tool_texts().values())
        assert ran(it) == [("PreToolUse", "blocked")]
        (item,) = [body for body in it.bodies(ItemCompleted) if body.status == "rejected"]
        assert item.detail == "blocked by a hook: not in this project"


async def test_a_hook_that_blocks_is_named_once_where_it_is_a_program(tmp_path: Path) -> None:
    program = tmp_path / "guard.sh"
    program.write_text("#!/bin/sh\necho 'not here' >&2\nexit 2\n")
    program.chmod(0o755)
    async with bench(ONE_CALL, tmp_path, policy=ALLOWED, **hooks(tmp_path, Hook("PreToolUse", str(program)))) as it:
        await it.say("go")
        (item,) = [body for body in it.bodies(ItemCompleted) if body.status == "rejected"]
        assert item.detail == "blocked by the hook guard.sh: not here"
        assert [hook_line(body) for body in it.bodies(HookRan)] == [""]


async def test_a_blocker_counts_in_yolo_and_asks_there_too(tmp_path: Path) -> None:
    policy = Policy(yolo=True)
    async with bench(ONE_CALL, tmp_path, policy=policy, **hooks(tmp_path, Hook("PreToolUse", decision("ask")))) as it:
        it.send(Submit("go"))
        asked = await it.asked()
        assert (asked.reason, asked.rule) == ("because", None)
        it.allow(asked)
        await until(lambda: it.gates.ended == ["make"])


@pytest.mark.parametrize("policy", [Policy(yolo=True), ALLOWED], ids=["yolo", "allowed"])
@pytest.mark.parametrize("changed", [True, False], ids=["changed", "not confirmed"])
async def test_a_blocker_that_may_not_run_makes_the_call_ask(tmp_path: Path, policy: Policy, changed: bool) -> None:
    (tmp_path / "no-rm.sh").write_text("exit 2 # and more")
    guard = Hook("PreToolUse", "sh no-rm.sh", "Bash")
    guard = (
        replace(guard, scripts=(("no-rm.sh", "as it was"),))
        if changed
        else replace(guard, waiting="you have not allowed its current version", unconfirmed=True)
    )
    async with bench(ONE_CALL, tmp_path, policy=policy, **hooks(tmp_path, guard)) as it:
        it.send(Submit("go"))
        asked = await it.asked()
        assert ("no-rm.sh has changed" if changed else "not allowed its current version") in asked.reason
        assert asked.rule is None
        assert it.gates.started == []
        it.send(ReplyPermission(asked.request, "reject"))
        await it.idle()
        assert it.gates.started == []


@pytest.mark.parametrize("policy", [Policy(yolo=True), ALLOWED], ids=["yolo", "allowed"])
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("./not-there.sh", "exit 127 (not found)"),
        ("./no-rm.sh", "exit 126 (not executable)"),
        ("kill -9 $$", "killed by signal 9"),
    ],
)
async def test_a_blocker_that_can_not_run_makes_the_call_ask(
    tmp_path: Path, policy: Policy, command: str, why: str
) -> None:
    (tmp_path / "no-rm.sh").write_text("#!/bin/sh\nexit 2")
    async with bench(ONE_CALL, tmp_path, policy=policy, **hooks(tmp_path, Hook("PreToolUse", command, "Bash"))) as it:
        it.send(Submit("go"))
        asked = await it.asked()
        assert why in asked.reason
        assert it.gates.started == []
        it.allow(asked)
        await it.idle()
        assert it.gates.ended == ["make"]
        assert ran(it) == [("PreToolUse", "problem")]


async def test_a_silent_permission_hook_is_named_where_the_user_is_asked(tmp_path: Path) -> None:
    guard = Hook("PermissionRequest", "true", waiting="it is new", unconfirmed=True)
    async with bench(ONE_CALL, tmp_path, **hooks(tmp_path, guard)) as it:
        it.send(Submit("go"))
        asked = await it.asked()
        assert any("it is new" in line for line in asked.warnings)
        assert "it is new" not in asked.reason


async def test_what_a_hook_asks_for_is_shown_where_the_mode_asks_too(tmp_path: Path) -> None:
    async with bench(ONE_CALL, tmp_path, **hooks(tmp_path, Hook("PreToolUse", decision("ask")))) as it:
        it.send(Submit("go"))
        asked = await it.asked()
        assert asked.reason != "because"
        assert asked.warnings == ("because",)


@pytest.mark.parametrize("word", ["allow", "approve"])
async def test_allow_answers_no_question(tmp_path: Path, word: str) -> None:
    command = decision("allow") if word == "allow" else say({"decision": "approve"})
    allow = {"hookSpecificOutput": {"decision": {"behavior": "allow"}}}
    given = hooks(tmp_path, Hook("PreToolUse", command), Hook("PermissionRequest", say(allow)))
    async with bench(ONE_CALL, tmp_path, **given) as it:
        it.send(Submit("go"))
        await it.asked()
        assert it.gates.started == []


async def test_a_hook_can_refuse_before_the_user_is_asked(tmp_path: Path) -> None:
    deny = {"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "ask me tomorrow"}}}
    async with bench(ONE_CALL, tmp_path, **hooks(tmp_path, Hook("PermissionRequest", say(deny), "Bash"))) as it:
        await it.say("go")
        assert it.bodies(PermissionRequested) == []
        assert "ask me tomorrow" in "".join(it.tool_texts().values())


async def test_a_changed_input_is_decided_about_anew(tmp_path: Path) -> None:
    """The bench's tools take a target, which is no word of Claude Code's: an unknown tool's input is given as it is."""
    script = f"[[step]]\ncall = [{call('write_file', 'a.txt')}]\n[[step]]\ntext = 'done'\n"
    changed = decision("allow", updatedInput={"file_path": "b.txt"})
    async with bench(script, tmp_path, **hooks(tmp_path, Hook("PreToolUse", changed, "Write"))) as it:
        ended = await it.say("go")
        assert ended.outcome == "done"
        assert it.gates.started == []
        assert "updatedInput does not fit write_file" in "".join(it.tool_texts().values())


async def test_the_result_carries_what_hooks_say_to_it(tmp_path: Path) -> None:
    (tmp_path / "log.py").write_text(
        "import json, sys\ndata = json.load(sys.stdin)\njson.dump(data, open('event.json', 'w'))\n"
        "print(json.dumps({'decision': 'block', 'reason': 'the tests fail', 'hookSpecificOutput': "
        "{'additionalContext': 'see log.txt'}}))\n"
    )
    given = hooks(tmp_path, Hook("PostToolUse", "python3 log.py", "Bash"), Hook("PostToolUse", "exit 2", "Edit|Write"))
    async with bench(ONE_CALL, tmp_path, policy=ALLOWED, **given) as it:
        it.allow_all = True
        await it.say("go")
        text = "".join(it.tool_texts().values())
        assert text.startswith("run_command make done\n")
        assert "the tests fail" in text
        assert "see log.txt" in text
        assert ran(it) == [("PostToolUse", "blocked")]
        event = json.loads((tmp_path / "event.json").read_text())
    assert {key: event[key] for key in ("hook_event_name", "session_id", "cwd", "tool_name", "permission_mode")} == {
        "hook_event_name": "PostToolUse",
        "session_id": "s",
        "cwd": str(tmp_path),
        "tool_name": "Bash",
        "permission_mode": "default",
    }
    assert event["tool_response"]["stdout"] == "run_command make done"
    assert event["swecli_tool_input"] == {"target": "make"}


async def test_a_failed_call_has_an_event_of_its_own(tmp_path: Path) -> None:
    script = f"[[step]]\ncall = [{call('read_file', 'broken')}]\n[[step]]\ntext = 'done'\n"
    told = say({"hookSpecificOutput": {"additionalContext": "try again tomorrow"}})
    given = hooks(tmp_path, Hook("PostToolUse", "exit 2"), Hook("PostToolUseFailure", told))
    async with bench(script, tmp_path, **given) as it:
        await it.say("go")
        assert "try again tomorrow" in "".join(it.tool_texts().values())
        assert ran(it) == [("PostToolUseFailure", "context")]


async def test_context_joins_the_first_message_and_every_later_one(tmp_path: Path) -> None:
    given = hooks(
        tmp_path, Hook("SessionStart", "echo branch main", "startup"), Hook("UserPromptSubmit", "echo friday")
    )
    async with bench(ANSWER * 2, tmp_path, **given) as it:
        await it.say("one")
        await it.say("two")
        assert seen(it).count("branch main") == 1
        assert seen(it).count("friday") == 2
        assert "[Added by the user's SessionStart hook]" in seen(it)


async def test_a_blocked_message_is_given_back_and_never_sent(tmp_path: Path) -> None:
    given = hooks(tmp_path, Hook("UserPromptSubmit", "grep -q secret && { echo 'no secrets' >&2; exit 2; }; exit 0"))
    async with bench(ANSWER, tmp_path, **given) as it:
        ended = await it.say("the secret is 42")
        assert (ended.outcome, ended.reason) == ("blocked", "a hook blocked your message: no secrets")
        assert [body.text for body in it.bodies(Rewound)] == ["the secret is 42"]
        assert (await it.say("hello")).outcome == "done"
        assert "42" not in seen(it)


async def test_what_is_written_meanwhile_is_looked_at_too(tmp_path: Path) -> None:
    given = hooks(tmp_path, Hook("UserPromptSubmit", "grep -q secret && { echo 'no secrets' >&2; exit 2; }; exit 0"))
    async with bench(ONE_CALL, tmp_path, policy=ALLOWED, **given) as it:
        it.gates.held.add("make")
        it.allow_all = True
        it.send(Submit("go"))
        await until(lambda: it.gates.started == ["make"])
        it.send(Steer("a secret"))
        it.send(Steer("and this"))
        it.gates.release("make")
        await it.idle()
        assert "and this" in seen(it)
        assert "a secret" not in seen(it)
        assert any("blocked your message: no secrets" in body.text for body in it.bodies(Notice))


async def test_arguments_nested_without_end_break_no_later_call(tmp_path: Path) -> None:
    given = hooks(tmp_path, Hook("PreToolUse", "cat > /dev/null"))
    deep = '{"target": ' + "[" * 20_000 + "]" * 20_000 + "}"
    script = f"[[step]]\ncall = [{{ tool = 'run_command', arguments = '{deep}' }}]\n{ONE_CALL}"
    async with bench(script, tmp_path, policy=ALLOWED, output_folder=tmp_path / "out" / "output", **given) as it:
        it.allow_all = True
        assert (await it.say("go")).outcome == "done"
        assert it.gates.ended == ["make"]


async def test_a_waiting_message_that_changes_while_it_is_looked_at_is_looked_at_again(tmp_path: Path) -> None:
    work, wait = tmp_path / "work", "touch ../looking; while [ ! -e ../go ]; do sleep 0.02; done"
    work.mkdir()
    look = f'case "$(cat)" in *secret*) exit 2;; *slow*) {wait};; esac'
    given = hooks(work, Hook("UserPromptSubmit", look))
    async with bench(ONE_CALL, work, policy=ALLOWED, **given) as it:
        it.gates.held.add("make")
        it.allow_all = True
        it.send(Submit("go"))
        await until(lambda: it.gates.started == ["make"])
        it.send(Steer("a slow one"))
        it.gates.release("make")
        await until(lambda: (tmp_path / "looking").exists())
        (waiting,) = it.session.view.queue
        it.send(EditQueue(waiting.id, "a secret"))
        (tmp_path / "go").touch()
        await it.idle()
        assert "a secret" not in seen(it)
        assert any("blocked your message" in body.text for body in it.bodies(Notice))


async def test_the_new_text_of_a_waiting_message_is_kept_if_the_old_one_is_blocked(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    look = "grep -q secret || exit 0; touch ../looking; while [ ! -e ../go ]; do sleep 0.02; done; exit 2"
    async with bench(ONE_CALL, work, policy=ALLOWED, **hooks(work, Hook("UserPromptSubmit", look))) as it:
        it.gates.held.add("make")
        it.allow_all = True
        it.send(Submit("go"))
        await until(lambda: it.gates.started == ["make"])
        it.send(Steer("a secret"))
        it.gates.release("make")
        await until(lambda: (tmp_path / "looking").exists())
        (waiting,) = it.session.view.queue
        it.send(EditQueue(waiting.id, "harmless"))
        (tmp_path / "go").touch()
        await it.idle()
        assert "harmless" in seen(it)
        assert "a secret" not in seen(it)


async def test_a_blocked_message_asks_the_model_for_nothing(tmp_path: Path) -> None:
    given = hooks(tmp_path, Hook("UserPromptSubmit", "grep -q secret && exit 2; exit 0"))
    answers = asyncio.Event()

    async def wait(_seconds: float) -> None:
        await answers.wait()

    model = ScriptedModel(parse_script(ANSWER * 2), pause=wait)
    async with bench("", tmp_path, make_client=lambda _name: model, **given) as it:
        it.send(Submit("go"))
        await until(lambda: len(model.requests) == 1)
        it.send(Steer("a secret"))
        answers.set()
        await it.idle()
        assert any("blocked your message" in body.text for body in it.bodies(Notice))
        assert len(model.requests) == 1


async def test_a_stop_hook_keeps_the_model_going_once(tmp_path: Path) -> None:
    go_on = say({"decision": "block", "reason": "run the tests"})
    command = f"grep -q '\"stop_hook_active\":true' && exit 0; {go_on}"
    async with bench(ANSWER * 2, tmp_path, **hooks(tmp_path, Hook("Stop", command))) as it:
        ended = await it.say("go")
        assert ended.outcome == "done"
        assert "run the tests" in seen(it)
        assert ran(it) == [("Stop", "blocked"), ("Stop", "ok")]


async def test_a_stop_hook_that_never_lets_go_is_bounded(tmp_path: Path) -> None:
    given = hooks(tmp_path, Hook("Stop", "echo more >&2; exit 2"))
    async with bench(ANSWER * (CONTINUATIONS + 1), tmp_path, **given) as it:
        ended = await it.say("go")
        assert ended.outcome == "done"
        assert ran(it) == [("Stop", "blocked")] * (CONTINUATIONS + 1)
        assert any("the turn ends now" in body.text for body in it.bodies(Notice))


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse"])
async def test_continue_false_ends_the_turn(tmp_path: Path, event: HookEvent) -> None:
    enough = Hook(event, say({"continue": False, "stopReason": "enough for today"}))
    async with bench(ONE_CALL, tmp_path, policy=ALLOWED, **hooks(tmp_path, enough)) as it:
        it.allow_all = True
        ended = await it.say("go")
        assert (ended.outcome, ended.reason) == ("interrupted", "stopped by a hook: enough for today")
        assert it.gates.ended == ([] if event == "PreToolUse" else ["make"])


async def test_a_permission_hook_can_end_the_turn_without_a_reason(tmp_path: Path) -> None:
    async with bench(ONE_CALL, tmp_path, **hooks(tmp_path, Hook("PermissionRequest", say({"continue": False})))) as it:
        ended = await it.say("go")
        assert (ended.outcome, ended.error_kind) == ("interrupted", "hook")
        assert it.gates.started == []


async def test_failing_hooks_are_one_line_each_and_change_nothing(tmp_path: Path) -> None:
    broken = ("exit 1", "exit 255", "printf '{nonsense'", "head -c 5000000 /dev/zero; exit 9")
    given = hooks(tmp_path, *(Hook("PreToolUse", command) for command in broken))
    async with bench(ONE_CALL, tmp_path, policy=ALLOWED, **given) as it:
        it.allow_all = True
        ended = await it.say("go")
        assert ended.outcome == "done"
        assert it.gates.ended == ["make"]
        assert ran(it) == [("PreToolUse", "problem")] * len(broken)
        assert all(body.text and "\n" not in body.text for body in it.bodies(HookRan))


async def test_esc_skips_a_running_hook_and_then_interrupts(tmp_path: Path) -> None:
    given = hooks(tmp_path, Hook("PreToolUse", "touch began; sleep 300"))
    async with bench(ONE_CALL, tmp_path, policy=ALLOWED, **given) as it:
        it.gates.held.add("make")
        it.allow_all = True
        it.send(Submit("go"))
        await until(lambda: (tmp_path / "began").exists())
        it.send(Interrupt(skip=True))
        await until(lambda: it.gates.started == ["make"])
        await until(lambda: ran(it) == [("PreToolUse", "skipped")])
        it.send(Interrupt(skip=True))
        await it.idle()
        assert it.gates.log[-1] == ("cancel", "make")


async def test_hooks_that_are_waited_for_are_named_until_they_end(tmp_path: Path) -> None:
    given = hooks(tmp_path, Hook("Stop", "until test -e go; do sleep 0.02; done"))
    async with bench(ANSWER, tmp_path, **given) as it:
        it.send(Submit("go"))
        await until(lambda: bool(it.bodies(HooksRunning)))
        assert it.bodies(HooksRunning) == [HooksRunning(1, "Stop", ("until test -e go; do sleep 0.02; done",))]
        (tmp_path / "go").touch()
        await until(lambda: it.bodies(HooksRunning)[1:] == [HooksRunning(1, "Stop")])
        await it.idle()


async def test_an_interrupt_without_skip_ends_the_turn_in_a_hook(tmp_path: Path) -> None:
    given = hooks(tmp_path, Hook("UserPromptSubmit", "echo $$ > pid; sleep 300"))
    async with bench(ANSWER, tmp_path, **given) as it:
        it.send(Submit("go"))
        await until(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text()))
        it.send(Interrupt())
        await it.idle()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_a_turn_interrupted_while_the_session_starts_leaves_the_context_to_the_next(tmp_path: Path) -> None:
    given = hooks(
        tmp_path, Hook("SessionStart", "touch began; until test -e go; do sleep 0.02; done; echo branch main")
    )
    async with bench(ANSWER, tmp_path, **given) as it:
        it.send(Submit("go"))
        await until(lambda: (tmp_path / "began").exists())
        it.send(Interrupt())
        await it.idle()
        (tmp_path / "go").touch()
        assert (await it.say("again")).outcome == "done"
        assert "branch main" in seen(it)


LONG = "[[step]]\nchunk = 200\ntext = '''" + "word " * 3_000 + "'''\n"


async def test_a_compaction_can_be_blocked_or_told_what_matters(tmp_path: Path) -> None:
    given = hooks(tmp_path, Hook("PreCompact", "echo 'not now' >&2; exit 2", "manual"), Hook("PostCompact", "exit 0"))
    async with bench(LONG * 3, tmp_path, **given) as it:
        await it.say("one")
        await it.say("two")
        it.send(Compact())
        await until(lambda: bool(it.bodies(CompactionFailed)))
        assert "not now" in it.bodies(CompactionFailed)[0].reason
        assert it.bodies(CompactionCompleted) == []
        assert ran(it) == [("PreCompact", "blocked")]


async def test_a_compaction_begins_the_session_anew(tmp_path: Path) -> None:
    given = hooks(
        tmp_path,
        Hook("SessionStart", "cat > start.json; echo branch main", "compact"),
        Hook("SessionStart", "touch never", "resume"),
    )
    async with bench(ANSWER, tmp_path, **given) as it:
        after = hooks_of(it).around_compaction(CompactionOptions()).on_post_compact
        assert after is not None
        await after(CompactResult(100, 10, 9, 2, ("summary",)))
        assert json.loads((tmp_path / "start.json").read_text())["source"] == "compact"
        await it.say("go on")
        assert "branch main" in seen(it)
    assert "never" not in os.listdir(tmp_path)


@pytest.mark.parametrize("reason", ["other", "clear", "resume", "prompt_input_exit"])
async def test_the_session_ends_with_its_hook(
    tmp_path: Path, reason: EndReason, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swecli.features.hooks.companion.END_SECONDS", PATIENCE)
    given = hooks(tmp_path, Hook("SessionEnd", "cat > end.json", reason), Hook("SessionEnd", "touch never", "logout"))
    async with bench(ANSWER, tmp_path, **given) as it:
        await it.session.close(reason)
    assert json.loads((tmp_path / "end.json").read_text())["reason"] == reason
    assert "never" not in os.listdir(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_session_that_ends_too_slowly_leaves_no_job_and_no_open_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swecli.features.hooks.companion.END_SECONDS", PATIENCE)
    given = hooks(tmp_path, Hook("SessionEnd", "touch ending; sleep 1000"))
    async with bench(ANSWER, tmp_path, **given) as it:
        it.session.send(RunShell(f"sleep 7611.{ME} & echo mine"))
        await until(lambda: bool(it.bodies(JobChanged)) and bool(running_with(f"7611.{ME}")))
        events = it.session.subscribe()
        closing = asyncio.ensure_future(it.session.close())
        await until((tmp_path / "ending").exists)
        closing.cancel()  # as by a front-end whose time is over
        await asyncio.wait([closing])
        assert running_with(f"7611.{ME}") == []
        assert it.bodies(JobChanged)[-1].status == "killed"
        assert [event async for event in events]  # they end: the record is closed


async def test_one_that_nobody_waits_for_speaks_with_the_next_message(tmp_path: Path) -> None:
    late = say({"hookSpecificOutput": {"additionalContext": "late"}})
    command = "touch begun; until test -e go; do sleep 0.02; done; " + late
    given = hooks(tmp_path, Hook("PostToolUse", command, background=True), Hook("Stop", "exit 2", background=True))
    async with bench(ONE_CALL + ANSWER, tmp_path, policy=ALLOWED, **given) as it:
        await it.say("go")
        assert ("PostToolUse", "context") not in ran(it)
        await until(lambda: (tmp_path / "begun").exists())  # "go" counts as a script of it until it runs
        (tmp_path / "go").touch()
        await until(lambda: ("PostToolUse", "context") in ran(it))
        await until(lambda: ("Stop", "ok") in ran(it))  # it decides nothing
        await it.say("and now")
        assert "late" in seen(it)


async def test_one_that_nobody_waits_for_ends_with_the_session(tmp_path: Path) -> None:
    given = hooks(tmp_path, Hook("SessionStart", "echo $$ > pid; sleep 1000", background=True))
    async with bench(ANSWER, tmp_path, **given) as it:
        await it.say("hi")
        await until(lambda: os.path.exists(tmp_path / "pid") and bool((tmp_path / "pid").read_text().strip()))
    assert (tmp_path / "pid").read_text().strip() not in os.listdir("/proc")


async def test_a_condition_says_which_calls_it_is_about(tmp_path: Path) -> None:
    only = Hook("PreToolUse", "exit 2", "Bash", condition="Bash(rm *)")
    never = Hook("Stop", "touch never", condition="Bash(rm *)")
    script = f"[[step]]\ncall = [{call('run_command', 'ls | rm -f x')}, {call('run_command', 'make')}]\n{ANSWER}"
    async with bench(script, tmp_path, policy=ALLOWED, **hooks(tmp_path, only, never)) as it:
        await it.say("go")
        assert [body.status for body in it.bodies(ItemCompleted)][:3].count("rejected") == 1
        assert ran(it) == [("PreToolUse", "blocked")]


async def test_a_hook_replaces_what_the_model_reads(tmp_path: Path) -> None:
    new = Hook("PostToolUse", say({"hookSpecificOutput": {"updatedToolOutput": {"stdout": "covered", "stderr": ""}}}))
    async with bench(ONE_CALL, tmp_path, policy=ALLOWED, **hooks(tmp_path, new)) as it:
        await it.say("go")
        result = next(part for message in it.session.view.messages for part in message.tool_results)
        assert result.text.startswith("covered")
        assert "replaced the output" in result.text


async def test_an_idle_prompt_is_told_and_a_message_stops_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swecli.features.hooks.companion.IDLE_SECONDS", 0.02)
    given = hooks(tmp_path, Hook("Notification", "cat > idle.json", "idle_prompt"))
    async with bench(ANSWER, tmp_path, **given) as it:
        await it.say("go")
        await until(lambda: ran(it) == [("Notification", "ok")])
        assert json.loads((tmp_path / "idle.json").read_text())["notification_type"] == "idle_prompt"


async def test_notifications_hold_nothing_up(tmp_path: Path) -> None:
    given = hooks(tmp_path, Hook("Notification", "cat > wanted.json", "permission_prompt"))
    async with bench(ONE_CALL, tmp_path, **given) as it:
        it.send(Submit("go"))
        await it.asked()
        await until(lambda: ran(it) == [("Notification", "ok")])
        assert json.loads((tmp_path / "wanted.json").read_text())["message"] == (
            "swecli needs your permission to use Bash"
        )


async def test_subagents_fire_their_events(tmp_path: Path) -> None:
    context = {"hookSpecificOutput": {"additionalContext": "be brief"}}
    given = hooks(
        tmp_path,
        Hook("SubagentStart", say(context), "explore"),
        Hook("SubagentStop", "echo 'look again' >&2; exit 2", "explore"),
    )
    async with bench(ANSWER, tmp_path, **given) as it:
        fired = hooks_of(it)
        assert await fired.agent_begins("a1", "explore") == "be brief"
        assert await fired.agent_begins("a1", "review") == ""
        assert await fired.agent_ends("a1", "explore", "done", 0) == "look again"
        assert await fired.agent_ends("a1", "explore", "done", CONTINUATIONS) == ""


async def test_the_transcript_is_there_while_the_session_runs(tmp_path: Path) -> None:
    copy = 'path=$(sed \'s/.*"transcript_path":"\\([^"]*\\)".*/\\1/\'); cp "$path" copy.jsonl; echo "$path" > path'
    given = hooks(tmp_path, Hook("Stop", copy))
    async with bench(ANSWER, tmp_path, output_folder=tmp_path / "state" / "output", **given) as it:
        await it.say("a question")
    text = (tmp_path / "copy.jsonl").read_text()
    assert '"role":"assistant"' in text  # scripts search for this with grep
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["type"], line["message"]["content"]) for line in lines] == [
        ("user", "a question"),
        ("assistant", [{"type": "text", "text": "hello"}]),
    ]
    assert not os.path.exists((tmp_path / "path").read_text().strip())  # noqa: ASYNC240 - the session has ended


async def test_without_hooks_nothing_is_asked_or_recorded(tmp_path: Path) -> None:
    async with bench(ONE_CALL, tmp_path, policy=ALLOWED) as it:
        it.allow_all = True
        await it.say("go")
        assert it.bodies(HookRan) == []
        assert it.session.companion(SessionHooks) is None


async def test_consent_that_can_not_be_kept_leaves_the_hook_off(tmp_path: Path) -> None:
    def refuse(hook: Hook) -> Hook:
        raise OSError(28, "No space left on device")

    given = hooks(tmp_path, Hook("Stop", "exit 0", waiting="it is new"))
    async with bench(ANSWER, tmp_path, allow_hook=refuse, **given) as it:
        (record,) = hooks_of(it).records
        assert "No space left" in await hooks_of(it).allow(record)
        assert record.hook.waiting
        await it.say("go")
        assert ran(it) == []
