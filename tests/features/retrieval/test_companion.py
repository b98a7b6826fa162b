"""What an index adds behind a message: files that it names, pointers, an event, and nothing for "hi"."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from swecli.core.context_management.prompts import POINTERS
from swecli.core.permissions.types import Policy, Rule, RuleEffect
from swecli.core.protocol.budget import RETRIEVED
from swecli.core.protocol.commands import Compact, Steer
from swecli.core.protocol.events import CompactionCompleted, ContextRetrieved, ItemStarted, StepStarted
from swecli.core.retrieval.project import ProjectIndex
from swecli.core.retrieval.retrieve import Ranked
from swecli.core.tools.registry import builtin_tools
from swecli.features.retrieval.companion import title_of
from tests.core.engine.support import Bench, bench, until
from tests.core.retrieval.project import made
from tests.support.waiting import PATIENCE

DONE = '[[step]]\ntext = "done"\n'
TASK = "the invoice printer renders the total with a wrong currency and vat"


@pytest.fixture(autouse=True)
def waits_for_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr("swecli.features.retrieval.companion.FIRST_WAIT", PATIENCE)
    monkeypatch.setattr("swecli.core.retrieval.project.FRESH_WAIT", PATIENCE)


def opened(root: Path, script: str = DONE, window: int = 200_000, **changes: Any) -> Any:
    project = ProjectIndex(root, None, str, dict(os.environ))
    return bench(f"window = {window}\n{script}", root, tools=builtin_tools(), project=project, **changes)


def notes(b: Bench) -> list[str]:
    return [body.title for body in b.bodies(ItemStarted) if body.kind == "note"]


def sent(b: Bench, number: int) -> list[str]:
    return [message.text for message in b.model.requests[number].messages if message.role == "user"]


async def test_a_task_gets_pointers_that_stay(tmp_path: Path) -> None:
    async with opened(made(tmp_path), DONE + DONE) as b:
        await b.say(TASK)
        await b.say("go on")
        (told,) = [text for text in sent(b, 0) if POINTERS in text]
        assert "src/billing/invoice.py:1 InvoicePrinter" in told
        assert [text for text in sent(b, 1) if POINTERS in text] == [told]
        assert b.model.requests[1].messages[: len(b.model.requests[0].messages)] == b.model.requests[0].messages
        (retrieved,) = b.bodies(ContextRetrieved)
        assert "point to src/billing/invoice.py:1 InvoicePrinter" in retrieved.actions
        assert 0 < retrieved.tokens_added <= 300
        assert notes(b)[0].startswith("Pointed the model to invoice.py")
        parts = {part.name: part.tokens for part in b.bodies(StepStarted)[-1].budget.components}
        assert 0 < parts[RETRIEVED] <= 300


@pytest.mark.parametrize("effect", ["deny", "ask"])
async def test_files_that_a_rule_keeps_from_being_read_are_left_out(tmp_path: Path, effect: RuleEffect) -> None:
    policy = Policy(rules=(Rule(effect, "Read(src/billing/**)", "user"),))
    async with opened(made(tmp_path), DONE + DONE, policy=policy) as b:
        await b.say(TASK)
        await b.say("see also src/billing/invoice.py")
        assert not any("InvoicePrinter" in text or "point to src/billing" in text for text in sent(b, 0))
        actions = [action for body in b.bodies(ContextRetrieved) for action in body.actions]
        assert not any("billing" in action for action in actions)


async def test_hi_adds_nothing(tmp_path: Path) -> None:
    async with opened(made(tmp_path)) as b:
        await b.say("hi")
        assert sent(b, 0) == ["Date: 2026-01-01\n\nhi"]
        assert not b.bodies(ContextRetrieved)


async def test_files_that_are_named_are_attached_and_nothing_else(tmp_path: Path) -> None:
    root = made(tmp_path)
    trace = f'{TASK}\nTraceback:\n  File "{root}/src/auth/tokens.py", line 2, in revoke_token\nsee also smtp.py'
    async with opened(root, DONE + DONE) as b:
        await b.say(trace)
        (retrieved,) = b.bodies(ContextRetrieved)
        assert sorted(retrieved.actions) == ["read src/auth/tokens.py", "read src/mail/smtp.py"]
        assert any("def revoke_token" in text for text in sent(b, 0))
        assert not notes(b)
        await b.say("now smtp.py again")  # the model has it
        assert len(b.bodies(ContextRetrieved)) == 1


async def test_a_path_is_attached_before_there_is_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swecli.features.retrieval.companion.FIRST_WAIT", 0.0)
    async with opened(made(tmp_path, 200)) as b:
        await b.say("mend src/auth/tokens.py please")
        assert [one.actions for one in b.bodies(ContextRetrieved)] == [("read src/auth/tokens.py",)]


async def test_of_a_large_file_the_lines_around_are_attached(tmp_path: Path) -> None:
    root = made(tmp_path)
    (root / "src" / "large.py").write_text("".join(f"value_{number} = {number}\n" for number in range(3_000)))
    async with opened(root, DONE + DONE) as b:
        await b.say("src/large.py:1500 is wrong")
        text = "\n".join(sent(b, 0))
        assert "value_1499 = 1499" in text
        assert "value_1400" not in text
    async with opened(root, DONE + DONE) as b:
        await b.say("large.py is wrong")
        (retrieved,) = b.bodies(ContextRetrieved)
        assert retrieved.actions == ("point to src/large.py",)


async def test_a_small_window_gets_few_pointers_and_no_files(tmp_path: Path) -> None:
    async with opened(made(tmp_path), window=12_000) as b:
        await b.say("deliver as smtp.py does")
        assert b.bodies(ContextRetrieved)[0].actions[0].startswith("point to src/mail/smtp.py")


async def test_a_message_that_is_written_meanwhile_gets_them_too(tmp_path: Path) -> None:
    async with opened(made(tmp_path), DONE + DONE) as b:
        await b.say("hi")
        b.send(Steer(TASK))
        await until(lambda: len(b.bodies(ContextRetrieved)) == 1, "pointers")


async def test_pointers_go_with_their_message_when_the_conversation_is_compacted(tmp_path: Path) -> None:
    long = "word " * 4_000
    script = f'[[step]]\nchunk = 200\ntext = "{long}"\n' * 3 + '[[step]]\ntext = "## Goal\\nPrint invoices."\n'
    async with opened(made(tmp_path), script, window=60_000) as b:
        await b.say(TASK)
        await b.say("go on")
        await b.say("go on")
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy, "compaction")
        text = "\n".join(message.text for message in b.session.view.messages)
        assert TASK in text
        assert POINTERS not in text


async def test_a_small_model_names_words_where_the_user_wants_it(tmp_path: Path) -> None:
    script = '[[step]]\ntext = "InvoicePrinter render_total currency vat invoice"\n' + DONE
    async with opened(made(tmp_path), script, retrieval_model=True) as b:
        await b.say("customers abroad pay too much in the end")
        asked = b.model.requests[0]
        assert [message.text for message in asked.messages] == ["customers abroad pay too much in the end"]
        assert "point to src/billing/invoice.py:1 InvoicePrinter" in b.bodies(ContextRetrieved)[0].actions
    async with opened(made(tmp_path), DONE) as b:
        await b.say("customers abroad pay too much in the end")
        assert len(b.model.requests) == 1
        assert not b.bodies(ContextRetrieved)


def test_files_of_one_name_are_told_apart() -> None:
    def title(*paths: str) -> str:
        return title_of([Ranked(path, 1.0) for path in paths])

    assert title("a/x.py", "b/y.py") == "Pointed the model to x.py, y.py"
    same = ("web/api/schemas.ts", "app/api/schemas.ts", "api.ts", "lib/more.ts")
    assert title(*same) == "Pointed the model to web/api/schemas.ts, app/api/schemas.ts, api.ts and 1 more"
    assert title("schemas.ts", "app/schemas.ts") == "Pointed the model to schemas.ts, app/schemas.ts"
    assert title("a.py", "a.py") == "Pointed the model to a.py"
