"""The prompt's parts without a screen: pastes, ranking, completion, line editing."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.session import Session
from swecli.core.workspace.mentions import mentioned
from swecli.tui.prompt import completion, editor
from swecli.tui.prompt.completion import Token, best, token_before, walk, with_folders
from swecli.tui.prompt.editor import Pastes
from tests.support.thorough import examples
from tests.support.waiting import PATIENCE


async def run(port: Session, arguments: str) -> CommandResult:
    return CommandResult()


def command(name: str, *aliases: str, arguments: str = "") -> SlashCommand:
    return SlashCommand(name, f"about {name}", run, aliases, arguments)


COMMANDS = (
    command("context", "tokens"),
    command("clear", "new"),
    command("mode", arguments="[mode]"),
    command("model"),
)


# --- pastes ---


def test_pastes_that_left_the_draft_are_let_go_of_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor, "MOST_HELD", 10_000)
    text = ""
    pastes = Pastes(lambda: text)
    text = first = latest = pastes.fold("a" * 4000)
    for letter in "bcdefg":
        latest = pastes.fold(letter * 4000)
    assert pastes.expand(first) == "a" * 4000
    assert pastes.expand(latest) == "g" * 4000
    assert len(pastes._texts) == 2
    assert pastes.refusal("h" * 6000) == ""
    assert "save it as a file" in pastes.refusal("h" * 6001)


def test_small_pastes_stay_and_large_ones_fold() -> None:
    pastes = Pastes()
    assert pastes.fold("two\r\nlines\r") == "two\nlines\n"
    folded = pastes.fold("line\n" * 20)
    assert folded == "[Pasted text #1: 20 lines, 100 characters]"
    assert pastes.fold("x" * 5000) == "[Pasted text #2: 1 line, 5K]"
    assert pastes.expand(f"see {folded}!") == f"see {'line' + chr(10)}{('line' + chr(10)) * 19}!"


def test_a_sent_message_returns_with_its_pastes_folded_and_its_words_visible() -> None:
    pastes = Pastes()
    first, second = "a\n" * 300, "b\n" * 150
    message, _ = pastes.sent(f"Compare {pastes.fold(first)}with {pastes.fold(second)}now")
    pastes.sent("something else")
    back = pastes.fold_back(message)
    assert back == (
        "Compare [Pasted text #1: 300 lines, 600 characters]with [Pasted text #2: 150 lines, 300 characters]now"
    )
    assert pastes.expand(back) == message
    assert pastes.fold_back(f"see\n{second}") == f"see\n{second}", "short enough to be edited"
    assert pastes.fold_back(f"{first}{'c' * 20_000}").count("Pasted text") == 1


def test_few_pastes_of_sent_messages_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor, "MOST_SAVED", 25_000)
    pastes = Pastes()
    for letter in "abc":
        pastes.sent(pastes.fold(letter * 11_000))
    assert [len(pastes.fold_back(f"{letter * 11_000} x")) < 60 for letter in "abc"] == [True, True, True]
    assert [" x" in pastes.fold_back(f"{letter * 11_000} x") for letter in "abc"] == [False, True, True]


def test_hidden_characters_never_reach_the_editor() -> None:
    pastes = Pastes()
    text = "rm -rf \x1b[2J\u202e x"
    folded = pastes.fold(text)
    assert folded.isprintable()
    assert pastes.expand(folded) == text


def test_a_placeholder_that_somebody_typed_is_text() -> None:
    pastes = Pastes()
    typed = "[Pasted text #7: 3 lines, 5 characters]"
    pastes.fold("y" * 2000)
    assert pastes.expand(typed) == typed
    assert pastes.spans(typed) == []


@settings(deadline=None)
@given(st.text(), st.text(max_size=20), st.text(max_size=20))
def test_folding_loses_nothing_but_line_ends(pasted: str, before: str, after: str) -> None:
    pastes = Pastes()
    folded = pastes.fold(pasted)
    assert pastes.expand(before + folded + after) == before + pasted.replace("\r\n", "\n").replace("\r", "\n") + after


# --- completion ---


@pytest.mark.parametrize(
    ("text", "row", "column", "expected"),
    [
        ("/mo", 0, 3, Token("command", "mo", 0)),
        ("/", 0, 1, Token("command", "", 0)),
        ("/mo", 1, 3, None),
        ("say /mo", 0, 7, None),
        ("/etc/hosts", 0, 10, None),
        ("see @src/a", 0, 10, Token("file", "src/a", 4)),
        ("see @src/a and", 0, 10, Token("file", "src/a", 4)),
        ("see @src/a and", 0, 14, None),
        ("me@example", 0, 10, None),
        ("@", 2, 1, Token("file", "", 0)),
        ('see @"my no', 0, 11, Token("file", "my no", 4)),
        ('@"my dir/"', 0, 10, Token("file", "my dir/", 0)),
        ('@"my notes.md"', 0, 14, None),
        ('@"my notes.md" and', 0, 18, None),
        ("@packages/@sc", 0, 13, Token("file", "packages/@sc", 0)),
        ("@me@example", 0, 11, None),
        (r'@"a \"q', 0, 7, Token("file", 'a "q', 0)),
        (r'@"a\"', 0, 5, Token("file", 'a"', 0)),
        ('@"a\\', 0, 4, Token("file", "a\\", 0)),
    ],
)
def test_the_token_before_the_cursor(text: str, row: int, column: int, expected: Token | None) -> None:
    assert token_before(text, row, column) == expected


def test_commands_are_ranked_by_prefix_then_alias_then_letters() -> None:
    assert [entry.insert for entry in completion.commands("mode", COMMANDS)] == ["/mode ", "/model"]
    assert [entry.insert for entry in completion.commands("tok", COMMANDS)] == ["/context"]
    assert [entry.insert for entry in completion.commands("", COMMANDS)] == ["/context", "/clear", "/mode ", "/model"]
    assert [entry.begins for entry in completion.commands("cntx", COMMANDS)] == [False]
    assert completion.commands("xyz", COMMANDS) == []
    effort = msgspec.structs.replace(COMMANDS[0], name="effort", aliases=(), under="model")
    assert len(completion.commands("", (*COMMANDS, effort))) == 4  # works, but no list shows it by itself
    assert completion.commands("ff", (*COMMANDS, effort)) == []
    assert [entry.insert.strip() for entry in completion.commands("Eff", (*COMMANDS, effort))] == ["/effort"]


def test_files_are_ranked_by_name_and_quoted_where_they_need_it() -> None:
    paths = ["src/view/main.py", "src/review.py", "docs/view.md", "a view.txt", "src/view/"]
    inserted = [entry.insert for entry in completion.files("view", paths)]
    assert inserted[:2] == ["@src/view/", "@docs/view.md "]
    assert '@"a view.txt" ' in inserted
    assert len(inserted) == 5


@pytest.mark.parametrize(
    "path", ["packages/@scope/a.ts", "it's.md", "a<b>.txt", "a b/", "src/a.py", "a(1).txt", 'a"b c".md', "a\\b \\"]
)
def test_a_completed_file_is_the_one_that_is_mentioned(path: str) -> None:
    (found,) = completion.files(path, [path])
    assert tuple(mentioned(f"see {found.insert}")) == (path,)


@pytest.mark.parametrize("path", ["two\nlines.txt", "___", "x" * 1_500])
def test_a_file_that_no_mention_can_name_is_not_offered(path: str) -> None:
    assert completion.files(path, [path]) == []


def test_letters_scattered_over_folders_and_what_is_no_source_come_later() -> None:
    paths = (
        "examples/colors/README",
        ".devcontainer/devcontainer.json",
        "src/click/core.py",
        "tests/test_core.py",
        "src/click/_color_render.py",
        "examples/core.py",
        "src/click/_core_types.py",
    )
    assert completion.best_files("core", paths, 9) == [
        "src/click/core.py",
        "src/click/_core_types.py",
        "examples/core.py",
        "tests/test_core.py",
        "src/click/_color_render.py",
        "examples/colors/README",
        ".devcontainer/devcontainer.json",
    ]


def test_source_comes_before_settings_lock_files_and_notes_without_an_ending() -> None:
    source = ("kilo.c", "Makefile", "src/main.py")
    rest = ("TODO", ".gitignore", "uv.lock", "package-lock.json", "pnpm-lock.yaml", "go.sum", "NEWS", "a/.eslintrc.js")
    assert completion.OrderedPaths((*rest, *source)).best("", 3) == ["kilo.c", "Makefile", "src/main.py"]


def test_many_paths_are_ranked_quickly() -> None:
    import time

    paths = [f"package{n % 97}/module{n % 31}/file_number_{n}.py" for n in range(50_000)]
    began = time.process_time()
    assert len(best("file_number_49999", paths, 8)) == 1
    assert time.process_time() - began < 2.0


def test_ordered_paths_find_the_same_as_a_ranking_of_all() -> None:
    import random

    chance = random.Random(1)
    parts = ["core", "view", "Test", "docs", "a", "ab", "README", "x.md", "test_core.py", "src", "ß", "_core", "__a"]
    paths = with_folders(
        ["/".join("_".join(chance.choices(parts, k=2)) for _ in range(chance.randint(1, 4))) for _ in range(300)]
    )
    ordered = completion.OrderedPaths(paths)
    for _ in range(examples(100, 300)):
        query = "".join(chance.choices("corevwtsda/._mß", k=chance.randint(0, 4)))
        assert ordered.best(query, 8) == completion.best_files(query, paths, 8), query


def test_a_key_among_many_paths_compares_few(monkeypatch: pytest.MonkeyPatch) -> None:
    last = examples(30_000, 100_000) - 1
    ordered = completion.OrderedPaths(f"package{n % 997}/sub/module_{n}.py" for n in range(last + 1))
    compared: list[str] = []
    score = completion.score
    monkeypatch.setattr(completion, "score", lambda query, name: compared.append(name) or score(query, name))
    assert ordered.best("m", 8)[0] == "package0/sub/module_0.py"
    assert ordered.best(f"module_{last}", 8) == [f"package{last % 997}/sub/module_{last}.py"]
    assert len(ordered.best("odule", 8)) == 8
    assert compared == []
    assert len(ordered.best("mdl", 8)) == 8
    assert len(compared) <= 2 * completion.MOST_SCATTERED


async def test_an_unchanged_list_of_files_is_not_ordered_again() -> None:
    now = 100.0
    found = [["a.py"], ["a.py"], ["a.py", "b.py"]]
    index = completion.FileIndex(lambda: found.pop(0), clock=lambda: now)
    seen: list[completion.OrderedPaths] = []
    for _ in range(3):
        done = asyncio.Event()
        index.refresh(done.set)
        await done.wait()
        seen.append(index.paths)
        now += completion.FRESH
    assert seen[0] is seen[1] is not seen[2]
    assert index.paths.best("", 8) == ["a.py", "b.py"]


async def test_a_first_listing_that_takes_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "SOON", 0.0)
    listed, now = threading.Event(), 100.0
    index = completion.FileIndex(lambda: ["a.py"] if listed.wait(PATIENCE) else [], clock=lambda: now)
    seen: asyncio.Queue[tuple[bool, list[str]]] = asyncio.Queue()
    index.refresh(lambda: seen.put_nowait((index.is_slow, index.paths.best("", 8))))
    assert await seen.get() == (True, [])
    listed.set()
    assert await seen.get() == (False, ["a.py"])
    now += completion.FRESH
    index.refresh(lambda: seen.put_nowait((index.is_slow, index.paths.best("", 8))))
    assert await seen.get() == (False, ["a.py"])


def test_the_walk_leaves_out_what_nobody_mentions(tmp_path: Path) -> None:
    for name in ("a.py", ".git/config", "node_modules/x.js", "src/deep/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert walk(tmp_path) == ["a.py", "src/deep/b.py"]
    assert with_folders(walk(tmp_path)) == ("a.py", "src/deep/b.py", "src/deep/", "src/")
    assert with_folders(["a.py", "src/", "src/b.py", "src/empty/"]) == ("a.py", "src/", "src/b.py", "src/empty/")


# --- line editing ---


@pytest.mark.parametrize(
    ("text", "column", "left", "right", "blank"),
    [
        ("one two", 7, 4, 7, 4),
        ("one two", 5, 4, 7, 4),
        ("one two  ", 9, 4, 9, 4),
        ("a.b_c", 5, 2, 5, 0),
        ("a.b_c", 2, 1, 5, 0),
        ("", 0, 0, 0, 0),
        ("  x", 2, 0, 3, 0),
        ("äöü ßx", 6, 4, 6, 4),
    ],
)
def test_words(text: str, column: int, left: int, right: int, blank: int) -> None:
    assert editor.word_left(text, column) == left
    assert editor.word_right(text, column) == right
    assert editor.blank_left(text, column) == blank


@pytest.mark.parametrize(
    ("line", "column", "expected"),
    [("a\\", 2, True), ("a\\\\", 3, False), ("a\\\\\\", 4, True), ("a\\b", 2, False), ("", 0, False)],
)
def test_continuation(line: str, column: int, expected: bool) -> None:
    assert editor.continues(line, column) is expected


def test_source_comes_before_docs_and_docs_before_tests() -> None:
    from swecli.tui.prompt.completion import files

    paths = [
        "tests/test_shop.py",
        "docs/shop.md",
        "src/shop.py",
        "shop.test.ts",
        "README.md",
        "src/longer/shop_window.py",
    ]
    assert [entry.label for entry in files("shop", paths)] == [
        "src/shop.py",
        "src/longer/shop_window.py",
        "docs/shop.md",
        "shop.test.ts",
        "tests/test_shop.py",
    ]
    assert [entry.label for entry in files("", paths)][:2] == ["src/shop.py", "src/longer/shop_window.py"]
