"""Pinning, dropping, offloading and restoring in a session: stored, replayed, measured, refused with a reason."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from swecli.commands.context import CONTEXT
from swecli.commands.requests import WIRE, save_wire
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.commands import (
    ApplyPlan,
    ChangeContext,
    Compact,
    Interrupt,
    RedoCompaction,
    Rewind,
    SetModel,
    UndoCompaction,
    UndoRewind,
)
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    CompactionUndone,
    ContextEdited,
    ContextMeasured,
    Event,
    ItemCompleted,
    ModelResponded,
    Notice,
    RewindUndone,
    Rewound,
    SessionStarted,
    TurnStarted,
    Unknown,
)
from swecli.core.sessions.database import open_in_memory
from swecli.core.sessions.portable import portable_document, read_portable, stored_session, take_in
from swecli.core.sessions.store import SessionStore
from tests.core.engine.support import Bench, bench, call, until
from tests.core.engine.test_snapshots import Kept
from tests.core.llm.histories import target

LINES = "\n".join(f"line {number} of a file with some words in it" for number in range(120))
SUMMARY = (
    "## Goal\\nRead the files.\\n## Done\\nRead f1 and f2, nothing was changed in them.\\n## Next\\nRead the rest."
)


def script(files: int = 3, *more: str, window: int = 64_000) -> str:
    reads = [f"[[step]]\ncall = [{call('read_file', f'f{number}')}]" for number in range(files)]
    steps = [*reads, '[[step]]\ntext = "Read them all."', *more]
    return f"window = {window}\nmax_output = 2000\n" + "\n".join(steps)


async def filled(b: Bench, files: int = 3) -> None:
    for number in range(files):
        b.gates.outputs[f"f{number}"] = f"file {number}\n{LINES}"
    await b.say("Read the files; never change the ports.")


def change(b: Bench, action: str, *ids: str) -> None:
    b.send(ChangeContext(tuple(ContextChange(action, name) for name in ids)))  # type: ignore[arg-type]


def results(b: Bench) -> list[str]:
    picture = b.session.inspection.picture()
    assert picture is not None
    return [item.id for item in picture.items if item.kind == "result"]


def notices(b: Bench) -> str:
    return "\n".join(body.text for body in b.bodies(Notice))


def states(b: Bench) -> dict[str, tuple[str, bool]]:
    picture = b.session.inspection.picture()
    assert picture is not None
    return {item.id: (item.state, item.pinned) for item in picture.items if item.kind == "result"}


async def edited_session(
    folder: Path, kept: Kept, name: str
) -> tuple[list[Event], dict[str, tuple[str, bool]], list[Any]]:
    """A session with one result dropped, one offloaded, one pinned: its facts, these states, what the model sees."""
    async with bench(script(), folder, snapshots=kept, session_id=name) as b:
        await filled(b)
        for action, result in zip(("drop", "offload", "pin"), results(b), strict=True):
            change(b, action, result)
        await until(lambda: len(b.bodies(ContextEdited)) == 3)
        assert {state for state, _ in states(b).values()} == {"dropped", "offloaded", "live"}
        return b.facts, states(b), [(one.role, one.parts) for one in b.session.view.messages]


LOST: dict[str, Callable[[Event], bool]] = {
    "edits": lambda event: isinstance(event.body, ContextEdited),
    "edits and answers": lambda event: isinstance(event.body, ContextEdited | ModelResponded),
    "edits and results": lambda event: isinstance(event.body, ContextEdited | ItemCompleted),
    "everything": lambda event: not isinstance(event.body, SessionStarted),
}


@pytest.mark.parametrize("which", LOST)
async def test_edits_that_can_not_be_read_come_from_the_snapshot(tmp_path: Path, which: str) -> None:
    kept = Kept()
    facts, before, said = await edited_session(tmp_path, kept, "s")
    gone = Unknown("unreadable", {"type": "unreadable"})
    damaged = [structs.replace(event, body=gone) if LOST[which](event) else event for event in facts]
    async with bench(script(), tmp_path, history=damaged, snapshots=kept) as b:
        assert [(one.role, one.parts) for one in b.session.view.messages] == said
        if which == "edits":
            assert states(b) == before
        else:  # what was dropped is lost, and of what was offloaded only the line is left that stood for it
            there, kept_before = (
                {name: pinned for name, (state, pinned) in found.items() if state != "dropped"}
                for found in (states(b), before)
            )
            assert there == kept_before
        pinned = next(name for name, (_, pinned) in states(b).items() if pinned)
        change(b, "drop", pinned)
        await until(lambda: "is pinned; unpin it first" in notices(b))


async def test_a_fork_and_an_import_have_them(tmp_path: Path) -> None:
    kept, store = Kept(), SessionStore(open_in_memory())
    name = store.create(str(tmp_path), "m", "1").id
    facts, before, said = await edited_session(tmp_path, kept, name)
    store.append(facts)
    document = portable_document(stored_session(store, name, pytest.fail), str)
    other = SessionStore(open_in_memory())
    taken = take_in(other, read_portable(document), str(tmp_path), str, "file")
    for history in (store.load(store.fork(name, "1").id), other.load(taken)):
        async with bench(script(), tmp_path, history=history) as b:
            assert states(b) == before
            assert [(one.role, one.parts) for one in b.session.view.messages] == said


async def test_what_is_chosen_after_a_rewind_holds_when_it_is_taken_back(tmp_path: Path) -> None:
    async with bench(script(3, '[[step]]\ntext = "And now?"'), tmp_path) as b:
        await filled(b)
        await b.say("Go on.")
        again = next(event.body.item for event in b.events if isinstance(event.body, TurnStarted) and event.turn == 2)
        b.send(Rewind(again))
        await until(lambda: bool(b.bodies(Rewound)))
        change(b, "drop", results(b)[0])
        change(b, "pin", results(b)[1])
        await until(lambda: len(b.bodies(ContextEdited)) == 2)
        chosen = states(b)
        b.send(UndoRewind())
        await until(lambda: bool(b.bodies(RewindUndone)))
        assert states(b) == chosen
        assert any(message.text == "Go on." for message in b.session.view.messages)


async def test_drop_and_restore_give_the_same_request_and_survive_a_resume(tmp_path: Path) -> None:
    async with bench(script(), tmp_path) as b:
        await filled(b)
        before = b.session.inspection.wire("next")
        first, second, _ = results(b)
        change(b, "drop", first)
        change(b, "offload", second)
        change(b, "pin", results(b)[2])
        await until(lambda: len(b.bodies(ContextEdited)) == 3)
        shrunk = b.session.inspection.wire("next")
        assert before is not None
        assert shrunk is not None
        assert shrunk.tokens < before.tokens
        assert before.body.count("line 60 of a file") == 3
        assert shrunk.body.count("line 60 of a file") == 1
        edit = b.bodies(ContextEdited)[0]
        assert edit.tokens_after < edit.tokens_before
        history = list(b.facts)
    async with bench(script(), tmp_path, history=history) as b:
        resumed = b.session.inspection.wire("next")
        assert resumed is not None
        assert resumed.body == shrunk.body
        assert states(b) == {
            first: ("dropped", False),
            second: ("offloaded", False),
            results(b)[2]: ("live", True),
        }
        change(b, "restore", first, second)
        await until(lambda: bool(b.bodies(ContextEdited)))
        restored = b.session.inspection.wire("next")
        assert restored is not None
        assert restored.body == before.body


async def test_the_items_add_up_to_the_meter(tmp_path: Path) -> None:
    async with bench(script(), tmp_path) as b:
        await filled(b)
        for action in ("offload", "drop", "restore"):
            change(b, action, results(b)[0])
            await until(lambda: b.bodies(ContextMeasured)[-1].budget == b.session.view.budget)
            picture = b.session.inspection.picture()
            assert picture is not None
            assert b.session.view.budget is not None
            assert sum(item.tokens for item in picture.items) == picture.budget.used == b.session.view.budget.used


async def test_all_of_a_batch_or_nothing(tmp_path: Path) -> None:
    async with bench(script(), tmp_path) as b:
        await filled(b)
        first, second, _ = results(b)
        change(b, "pin", first)
        await until(lambda: bool(b.bodies(ContextEdited)))
        change(b, "drop", second, first.removesuffix(".result"))
        await until(lambda: "needs its call" in notices(b) or "pinned" in notices(b))
        assert "Nothing was changed" in notices(b)
        assert len(b.bodies(ContextEdited)) == 1
        change(b, "drop", "t99")
        await until(lambda: "Unknown item 't99'" in notices(b))


async def test_dropping_or_offloading_twice_says_that_it_is_done(tmp_path: Path) -> None:
    async with bench(script(), tmp_path) as b:
        await filled(b)
        first, second, _ = results(b)
        change(b, "drop", first, first.removesuffix(".result"))  # a pair in one batch is no repetition
        change(b, "offload", second)
        await until(lambda: len(b.bodies(ContextEdited)) == 2)
        change(b, "drop", first)
        await until(lambda: f"{first} is already dropped" in notices(b))
        change(b, "offload", second)
        await until(lambda: f"{second} is already offloaded" in notices(b))
        assert len(b.bodies(ContextEdited)) == 2


async def test_restoring_what_no_longer_fits_says_by_how_much(tmp_path: Path) -> None:
    async with bench(script(12, window=200_000), tmp_path) as b:
        await filled(b, 12)
        change(b, "drop", *results(b))
        await until(lambda: bool(b.bodies(ContextEdited)))
        history = list(b.facts)
    async with bench(script(0, window=9_000), tmp_path, history=history) as b:
        change(b, "restore", *results(b))
        await until(lambda: "more than fit" in notices(b))
        assert not b.bodies(ContextEdited)


async def test_undo_after_the_model_changed_to_a_smaller_one(tmp_path: Path) -> None:
    summary = f'[[step]]\ntext = "{SUMMARY}"'
    async with bench(script(12, summary, window=200_000), tmp_path) as b:
        await filled(b, 12)
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        history = list(b.facts)
    async with bench(script(0, window=9_000), tmp_path, history=history) as b:
        b.send(UndoCompaction())
        await until(lambda: bool(b.bodies(CompactionUndone)))
        assert "as references" in notices(b)
        assert b.session.view.budget is not None
        assert b.session.view.budget.share <= 0.9
        b.send(SetModel("scripted/test"))


async def test_a_plan_is_applied_as_it_was_arranged_and_taken_back(tmp_path: Path) -> None:
    async with bench(script(6), tmp_path) as b:
        await filled(b, 6)
        before = b.session.inspection.wire()
        draft = b.session.draft_compaction()
        assert draft is not None
        assert before is not None
        kept = results(b)[0]
        assert draft.place([item.id for item in draft.items if item.id[0] != "u" and item.id != kept], []) == ""
        assert draft.move(kept, "kept") == ""
        summary = SUMMARY.replace("\\n", "\n")
        expected = draft.arranged(summary)
        assert draft.lines(summary)
        b.send(ApplyPlan(draft.summarised, draft.offloaded, summary))
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        done = b.bodies(CompactionCompleted)[0]
        assert abs(done.tokens_after - expected.after) <= 0.05 * expected.after
        assert done.anchors_kept == done.anchors
        after = b.session.inspection.wire()
        assert after is not None
        assert "Read f1 and f2" in after.body
        assert "file 0" in after.body
        for command, wanted in ((UndoCompaction(done.item), before), (RedoCompaction(done.item), after)) * 2:
            b.send(command)
            now = b.session.inspection.wire()
            assert now is not None
            assert now.body == wanted.body


async def test_a_plan_whose_summary_the_model_writes_is_seen_and_can_be_interrupted(tmp_path: Path) -> None:
    async with bench(script(6, '[[step]]\nfault = { kind = "stall" }', window=200_000), tmp_path) as b:
        await filled(b, 6)
        before = tuple(b.session.view.messages)
        draft = b.session.draft_compaction()
        assert draft is not None
        b.send(ApplyPlan(tuple(item.id for item in draft.items if item.id[0] != "u"), (), None))
        await until(lambda: "Write the summary" in b.model.requests[-1].messages[-1].text)
        await until(lambda: bool(b.bodies(CompactionStarted)))
        (begun,) = b.bodies(CompactionStarted)
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(CompactionFailed)) and not b.session.view.busy)
        (failed,) = b.bodies(CompactionFailed)
        assert (failed.item, failed.reason) == (begun.item, "interrupted; nothing was changed")
        assert tuple(b.session.view.messages) == before


async def test_a_plan_that_frees_nothing_ends_with_the_figures(tmp_path: Path) -> None:
    async with bench(script(6, window=200_000), tmp_path) as b:
        await filled(b, 6)
        draft = b.session.draft_compaction()
        assert draft is not None
        b.send(ApplyPlan(tuple(item.id for item in draft.items if item.id[0] != "u"), (), "word " * 40_000))
        await until(lambda: bool(b.bodies(CompactionFailed)) and not b.session.view.busy)
        assert "nothing was changed: the plan would leave" in b.bodies(CompactionFailed)[0].reason
        assert not b.bodies(CompactionCompleted)


async def test_an_empty_summary_leaves_the_record(tmp_path: Path) -> None:
    async with bench(script(6), tmp_path) as b:
        await filled(b, 6)
        draft = b.session.draft_compaction()
        assert draft is not None
        b.send(ApplyPlan(tuple(item.id for item in draft.items if item.id[0] != "u"), (), ""))
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        after = b.session.inspection.wire()
        assert after is not None
        assert "never change the ports" in after.body
        assert not any("Write the summary" in request.messages[-1].text for request in b.model.requests)


async def test_the_bytes_that_are_shown_are_those_that_a_server_receives(tmp_path: Path) -> None:
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        received.append(await reader.readexactly(size))
        said = {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}
        body = f"data: {json.dumps(said)}\n\ndata: [DONE]\n\n".encode()
        answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        writer.write(answer + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    def client(_name: str) -> HttpModelClient:
        info = ModelInfo("scripted", "test", 64_000, 2_000)
        return HttpModelClient(ClientConfig(info, target("openai-chat"), f"http://127.0.0.1:{port}"))

    async with bench('[[step]]\ntext = "x"', tmp_path, make_client=client) as b:
        for words in ("Hello, \u00fc \ud83d\ude00!", "And now?"):
            shown = b.session.inspection.wire(words)
            await b.say(words)
            assert shown is not None
            assert shown.exact
            assert received[-1] == shown.body.encode()
        listed = {one.name: one.change for one in shown.sections}
        assert listed["messages[1]"] == "same"
        assert listed["messages[2]"] == "new"
    server.close()


async def test_as_text_with_ids(tmp_path: Path) -> None:
    async with bench(script(), tmp_path) as b:
        await filled(b)

        async def run(words: str) -> str:
            result = await CONTEXT.run(b.session, words)
            return "\n".join(getattr(block, "text", "") for block in (*result.blocks, *result.instead))

        listed = await run("items")
        assert results(b)[0] in listed
        assert "tokens of all" in listed
        assert "file 0" in await run(f"show {results(b)[0]}")
        assert "needs an id" in await run("drop")
        assert await run(f"drop {results(b)[0]}") == ""
        await until(lambda: bool(b.bodies(ContextEdited)))
        assert "dropped" in await run("items")
        assert "(nothing)" in await run(f"show {results(b)[0]}")
        assert "Unknown item" in await run("show t77")


async def test_a_saved_request_has_no_secrets_and_overwrites_nothing(tmp_path: Path) -> None:
    async with bench(script(), tmp_path) as b:
        await filled(b)
        b.gates.outputs["f0"] = "x"
        secret = "sk-" + "a1b2c3d4" * 4
        place = await save_wire(b.session, "w.json", f"my key is {secret}")
        assert place is not None
        assert secret not in place.read_text()
        assert place.stat().st_mode & 0o077 == 0
        with pytest.raises(FileExistsError):
            await save_wire(b.session, "w.json")
        result = await WIRE.run(b.session, "save w.json")
        assert "Could not save" in result.blocks[0].text  # type: ignore[union-attr]


async def test_a_summary_that_lacks_what_the_record_lacks_too_is_written_once_more(tmp_path: Path) -> None:
    again = SUMMARY.replace("nothing was", "`left_behind.py` was looked at, nothing was")
    steps = [f'[[step]]\ntext = "{text}"' for text in ("Seen.", "Yes.", SUMMARY, again)]
    async with bench("window = 40000\nmax_output = 2000\n" + "\n".join(steps), tmp_path) as b:
        await b.say("Look at this.\n" + "some words of a log\n" * 900 + "\nand at `left_behind.py` of it")
        await b.say("And now?")
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        done = b.bodies(CompactionCompleted)[0]
        assert len(b.model.requests) == 4
        assert "left_behind.py" in b.model.requests[3].messages[-1].text
        assert "`left_behind.py` was looked at" in done.summary
        assert "[u1]" in done.summary.splitlines()[3]
        assert done.summary in done.view[0].text
        assert "written again" in notices(b)
