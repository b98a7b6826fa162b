"""The index beside a session: made in a process of its own, kept fresh, gone with the session."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import psutil
import pytest

from swecli.core.retrieval import project as project_module
from swecli.core.retrieval.building import command, make_index
from swecli.core.retrieval.index import build
from swecli.core.retrieval.indexing import documents, tree_of
from swecli.core.retrieval.project import ProjectIndex, refreshed
from swecli.core.workspace.search import module_folders
from tests.core.engine.support import until
from tests.core.retrieval.project import TOPICS, made
from tests.support.processes import words
from tests.support.waiting import PATIENCE

MANY = 200


def builders() -> list[psutil.Process]:
    """The processes of this run that make an index."""
    return [
        child for child in psutil.Process().children() if any("retrieval.building" in word for word in words(child))
    ]


def index_of(root: Path, place: Path | None) -> ProjectIndex:
    return ProjectIndex(root, place, str, dict(os.environ))


@pytest.mark.parametrize("others", [10, MANY])
async def test_a_first_message_waits_for_the_index_which_is_kept(tmp_path: Path, others: int) -> None:
    root, place = made(tmp_path / "p", others), tmp_path / "cache" / "p.index"
    project = index_of(root, place)
    found = await project.retrieval("render the total of an invoice", first_wait=PATIENCE)
    assert found is not None
    assert found.ranked[0].path == "src/billing/invoice.py"
    assert project.state.files == others + len(TOPICS) + 2
    assert place.exists()
    await project.close()
    await until(lambda: not builders(), "its end")


async def test_without_a_place_nothing_is_left(tmp_path: Path) -> None:
    project = index_of(made(tmp_path / "p", MANY), None)
    assert await project.retrieval("revoke a token", first_wait=PATIENCE) is not None
    await project.close()
    assert os.listdir(tmp_path) == ["p"]


async def test_closing_ends_the_process(tmp_path: Path) -> None:
    project = index_of(made(tmp_path / "p", MANY), tmp_path / "p.index")
    project.begin()
    await until(lambda: bool(builders()), "the process")
    await project.close()
    await until(lambda: not builders(), "its end")
    assert not (tmp_path / "p.index").exists()
    assert await project.retrieval("revoke a token", first_wait=0) is None


async def test_a_short_run_has_its_index_finished_for_the_next(tmp_path: Path) -> None:
    root, place = made(tmp_path / "p", MANY), tmp_path / "cache" / "p.index"
    first = index_of(root, place)
    assert await first.retrieval("revoke a token", first_wait=0) is None
    await first.close(finish=True)
    assert not builders()  # it is no child of ours
    await until(place.exists, "the index")
    again = index_of(root, place)
    assert await again.retrieval("revoke a token", first_wait=PATIENCE) is not None
    await again.close(finish=True)


async def test_what_nobody_asked_for_is_not_finished(tmp_path: Path) -> None:
    place = tmp_path / "p.index"
    project = index_of(made(tmp_path / "p", MANY), place)
    await project.close(finish=True)
    assert os.listdir(tmp_path) == ["p"]


async def test_a_run_waits_only_if_the_index_can_be_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, place = made(tmp_path / "p", MANY), tmp_path / "p.index"
    monkeypatch.setattr(project_module, "READY_FILES", MANY - 1)
    project = index_of(root, place)
    assert await project.retrieval("revoke a token", first_wait=PATIENCE, if_ready=True) is None
    await project.close()
    monkeypatch.setattr(project_module, "READY_FILES", 2 * MANY)
    project = index_of(root, place)
    assert await project.retrieval("revoke a token", first_wait=PATIENCE, if_ready=True) is not None
    await project.close()


def test_the_process_ends_when_its_session_is_gone(tmp_path: Path) -> None:
    request = {"root": str(made(tmp_path, MANY)), "place": str(tmp_path / "x.index"), "nice": 0}
    child = subprocess.Popen(command(module_folders()), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    child.stdin.write(json.dumps(request).encode() + b"\n")
    child.stdin.close()
    assert child.wait(timeout=PATIENCE) in (0, 3)
    assert child.stdout is not None
    child.stdout.close()


async def test_a_damaged_index_is_made_anew(tmp_path: Path) -> None:
    root, place = made(tmp_path / "p", 10), tmp_path / "p.index"
    place.write_bytes(b"swecli-index of another day")
    project = index_of(root, place)
    found = await project.retrieval("revoke a token", first_wait=PATIENCE)
    assert found is not None
    assert found.ranked[0].path == "src/auth/tokens.py"
    assert (tmp_path / "p.index.damaged").exists()
    await project.close()


async def test_a_place_that_cannot_be_written_serves_this_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    project = index_of(made(tmp_path / "p", 10), tmp_path / "file" / "p.index")
    assert await project.retrieval("revoke a token", first_wait=PATIENCE) is not None
    await project.close()


async def test_what_fails_in_the_process_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    project = index_of(made(tmp_path / "p", MANY), tmp_path / "file" / "p.index")
    assert await project.retrieval("revoke a token", first_wait=PATIENCE) is None
    assert "cannot build" in project.state.problem
    await project.close()


async def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swecli.core.retrieval.project.FRESH_WAIT", PATIENCE)
    monkeypatch.setattr("swecli.core.retrieval.project._LOOK_SECONDS", 0.0)
    root, place = made(tmp_path / "p", 10), tmp_path / "p.index"
    project = index_of(root, place)
    await project.retrieval("revoke a token", first_wait=PATIENCE)
    (root / "src" / "auth" / "tokens.py").write_text("class SessionVault:\n    def forget(self): pass\n")
    found = await project.retrieval("vault of sessions: forget")
    assert found is not None
    assert found.ranked[0].symbol == "SessionVault"
    await project.close()


def test_the_process_runs_none_of_the_projects_code(tmp_path: Path) -> None:
    for name in ("json.py", "zlib.py", "sitecustomize.py", "pathspec.py"):
        (tmp_path / name).write_text("raise SystemExit('ran')\n")
    place = tmp_path / "cache" / "x.index"
    request = {"root": str(tmp_path), "place": str(place)}
    with subprocess.Popen(
        command(module_folders()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(request).encode() + b"\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["files"] == len(make_index(tmp_path).files)
        child.stdin.close()


async def test_a_path_that_the_index_left_out_is_still_named(tmp_path: Path) -> None:
    root = made(tmp_path / "p", 10)
    (root / "far" / "off" / "in").mkdir(parents=True)
    (root / "far" / "off" / "in" / "away.py").write_text("x = 1\n")
    (root / "far" / "off" / "in" / ".env").write_text("KEY=1\n")
    (root / "link").symlink_to(root / "far" / "off" / "in")
    tree = tree_of(root, most=3)
    assert "far/off/in/away.py" not in tree.paths
    index = build(documents(root, tree.paths), folders=tree.folders, complete=tree.complete)
    opened, _ = refreshed(index, root)
    text = (
        f"mend ./far/off/in/away.py, {root}/far/off/in/away.py:7 but not far/off/in/.env, link/away.py, "
        "far/off/in/none.py or ../p/far/off/in/away.py"
    )
    assert [(one.path, one.line) for one in opened.retrieval(text).named if one.sure] == [("far/off/in/away.py", 7)]
    project = index_of(root, None)
    assert [one.path for one in await project.named("mend far/off/in/away.py and away.py")] == ["far/off/in/away.py"]
    await project.close()


async def test_a_look_at_the_disk_is_no_making_of_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swecli.core.retrieval.project._LOOK_SECONDS", 0.0)
    project = index_of(made(tmp_path / "p", 10), tmp_path / "p.index")
    project.begin()
    assert project.state.building
    await project.retrieval("revoke a token", first_wait=PATIENCE)
    project.begin()
    assert not project.state.building
    await project.close()
