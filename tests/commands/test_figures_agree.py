"""Meter, gate, ``/context`` and JSON show one and the same number, whatever happened before."""

import re
from pathlib import Path

from msgspec.structs import replace

from swecli.commands.compaction import COMPACT
from swecli.commands.context import CONTEXT, context_document, context_text, whole_text
from swecli.commands.models import summary
from swecli.commands.session import status_text
from swecli.core.context_management.budget import Limits
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.llm.offers import ModelOffer
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock
from swecli.core.protocol.commands import Compact, SetModel, UndoCompaction
from swecli.core.protocol.events import CompactionCompleted, ContextMeasured, ModelChanged, StepStarted
from swecli.tui.status_bar import Piece, context
from tests.core.engine.support import Bench, bench, call, until

LINES = "\n".join(f"line {number} of a file with some words in it" for number in range(120))
SUMMARY = "## Goal\\nRead the files.\\n## Done\\nRead many.\\n## Next\\nNothing."


def script(reads: int, more: str = "", name: str = "first") -> str:
    steps = [f"[[step]]\ncall = [{call('read_file', f'f{number}')}]" for number in range(reads)]
    return "\n".join([f'name = "{name}"\nwindow = 200000\nmax_output = 2000', *steps, '[[step]]\ntext = "Read."', more])


def number_everywhere(b: Bench) -> int:
    """The one number, after checking that every place has it."""
    view = b.session.view
    assert view.budget is not None
    measures = [e.body.budget for e in b.events if isinstance(e.body, ContextMeasured | StepStarted)]
    assert view.budget == measures[-1]
    document = context_document(b.session)
    assert document["budget"]["used"] == view.budget.used
    sign = "" if view.budget.source == "measured" else "~"
    assert f"{sign}{view.budget.used:,} of {sign}{view.budget.effective:,} tokens" in context_text(view).replace(
        f"of {view.budget.effective:,}", f"of {sign}{view.budget.effective:,}"
    )
    assert f"Context {view.budget.shown}: " in context_text(view)
    assert f"{view.budget.shown} of {view.budget.effective:,} tokens" in status_text(view)
    assert f"window {view.budget.window:,} tokens" in status_text(view)
    assert Piece(view.budget.shown, view.budget.level) in context(view.budget, 3)
    assert sum(part.tokens for part in view.budget.components) == view.budget.used
    return view.budget.used


async def test_one_number_on_all_surfaces(tmp_path: Path) -> None:
    first = ScriptedModel(parse_script(script(12, f'[[step]]\ntext = "{SUMMARY}"')))
    other = ScriptedModel(parse_script('name = "other"\nwindow = 100000\n[[step]]\ntext = "Yes."'))
    models = {"scripted/first": first, "scripted/other": other}
    async with bench(script(1), tmp_path, name="scripted/first", make_client=models.__getitem__) as b:
        for number in range(12):
            b.gates.outputs[f"f{number}"] = f"file {number}\n{LINES}"
        await until(lambda: bool(b.bodies(ContextMeasured)), "first measure")
        start = number_everywhere(b)
        await b.say("Read the files.")
        read = number_everywhere(b)
        assert read > start
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        compacted = number_everywhere(b)
        assert compacted < read
        assert abs(compacted - b.bodies(CompactionCompleted)[0].tokens_after) <= 2
        b.send(UndoCompaction())
        await until(lambda: b.session.view.budget is not None and b.session.view.budget.used > compacted)
        await until(lambda: b.bodies(ContextMeasured)[-1].budget == b.session.view.budget)
        number_everywhere(b)
        b.send(SetModel("scripted/other"))
        await until(lambda: any(body.model == "scripted/other" for body in b.bodies(ModelChanged)))
        await until(lambda: b.bodies(ContextMeasured)[-1].budget == b.session.view.budget)
        number_everywhere(b)
        assert b.session.view.budget is not None
        assert b.session.view.budget.window == 100_000
        facts = list(b.facts)
    async with bench(script(0), tmp_path, history=facts, name="scripted/other", make_client=models.__getitem__) as b:
        await until(lambda: bool(b.bodies(ContextMeasured)), "measure after the resume")
        assert number_everywhere(b) > compacted
        await b.say("And now?")
        number_everywhere(b)


async def test_a_provider_that_reports_no_usage(tmp_path: Path) -> None:
    steps = script(2).replace('[[step]]\ntext = "Read."', '[[step]]\ntext = "Read."\nusage = { silent = true }')
    async with bench(steps, tmp_path) as b:
        await b.say("Read the files.")
        number_everywhere(b)


async def test_without_usage_and_price_both_are_said_to_be_unknown(tmp_path: Path) -> None:
    silent = "usage = { silent = true }"
    steps = script(4).replace("[[step]]", f"[[step]]\n{silent}")
    async with bench(steps, tmp_path) as b:
        for number in range(4):
            b.gates.outputs[f"f{number}"] = f"file {number}\n{LINES * 6}"
        await b.say("Read the files.")
        view, plan = b.session.view, b.session.plan_compaction()
        assert view.budget is not None
        assert plan is not None
        assert view.budget.source == "estimated"
        assert f"Context {view.budget.shown}: ~{view.budget.used:,} of {view.budget.effective:,} tokens" in whole_text(
            b.session
        )
        assert view.budget.shown.startswith("~")
        (table, *_) = (await COMPACT.run(b.session, "plan")).blocks
        assert isinstance(table, TableBlock)
        assert table.rows[-1] == ("cost now", "", "price unknown")
        assert context_document(b.session)["budget"]["source"] == "estimated"
        items = (await CONTEXT.run(b.session, "items")).blocks[0]
        assert isinstance(items, TextBlock)
        assert f"tokens of all: {view.budget.used:,}" in items.text
        rows = [re.split(r"\s{2,}", line) for line in items.text.splitlines()]
        assert [row[2:] for row in rows if row[0] == "[system prompt]"] == [["fixed", "system prompt"]]
        assert [row[2:] for row in rows if row[0] == "t2"] == [["live", "tool calls", "read_file f0"]]


async def test_doctor_and_the_list_of_models_have_the_window_that_is_measured_against(tmp_path: Path) -> None:
    asked: list[ModelInfo | None] = []

    async def examine(model: ModelInfo | None, online: bool) -> tuple[DisplayBlock, ...]:
        asked.append(model)
        return ()

    async def offers() -> list[ModelOffer]:
        return [ModelOffer("scripted/first", "not needed", window=1), ModelOffer("scripted/b", "not needed", window=2)]

    smaller = ContextManager((), limits=Limits(context_budget=50_000))
    async with bench(script(0), tmp_path, name="scripted/first", context=smaller, examine=examine, offers=offers) as b:
        await b.say("hello")
        budget = b.session.view.budget
        assert budget is not None
        assert budget.window == 50_000
        number_everywhere(b)
        await b.session.examine()
        assert [model.window for model in asked if model] == [50_000]
        assert [(offer.window, offer.assumed) for offer in await b.session.offers.find()] == [
            (50_000, False),
            (2, False),
        ]


async def test_the_list_of_models_marks_a_window_that_is_only_assumed(tmp_path: Path) -> None:
    async def offers() -> list[ModelOffer]:
        return [ModelOffer("scripted/first", "not needed")]

    async with bench(script(0), tmp_path, name="scripted/first", offers=offers) as b:
        await b.say("hello")
        assert b.session.view.budget is not None
        b.session._recorder.state.budget = replace(b.session.view.budget, window_source="assumed")
        (offer,) = await b.session.offers.find()
        assert offer.assumed
        assert offer.window == b.session.view.budget.window


async def test_the_list_of_models_says_that_the_connected_one_gets_tools_as_text(tmp_path: Path) -> None:
    """A server's list of models does not say so; the session has learned it from elsewhere."""

    async def offers() -> list[ModelOffer]:
        return [ModelOffer("scripted/first", "not needed"), ModelOffer("scripted/b", "not needed")]

    class WithoutTools(ScriptedModel):
        @property
        def info(self) -> ModelInfo:
            return replace(super().info, tools=False)

    async with bench(script(0), tmp_path, name="scripted/first", offers=offers, make_model=WithoutTools) as b:
        await b.say("hello")
        first, other = await b.session.offers.find()
        assert "tools as text" in summary(first)
        assert "tools as text" not in summary(other)
