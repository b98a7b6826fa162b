"""Listing, searching, running, asking and planning through the tools."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from swecli.core.protocol.blocks import FileListBlock, TerminalBlock, Todo, TodoBlock
from swecli.core.tools.base import ToolError
from swecli.core.tools.registry import builtin_tools
from swecli.core.tools.run_command import RunCommand, RunCommandParams, report
from swecli.core.validation import validated
from swecli.core.workspace.process import ProcessResult
from swecli.features.language_servers.tool import _lines
from tests.support.tool_context import ToolBench
from tests.support.waiting import PATIENCE, at_some_pace, until


async def test_listing_marks_directories_and_leaves_ignored_files_out(bench: ToolBench) -> None:
    for name in ("src/a.py", "src/deep/er/b.py", "out/x.o", "README.md"):
        bench.file(name)
    bench.file(".gitignore", "out/\n")
    outcome = await bench.call("list_files")
    assert outcome.text.split("\n") == [".gitignore", "README.md", "src/", "src/a.py", "src/deep/"]
    assert outcome.detail == "5 entries"
    named = await bench.call("list_files", path="src", glob="*.py")
    assert named.text.split("\n") == ["src/a.py", "src/deep/er/b.py"]
    assert (await bench.call("list_files", glob="*.rs")).text == "No file in . matches *.rs."


async def test_a_name_with_a_line_break_is_one_line(bench: ToolBench) -> None:
    bench.file("a\nsrc/b.py", "def login():\n    pass\n")
    bench.file("e\x1b[2Jé.py")
    assert (await bench.call("list_files")).text.split("\n") == ['"a\\nsrc/"', '"a\\nsrc/b.py"', '"e\\x1b[2Jé.py"']
    assert (await bench.call("search", pattern="login")).text.split("\n")[1] == '"a\\nsrc/b.py"'


def test_a_folder_that_became_a_link_since_it_was_checked_is_not_followed(bench: ToolBench) -> None:
    path = bench.file("src/b.py", "mine\n")
    assert _lines(path) == ["mine", ""]
    away = path.parent.rename(path.parent.parent / "away")
    path.parent.symlink_to(away)
    assert _lines(path) == []


async def test_listing_is_bounded_and_says_the_total(bench: ToolBench) -> None:
    for number in range(350):
        bench.file(f"f{number:03}")
    outcome = await bench.call("list_files")
    assert outcome.text.endswith("[300 of 350 entries; narrow it with path, glob or depth]")
    (block,) = outcome.blocks
    assert isinstance(block, FileListBlock)
    assert (len(block.entries), block.total) == (300, 350)


async def test_listing_a_file_or_nothing(bench: ToolBench) -> None:
    bench.file("src/a.py")
    with pytest.raises(ToolError, match="is a file; use read_file"):
        await bench.call("list_files", path="src/a.py")
    with pytest.raises(ToolError, match="Did you mean src"):
        await bench.call("list_files", path="srcs")


async def test_search_groups_by_file(bench: ToolBench) -> None:
    bench.file("a.py", "import os\nlogin()\n")
    bench.file("src/b.py", "def login():\n    pass\n")
    outcome = await bench.call("search", pattern="login", context=1)
    assert outcome.text.split("\n") == [
        "2 matches in 2 files",
        "a.py",
        "    1- import os",
        "    2: login()",
        "src/b.py",
        "    1: def login():",
        "    2-     pass",
    ]
    assert outcome.detail == "2 matches in 2 files"
    (block,) = outcome.blocks
    assert isinstance(block, FileListBlock)
    assert [(entry.path, entry.line) for entry in block.entries] == [("a.py", 2), ("src/b.py", 1)]


async def test_search_is_bounded_and_counts_all(bench: ToolBench) -> None:
    bench.file("a.txt", "hit\n" * 500)
    outcome = await bench.call("search", pattern="hit", max_results=3)
    assert outcome.text.count("hit") == 3
    assert outcome.text.endswith("[3 of 500 matches shown; narrow it with path or glob]")
    assert outcome.detail == "500 matches in 1 file"


async def test_search_misses_and_mistakes(bench: ToolBench) -> None:
    outcome = await bench.call("search", pattern="nothing", glob="*.py")
    assert (outcome.text, outcome.detail) == ("No matches for 'nothing' in files like *.py.", "no matches")
    for arguments, says in (
        ({"pattern": "a("}, "Invalid pattern"),
        ({"pattern": "a\nb"}, "single lines"),
        ({"pattern": "a", "path": "src/**/*.py"}, "wildcards"),
        ({"pattern": "a", "path": "gone"}, "does not exist"),
    ):
        with pytest.raises(ToolError, match=says):
            await bench.call("search", **arguments)


@pytest.mark.parametrize(
    ("pattern", "line", "how"),
    [
        ("f(", 1, "(searched as plain text: the pattern is no valid regular expression)"),
        ("a[0", 2, "(searched as plain text: the pattern is no valid regular expression)"),
        ("a[0]", 2, "(found as plain text: as a regular expression, the pattern matches nothing)"),
        ("$x->y", 3, "(found as plain text: as a regular expression, the pattern matches nothing)"),
        (r"(?<=x = )f", 1, ""),
        (r"^(.)\[0\] = \1$", 2, ""),
        (r"f\(\d{", 4, ""),
    ],
)
async def test_a_pattern_that_only_others_accept_is_understood(
    bench: ToolBench, pattern: str, line: int, how: str
) -> None:
    bench.file("a.py", "x = f(1)\na[0] = a\n$x->y\nf(1{\n")
    text = (await bench.call("search", pattern=pattern)).text
    assert f"\n{line:>5}: " in text
    assert text.split("\n")[0].partition(" (")[2] == how.removeprefix("(")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"pattern": r"one\|two"}, r"\| is the sign itself"),
        ({"pattern": r"\<on\>"}, r"bounds of a word are written \b"),
        ({"pattern": "one", "glob": "py"}, "an extension is written like *.py"),
    ],
)
async def test_a_search_without_matches_says_what_may_be_wrong(
    bench: ToolBench, arguments: dict[str, str], says: str
) -> None:
    bench.file("a.py", "one\n")
    assert says in (await bench.call("search", **arguments)).text


async def test_command_result(bench: ToolBench) -> None:
    outcome = await bench.call("run_command", command="echo out; echo err >&2; exit 3")
    head, *rest = outcome.text.split("\n")
    assert head.startswith("exit status 3 after ")
    assert rest == ["out", "err"]
    assert (outcome.detail, outcome.exit_status, outcome.is_error) == ("exit 3", 3, True)
    (block,) = outcome.blocks
    assert isinstance(block, TerminalBlock)
    assert (block.output, block.exit_status, block.cwd) == ("out\nerr\n", 3, str(bench.folder))
    assert "".join(bench.shown) == "out\nerr\n"
    silent = await bench.call("run_command", command="true")
    assert silent.text.endswith("\n(no output)")
    assert not silent.is_error


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("cd .", "no effect on later commands"),
        ("export A=1 && cd .", "no effect on later commands"),
        ("apply_patch <<'EOF'\n*** Begin Patch\nEOF", "apply_patch is a tool, not a program"),
        ("echo 'Error opening terminal: unknown.'; exit 1", "needs input, a terminal"),
    ],
)
async def test_a_command_that_can_not_do_what_is_meant_says_so(bench: ToolBench, command: str, says: str) -> None:
    assert says in (await bench.call("run_command", command=command)).text


@pytest.mark.parametrize("command", ["cd . && ls", "export A=1; env", "cd . | cat", "nosuchprogram"])
async def test_other_commands_get_no_such_hint(bench: ToolBench, command: str) -> None:
    text = (await bench.call("run_command", command=command)).text
    assert "no effect" not in text
    assert "is a tool" not in text


def test_waiting_for_a_terminal_is_no_lack_of_time() -> None:
    result = ProcessResult("Vim: Warning: Output is not to a terminal\n", None, "timeout", 2.0, 42, 0)
    assert "more time would not help" in report("vim a", result, 2.0, "")


async def test_command_is_shown_before_it_runs(bench: ToolBench) -> None:
    preview = await bench.preview("run_command", command="rm -r x")
    assert preview.blocks == (TerminalBlock("rm -r x", "", cwd=str(bench.folder)),)
    assert preview.facts == ()
    preview = await bench.preview("run_command", command="rm -r x", background=True)
    assert preview.facts == ("Runs as a background job.",)
    tool, params = bench.parsed("run_command", command="rm -r x")
    assert tool.effects(params, bench.context).command == "rm -r x"


async def test_long_output_is_given_whole_and_endless_output_in_bounded_memory(bench: ToolBench) -> None:
    outcome = await bench.call("run_command", command="seq 1 100000")
    assert outcome.text.split("\n")[1:] == [str(number) for number in range(1, 100_001)]
    (block,) = outcome.blocks
    assert isinstance(block, TerminalBlock)
    assert len(block.output) < 210_000
    endless = await bench.call("run_command", command="yes 'a line of output' | head -c 9000000")
    assert "bytes of output not kept …]" in endless.text
    assert len(endless.text) < 3_100_000


async def test_timeout_is_explained(bench: ToolBench) -> None:
    async def attempt(seconds: float) -> None:
        outcome = await bench.call("run_command", command="echo begun; sleep 600", timeout=seconds)
        assert outcome.text.startswith(f"Killed with all its processes after {seconds:g} s")
        assert outcome.text.endswith("begun")
        assert (outcome.detail, outcome.exit_status, outcome.is_error) == (f"killed after {seconds:g} s", None, True)

    await at_some_pace(attempt, 0.3)


@pytest.mark.parametrize(
    ("timeout", "advice"), [(599.0, "Set a larger timeout (at most 600), or"), (600.0, "No timeout can be larger; set")]
)
def test_a_larger_timeout_is_advised_only_if_there_is_one(timeout: float, advice: str) -> None:
    ended = ProcessResult("", None, "timeout", timeout, 0, 0)
    assert f"{advice} background: true for a server or watcher." in report("make", ended, timeout, "")


async def test_a_command_without_a_timeout_gets_that_of_the_settings(bench: ToolBench) -> None:
    short, long = RunCommand(0.3), RunCommand(900)
    assert "timeout: 0.3 s if unset, at most 600." in short.description()
    assert "timeout: 900 s if unset, at most 900." in long.description()
    outcome = await short.run(validated(RunCommandParams, {"command": "sleep 600"}), bench.context)
    assert outcome.text.startswith("Killed with all its processes after 0.3 s")
    outcome = await short.run(validated(RunCommandParams, {"command": "sleep 0.6", "timeout": 800}), bench.context)
    assert outcome.exit_status == 0
    (tool,) = (tool for tool in builtin_tools(45) if tool.name == "run_command")
    assert "timeout: 45 s if unset" in tool.description()


async def test_wish_for_a_terminal_is_explained(bench: ToolBench) -> None:
    outcome = await bench.call("run_command", command="echo 'sudo: a password is required' >&2; exit 1")
    assert "needs input, a terminal or a password" in outcome.text


async def test_secrets_do_not_reach_commands(bench: ToolBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    fresh = ToolBench(bench.folder)
    outcome = await fresh.call("run_command", command="env")
    assert "canary" not in outcome.text
    assert "AGENT=swecli" in outcome.text


async def test_cancelled_command_is_gone(bench: ToolBench) -> None:
    up = asyncio.Event()
    context = replace(bench.context, output=lambda text: up.set())
    tool, params = bench.parsed("run_command", command="echo up; sleep 600")
    task = asyncio.create_task(tool.run(params, context))
    await until(up.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)


async def test_todos_replace_the_list(bench: ToolBench) -> None:
    todos = [{"text": "look", "status": "completed"}, {"text": "fix", "status": "in_progress"}, {"text": "test"}]
    outcome = await bench.call("update_todos", todos=todos)
    expected = (Todo("look", "completed"), Todo("fix", "in_progress"), Todo("test", "pending"))
    assert bench.todos == expected
    assert outcome.blocks == (TodoBlock(expected),)
    assert outcome.detail == "1 done, 1 in progress, 1 to do"
    tool, params = bench.parsed("update_todos", todos=todos)
    assert tool.effects(params, bench.context).internal
    assert tool.title(params, bench.context) == "fix"


async def test_questions_and_answers(bench: ToolBench) -> None:
    questions = [
        {"question": "Which?", "options": [{"label": "A"}, {"label": "B", "description": "slower"}]},
        {"question": "Why?"},
    ]
    nobody = await bench.call("ask_user", questions=questions)
    assert "no user can answer" in nobody.text
    bench.asker.answers = (("B",), ("because",))
    answered = await bench.call("ask_user", questions=questions)
    assert answered.text == "Which?\n→ B\nWhy?\n→ because"
    assert [option.label for option in bench.asker.asked[0].options] == ["A", "B"]
    bench.asker.answers = ()
    assert "without an answer" in (await bench.call("ask_user", questions=questions)).text
