"""The list of stored sessions, of this folder and of others."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from swecli.assembly.session_list import SessionList
from swecli.core.config.paths import user_paths
from swecli.core.git import GitFacts
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.events import Body, Event, ItemCompleted, ItemStarted, RewindUndone, Rewound
from swecli.core.protocol.messages import TextPart
from swecli.core.worktrees import place_of, worktrees_folder
from swecli.launch import LaunchOptions
from tests.core.sessions.support import open_store, user_turn


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "here"


def listed(home: Path, here: Path) -> SessionList:
    return SessionList(LaunchOptions(cwd=here), {"SWECLI_HOME": str(home)})


def store(home: Path, folder: Path, *texts: str) -> list[str]:
    """Store a session with each of these messages."""
    data = user_paths({"SWECLI_HOME": str(home)}).workspace_data(folder)
    data.mkdir(parents=True)
    made: list[str] = []
    with closing(open_store(data / "sessions.db")) as sessions:
        for text in texts:
            made.append(sessions.create(str(folder), "a/b", "1").id)
            sessions.append(user_turn(made[-1], 1, text))
            sessions.release(made[-1])
    return made


def test_every_session_of_the_folder_is_listed_and_found(tmp_path: Path, here: Path) -> None:
    made = store(tmp_path, here, "the oldest needle", *(f"number {n}" for n in range(220)))
    sessions = listed(tmp_path, here)
    assert {one.id for one in sessions.read()} == set(made)
    assert made[0] in sessions.search("needle")


def test_a_session_of_another_folder_says_how_to_continue_it(tmp_path: Path, here: Path) -> None:
    other, gone = tmp_path / "an other", tmp_path / "gone"
    other.mkdir()
    (there,), _ = store(tmp_path, other, "one"), store(tmp_path, gone, "two")
    away = {one.first: one.away for one in listed(tmp_path, here).read()}
    assert away["one"] == f"It belongs to another folder: swecli -C '{other}' -r {there}"
    assert away["two"] == f"Its folder no longer exists. If you moved it, run there: swecli sessions relink {gone}"


def test_the_name_of_a_worktree_is_of_use_only_in_its_own_repository(tmp_path: Path, here: Path) -> None:
    base, other = worktrees_folder(user_paths({"SWECLI_HOME": str(tmp_path)})), tmp_path / "other"
    for repository in (here, other):
        (repository / ".git").mkdir(parents=True)
        (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    own, foreign = (place_of(base, GitFacts(one, one / ".git", "main", None), "talk") for one in (here, other))
    foreign.mkdir(parents=True)
    (mine,), (theirs,) = store(tmp_path, own, "one"), store(tmp_path, foreign, "two")
    away = {one.first: one.away for one in listed(tmp_path, here).read()}
    assert away["one"] == f"It belongs to a worktree: swecli -w talk -r {mine}"
    assert away["two"] == f"It belongs to another folder: swecli -C {foreign} -r {theirs}"


def said(*texts: str) -> list[Body]:
    """A user message for each text, which is its id too."""
    bodies: list[Body] = []
    for text in texts:
        bodies += ItemStarted(text, "user"), ItemCompleted(text, "ok", (TextPart(text),))
    return bodies


@pytest.mark.parametrize(
    ("bodies", "shown"),
    [
        ([*said("a", "b", "c"), Rewound("b"), *said("d")], ["a", "d"]),
        ([*said("a", "b"), Rewound("b", scope="files"), *said("c")], ["a", "b", "c"]),
        ([*said("a", "b"), Rewound("b", name="w1"), *said("c"), RewindUndone("w1")], ["a", "b"]),
        ([*said("a", "b"), Rewound("b", name="w1"), *said("c"), RewindUndone("w1"), Rewound("b")], ["a"]),
    ],
    ids=["rewound", "files only", "undone", "again"],
)
def test_a_preview_has_no_messages_that_a_rewind_took_back(
    tmp_path: Path, here: Path, bodies: list[Body], shown: list[str]
) -> None:
    (name,) = store(tmp_path, here, "first")
    data = user_paths({"SWECLI_HOME": str(tmp_path)}).workspace_data(here)
    with closing(open_store(data / "sessions.db")) as sessions:
        sessions.append([Event(4 + number, 1.0, name, 1, body) for number, body in enumerate(bodies)])
    found = listed(tmp_path, here)
    (session,) = found.read()
    texts = [block.text for block in found.preview(session) if isinstance(block, TextBlock)]
    assert texts == [f"\u203a {text}" for text in ("first", *shown)][-len(texts) :]
    assert texts[-1] == f"\u203a {shown[-1]}"
