"""The read set in a running session: nothing is read twice, nothing is edited that the model does not know."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swecli.core.engine import changed_files
from swecli.core.permissions.types import Policy
from swecli.core.protocol.commands import Compact, Rewind
from swecli.core.protocol.events import CompactionCompleted, FileRead, ItemCompleted
from swecli.core.protocol.messages import Message, ToolResultPart
from swecli.core.tools.registry import builtin_tools
from tests.core.engine.support import Bench, bench, until
from tests.support.thorough import examples

LINES = "".join(f"value_{number} = {number}\n" for number in range(120))


def step(tool: str, **arguments: object) -> str:
    return f"[[step]]\ncall = [{{ tool = {json.dumps(tool)}, arguments = {json.dumps(json.dumps(arguments))} }}]\n"


def script(*steps: str, window: int = 200_000) -> str:
    """Each step is a turn of its own, so that files can be changed between them."""
    done = '[[step]]\ntext = "done"\n'
    return f"window = {window}\nmax_output = 2000\n" + done.join(steps) + done


def edit(old: str, new: str, path: str = "a.py") -> str:
    return step("edit_file", path=path, old_string=old, new_string=new)


def read(path: str = "a.py", **more: object) -> str:
    return step("read_file", path=path, **more)


def texts(b: Bench) -> list[str]:
    return [part.text for body in b.bodies(ItemCompleted) for part in body.parts if isinstance(part, ToolResultPart)]


def told(b: Bench) -> str:
    """What the newest turn told the model."""
    newest = max(at for at, message in enumerate(b.model.requests[-1].messages) if is_said(message))
    return "\n".join(message.text for message in b.model.requests[-1].messages[newest:] if message.note)


def is_said(message: Message) -> bool:
    return message.role == "user" and not message.note


def put(path: Path, text: str) -> None:
    """Someone else writes the file."""
    path.write_text(text)


def get(path: Path) -> str:
    return path.read_text()


def gone(path: Path) -> None:
    path.unlink(missing_ok=True)


def real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def open_bench(steps: str, folder: Path) -> Any:
    return bench(steps, real(folder), tools=builtin_tools(), policy=Policy(mode="auto", yolo=True))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_text(LINES)
    return path


async def test_a_second_read_of_the_same_lines_is_one_line(tmp_path: Path, file: Path) -> None:
    async with open_bench(
        script(read(), read(), read(offset=1, limit=120), read(offset=5, limit=10), read()), tmp_path
    ) as b:
        for _ in range(5):
            await b.say("read")
        full, *again = texts(b)
        assert full.startswith("    1\tvalue_0 = 0")
        assert again[0] == again[1] == again[3]
        assert again[0].startswith("[a.py, lines 1-120: unchanged since you read it")
        assert "\n" not in again[0]
        assert again[2].startswith("    5\tvalue_4 = 4")
        assert len(b.bodies(FileRead)) == 2
        assert [body.detail for body in b.bodies(ItemCompleted)].count("unchanged") == 3


async def test_the_pointer_names_a_result_that_has_the_text(tmp_path: Path, file: Path) -> None:
    async with open_bench(script(read(), read()), tmp_path) as b:
        await b.say("read")
        await b.say("read")
        full, pointer = texts(b)
        item = pointer.split("(id ")[1].split(")")[0]
        ended = next(body for body in b.bodies(ItemCompleted) if f"{body.item}.result" == item)
        assert ended.parts[0].text == full


async def test_a_changed_file_is_read_again_in_full_and_the_model_is_told(tmp_path: Path, file: Path) -> None:
    async with open_bench(script(read(), step("list_files"), read(), step("list_files")), tmp_path) as b:
        await b.say("read")
        assert "Changed on disk" not in told(b)
        put(file, LINES.replace("value_7 = 7", "value_7 = 8"))
        await b.say("list")
        assert "Changed on disk since you last saw them: a.py. Read them again" in told(b)
        await b.say("read")
        assert "value_7 = 8" in texts(b)[-1]
        await b.say("list")
        assert "Changed on disk" not in told(b)


async def test_a_change_with_the_same_time_as_the_one_before_is_found(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_files, "_SETTLED", 1e9)
    async with open_bench(script(read(), step("list_files")), tmp_path) as b:
        await b.say("read")
        assert "Changed on disk" not in told(b)
        times = os.stat(file)
        put(file, LINES.replace("value_7 = 7", "value_7 = 8"))
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        monkeypatch.setattr(changed_files, "_SETTLED", 0.0)  # more time has passed
        await b.say("list")
        assert "Changed on disk since you last saw them: a.py." in told(b)


async def test_a_file_that_got_its_earlier_form_back_is_read_in_full_and_can_be_edited(
    tmp_path: Path, file: Path
) -> None:
    change = edit("value_50 = 50", "value_50 = 51")
    async with open_bench(script(read(), change, read(), change, read()), tmp_path) as b:
        await b.say("read")
        await b.say("edit")
        put(file, LINES)
        await b.say("read")
        assert texts(b)[-1].startswith("    1\tvalue_0 = 0")
        await b.say("edit")
        assert "value_50 = 51" in get(file)


async def test_a_deleted_file_and_one_that_comes_back(tmp_path: Path, file: Path) -> None:
    async with open_bench(script(read(), step("list_files"), step("list_files")), tmp_path) as b:
        await b.say("read")
        gone(file)
        await b.say("list")
        assert "a.py (deleted)" in told(b)
        put(file, LINES)
        await b.say("list")
        assert "Changed on disk" not in told(b)


async def test_an_edit_of_a_file_that_changed_is_refused_with_its_text_and_then_made(
    tmp_path: Path, file: Path
) -> None:
    change = edit("value_50 = 50", "value_50 = 51")
    async with open_bench(script(read(), change, change, edit("value_51 = 51", "value_51 = 52")), tmp_path) as b:
        await b.say("read")
        now = LINES.replace("value_52 = 52", "value_52 = 'by the user'")
        put(file, now)
        await b.say("edit")
        refused = texts(b)[-1]
        assert "changed on disk since you last saw it. Nothing was edited." in refused
        assert "   53\tvalue_52 = 'by the user'" in refused
        assert "   51\tvalue_50 = 50" in refused
        assert "value_90" not in refused
        assert get(file) == now
        await b.say("edit")
        assert get(file) == now.replace("value_50 = 50", "value_50 = 51")
        await b.say("edit")
        assert "value_51 = 52" in get(file)


async def test_an_edit_that_misses_says_that_the_file_changed(tmp_path: Path, file: Path) -> None:
    async with open_bench(script(read(), edit("value_50 = 50", "x")), tmp_path) as b:
        await b.say("read")
        put(file, LINES.replace("value_50 = 50", "value_50 = 'else'"))
        await b.say("edit")
        assert "old_string was not found" in texts(b)[-1]
        assert texts(b)[-1].endswith("The file changed on disk since you last saw it.")


async def test_overwriting_a_file_that_changed_is_refused_until_it_is_read(tmp_path: Path, file: Path) -> None:
    write = step("write_file", path="a.py", content="new\n")
    async with open_bench(script(read(), write, read(), write), tmp_path) as b:
        await b.say("read")
        put(file, "by the user\n")
        await b.say("write")
        assert "Nothing was written. Read it again first." in texts(b)[-1]
        assert get(file) == "by the user\n"
        await b.say("read")
        await b.say("write")
        assert get(file) == "new\n"


async def test_own_edits_and_commands_of_the_model(tmp_path: Path, file: Path) -> None:
    steps = script(
        edit("value_1 = 1\n", "value_1 = 'a'\n"),  # never read: nothing is known to be stale
        edit("value_2 = 2\n", "value_2 = 'b'\n"),
        read(),
        step("run_command", command="sed -i s/value_3/name_3/ a.py"),
        edit("value_4 = 4", "value_4 = 'c'"),
        edit("value_4 = 4", "value_4 = 'c'"),
    )
    async with open_bench(steps, tmp_path) as b:
        for _ in range(3):
            await b.say("go")
        assert "value_1 = 'a'\nvalue_2 = 'b'\n" in get(file)
        assert texts(b)[-1].startswith("    1\tvalue_0")
        await b.say("sed")
        assert "Changed on disk since you last saw them: a.py" in told(b)
        await b.say("edit")
        assert "name_3 = 3" in texts(b)[-1]
        await b.say("edit")
        assert "value_4 = 'c'" in get(file)


async def test_text_that_left_the_view_is_read_in_full(tmp_path: Path, file: Path) -> None:
    big = tmp_path / "big.txt"
    big.write_text("".join(f"{number} word word word word\n" for number in range(1_000)))
    summary = "## Goal\\n" + "Reading files, nothing else was done here. " * 8
    steps = script(read(), read("big.txt")) + f'[[step]]\ntext = "{summary}"\n' + read() + '[[step]]\ntext = "done"\n'
    async with open_bench(steps, tmp_path) as b:
        await b.say("read")
        await b.say("read")
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        assert not any("value_100" in part.text for message in b.session.view.messages for part in message.tool_results)
        await b.say("read")
        assert texts(b)[-1].startswith("    1\tvalue_0 = 0")


async def test_what_was_rewound_counts_as_not_seen(tmp_path: Path, file: Path) -> None:
    change = edit("value_50 = 50", "value_50 = 51")
    async with open_bench(script(read(), change, read(), edit("value_9 = 9", "value_9 = 8")), tmp_path) as b:
        for _ in range(3):
            await b.say("go")
        second = [entry.id for entry in b.session.view.messages if is_said(entry)][1]
        b.send(Rewind(second))
        await b.say("edit")
        assert "changed on disk since you last saw it" in texts(b)[-1]


async def test_resumed_sessions_know_what_was_read(tmp_path: Path, file: Path) -> None:
    async with open_bench(script(read()), tmp_path) as b:
        await b.say("read")
        facts = list(b.facts)
    put(file, LINES + "more = 1\n")
    again = bench(
        script(step("list_files")),
        real(tmp_path),
        tools=builtin_tools(),
        history=facts,
        policy=Policy(mode="auto", yolo=True),
    )
    async with again as b:
        await b.say("list")
        assert "a.py" in told(b)


# --- random sessions ---------------------------------------------------------------------------------------------

ACTIONS = st.sampled_from(["read", "read part", "edit", "write", "outside", "outside same size", "delete", "restore"])


@given(st.lists(ACTIONS, min_size=4, max_size=24), st.integers(0, 10**6))
@settings(
    deadline=None,
    max_examples=examples(12, 25),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_unchanged_is_never_wrong_and_no_edit_goes_into_text_that_was_not_seen(
    tmp_path: Path, actions: Sequence[str], seed: int
) -> None:
    asyncio.run(_random_session(tmp_path, actions, random.Random(seed)))


async def _random_session(folder: Path, actions: Sequence[str], rand: random.Random) -> None:
    path = folder / "a.py"
    path.write_text(LINES)
    steps: list[str] = []
    for number, action in enumerate(actions):
        match action:
            case "read":
                steps.append(read())
            case "read part":
                steps.append(read(offset=10, limit=20))
            case "edit":
                steps.append(edit(f"value_{number} = ", f"value_{number}  = "))
            case "write":
                steps.append(step("write_file", path="a.py", content=LINES + f"written_{number} = 1\n"))
            case _:
                pass
    async with open_bench(script(*steps) if steps else script(read()), folder) as b:
        known: str | None = None  # what the model last saw of the file
        for action in actions:
            before = path.read_text() if path.exists() else None
            match action:
                case "outside":
                    path.write_text((before or LINES) + f"outside_{rand.random()}\n")
                case "outside same size":
                    digits = list(before or LINES)
                    places = [at for at, one in enumerate(digits) if one.isdigit()]
                    digits[rand.choice(places)] = rand.choice("0123456789")
                    path.write_text("".join(digits))
                case "delete":
                    path.unlink(missing_ok=True)
                case "restore":
                    path.write_text(LINES)
                case _:
                    await b.say("go")
                    shown, after = texts(b)[-1], path.read_text() if path.exists() else None
                    if action.startswith("read"):
                        assert after == before
                        if "unchanged since you read it" in shown:
                            assert before is not None
                            earlier = shown.split("(id ")[1].split(".result)")[0]
                            said = next(one for one in b.bodies(ItemCompleted) if one.item == earlier).parts[0].text
                            numbered = [f"{n:>5}\t{line}" for n, line in enumerate(before.splitlines(), 1)]
                            wanted = numbered if action == "read" else numbered[9:29]
                            assert said.split("\n")[: len(wanted)] == wanted
                        if not shown.startswith("a.py does not exist"):
                            known = before
                    elif after != before and before is not None:
                        assert known in (None, before), "written into a form that the model had not seen"
                        known = after
                    elif after != before:
                        known = after
                    elif "changed on disk" in shown and "Nothing was edited" in shown:
                        known = before


async def test_forty_reads_cost_a_tenth(tmp_path: Path) -> None:
    """A long session that reads four files over and over while someone else edits one of them now and then."""
    rand = random.Random(5)
    names = [f"m{number}.py" for number in range(4)]
    for name in names:
        (tmp_path / name).write_text("".join(f"{name}_{number} = {number}  # a comment\n" for number in range(300)))
    order = names + [rand.choice(names) for _ in range(76)]
    async with open_bench(script(*[read(name) for name in order]), tmp_path) as b:
        naive = 0
        changes = 0
        for number, name in enumerate(order):
            if number in (30, 60):
                with (tmp_path / names[0]).open("a") as file:
                    file.write(f"added_{number} = 1\n")
                changes += 1
            await b.say("read")
            naive += len((tmp_path / name).read_text()) if number >= 4 else 0
        reread = sum(len(text) for text in texts(b)[4:])
        assert changes == 2
        assert reread <= 0.10 * naive
