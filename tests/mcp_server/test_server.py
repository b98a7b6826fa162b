"""swecli as an MCP server, asked by the official SDK's client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitResult, TextContent

from tests.mcp_server.support import EDIT, bench, decided
from tests.support.waiting import until

DONE = '[[step]]\ntext = "All is well."\n'
SLEEP = """
[[step]]
[[step.call]]
tool = "run_command"
arguments = { command = "touch begun && sleep 1000" }
[[step]]
text = "Never."
"""
LEGACY_AND_NEW = pytest.mark.parametrize("mode", ["legacy", "auto"])


def text(result: Any) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


@LEGACY_AND_NEW
async def test_a_task_with_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Any) -> None:
    async with bench(tmp_path, monkeypatch, EDIT, mode=mode) as made:
        made.user.answers = [decided("Allow once")]
        result = await made.call("run_task", prompt="write it")
        assert not result.is_error
        assert (made.folder / "new.txt").read_text() == "hello"
        document = result.structured_content
        assert document["state"] == "done"
        assert document["answer"] == "Done."
        assert document["changed_files"] == ["new.txt"]
        assert "new.txt" in made.user.asked[0].message
        assert "hello" in made.user.asked[0].message
        numbers = [number for number, _ in made.user.progress]
        assert numbers == list(range(1, len(numbers) + 1))
        assert any("write_file" in message for _, message in made.user.progress)
        read = await made.call("read_result", session=document["session"])
        assert read.structured_content == document
        transcript = await made.client.read_resource(f"swecli://session/{document['session']}")
        assert "write it" in transcript.contents[0].text  # pyright: ignore


@LEGACY_AND_NEW
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (decided("Reject", note="use another name"), "use another name"),
        (ElicitResult(action="decline"), "rejected"),
        (ElicitResult(action="cancel"), "rejected"),
        (decided("allow everything"), "rejected"),
    ],
)
async def test_what_the_user_does_not_allow_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Any, answer: ElicitResult, reason: str
) -> None:
    async with bench(tmp_path, monkeypatch, EDIT, mode=mode) as made:
        made.user.answers = [answer]
        result = await made.call("run_task", prompt="write it")
        assert not (made.folder / "new.txt").exists()
        assert reason in result.structured_content["denied"][0]["reason"]
        assert "Not allowed to run" in text(result)


@pytest.mark.parametrize(("asks", "background"), [(False, False), (True, True)])
async def test_where_nobody_can_be_asked_the_call_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asks: bool, background: bool
) -> None:
    async with bench(tmp_path, monkeypatch, EDIT, asks=asks) as made:
        result = await made.call("run_task", prompt="write it", background=background)
        if background:
            assert result.structured_content["state"] == "working"
            result = await made.call("read_result", session=result.structured_content["session"], wait=60)
        assert not made.user.asked
        assert result.structured_content["state"] == "done"
        reason = result.structured_content["denied"][0]["reason"]
        assert ("background" if background else "elicitation") in reason


async def test_a_mode_is_never_beyond_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, EDIT) as made:
        refused = await made.call("run_task", prompt="write it", mode="auto")
        assert refused.is_error
        assert "exceeds the user's settings" in text(refused)
        assert not made.server._tasks
        planned = await made.call("run_task", prompt="write it", mode="plan")
        assert not (made.folder / "new.txt").exists()
        assert planned.structured_content["denied"]
        assert not made.user.asked


async def test_a_session_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = '[[step]]\ntext = "First."\n[[step]]\ntext = "Second."\n'
    async with bench(tmp_path, monkeypatch, script) as made:
        first = await made.call("run_task", prompt="one")
        session = first.structured_content["session"]
        again = await made.call("run_task", prompt="two", session=session)
        assert (again.structured_content["session"], again.structured_content["answer"]) == (session, "Second.")
        listed = await made.call("list_sessions")
        assert [one["session"] for one in listed.structured_content["sessions"]] == [session]
        resources = await made.client.list_resources()
        assert [str(one.uri) for one in resources.resources] == [f"swecli://session/{session}"]
    async with bench(tmp_path, monkeypatch, script) as made:
        stored = await made.call("read_result", session=session)
        assert stored.structured_content["answer"] == "Second."
        transcript = await made.client.read_resource(f"swecli://session/{session}")
        assert "First." in transcript.contents[0].text  # pyright: ignore


async def test_a_cancelled_call_stops_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, SLEEP, allowed_tools=("run_command",)) as made:
        call = asyncio.create_task(made.call("run_task", prompt="sleep"))
        await made.user.until(lambda: any("run_command" in message for _, message in made.user.progress))
        await until((made.folder / "begun").exists)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        session = next(iter(made.server._tasks))
        result = await made.call("read_result", session=session, wait=60)
        assert result.structured_content["state"] == "interrupted"
        assert not made.server._tasks[session].session.view.busy


async def test_a_background_task_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, SLEEP, allowed_tools=("run_command",)) as made:
        began = await made.call("run_task", prompt="sleep", background=True)
        session = began.structured_content["session"]
        busy = await made.call("run_task", prompt="more", session=session)
        assert "is already running" in text(busy)
        stopped = await made.call("cancel_task", session=session)
        assert stopped.structured_content["state"] == "interrupted"
        assert not stopped.is_error
        assert "The task ended early: interrupted." in text(stopped)


async def test_the_client_leaves_in_the_middle_of_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, EDIT) as made:
        call = asyncio.create_task(made.call("run_task", prompt="write it"))
        await made.user.until(lambda: bool(made.user.asked))
        task = next(iter(made.server._tasks.values()))
        call.cancel()
    assert task.session.view.session_id
    assert not task.working
    assert not (made.folder / "new.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "prompt is empty"),
        ({"prompt": 5}, "prompt must be text"),
        ({"prompt": "x" * 1_000_001}, "more than 1,000,000"),
        ({"prompt": "x", "mode": "yolo"}, "one of plan"),
        ({"prompt": "x", "cwd": "/"}, "is outside"),
        ({"prompt": "x", "cwd": "../"}, "is outside"),
        ({"prompt": "x", "cwd": "nowhere"}, "no such directory"),
        ({"prompt": "x", "cwd": "a\0b"}, "NUL"),
        ({"prompt": "x", "session": "nothing"}, "nothing"),
        ({"prompt": "x", "background": "yes"}, "true or false"),
        ({"prompt": "x", "yolo": True}, "Unknown argument yolo"),
    ],
)
async def test_bad_arguments_are_told_and_nothing_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], said: str
) -> None:
    async with bench(tmp_path, monkeypatch, DONE) as made:
        result = await made.call("run_task", **arguments)
        assert result.is_error
        assert said in text(result)
        assert not made.server._tasks


async def test_unknown_things_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp import MCPError

    async with bench(tmp_path, monkeypatch, DONE) as made:
        with pytest.raises(MCPError, match="unknown tool"):
            await made.call("rm_rf")
        for uri in ("swecli://session/../../x", "file:///etc/passwd", "swecli://session/unknown"):
            with pytest.raises(MCPError):
                await made.client.read_resource(uri)
        assert "Unknown session" in text(await made.call("read_result", session="unknown"))
        assert "wait must be" in text(await made.call("read_result", session="unknown", wait=1e9))
        assert "nothing was stopped" in text(await made.call("cancel_task", session="unknown"))
        assert text(await made.call("run_task", prompt="go on")).startswith("All is well.")


async def test_a_call_that_is_cancelled_while_its_session_opens_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(tmp_path, monkeypatch, DONE) as made:
        begun, go_on = asyncio.Event(), asyncio.Event()
        opened: list[Any] = []
        open_session = made.server._open_session

        async def slowly(options: Any) -> Any:
            begun.set()
            await go_on.wait()
            opened.append(await open_session(options))
            return opened[-1]

        made.server._open_session = slowly
        call = asyncio.create_task(made.call("run_task", prompt="x"))
        await begun.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        while not made.server._ending:  # noqa: ASYNC110 - the server hears of it soon
            await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(*made.server._ending)
        assert not made.server._tasks
        assert opened[0]._closed
        assert text(await made.call("run_task", prompt="go on")).startswith("All is well.")


async def test_a_wait_for_a_result_that_is_cancelled_leaves_nothing_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(tmp_path, monkeypatch, EDIT) as made:
        waits: list[asyncio.Task[None]] = []

        class Working:
            async def finished(self) -> None:
                waits.append(asyncio.current_task())
                await asyncio.Event().wait()

        made.server._tasks["x"] = Working()
        reading = asyncio.create_task(made.server._result_of("x", 60))
        while not waits:  # noqa: ASYNC110 - it begins soon
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert waits[0].cancelling()
        del made.server._tasks["x"]
        await asyncio.gather(*waits, return_exceptions=True)
        assert waits[0].cancelled()
