"""Errors in results of edits, and the model's questions, in a session with a scripted model."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from swecli.core.extensions.watch import ExtensionFiles
from swecli.core.language_servers import server as server_module
from swecli.core.language_servers import servers as servers_module
from swecli.core.language_servers.definitions import CodePlace, CodeQuestion, Surroundings
from swecli.core.language_servers.servers import LanguageServerOptions, LanguageServers
from swecli.core.permissions.types import Policy, Rule
from swecli.core.protocol.blocks import TableBlock
from swecli.core.protocol.commands import Interrupt, Submit
from swecli.core.protocol.events import FileChanged, ItemStarted, Notice, StepStarted, ToolsChanged, TurnEnded
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.tools.registry import builtin_tools
from swecli.core.workspace.process_tree import owned
from swecli.features.language_servers.command import LSP
from swecli.features.language_servers.tool import Symbols
from tests.core.engine.support import Bench, bench, until
from tests.core.language_servers.support import PATIENT, unkind

TEXT = '[[step]]\ntext = "done"\n'
EDITS = Policy(mode="accept-edits")


def call(tool: str, **arguments: object) -> str:
    return f"[[step]]\n[[step.call]]\ntool = '{tool}'\narguments = '''{json.dumps(arguments)}'''\n"


def edit(old: str, new: str) -> str:
    return call("edit_file", path="a.txt", old_string=old, new_string=new)


@asynccontextmanager
async def session(
    script: str, folder: Path, *ways: str, options: LanguageServerOptions | None = None, **changes: Any
) -> AsyncIterator[Bench]:
    around = Surroundings(folder, (folder,), {}, Sandbox.none())
    servers = LanguageServers((unkind(*ways),), around, options or LanguageServerOptions(PATIENT), ())
    changes = {"policy": EDITS, "tools": (*builtin_tools(), Symbols(servers)), **changes}
    async with bench(script + TEXT, folder, extensions=(servers,), code=servers, **changes) as made:
        yield made
    await until(lambda: not owned())


async def reading(made: Bench, folder: Path) -> None:
    """Until the server has said that it reads the project, however long it takes to start."""
    servers = made.session.extension(LanguageServers)
    assert servers is not None
    await servers.expect((str(folder / "a.txt"),))
    await until(lambda: any(server.doing for server in servers.in_use.values()), "the server's work")


async def test_an_edit_tells_what_it_broke_and_a_clean_one_adds_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ERR old\none\ntwo\n")
    script = edit("one", "1") + edit("two", "ERR 2") + call("write_file", path="b.txt", content="fine\n")
    async with session(script, tmp_path, "pull") as made:
        await made.say("go")
        clean, broken, other = made.tool_texts().values()
    async with bench(edit("1", "one") + TEXT, tmp_path, policy=EDITS, tools=builtin_tools()) as plain:
        await plain.say("go")
        (without,) = plain.tool_texts().values()
    assert clean == without
    assert broken == "Edited a.txt at line 3 (+1 -1).\nunkind reports 1 new error:\na.txt:3: bad: ERR 2 [E1]"
    assert "unkind" not in other


async def test_all_tools_that_write_tell_it(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: c.txt\n+ERR patched\n*** End Patch"
    script = call("write_file", path="b.txt", content="ERR written\n") + call("apply_patch", input=patch)
    async with session(script, tmp_path) as made:
        await made.say("go")
        written, patched = made.tool_texts().values()
    assert written.endswith("b.txt:1: bad: ERR written [E1]")
    assert patched.endswith("c.txt:1: bad: ERR patched [E1]")


async def test_a_rejected_edit_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    async with session(edit("one", "ERR"), tmp_path, "pull", policy=Policy(mode="plan")) as made:
        await made.say("go")
        (text,) = made.tool_texts().values()
    assert "unkind" not in text


async def test_an_interrupt_while_errors_are_waited_for_leaves_the_edit_done(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    async with session(edit("one", "ERR"), tmp_path, f"late={tmp_path / 'never'}") as made:
        made.send(Submit("go"))
        await until(lambda: (tmp_path / "a.txt").read_text() == "ERR\n", "the edit")
        await until(lambda: bool(made.bodies(FileChanged)), "the record")
        made.send(Interrupt())
        await until(lambda: bool(made.bodies(TurnEnded)), "the end")
        (text,) = made.tool_texts().values()
    assert text == "Edited a.txt at line 1 (+1 -1)."


async def test_errors_that_a_server_works_on_come_before_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers_module, "CATCH_UP", math.inf)
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("two\n")
    read = tmp_path / "read"
    script = edit("one", "ERR") + call("read_file", path="b.txt")
    options = LanguageServerOptions(wait=0.01)
    async with session(script, tmp_path, f"reads={read}", options=options) as made:
        await reading(made, tmp_path)
        made.send(Submit("go"))
        waits = "Waiting for unkind: errors of the last edit"
        await until(lambda: waits in [notice.text for notice in made.bodies(Notice)], "the wait")
        assert len(made.bodies(StepStarted)) == 1
        read.touch()
        await until(lambda: bool(made.bodies(TurnEnded)), "the end")
        order = [event.body for event in made.events if isinstance(event.body, StepStarted | ItemStarted)]
        second = [place for place, body in enumerate(order) if isinstance(body, StepStarted)][1]
        told = [body.title for body in order[:second] if isinstance(body, ItemStarted) and body.kind == "note"]
        assert "unkind reports 1 new error after an earlier edit: a.txt:1" in told


async def test_errors_of_a_server_that_works_without_saying_so_come_before_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers_module, "CATCH_UP", math.inf)
    monkeypatch.setattr(server_module, "FIRST_SECONDS", math.inf)
    (tmp_path / "a.txt").write_text("one\n")
    checked = tmp_path / "checked"
    options = LanguageServerOptions(wait=0.01)
    async with session(edit("one", "ERR"), tmp_path, f"late={checked}", options=options) as made:
        made.send(Submit("go"))
        waits = "Waiting for unkind: errors of the last edit"
        await until(lambda: waits in str(made.bodies(Notice)) or bool(made.bodies(TurnEnded)), "the wait")
        checked.touch()
        await until(lambda: bool(made.bodies(TurnEnded)), "the end")
        order = [event.body for event in made.events if isinstance(event.body, StepStarted | ItemStarted)]
        second = [place for place, body in enumerate(order) if isinstance(body, StepStarted)][1]
        told = [body.title for body in order[:second] if isinstance(body, ItemStarted) and body.kind == "note"]
        assert "unkind reports 1 new error after an earlier edit: a.txt:1" in told


async def test_the_wait_for_errors_ends_with_escape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers_module, "CATCH_UP", math.inf)
    (tmp_path / "a.txt").write_text("one\n")
    options = LanguageServerOptions(wait=0.01)
    async with session(edit("one", "ERR"), tmp_path, f"reads={tmp_path / 'never'}", options=options) as made:
        await reading(made, tmp_path)
        made.send(Submit("go"))
        await until(lambda: "Waiting for unkind" in str(made.bodies(Notice)), "the wait")
        made.send(Interrupt(skip=True))
        await until(lambda: bool(made.bodies(TurnEnded)), "the end")
        assert made.bodies(TurnEnded)[0].outcome == "done"


async def test_what_comes_after_the_turn_is_shown_at_once_and_told_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers_module, "CATCH_UP", 0.0)
    (tmp_path / "a.txt").write_text("one\n")
    script = edit("one", "ERR") + TEXT
    options = LanguageServerOptions(wait=0.05)
    async with session(script, tmp_path, f"late={tmp_path / 'checked'}", options=options) as made:
        await made.say("go")
        (tmp_path / "checked").touch()
        await until(lambda: "unkind reports 1 new error after an earlier edit: a.txt:1" in titles(made), "the note")
        assert not made.session.view.busy
        before = len(titles(made))
        await made.say("and?")
        assert titles(made)[before:].count("unkind reports 1 new error after an earlier edit: a.txt:1") == 0


def titles(made: Bench) -> list[str]:
    return [body.title for body in made.bodies(ItemStarted) if body.kind == "note"]


async def test_questions_in_plan_mode(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("def 😀 price\nuse of price\n")
    (tmp_path / "other.py").write_text("x\n")
    ask = {"path": "a.txt", "symbol": "price"}
    script = (
        call("symbols", action="references", **ask)
        + call("symbols", action="definition", line=2, **ask)
        + call("symbols", action="outline", path="a.txt")
        + call("symbols", action="search", symbol="price")
        + call("symbols", action="references", path="a.txt", symbol="cost")
        + call("symbols", action="outline", path="other.py")
        + call("symbols", action="outline")
    )
    async with session(script, tmp_path, "pull", policy=Policy(mode="plan")) as made:
        await made.say("go")
        uses, definition, outline, found, absent, other, without = made.tool_texts().values()
    assert uses == "a.txt:1: def 😀 price\na.txt:2: use of price"
    assert definition == "a.txt:1: def 😀 price"
    assert outline == "    1 class outer\n    1   function inner"
    assert found == "a.txt:1: function price\na.txt:2: function price"
    assert "'cost' is not in a.txt" in absent
    assert "no language server handles this file" in other
    assert "path is required for outline" in without
    assert "line:" not in without


async def test_places_in_files_that_a_rule_covers_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("def price\n")
    ask = call("symbols", action="definition", path="a.txt", symbol="price")
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "b.txt").write_text("price = hush\n")
    (tmp_path / "link.txt").symlink_to(tmp_path / "keys" / "b.txt")
    answers = [CodePlace(tmp_path / name, 1) for name in ("a.txt", "keys/b.txt", "link.txt")]
    policy = Policy(rules=(Rule("deny", "Read(keys/**)", "user"),))
    async with bench(ask + TEXT, tmp_path, policy=policy, tools=(asking(answers),)) as made:
        await made.say("go")
        (text,) = made.tool_texts().values()
    assert text == "a.txt:1: def price\n(files covered by Read(keys/**) are left out)"


async def test_lines_behind_a_link_out_of_the_workspace_are_not_shown(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.txt").write_text("def price\n")
    (inside / "link").symlink_to(outside)
    ask = call("symbols", action="references", path="a.txt", symbol="price")
    answers = [CodePlace(inside / name, 1) for name in ("a.txt", "link/a.txt")]
    async with bench(ask + TEXT, inside, tools=(asking(answers),)) as made:
        await made.say("go")
        (text,) = made.tool_texts().values()
    assert text == "a.txt:1: def price\nlink/a.txt:1"


def asking(answers: Sequence[CodePlace]) -> Symbols:
    return Symbols(cast("LanguageServers", Answering(answers)))


class Answering:
    """A language server with a fixed answer."""

    def __init__(self, places: Sequence[CodePlace]) -> None:
        self._places = places

    async def ask(self, what: CodeQuestion, path: Path, line: int = 1, column: int = 0) -> Sequence[CodePlace]:
        return self._places

    async def search(self, query: str, path: Path | None) -> Sequence[CodePlace]:
        return self._places

    async def expect(self, paths: Sequence[str]) -> None:
        return None

    async def brought(self, paths: Sequence[str], agent: str) -> str:
        return ""

    def at_work(self, agent: str) -> Sequence[str]:
        return ()

    async def caught_up(self, agent: str) -> None:
        return None

    def late(self, agent: str) -> Sequence[str]:
        return ()


async def test_the_prefix_of_requests_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    async with session(edit("one", "ERR"), tmp_path, "pull") as made:
        await made.say("go")
        assert not [event for event in made.events if isinstance(event.body, ToolsChanged)]


async def test_the_command_shows_every_server(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    async with session(edit("one", "two"), tmp_path, "pull") as made:
        before = await LSP.run(made.session, "")
        await made.say("go")
        after = await LSP.run(made.session, "")
        assert "Installed, not started: unkind." in str(before.blocks)
        (table,) = [block for block in after.blocks if isinstance(block, TableBlock)]
        name, state, pid, files, root, error = table.rows[0]
        assert (name, state, files, root, error) == ("unkind", "ready", "1", ".", "")
        assert "Not sandboxed: unkind" in str(after.blocks)
        assert int(pid) > 0
        assert "stopped" in str((await LSP.run(made.session, "stop unkind")).blocks)
        assert "No language server 'x'" in str((await LSP.run(made.session, "log x")).blocks)
        assert "starts: " in str((await LSP.run(made.session, "log unkind")).blocks)
        assert "Use /lsp" in str((await LSP.run(made.session, "dance")).blocks)


@pytest.mark.parametrize("trusted", [True, False])
async def test_the_command_says_why_there_is_no_server(tmp_path: Path, trusted: bool) -> None:
    files = ExtensionFiles(tmp_path, tmp_path / "user", tmp_path / "home", trusted=trusted)
    async with bench("[[step]]\ntext = 'done'\n", tmp_path, extension_files=files) as made:
        said = str((await LSP.run(made.session, "")).blocks)
        assert ("this folder is not trusted" in said) is not trusted
