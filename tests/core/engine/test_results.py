"""Results on their way into the context: stored when too large, never above the block line, never lost."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swecli.core.context_management.compaction.transaction import Compaction
from swecli.core.engine.results import ADMITTED
from swecli.core.permissions.types import Effects
from swecli.core.ports import BlobError, BlobRef
from swecli.core.protocol.commands import Interrupt, RunShell
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionStarted,
    ItemCompleted,
    ItemsOffloaded,
    Notice,
    StepStarted,
)
from swecli.core.protocol.messages import DocumentPart, ImagePart, ToolResultPart
from swecli.core.sessions.database import open_in_memory
from swecli.core.sessions.store import SessionStore
from swecli.core.tools.base import AnyTool, Params, Tool, ToolContext, ToolOutcome
from swecli.library.stored_results import ResultStore
from tests.core.engine.support import Bench, bench, until
from tests.support.thorough import examples


class Wanted(Params):
    text: str


class _Says(Tool[Wanted]):
    """Returns one of the prepared texts."""

    params: ClassVar[type[Params]] = Wanted

    pages = 8

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def description(self) -> str:
        return "Says something."

    def effects(self, params: Wanted, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    async def run(self, params: Wanted, ctx: ToolContext) -> ToolOutcome:
        failed = params.text.startswith("failed")
        images = (ImagePart("image/png", "AAAA"),) * {"images": 8, "image": 1}.get(params.text, 0)
        status = int(failed) if self.result_kind == "output" else None
        documents = (DocumentPart("UERG", "soup.pdf", "Salt the soup", self.pages),) if params.text == "pdf" else ()
        return ToolOutcome(
            self._texts[params.text], is_error=failed, exit_status=status, images=images, documents=documents
        )


class Output(_Says):
    name = "output"
    verb = "Run"
    result_kind = "output"


class Page(_Says):
    name = "page"
    verb = "Read"


class Stored(_Says):
    name = "stored"
    verb = "Recall"
    result_kind = "stored"


def tools(texts: dict[str, str]) -> list[AnyTool]:
    return [Output(texts), Page(texts), Stored(texts)]


def blobs() -> ResultStore:
    database = open_in_memory()
    return ResultStore(database, SessionStore(database).create("/proj", "m", "0").id)


def call(tool: str, text: str) -> str:
    return f'{{ tool = "{tool}", arguments = {{ text = "{text}" }} }}'


def steps(*calls: str, window: int = 200_000) -> str:
    body = "\n".join(f"[[step]]\ncall = [{one}]" for one in calls)
    return f'window = {window}\nmax_output = 1000\n{body}\n[[step]]\ntext = "done"'


def results(b: Bench) -> list[ToolResultPart]:
    return [part for body in b.bodies(ItemCompleted) for part in body.parts if isinstance(part, ToolResultPart)]


def refs(b: Bench) -> list[str]:
    return [item.ref for body in b.bodies(ItemsOffloaded) for item in body.items]


LONG = "".join(f"line {number} of the output\n" for number in range(2_000))


async def test_large_output_is_stored_before_it_is_recorded(tmp_path: Path) -> None:
    store, texts = blobs(), {"long": LONG, "short": LONG[:4_096], "page": LONG[:40_000]}
    script = steps(f"{call('output', 'long')}, {call('output', 'short')}, {call('page', 'page')}")
    async with bench(script, tmp_path, tools=tools(texts), blobs=store) as b:
        assert (await b.say("go")).outcome == "done"
        by_text = {part.text for part in results(b)}
        assert texts["short"] in by_text
        assert texts["page"] in by_text
        (reference,) = by_text - set(texts.values())
        (ref,) = refs(b)
        assert f'read_result(ref_id="{ref}"' in reference
        assert len(reference.encode()) < 4_000
        assert store.retrieve(ref) == LONG
        (offloaded,) = b.bodies(ItemsOffloaded)
        assert offloaded.items[0].reason == "larger than 4,096 bytes"
        assert offloaded.items[0].tokens > 10_000
        order = [type(event.body) for event in b.facts]
        ended = next(
            n
            for n, event in enumerate(b.facts)
            if getattr(event.body, "item", "") == offloaded.items[0].item and isinstance(event.body, ItemCompleted)
        )
        assert order.index(ItemsOffloaded) < ended


async def test_what_a_failed_command_wrote_stays_as_long_as_it_is_readable(tmp_path: Path) -> None:
    lines = LONG.split("\n")
    lines[1_000] = "src/app.py:7: TypeError: unsupported operand"
    texts = {"failed a": LONG[:16_000], "failed b": "\n".join(lines)}
    script = steps(call("output", "failed a"), call("output", "failed b"))
    async with bench(script, tmp_path, tools=tools(texts), blobs=blobs()) as b:
        await b.say("go")
        first, second = results(b)
        assert first.text == texts["failed a"]
        assert first.is_error
        assert second.is_error
        assert len(second.text.encode()) <= 16_384
        assert "exit status 1" in second.text.split("\n")[0]
        assert "1001: src/app.py:7: TypeError: unsupported operand" in second.text
        assert second.text.endswith(texts["failed b"][-200:])


@pytest.mark.parametrize(("window", "share"), [(8_192, 0.12), (14_000, ADMITTED), (32_000, ADMITTED)])
async def test_a_result_that_fits_once_older_ones_are_cleared_stays_whole(
    tmp_path: Path, window: int, share: float
) -> None:
    most = int(share * window)
    texts = {f"page {number}": f"page {number}\n{'some words in it ' * (most // 6)}" for number in range(12)}
    script = steps(*(call("page", name) for name in texts), window=window)
    async with bench(script, tmp_path, tools=tools(texts), blobs=blobs()) as b:
        assert (await b.say("Read them.")).outcome == "done"
        assert {part.text for part in results(b)} == set(texts.values())
        assert b.bodies(CompactionCompleted)
        assert all(body.strategies == ("clearing",) for body in b.bodies(CompactionCompleted))
        assert all(body.budget.level != "block" for body in b.bodies(StepStarted))


@pytest.mark.parametrize("window", [16_384, 32_000])
async def test_the_guard_of_a_model_that_reports_nothing_makes_no_result_too_large_for_its_share(
    tmp_path: Path, window: int
) -> None:
    """Its largest size decides whether a result has room, its likely one whether it is too large a part."""
    texts = {f"page {number}": f"page {number}\n{'word in it ' * (window // 14)}" for number in range(8)}  # 21 %
    script = steps(*(call("page", name) for name in texts), window=window)
    silent = script.replace("[[step]]", "[[step]]\nusage = { silent = true }")
    async with bench(silent, tmp_path, tools=tools(texts), blobs=blobs()) as b:
        assert (await b.say("Read them.")).outcome == "done"
        assert {part.text for part in results(b)} == set(texts.values())
        assert all(body.budget.level != "block" for body in b.bodies(StepStarted))


async def test_a_result_larger_than_its_share_is_stored_rather_than_clearing_all_else(tmp_path: Path) -> None:
    texts = {f"page {number}": f"page {number}\n{'some words in it ' * 600}" for number in range(8)}
    async with bench(
        steps(*(call("page", name) for name in texts), window=8_192), tmp_path, tools=tools(texts), blobs=blobs()
    ) as b:
        assert (await b.say("Read them.")).outcome == "done"
        assert any("do not fit" in item.reason for body in b.bodies(ItemsOffloaded) for item in body.items)


async def test_an_answer_with_many_calls_simulates_few_compactions_and_keeps_short_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated: list[int] = []
    simulate = Compaction.room_for_results

    def counted(compaction: Compaction) -> int:
        simulated.append(simulate(compaction))
        return simulated[-1]

    monkeypatch.setattr(Compaction, "room_for_results", counted)
    texts = {f"t{number}": f"short {number}" for number in range(100)}
    calls = ", ".join(call("page", name) for name in texts)
    script = f'window = 12000\nmax_output = 1000\n[[step]]\ncall = [{calls}]\n[[step]]\ntext = "done"'
    async with bench(script, tmp_path, tools=tools(texts), blobs=blobs()) as b:
        await b.say("go")
        assert [part.text for part in results(b)] == list(texts.values())
        assert refs(b) == []
    assert 0 < len(simulated) < 10


async def test_what_was_read_back_is_never_stored_again(tmp_path: Path) -> None:
    async with bench(steps(call("stored", "long")), tmp_path, tools=tools({"long": LONG[:20_000]}), blobs=blobs()) as b:
        await b.say("go")
        assert results(b)[0].text == LONG[:20_000]
        assert not b.bodies(ItemsOffloaded)


@pytest.mark.parametrize("tool", ["output", "page", "stored"])
@pytest.mark.parametrize("window", [8_000, 32_000])
async def test_a_result_of_most_of_the_window_never_leads_above_the_block_line(
    tmp_path: Path, tool: str, window: int
) -> None:
    text = "".join(f"{number:06d} a line of words\n" for number in range(window))
    texts = {f"t{share}": text[: int(window * share / 100 * 3)] for share in (30, 70, 69, 68, 150)}
    script = steps(*[call(tool, name) for name in texts], window=window)
    store = blobs()
    async with bench(script, tmp_path, tools=tools(texts), blobs=store) as b:
        assert (await b.say("go")).outcome == "done"
        for body in b.bodies(StepStarted):
            assert body.budget.level != "block"
        if tool != "stored":
            kept = [store.retrieve(ref) for ref in refs(b)]
            assert all(text in kept or text in [part.text for part in results(b)] for text in texts.values())


@given(st.lists(st.tuples(st.sampled_from(["output", "page", "stored"]), st.integers(0, 60_000)), max_size=12))
@settings(
    deadline=None,
    max_examples=examples(12, 25),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_random_results_stay_below_the_line_and_nothing_is_lost(tmp_path: Path, sizes: list[tuple[str, int]]) -> None:
    texts = {f"t{number}": (f"{number} é漢 word error " * 9_000)[:size] for number, (_, size) in enumerate(sizes)}
    calls = [call(tool, f"t{number}") for number, (tool, _) in enumerate(sizes)]
    batches = [", ".join(calls[at : at + 3]) for at in range(0, len(calls), 3)]

    async def run() -> None:
        store = blobs()
        async with bench(steps(*batches, window=16_000), tmp_path, tools=tools(texts), blobs=store) as b:
            end = await b.say("go")
            assert all(body.budget.level != "block" for body in b.bodies(StepStarted)), end
            whole = {store.retrieve(ref) for ref in refs(b)} | {part.text for part in results(b)}
            ran = {part.call_id for part in results(b)}  # a summary takes a step of the script, its call is not run
            for number, ((tool, _), text) in enumerate(zip(sizes, texts.values(), strict=True), 1):
                assert tool == "stored" or f"call_{number}" not in ran or text in whole
            for part in results(b):
                part.text.encode("utf-8")

    asyncio.run(run())


async def test_two_megabytes(tmp_path: Path) -> None:
    text = "漢字 and words\n" * 120_000
    store = blobs()
    async with bench(
        steps(call("output", "big"), window=8_000), tmp_path, tools=tools({"big": text}), blobs=store
    ) as b:
        assert (await b.say("go")).outcome == "done"
        assert store.retrieve(refs(b)[0]) == text
        assert len(results(b)[0].text) < 4_000
        assert not b.bodies(CompactionStarted)


async def test_images_that_do_not_fit_are_left_out(tmp_path: Path) -> None:
    texts = {"images": "a.png: image/png"}
    async with bench(steps(call("page", "images"), window=8_000), tmp_path, tools=tools(texts), blobs=blobs()) as b:
        assert (await b.say("go")).outcome == "done"
        (part,) = results(b)
        assert part.images == ()
        assert "left out" in part.text


async def test_a_long_text_leaves_its_image_in_the_context(tmp_path: Path) -> None:
    text = "a line of the page's snapshot\n" * 4_000
    store = blobs()
    script = steps(call("output", "image"), window=100_000)
    async with bench(script, tmp_path, tools=tools({"image": text}), blobs=store) as b:
        assert (await b.say("go")).outcome == "done"
        (part,) = results(b)
        assert len(part.images) == 1
        assert len(part.text) < 5_000
        assert store.retrieve(refs(b)[0]) == text


async def test_a_long_text_with_images_that_do_not_fit_is_stored_all_the_same(tmp_path: Path) -> None:
    text = "a line of the page's snapshot\n" * 4_000
    store = blobs()
    async with bench(
        steps(call("output", "images"), window=8_000), tmp_path, tools=tools({"images": text}), blobs=store
    ) as b:
        assert (await b.say("go")).outcome == "done"
        (part,) = results(b)
        assert part.images == ()
        assert "images were left out" in part.text
        assert len(part.text) < 5_000
        assert store.retrieve(refs(b)[0]) == text


@pytest.mark.parametrize("window", [8_000, 40_000])
async def test_a_pdf_file_that_does_not_fit_becomes_its_text(tmp_path: Path, window: int) -> None:
    texts = {"pdf": "soup.pdf: PDF"}
    async with bench(steps(call("page", "pdf"), window=window), tmp_path, tools=tools(texts), blobs=blobs()) as b:
        assert (await b.say("go")).outcome == "done"
        (part,) = results(b)
        assert bool(part.documents) == (window == 40_000)
        assert ("Salt the soup" in part.text) == (window == 8_000)
        assert ("[As text only: about " in part.text) == (window == 8_000)


class Refusing:
    """A store on a full disk."""

    def __init__(self) -> None:
        self.asked = 0

    def put(self, tool: str, content: bytes) -> BlobRef:
        self.asked += 1
        raise BlobError("The result could not be stored (database or disk is full).")

    def get(self, ref: str) -> bytes | None:
        return None


async def test_without_a_store_results_are_cut_and_the_user_is_told_once(tmp_path: Path) -> None:
    texts = {"long": LONG, "more": LONG * 2}
    script = steps(call("output", "long"), call("output", "more"), call("page", "more"))
    async with bench(script, tmp_path, tools=tools(texts), blobs=Refusing()) as b:
        assert (await b.say("go")).outcome == "done"
        first, second, third = results(b)
        for part, limit in ((first, 25_000), (second, 25_000), (third, 49_000)):
            assert part.text.startswith("line 0 of the output")
            assert part.text.rstrip().endswith("line 1999 of the output")
            assert "left out" in part.text
            assert len(part.text) < limit
        told = [body for body in b.bodies(Notice) if body.topic == "context"]
        assert len(told) == 1
        assert "disk is full" in told[0].text
        assert not b.bodies(ItemsOffloaded)


class Slow:
    """A store that never ends; ``entered`` says that it was asked."""

    def __init__(self) -> None:
        self.entered = False
        self.free = False

    def put(self, tool: str, content: bytes) -> BlobRef:
        import time

        self.entered = True
        while not self.free:
            time.sleep(0.005)
        return BlobRef("r1", tool, len(content))

    def get(self, ref: str) -> bytes | None:
        return None


async def test_an_interrupt_while_a_result_is_stored_keeps_the_result(tmp_path: Path) -> None:
    store = Slow()
    async with bench(steps(call("output", "long")), tmp_path, tools=tools({"long": LONG}), blobs=store) as b:
        saying = asyncio.create_task(b.say("go"))
        await until(lambda: store.entered)
        b.send(Interrupt())
        assert (await saying).outcome == "interrupted"
        store.free = True
        (part,) = results(b)
        assert part.text.startswith("line 0 of the output")
        assert len(part.text) < 25_000
        assert [body.status for body in b.bodies(ItemCompleted) if body.parts == (part,)] == ["ok"]


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
async def test_the_users_own_command_is_stored_as_well(tmp_path: Path) -> None:
    store = blobs()
    async with bench(steps(), tmp_path, blobs=store) as b:
        b.send(RunShell("seq 1 20000"))
        await until(lambda: bool(b.bodies(ItemCompleted)))
        (message,) = b.session.view.messages
        assert len(message.text) < 5_000
        assert message.text.startswith("I ran this command myself") or "I ran this command myself" in message.text
        assert store.retrieve(refs(b)[0]).split() == [str(number) for number in range(1, 20_001)]


def found(folder: Path, name: str) -> list[Path]:
    return list(folder.rglob(name))


async def test_a_command_that_the_front_end_ran_is_recorded_and_not_run_again(tmp_path: Path) -> None:
    async with bench(steps(), tmp_path, blobs=blobs()) as b:
        b.send(RunShell("touch again", output="asked and answered\n", exit_status=3, duration=1.5))
        await until(lambda: bool(b.bodies(ItemCompleted)))
        (message,) = b.session.view.messages
        assert "I ran this command myself: touch again\nExit status: 3\nasked and answered" in message.text
        assert b.bodies(ItemCompleted)[0].detail == "exit 3"
        assert not found(tmp_path, "again")


async def test_references_are_found_in_the_text_that_the_model_reads(tmp_path: Path) -> None:
    async with bench(steps(call("output", "long")), tmp_path, tools=tools({"long": LONG}), blobs=blobs()) as b:
        await b.say("go")
        shown: Any = b.model.requests[-1].messages[-1].parts[0]
        assert re.search(r"stored as (r[0-9a-f]{12})", shown.text)
        assert shown.text == results(b)[0].text
