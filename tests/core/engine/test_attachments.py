"""Files that a message mentions join the conversation, read and allowed as by ``read_file``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import ModelInfo
from swecli.core.permissions.types import Policy, Rule, RuleEffect
from swecli.core.protocol.commands import Rewind, Steer, Submit
from swecli.core.protocol.events import FileRead, ItemCompleted, ItemStarted, Notice, PermissionRequested, StepStarted
from swecli.core.protocol.messages import ImagePart, ToolResultPart
from swecli.core.tools.registry import builtin_tools
from tests.core.engine.support import Bench, bench, until

DONE = '[[step]]\ntext = "done"\n'
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("".join(f"value_{n} = {n}\n" for n in range(1, 101)))
    (tmp_path / "logo.png").write_bytes(PNG)
    (tmp_path / "data.bin").write_bytes(b"\0\1\2\3" * 100)
    (tmp_path / ".env").write_text("TOKEN=very-secret\n")
    return tmp_path.resolve()


class Blind(ScriptedModel):
    """A model that sees no images."""

    @property
    def info(self) -> ModelInfo:
        return replace(super().info, images=False)


def opened(folder: Path, script: str = DONE, **changes: Any) -> Any:
    return bench(f"window = 200000\n{script}", folder, tools=builtin_tools(), **changes)


def attached(b: Bench) -> list[str]:
    """Titles of what was attached, in order."""
    started = [body.item for body in b.bodies(ItemStarted) if body.kind == "attachment"]
    return [body.item for body in b.bodies(ItemCompleted) if body.item in started and body.status == "ok"]


def sent(b: Bench, number: int = 0) -> str:
    """All that the user said in a request, as the model gets it."""
    return "\n".join(message.text for message in b.model.requests[number].messages if message.role == "user")


def warnings(b: Bench) -> list[str]:
    return [body.text for body in b.bodies(Notice) if body.topic == "attachments"]


async def test_lines_of_a_file_a_folder_and_an_image_go_with_the_message(folder: Path) -> None:
    async with opened(folder) as b:
        await b.say("compare @src/a.py:10-12 with @logo.png in @src/, please")
        text = sent(b)
        assert "[Attached by the user: @src/a.py:10-12]\n   10\tvalue_10 = 10\n   11\tvalue_11 = 11\n   12\t" in text
        assert "value_13" not in text
        assert "src/a.py\n" not in text.partition("@src/]")[0]
        assert "src/a.py" in text.partition("@src/]")[2]
        images = [p for m in b.model.requests[0].messages for p in m.parts if isinstance(p, ImagePart)]
        assert [image.name for image in images] == ["logo.png"]
        assert len(attached(b)) == 3
        assert not warnings(b)
        assert [m.role for m in b.session.view.messages] == ["user"] * 4 + ["assistant"]


async def test_an_attached_file_may_be_edited_and_is_not_read_twice(folder: Path) -> None:
    arguments = {"path": "src/a.py", "old_string": "value_1 = 1\n", "new_string": "value_1 = 2\n"}
    read = {"path": "src/a.py"}
    script = (
        f'[[step]]\ncall = [{{ tool = "read_file", arguments = {json.dumps(json.dumps(read))} }}]\n'
        f'[[step]]\ncall = [{{ tool = "edit_file", arguments = {json.dumps(json.dumps(arguments))} }}]\n' + DONE
    )
    async with opened(folder, script, policy=Policy(mode="auto", yolo=True)) as b:
        await b.say("edit @src/a.py")
        assert (folder / "src" / "a.py").read_text().startswith("value_1 = 2\n")
        first = b.bodies(FileRead)[0]
        assert (first.path, first.first, first.last) == (str(folder / "src" / "a.py"), 1, 100)
        (again,) = [text for text in b.tool_texts().values() if "unchanged since you read it" in text]
        assert f"(id {attached(b)[0]})" in again


async def test_a_secret_file_is_asked_about_before_anything_is_sent(folder: Path) -> None:
    async with opened(folder) as b:
        b.send(Submit("what is in @.env ?"))
        request = await b.asked()
        assert (request.tool, request.title) == ("read_file", ".env")
        assert not b.model.requests
        b.allow(request, "reject")
        await until(lambda: bool(b.model.requests) and not b.session.view.busy)
        assert "very-secret" not in sent(b)
        assert "[Attached by the user: @.env]\nThe user rejected this call" in sent(b)
        (told,) = warnings(b)
        assert told == "@.env was not attached: reading it was not allowed"
        order = [type(event.body) for event in b.events]
        assert order.index(Notice) < order.index(StepStarted)


async def test_a_rule_that_denies_reading_denies_attaching(folder: Path) -> None:
    policy = Policy(mode="auto", yolo=True, rules=(Rule("deny", "Read(src/**)", "user", "here"),))
    async with opened(folder, policy=policy) as b:
        await b.say("explain @src/a.py")
        assert "value_1" not in sent(b)
        assert len(warnings(b)) == 1


SEARCHES = """
[[step]]
call = [{ tool = "search", arguments = { pattern = "value_[1-3] =", context = 1 } }]
[[step]]
call = [{ tool = "search", arguments = { pattern = "value_1 =", path = "src/a.py" } }]
[[step]]
text = "done"
"""


@pytest.mark.parametrize("effect", ["deny", "ask"])
async def test_a_rule_about_reading_keeps_files_out_of_a_search(folder: Path, effect: RuleEffect) -> None:
    (folder / "b.py").write_text("value_1 = 'elsewhere'\n")
    policy = Policy(rules=(Rule(effect, "Read(src/*.py)", "user", "here"),))
    async with opened(folder, SEARCHES, policy=policy) as b:
        b.send(Submit("search"))
        if effect == "ask":
            request = await b.asked()
            assert request.tool == "search"
            b.allow(request)
        await until(lambda: len(b.model.requests) == 3 and not b.session.view.busy)
        everywhere, there = b.tool_texts().values()
        note = "files covered by Read(src/*.py) are left out; skipped 1 file that may hold secrets, judging by name"
        assert everywhere == f"1 match in 1 file ({note})\nb.py\n    1: value_1 = 'elsewhere'"
        assert ("value_1 = 1" in there) == (effect == "ask")  # that file by name is what the user agreed to


async def test_what_a_search_leaves_out_does_not_tell_what_it_holds(folder: Path) -> None:
    policy = Policy(mode="auto", yolo=True, rules=(Rule("deny", "Grep(src/**)", "user", "here"),))
    script = "".join(
        f'[[step]]\ncall = [{{ tool = "search", arguments = {{ pattern = "{text}" }} }}]\n'
        for text in ("value_1", "none")
    )
    async with opened(folder, script + DONE, policy=policy) as b:
        await b.say("search")
        there, nowhere = b.tool_texts().values()
        assert there.replace("value_1", "none") == nowhere
        assert "Grep(src/**)" in nowhere


async def test_a_file_outside_the_workspace_is_asked_about(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "b.txt"
    other.write_text("from outside\n")
    async with opened(folder) as b:
        b.send(Submit(f"read @{other}"))
        b.allow(await b.asked())
        await until(lambda: bool(b.model.requests) and not b.session.view.busy)
        assert "from outside" in sent(b)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("@data.bin", "@data.bin was not attached: it is a binary file"),
        ("@src/none.py", "@src/none.py was not attached: no such file"),
        ("@src/a.py:900-950", "@src/a.py:900-950 was not attached: The file has 100 lines; offset 900"),
        ("@src/a.py:9-1", "@src/a.py:9-1 was not attached: 9-1 is not a line range"),
    ],
)
async def test_what_cannot_be_attached_is_said_before_anything_is_sent(folder: Path, text: str, told: str) -> None:
    async with opened(folder) as b:
        await b.say(f"see {text}")
        assert [line[: len(told)] for line in warnings(b)] == [told]
        order = [type(event.body) for event in b.events]
        assert order.index(Notice) < order.index(StepStarted)


async def test_words_that_name_no_file_stay_text(folder: Path) -> None:
    async with opened(folder) as b:
        await b.say("write to me@example.com about @property and @types/node")
        assert not warnings(b)
        assert len(b.session.view.messages) == 2


async def test_an_image_is_not_sent_to_a_model_that_sees_none(folder: Path) -> None:
    blind = Blind(parse_script(DONE))
    async with opened(folder, make_client=lambda _name: blind) as b:
        await b.say("see @logo.png")
        assert [line.partition(": ")[2] for line in warnings(b)] == ["scripted/script does not support images"]


async def test_what_a_message_attaches_can_be_named_apart_from_its_text(folder: Path) -> None:
    async with opened(folder, DONE * 2) as b:
        b.send(Submit("piped text with @src/a.py", mentions=()))
        await until(lambda: len(b.model.requests) == 1 and not b.session.view.busy)
        assert "value_1" not in sent(b)
        b.send(Submit("look", mentions=("src/a.py:1-2",)))
        await until(lambda: len(b.model.requests) == 2 and not b.session.view.busy)
        assert "value_2 = 2" in sent(b, 1)


async def test_steering_attaches_too(folder: Path) -> None:
    script = '[[step]]\ncall = [{ tool = "run_command", arguments = { command = "rm x" } }]\n' + DONE
    async with opened(folder, script) as b:
        b.send(Submit("go"))
        request = await b.asked()
        b.send(Steer("mind @src/a.py:5"))
        b.allow(request, "reject")
        await until(lambda: len(b.model.requests) == 2 and not b.session.view.busy)
        assert "value_5 = 5" in sent(b, 1)
        assert not [body for body in b.bodies(PermissionRequested) if body.tool == "read_file"]


async def test_an_attachment_leaves_the_conversation_with_its_message(folder: Path) -> None:
    async with opened(folder) as b:
        await b.say("see @src/a.py")
        first = b.session.view.messages[0].id
        b.send(Rewind(first))
        assert not b.session.view.messages


async def test_an_attachment_is_a_result_of_the_tool_for_whoever_reads_events(folder: Path) -> None:
    async with opened(folder) as b:
        await b.say("see @src/a.py:1-3")
        (item,) = attached(b)
        (body,) = [body for body in b.bodies(ItemCompleted) if body.item == item]
        assert body.detail == "3 lines"
        assert isinstance(body.parts[0], ToolResultPart)
