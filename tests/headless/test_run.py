"""The front-end without a screen, against a session of prepared events."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from msgspec import structs

from swecli.command_line.arguments import rules
from swecli.core.answer_schema import AnswerSchema
from swecli.core.protocol import messages
from swecli.core.protocol.blocks import DiffBlock, TerminalBlock
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.codec import to_text
from swecli.core.protocol.commands import Answer, Close, Command, Interrupt, ReplyPermission, Submit
from swecli.core.protocol.events import (
    ANSWER_CUT,
    Body,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    ItemStatus,
    ModelResponded,
    Notice,
    PermissionRequested,
    QuestionAsked,
    RetryScheduled,
    SessionStarted,
    StepEnded,
    StepStarted,
    TurnEnded,
)
from swecli.core.protocol.messages import Origin, ReasoningPart, TextPart, ToolCallPart, ToolResultPart, Usage
from swecli.core.protocol.request_events import Question
from swecli.exit_codes import ExitCode
from swecli.headless.printers import Printer, ResultPrinter, TranscriptPrinter
from swecli.headless.run import HeadlessRun, Request
from swecli.output import Output, Writer
from swecli.stopping import Stop
from tests.support.event_lines import decode_event
from tests.support.fake_session import WAIT_FOR_INTERRUPT, FakeSession
from tests.support.waiting import PATIENCE, until

BUDGET = Budget((), 500, 500, 1000, 1200, 200, "ok")


def step(number: int = 1) -> StepStarted:
    return StepStarted(number, BUDGET)


def said(text: str, item: str = "a1") -> list[Body]:
    return [ItemStarted(item, "text"), ItemDelta(item, text), ItemCompleted(item, "ok", (TextPart(text),))]


def asked(item: str = "t1", request: str = "p1", status: str = "rejected", detail: str = "rejected") -> list[Body]:
    result = ToolResultPart("c", "run_command", "…", is_error=status != "ok")
    block = TerminalBlock("ls", "a\nb\n", 0)
    bodies: list[Any] = [
        ItemStarted(item, "tool", "run_command"),
        ItemCheckpointed(item, ToolCallPart("c", "run_command", '{"command": "ls"}'), "ls"),
        PermissionRequested(request, item, "run_command", "ls", (), "commands need approval", "hash"),
        ItemCompleted(item, status, (result,), (block,) if status == "ok" else (), detail),  # pyright: ignore[reportArgumentType]
    ]
    return bodies


class Run:
    """One run with captured output."""

    def __init__(self, session: FakeSession, kind: str = "text", **request: Any) -> None:
        self.session = session
        self.out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        self.err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        self.stop = Stop()
        writer = Writer()
        out, err = Output(self.out, writer), Output(self.err, writer)
        printers: dict[str, Callable[[], Printer]] = {
            "text": lambda: ResultPrinter(out, err, "text"),
            "json": lambda: ResultPrinter(out, err, "json"),
            "stream-json": lambda: ResultPrinter(out, err, "stream-json"),
            "transcript": lambda: TranscriptPrinter(out, "Banner."),
        }
        self.run = HeadlessRun(session, Request(**request), printers[kind](), err.note, writer, self.stop)

    async def code(self) -> ExitCode:
        with self.stop.handled():
            return await asyncio.wait_for(self.run.run(), PATIENCE)

    @staticmethod
    def _text(stream: io.TextIOWrapper) -> str:
        stream.flush()
        raw = stream.buffer
        assert isinstance(raw, io.BytesIO)
        return raw.getvalue().decode()

    @property
    def stdout(self) -> str:
        return self._text(self.out)

    @property
    def stderr(self) -> str:
        return self._text(self.err)

    @property
    def result(self) -> dict[str, Any]:
        return json.loads(self.stdout.splitlines()[-1])


async def test_a_silent_model_is_reported_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swecli.headless.run.PATIENCE", (0.01, 0.01))
    session = FakeSession([step(), WAIT_FOR_INTERRUPT])
    run = Run(session, prompt="hi")
    running = asyncio.create_task(run.code())
    await until(lambda: run.stderr.count("swecli: nothing from the model for ") > 2)
    session.send(Interrupt())
    await running
    assert "nothing" not in run.stdout


async def test_a_message_that_takes_much_of_the_window_is_reported_before_it_is_sent(tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_text("a line of the log\n" * 60)
    for share, prompt, reported in (
        (0.25, "why? @large.txt", True),
        (0.99, "why? @large.txt", False),
        (0, "hi", False),
    ):
        session = FakeSession([step(), *said("Done.")])
        session.view.cwd, session.view.roots, session.view.budget = tmp_path, (tmp_path,), BUDGET
        run = Run(session, prompt=prompt, large=lambda share=share: share)
        assert await run.code() == ExitCode.OK
        assert ("swecli: this message takes ~" in run.stderr) is reported
        assert session.commands == [Submit(prompt)]


async def test_a_message_is_measured_against_the_window_that_the_server_names(tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_text("a line of the log\n" * 60)

    class Named(FakeSession):
        async def start_settled(self) -> None:
            self.view.budget = BUDGET

    session = Named([step(), *said("Done.")])
    session.view.cwd, session.view.roots = tmp_path, (tmp_path,)
    run = Run(session, prompt="why? @large.txt", large=lambda: 0.25)
    assert await run.code() == ExitCode.OK
    assert "of the window" in run.stderr


async def test_text_puts_the_answer_of_the_last_step_on_stdout() -> None:
    run = Run(FakeSession([step(), *said("I look."), step(2), *said("Done: 4 files.", "a2")]), prompt="hi")
    assert await run.code() == ExitCode.OK
    assert run.stdout == "Done: 4 files.\n"
    assert run.stderr == ""
    assert run.session.commands == [Submit("hi")]
    assert run.session.closed


@pytest.mark.parametrize(
    ("kind", "raw", "reason", "code"),
    [
        ("end", "stop", "", 0),
        ("refusal", "refusal", "the model refused to answer", 63),
        ("content_filter", "SAFETY", "the provider's content filter stopped the answer", 63),
    ],
)
@pytest.mark.parametrize("form", ["json", "stream-json"])
async def test_the_result_says_why_the_model_stopped(kind: Any, raw: str, reason: str, code: int, form: Any) -> None:
    responded = ModelResponded("m1", ("a1",), Origin("p", "h", "m"), messages.Stop(kind, raw, "x"))
    run = Run(FakeSession([step(), *said("Half"), responded, TurnEnded("done", reason)]), form, prompt="hi")
    assert await run.code() == code
    assert run.result["stop"] == {"kind": kind, "reason": reason, "raw": raw, "detail": "x"}
    assert (run.result["exit_code"], run.result["text"], run.result["error"]) == (code, "Half", None)
    assert reason in run.stderr


@pytest.mark.parametrize("kind", ["length", "context_full"])
async def test_an_answer_that_was_cut_is_not_done(kind: Any) -> None:
    responded = ModelResponded("m1", ("a1",), Origin("p", "h", "m"), messages.Stop(kind))
    ended = TurnEnded("limit", "the context window was full", ANSWER_CUT)
    run = Run(FakeSession([step(), *said("Half"), responded, ended]), "json", prompt="hi")
    assert await run.code() == 64
    assert (run.result["status"], run.result["text"]) == ("limit", "Half")
    assert run.result["error"]["kind"] == ANSWER_CUT


async def test_without_an_answer_the_result_has_no_stop() -> None:
    run = Run(FakeSession([TurnEnded("error", "no", "auth")]), "json", prompt="hi")
    await run.code()
    assert run.result["stop"] is None


async def test_a_last_step_without_text_leaves_the_text_before() -> None:
    run = Run(FakeSession([step(), *said("The answer."), step(2)]), prompt="hi")
    assert await run.code() == ExitCode.OK
    assert run.stdout == "The answer.\n"


@pytest.mark.parametrize(
    ("outcome", "kind", "code"),
    [
        ("error", "auth", 41),
        ("error", "not_found", 52),
        ("error", "rate_limit", 75),
        ("error", "overloaded", 75),
        ("error", "network", 75),
        ("error", "stalled", 75),
        ("error", "truncated", 75),
        ("error", "protocol", 1),
        ("error", "content_filter", 63),
        ("error", "internal", 1),
        ("blocked", "context", 61),
        ("blocked", "context_overflow", 61),
        ("limit", "max_turns", 53),
        ("limit", "max_tokens", 60),
        ("interrupted", "", 130),
    ],
)
async def test_each_end_of_a_turn_has_its_exit_code(outcome: Any, kind: str, code: int) -> None:
    turn = [step(), ItemStarted("a1", "text"), ItemDelta("a1", "half an an"), TurnEnded(outcome, "because.", kind)]
    run = Run(FakeSession(turn), "json", prompt="hi")
    assert await run.code() == code
    assert run.result["exit_code"] == code
    assert run.result["status"] == outcome
    assert run.result["text"] == "half an an"
    assert run.result["error"] == (None if outcome == "interrupted" else {"kind": kind, "message": "because."})
    assert ("interrupted: because." if outcome == "interrupted" else "because.") in run.stderr


async def test_warnings_errors_and_retries_go_to_stderr() -> None:
    turn = [
        Notice("just so you know", "info"),
        Notice("careful", "warning", hint="Look."),
        RetryScheduled(1, 5, 2.0, "rate_limit", "too many requests"),
        RetryScheduled(3, 0, 8.0, "network", "no connection to h:1", "h:1"),
        step(),
        *said("ok"),
    ]
    run = Run(FakeSession(turn), prompt="hi")
    assert await run.code() == ExitCode.OK
    assert run.stdout == "ok\n"
    assert (
        run.stderr
        == "warning: careful. Look.\nretry 1 of 5 in 2 s: too many requests\ncan't reach h:1; next try in 8 s\n"
    )


async def test_nobody_to_ask_rejects_goes_on_and_exits_62() -> None:
    run = Run(FakeSession([step(), *asked(), step(2), *said("I could not run it.")]), "json", prompt="hi")
    assert await run.code() == ExitCode.APPROVAL_NEEDED
    reply = run.session.commands[-1]
    assert isinstance(reply, ReplyPermission)
    assert (reply.request, reply.choice, reply.by) == ("p1", "reject", "headless")
    assert "No user is present in this run" in reply.note
    assert run.result["text"] == "I could not run it."
    assert run.result["status"] == "done"
    assert run.result["denials"] == [
        {
            "tool": "run_command",
            "title": "ls",
            "reason": "needs approval, but no user is present",
            "approval_needed": True,
        }
    ]
    assert "not allowed: run_command ls" in run.stderr
    assert run.stderr.count("--allowed-tools") == run.stderr.count("--permission-mode") == 1


async def test_the_rules_that_would_have_allowed_the_calls_are_named_once() -> None:
    first, second = asked(), asked("t2", "p2")
    for bodies, rule in ((first, "Bash(ls *)"), (second, "Edit(/a.txt)")):
        bodies[2] = structs.replace(bodies[2], rule=rule)
    run = Run(FakeSession([step(), *first, step(2), *second, step(3), *said("No.")]), prompt="hi")
    assert await run.code() == ExitCode.APPROVAL_NEEDED
    lines = [line for line in run.stderr.splitlines() if "--allowed-tools" in line]
    assert lines.pop(0) == "2 calls were refused (no user to approve); see --allowed-tools"
    wanted = "--allowed-tools 'Bash(ls *),Edit(/a.txt)', or another --permission-mode"
    assert lines == [f"to allow such calls: {wanted}"]
    assert rules(["Bash(ls *),Edit(/a.txt)"]) == ("Bash(ls *)", "Edit(/a.txt)")


async def test_a_call_denied_by_a_rule_is_listed_but_is_no_missing_approval() -> None:
    turn = [step(), ItemStarted("t1", "tool", "edit_file", "a.py"), ItemCompleted("t1", "rejected", detail="plan mode")]
    run = Run(FakeSession(turn), "json", prompt="hi")
    assert await run.code() == ExitCode.OK
    assert [(d["title"], d["reason"], d["approval_needed"]) for d in run.result["denials"]] == [
        ("a.py", "plan mode", False)
    ]


async def test_an_error_is_worth_more_than_a_missing_approval() -> None:
    run = Run(FakeSession([step(), *asked(), TurnEnded("error", "no", "auth")]), prompt="hi")
    assert await run.code() == ExitCode.AUTH


async def test_questions_are_dismissed() -> None:
    run = Run(FakeSession([step(), QuestionAsked("q1", "t1", (Question("Which?"),)), *said("A")]), prompt="hi")
    assert await run.code() == ExitCode.OK
    assert run.session.commands[-1] == Answer("q1", (), "headless")


async def test_everything_can_be_approved() -> None:
    run = Run(FakeSession([step(), *asked(status="ok", detail="exit 0")]), prompt="hi", approve_all=True)
    assert await run.code() == ExitCode.OK
    assert run.session.commands[-1] == ReplyPermission("p1", "once", by="headless")


async def test_without_a_model_the_run_says_so() -> None:
    run = Run(FakeSession(model=False), "json", prompt="hi")
    assert await run.code() == ExitCode.CONFIG
    assert run.result["status"] == "error"
    assert "No model is connected" in run.result["error"]["message"]


async def test_usage_and_cost_are_summed_over_steps() -> None:
    turn = [
        step(),
        StepEnded(1, Usage(100, 0, None, 10), "0.01"),
        step(2),
        StepEnded(2, Usage(200, 90, None, 20, 5), "0.02"),
    ]
    run = Run(FakeSession(turn), "json", prompt="hi")
    assert await run.code() == ExitCode.OK
    assert run.result["usage"] == {
        "input_total": 300,
        "cache_read": 90,
        "cache_write": None,
        "output_total": 30,
        "reasoning": 5,
    }
    assert run.result["cost"] == "0.03"
    blocked = Budget((), 1100, 1100, 1000, 1200, 200, "block")
    run = Run(
        FakeSession([*turn, StepStarted(3, blocked), TurnEnded("blocked", "full", "context")]), "json", prompt="hi"
    )
    assert await run.code() == ExitCode.CONTEXT_BLOCKED
    assert (run.result["cost"], run.result["steps"]) == ("0.03", 2)
    turn[1] = StepEnded(1, Usage(100), None)
    run = Run(FakeSession(turn), "json", prompt="hi")
    assert await run.code() == ExitCode.OK
    assert run.result["cost"] is None


async def test_a_text_that_was_cut_and_the_one_that_goes_on_with_it_are_one() -> None:
    def text(item: str, words: str, status: ItemStatus) -> list[Body]:
        return [ItemStarted(item, "text"), ItemDelta(item, words), ItemCompleted(item, status, (TextPart(words),))]

    turn = [
        *(step(), *text("a1", "Before the tools.", "ok"), StepEnded(1, None, "0")),
        *(step(2), *text("a2", "One and a ha", "error"), StepEnded(2, None, "0")),
        *(step(3), *text("a3", "lf.", "ok"), *text("a4", "And more.", "ok"), StepEnded(3, None, "0")),
    ]
    run = Run(FakeSession(turn), "text", prompt="hi")
    assert await run.code() == ExitCode.OK
    assert run.stdout == "One and a half.\n\nAnd more.\n"


async def test_stream_json_is_every_event_of_this_run_and_then_the_result() -> None:
    history: list[Body] = [SessionStarted("/proj", "m", "default", "0"), *said("long ago", "a0"), TurnEnded("error")]
    run = Run(FakeSession([step(), *said("ok")], history=history), "stream-json", prompt="hi")
    assert await run.code() == ExitCode.OK
    *lines, last = run.stdout.splitlines()
    events = [decode_event(line) for line in lines]
    assert isinstance(events[0].body, SessionStarted)
    assert events[0].seq == len(history) + 1
    assert [event.seq for event in events] == list(range(events[0].seq, events[0].seq + len(events)))
    assert isinstance(events[-1].body, TurnEnded)
    assert json.loads(last)["type"] == "result"
    assert "long ago" not in run.stdout


def lines(*commands: Command | str) -> BinaryIO:
    return io.BytesIO("".join((c if isinstance(c, str) else to_text(c)) + "\n" for c in commands).encode())


async def test_commands_from_stdin_drive_several_turns() -> None:
    session = FakeSession([step(), *said("one")], [step(), *said("two", "a2")])
    run = Run(session, "stream-json", commands=lines(Submit("a"), Submit("b")))
    assert await run.code() == ExitCode.OK
    assert (run.result["turns"], run.result["text"]) == (2, "two")


async def test_an_approval_from_stdin_answers_the_question() -> None:
    read, write = os.pipe()
    session = FakeSession([step(), *asked(status="ok", detail="exit 0"), *said("ok")])
    run = Run(session, "stream-json", commands=os.fdopen(read, "rb"))
    task = asyncio.create_task(run.code())
    os.write(write, to_text(Submit("a")).encode() + b"\n")
    await until(lambda: "permission_requested" in run.stdout)
    os.write(write, to_text(ReplyPermission("p1", "once")).encode() + b"\n")
    os.close(write)
    assert await task == ExitCode.OK
    assert [c for c in session.commands if isinstance(c, ReplyPermission)] == [ReplyPermission("p1", "once")]


async def test_when_stdin_ends_the_open_questions_are_answered_with_no() -> None:
    session = FakeSession([step(), *asked(), QuestionAsked("q1", "t2", (Question("?"),)), *said("ok")])
    run = Run(session, "stream-json", commands=lines(Submit("a")))
    assert await run.code() == ExitCode.APPROVAL_NEEDED
    assert {type(command) for command in session.commands} == {Submit, ReplyPermission, Answer}


async def test_bad_lines_are_named_and_the_rest_is_done() -> None:
    session = FakeSession([step(), *said("ok")])
    run = Run(session, "stream-json", commands=lines("{", '{"type": "submit"}', "", Submit("a")))
    assert await run.code() == ExitCode.BAD_INPUT
    assert run.result["text"] == "ok"
    assert "line 1: not JSON" in run.stderr
    assert "line 2: command submit: Object missing required field `text`" in run.stderr


async def test_close_ends_the_run_in_the_middle_of_a_turn() -> None:
    session = FakeSession([step(), *said("one"), WAIT_FOR_INTERRUPT])
    run = Run(session, "stream-json", commands=lines(Submit("a"), Close()))
    assert await run.code() == ExitCode.INTERRUPTED
    assert isinstance(session.commands[-1], Interrupt)


async def test_a_signal_ends_the_run_while_a_hostile_pattern_is_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swecli.core.answer_schema.PATTERN_SECONDS", 10 * PATIENCE)
    session = FakeSession([step(), *said(json.dumps("a" * 60 + "!")), TurnEnded("done")])
    run = Run(session, "stream-json", prompt="hi", schema=AnswerSchema.read('{"pattern": "^(a+)+$"}'))
    task = asyncio.create_task(run.code())
    await until(lambda: "turn_ended" in run.stdout)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await task == ExitCode.TERMINATED


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_signal_interrupts_the_turn_and_what_there_is_is_kept(number: int, code: int) -> None:
    session = FakeSession([step(), *said("half"), WAIT_FOR_INTERRUPT])
    run = Run(session, "stream-json", prompt="hi")
    task = asyncio.create_task(run.code())
    await until(lambda: "item_completed" in run.stdout)
    os.kill(os.getpid(), number)
    assert await task == code
    assert isinstance(session.commands[-1], Interrupt)
    assert (run.result["status"], run.result["exit_code"], run.result["text"]) == ("interrupted", code, "half")


class _Closed(io.TextIOWrapper):
    """A pipe whose reader has gone."""

    def __init__(self, error: OSError) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")
        self._error = error

    def flush(self) -> None:
        if not self.closed:
            raise self._error


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "No space left on device")])
async def test_a_closed_output_stops_the_run_without_a_traceback(error: OSError) -> None:
    session = FakeSession([step(), *said("ok"), WAIT_FOR_INTERRUPT])
    run = Run(session, prompt="hi")
    writer = Writer()
    err = Output(run.err, writer)
    printer = ResultPrinter(Output(_Closed(error), writer), err, "stream-json")
    headless = HeadlessRun(session, Request("hi"), printer, err.note, writer, Stop())
    assert await asyncio.wait_for(headless.run(), PATIENCE) == ExitCode.FAILURE
    assert session.closed
    assert isinstance(session.commands[-1], Interrupt)
    assert ("No space left" in run.stderr) == (error.errno == 28)


async def answered(session: FakeSession, printer: Callable[[Writer], Printer]) -> ExitCode:
    """The exit status of a run that says hi."""
    writer = Writer()
    return await HeadlessRun(session, Request("hi"), printer(writer), lambda _: None, writer, Stop()).run()


async def test_an_ascii_output_gets_escapes_and_json_stays_utf8() -> None:
    ascii_out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    session = FakeSession([step(), *said("größer \ud800 →")])
    assert (
        await answered(session, lambda writer: ResultPrinter(Output(ascii_out, writer), Output(None), "text"))
        == ExitCode.OK
    )
    buffer = ascii_out.buffer
    assert isinstance(buffer, io.BytesIO)
    assert buffer.getvalue() == b"gr\\xf6\\xdfer \\ud800 \\u2192\n"
    ascii_out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    session = FakeSession([step(), *said("größer")])
    assert (
        await answered(session, lambda writer: ResultPrinter(Output(ascii_out, writer), Output(None), "json"))
        == ExitCode.OK
    )
    buffer = ascii_out.buffer
    assert isinstance(buffer, io.BytesIO)
    assert json.loads(buffer.getvalue())["text"] == "größer"


async def test_the_transcript_tells_the_whole_story_in_lines() -> None:
    diff = DiffBlock("a.py", "x = 1\n", "x = 2\n")
    edit = [
        ItemStarted("t1", "tool", "edit_file"),
        ItemCheckpointed("t1", ToolCallPart("c", "edit_file", "{}"), "a.py"),
        PermissionRequested("p1", "t1", "edit_file", "a.py", (diff,), "edits need approval", "hash"),
        ItemCompleted("t1", "ok", (ToolResultPart("c", "edit_file", "ok"),), (diff,), "+1 -1"),
    ]
    turn = [
        ItemStarted("u1", "user"),
        ItemCompleted("u1", "ok", (TextPart("Fix it"),)),
        step(),
        ItemStarted("r1", "reasoning"),
        ItemCompleted("r1", "ok", (ReasoningPart("It is x."),)),
        *edit,
        *asked("t2", "p2", "ok", "exit 0"),
        *said("Fixed \x1b[31mred\x1b[0m."),
    ]
    run = Run(FakeSession(turn), "transcript", prompt="Fix it", approve_all=True)
    assert await run.code() == ExitCode.OK
    assert run.stdout == (
        "Banner.\nNew session. swecli 0, model fake/model, mode default, in /proj.\nYou: Fix it\n"
        "Reasoning:\nIt is x.\nPermission needed: edit file a.py\nedits need approval\n"
        "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n> yes\nDone: edit file a.py: +1 -1\n"
        "Permission needed: run command ls\ncommands need approval\n> yes\nDone: run command ls: exit 0\n"
        "$ ls\na\nb\nexit 0\nAnswer:\nFixed ␛[31mred␛[0m.\n"
        "Turn done.\n[done, 1 model step, context 500 of 1,000 tokens (~50%)]\n"
    )


async def test_an_event_costs_no_task_of_its_own() -> None:
    loop, made = asyncio.get_running_loop(), list[str]()

    def noted(loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
        made.append(coroutine.__qualname__)
        return asyncio.Task(coroutine, loop=loop, **more)

    async def tasks(deltas: int) -> int:
        text = "word " * deltas
        streamed: list[Body] = [ItemDelta("a1", "word ") for _ in range(deltas)]
        answer: list[Body] = [ItemStarted("a1", "text"), *streamed, ItemCompleted("a1", "ok", (TextPart(text),))]
        made.clear()
        run = Run(FakeSession([step(), *answer]), prompt="hello")
        assert await run.code() == ExitCode.OK
        assert run.stdout == f"{text}\n"
        return len(made)

    loop.set_task_factory(noted)
    try:
        few, many = await tasks(3), await tasks(300)
    finally:
        loop.set_task_factory(None)
    assert many <= few + 20, made
