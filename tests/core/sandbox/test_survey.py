"""What is looked at before and after a contained command: sockets, hard links, and what steers other programs."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from swecli.core.permissions.rules import NO_READ_RULES
from swecli.core.sandbox import survey as module
from swecli.core.sandbox.launch import SandboxError
from swecli.core.sandbox.plan import Plan, Request, SandboxOptions, mount_plan
from swecli.core.sandbox.probe import Folders, SandboxWorkspace
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.sandbox.survey import Abandoned, Survey, Surveyor, undo
from tests.core.sandbox.fake_disk import FakeDisk
from tests.core.sandbox.support import Grounds, contained, laid_out
from tests.support.waiting import PATIENCE, wait_until


def survey(roots: tuple[str, ...]) -> Survey:
    return Surveyor(roots, "").survey()


MACHINE = {"/tmp/": "", "/dev/shm/": "", "/p/": ""}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "w"
    folder.mkdir()
    return folder


def put(folder: Path, name: str, text: str = "x") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# --- sockets ---------------------------------------------------------------------------------------------------------


def test_a_socket_that_somebody_bound_is_found_wherever_it_is(work: Path) -> None:
    with socket.socket(socket.AF_UNIX) as outside, socket.socket(socket.AF_UNIX) as inside:
        outside.bind(str(work.parent / "s"))
        inside.bind(str(work / "s"))
        found = survey((str(work),)).sockets
        assert str(work.parent / "s") in found
        assert str(work / "s") in found, "a server that runs outside is no part of the workspace"


def test_a_socket_below_home_is_found_even_if_another_namespace_bound_it(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(work.parent, ".config/tool/state.json")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(work.parent / ".config" / "tool" / "s"))
        service = str(work.parent / ".config" / "tool" / "s")
        surveyor = Surveyor((str(work),), str(work.parent))
        assert service in surveyor.survey().sockets
        monkeypatch.setattr(module, "_SOCKETS", "/nowhere")
        assert surveyor.survey().sockets == (service,)


def test_sockets_can_not_be_opened_in_the_sandbox() -> None:
    request = Request(("/w",), "/home/u", "/p", found=Survey(sockets=("/home/u/.tool/s", "/w2/s")))
    made = mount_plan(request, FakeDisk({**MACHINE, "/w/a": "", "/home/u/.tool/s": "", "/w2/s": ""}))
    assert {"/home/u/.tool/s", "/w2/s"} <= set(made.paths("denied"))


# --- hard links ----------------------------------------------------------------------------------------------------


def test_files_with_a_name_outside_are_found_and_others_are_not(work: Path) -> None:
    os.link(put(work.parent, "store"), work / "linked")
    os.link(put(work, "a"), work / "b")
    put(work, "c")
    assert survey((str(work),)).links == (str(work / "linked"),)


def test_folders_of_packages_are_looked_into_again_when_they_changed(work: Path) -> None:
    surveyor = Surveyor((str(work),), "")
    put(work, "node_modules/a/i.js")
    store = put(work.parent, "store")
    assert surveyor.survey().links == ()
    os.link(store, work / "node_modules" / "a" / "linked.js")
    linked = str(work / "node_modules" / "a" / "linked.js")
    assert surveyor.survey().links == surveyor.survey().links == (linked,)
    os.unlink(linked)
    assert surveyor.survey().links == ()


def planned_links(*links: str, whole: bool = True) -> tuple[set[str], tuple[str, ...]]:
    files = {**MACHINE, "/w/a": "", "/w/node_modules/.vite/": "", **dict.fromkeys(links, "")}
    made = mount_plan(Request(("/w",), "/home/u", "/p", found=Survey(links=links, whole=whole)), FakeDisk(files))
    return set(made.paths("read")), made.uncovered


def test_such_files_are_read_only_by_themselves_or_with_the_folder_of_a_package_manager() -> None:
    assert "/w/src/x" in planned_links("/w/src/x")[0]
    assert "/w/node_modules/.pnpm" in planned_links("/w/node_modules/.pnpm/a/i.js", "/w/node_modules/.pnpm/b/i.js")[0]
    assert "/w/.venv/lib/site-packages" in planned_links("/w/.venv/lib/site-packages/x.py")[0]
    assert "/w/node_modules" in planned_links("/w/node_modules/a/i.js")[0]
    assert planned_links("/w/src/x")[1] == ()


def test_too_many_of_them_or_too_large_a_workspace_is_said() -> None:
    many = tuple(f"/w/src/{number}" for number in range(65))
    assert "65 files such as /w/src/0 also have names outside" in planned_links(*many)[1][0]
    assert "too many files" in planned_links(whole=False)[1][0]


def objects(repository: str) -> tuple[str, ...]:
    return tuple(f"{repository}/.git/objects/{number:02x}/f" for number in range(65))


def test_what_a_local_clone_shares_is_named_with_the_remedy() -> None:
    def planned_at(*links: str) -> Plan:
        found = Survey(links=links)
        return mount_plan(Request(("/w",), "/home/u", "/p", found=found), FakeDisk({**MACHINE, "/w/.git/": ""}))

    plan = planned_at(*objects("/w"))
    assert plan.uncovered == ("65 files in /w/.git/objects, shared with the repository it was cloned from",)
    assert "`git repack -a -d -k`" in plan.advice
    assert "`git -C '/w/a b' repack -a -d -k`" in planned_at(*objects("/w/a b")).advice
    assert planned_at(*objects("/w"), *(f"/w/src/{number}" for number in range(65))).advice == ""
    few = planned_at(*objects("/w"), "/w/src/x")
    assert "/w/src/x" in few.paths("read"), "other files come first"
    assert planned_at(*objects("/w")[:64]).uncovered == ()


def test_a_workspace_that_is_too_large_is_not_wholly_known(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(work, "a")
    put(work, "b")
    assert survey((str(work),)).whole
    monkeypatch.setattr(module, "MAX_ENTRIES", 1)
    assert not survey((str(work),)).whole


# --- what steers other programs --------------------------------------------------------------------------------------

APPEARS = """.claude/settings.json .husky/pre-commit .cargo/config.toml .npmrc sub/.vscode/tasks.json deep/er/.envrc
  sub/.git/hooks/pre-commit .cursor/mcp.json lefthook.yml .nvim.lua sub/.swecli/config.toml
  sub/.swecli/memory/a.md sub/.swecli/playbook.jsonl sub/.swecli/OPENCLI.md"""
STAYS = """src/main.py node_modules/.bin/tsc node_modules/x/.npmrc .venv/bin/python .github/workflows/ci.yml
  sub/.git/HEAD sub/.git/hooks/pre-commit.sample sub/.git/objects/ab/cd"""


def test_what_appeared_is_taken_away_and_kept_elsewhere(work: Path) -> None:
    before = survey((str(work),)).steering
    for name in (*APPEARS.split(), *STAYS.split()):
        put(work, name, f"of {name}")
    put(work, "sub/.git/config", "[core]\n\tbare = false\n")
    put(work, "other/.git/config", "[core]\n\tfsmonitor = ./x\n")
    keep = work.parent / "kept"
    undone = undo(before, survey((str(work),)).steering, keep)
    expected = {str(work / name) for name in APPEARS.split()} | {str(work / "other/.git/config")}
    assert set(undone) == expected
    assert not any(Path(path).exists() for path in undone)
    assert all((work / name).exists() for name in (*STAYS.split(), "sub/.git/config"))
    assert (keep / str(work / ".npmrc").lstrip("/")).read_text() == "of .npmrc"


def test_what_was_changed_is_put_back_and_what_was_not_stays(work: Path) -> None:
    tasks, other = put(work, "sub/.vscode/tasks.json", "old"), put(work, "sub/.envrc", "same")
    before = survey((str(work),)).steering
    tasks.write_text("new")
    assert undo(before, survey((str(work),)).steering, work.parent / "kept") == (str(tasks),)
    assert (tasks.read_text(), other.read_text()) == ("old", "same")


@pytest.mark.parametrize(("before", "after"), [(0o755, 0o755), (0o600, 0o600), (0o644, 0o6777)])
def test_what_is_put_back_runs_and_is_read_as_before(work: Path, before: int, after: int) -> None:
    hook = put(work, "sub/.husky/pre-commit", "old")
    hook.chmod(before)
    known = survey((str(work),)).steering
    assert str(hook) in known
    hook.write_text("new")
    hook.chmod(after)
    undo(known, survey((str(work),)).steering, work.parent / "kept")
    assert hook.read_text() == "old"
    assert hook.stat().st_mode & 0o7777 == after & 0o755


def test_undoing_follows_no_link(work: Path) -> None:
    victim = put(work.parent, "victim/.npmrc", "keep")
    (work / "sub").symlink_to(victim.parent)
    assert undo({}, {str(work / "sub" / ".npmrc"): b"x"}, work.parent / "kept") == ()
    assert victim.read_text() == "keep"
    (work / ".npmrc").symlink_to(victim)
    assert undo({}, survey((str(work),)).steering, work.parent / "kept") == (str(work / ".npmrc"),)
    assert victim.read_text() == "keep"


# --- looking again ---------------------------------------------------------------------------------------------------


def test_a_folder_is_listed_again_only_when_it_changed(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SETTLED", 0)
    put(work, "sub/a")
    put(work, "other/a")
    surveyor = Surveyor((str(work),), "")
    surveyor.survey()
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (listed.append(path), scandir(path))[1])
    surveyor.survey()
    surveyor.steering()
    assert listed == []
    appear(work / "sub", ".envrc")
    assert list(surveyor.steering()) == [str(work / "sub" / ".envrc")]
    assert listed == [str(work / "sub")]


def appear(folder: Path, name: str) -> None:
    """Make a file at a time that differs from that of the folder's last change."""
    before = folder.stat().st_ctime_ns
    while folder.stat().st_ctime_ns == before:
        (folder / name).unlink(missing_ok=True)
        put(folder, name)


def test_a_time_of_change_that_was_set_back_hides_nothing(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SETTLED", 0)
    folder = put(work, "sub/a").parent
    surveyor = Surveyor((str(work),), "")
    surveyor.survey()
    state = folder.stat()
    appear(folder, ".envrc")
    os.utime(folder, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert str(folder / ".envrc") in surveyor.steering()


def test_a_folder_that_changed_just_now_is_listed_again(work: Path) -> None:
    surveyor = Surveyor((str(work),), "")
    assert surveyor.survey().steering == {}
    put(work, ".envrc")
    put(work, "sub/.envrc")
    assert set(surveyor.steering()) == {str(work / ".envrc"), str(work / "sub" / ".envrc")}


def test_a_second_name_outside_shows_although_its_folder_did_not_change(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SETTLED", 0)
    file = put(work, "sub/a")
    surveyor = Surveyor((str(work),), "")
    assert surveyor.survey().links == ()
    os.link(file, work.parent / "outside")
    assert surveyor.survey().links == (str(file),)


# --- in a real sandbox -----------------------------------------------------------------------------------------------


@pytest.fixture
def grounds() -> Iterator[Grounds]:
    with laid_out() as made:
        yield made


def full(grounds: Grounds) -> Sandbox:
    sandbox = grounds.sandbox()
    if sandbox.check().level != "full":
        pytest.skip(f"no full sandbox here: {sandbox.state.text}")
    return sandbox


def test_the_sandbox_is_full_as_soon_as_nothing_is_shared(grounds: Grounds) -> None:
    store = put(grounds.base, "store")
    links = [Path(path) for path in objects(str(grounds.work))]
    full(grounds).close()
    for path in links:
        path.parent.mkdir(parents=True)
        os.link(store, path)
    sandbox = grounds.sandbox()
    assert (sandbox.check().level, sandbox.state.closable) == ("partial", True)
    for path in links:
        path.unlink()
    assert (sandbox.check().level, sandbox.state.advice) == ("full", "")
    sandbox.close()


def test_a_service_below_home_can_not_be_reached(grounds: Grounds) -> None:
    sandbox = full(grounds)
    with socket.socket(socket.AF_UNIX) as service:
        # Bound by a name that leads nowhere afterwards, as from another namespace.
        short = Path("/tmp") / f"swecli-{os.getpid()}"
        short.symlink_to(grounds.home)
        try:
            service.bind(str(short / "tool.sock"))
        finally:
            short.unlink()
        service.listen()
        service.setblocking(False)
        code = f"import os, socket; os.chdir({str(grounds.home)!r}); socket.socket(socket.AF_UNIX).connect('tool.sock')"
        result = contained(sandbox, f'python3 -c "{code}"', grounds.work, full=True)
        assert result.exit_status != 0
        with pytest.raises(BlockingIOError):
            service.accept()


def test_a_command_that_plants_a_setting_is_undone_and_said(grounds: Grounds) -> None:
    sandbox = full(grounds)
    launch = sandbox.begin(grounds.work, full=True)
    put(grounds.work, "sub/.vscode/tasks.json")
    blocked = launch.blocked("", 0)
    launch.end()
    sandbox.close()
    assert "sub/.vscode/tasks.json, which controls other programs; swecli reverted that" in blocked
    assert not (grounds.work / "sub" / ".vscode" / "tasks.json").exists()


def test_a_file_with_a_name_outside_is_not_written_through(grounds: Grounds) -> None:
    sandbox = full(grounds)
    victim = grounds.outside / "victim"
    os.link(victim, grounds.work / "source" / "linked")
    result = contained(sandbox, "echo changed > source/linked; echo fine > source/other", grounds.work, full=True)
    assert "Read-only" in result.output
    assert victim.read_text() == "keep\n"
    assert (grounds.work / "source" / "other").read_text() == "fine\n"


def test_what_the_user_agreed_to_while_a_contained_command_runs_stays(grounds: Grounds) -> None:
    sandbox = full(grounds)
    launch = sandbox.begin(grounds.work, full=True)
    agreed = grounds.work / "sub" / ".vscode" / "tasks.json"
    sandbox.expect((str(agreed),))
    put(grounds.work, "sub/.vscode/tasks.json")
    planted = put(grounds.work, "sub/.envrc")
    wait_until(lambda: not planted.exists())
    assert agreed.exists()
    sandbox.accept((str(agreed),))
    assert list(launch.undone()) == [str(planted)]
    launch.end()
    sandbox.close()
    assert agreed.exists()


def test_an_abandoned_survey_ends_at_the_next_folder(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        put(work, f"{number}/file")
    surveyor = Surveyor((str(work),), "")
    listed: list[str] = []
    listing = module._listed

    def abandons(path: str, *rest: Any) -> Any:
        listed.append(path)
        surveyor.abandon()
        return listing(path, *rest)

    monkeypatch.setattr(module, "_listed", abandons)
    with pytest.raises(Abandoned):
        surveyor.survey()
    assert len(listed) == 1
    assert list(surveyor.steering()) == [], "what commands left behind can still be looked at"


def test_a_sandbox_that_is_abandoned_knows_nothing_and_begins_nothing(work: Path) -> None:
    place = SandboxWorkspace((str(work),), "", {})
    sandbox = Sandbox(SandboxOptions(), place, Folders(work.parent / "state"))
    sandbox.abandon()
    assert not sandbox.check().checked
    with pytest.raises(SandboxError, match="the session has ended"):
        sandbox._enter(NO_READ_RULES)
    sandbox.close()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[socket.socket]:
    """A program outside that listens on a socket ``own.sock`` in a folder."""
    with socket.socket(socket.AF_UNIX) as service:
        before = os.getcwd()
        os.chdir(folder)  # addresses of sockets must be short
        try:
            service.bind("own.sock")
        finally:
            os.chdir(before)
        service.listen()
        service.setblocking(False)
        yield service


CONNECT = "import os, socket; os.chdir({!r}); socket.socket(socket.AF_UNIX).connect('own.sock')"


@pytest.mark.parametrize("place", ["work", "home"])
def test_a_service_that_begins_while_a_command_runs_can_not_be_reached(grounds: Grounds, place: str) -> None:
    sandbox, folder = full(grounds), grounds.base / place
    begun, go_on = grounds.work / "source" / "begun", grounds.work / "source" / "go_on"
    launch = sandbox.begin(grounds.work, full=True)
    command = f'touch {begun}; until [ -e {go_on} ]; do :; done; exec python3 -c "{CONNECT.format(str(folder))}"'
    argv = [*launch.prefix, "bash", "-c", command]
    environment = {**os.environ, **launch.environment}
    process = subprocess.Popen(argv, pass_fds=launch.inherited, env=environment, stderr=subprocess.PIPE, text=True)
    wait_until(begun.exists)
    with serving(folder) as service:
        go_on.touch()
        assert "Operation not permitted" in process.communicate(timeout=PATIENCE)[1]
        with pytest.raises(BlockingIOError):
            service.accept()
    launch.end()
    sandbox.close()


def test_commands_may_use_socket_pairs_and_their_own_network(grounds: Grounds) -> None:
    code = (
        "import socket; a, b = socket.socketpair(); a.send(b'x'); socket.create_server(('127.0.0.1', 0)); print('ok')"
    )
    assert contained(full(grounds), f'python3 -c "{code}"', grounds.work, full=True).output == "ok\n"


def test_with_unix_sockets_the_sandbox_is_partial_and_says_why(grounds: Grounds) -> None:
    full(grounds)
    sandbox = grounds.sandbox(options=SandboxOptions(mode="on", unix_sockets=True))
    state = sandbox.check()
    assert (state.level, state.contains) == ("partial", False)
    assert state.uncovered == ("Unix sockets that programs open while a command runs",)
    with serving(grounds.work) as service:
        refused = contained(sandbox, f'python3 -c "{CONNECT.format(str(grounds.work))}"', grounds.work)
        assert refused.exit_status != 0
        with pytest.raises(BlockingIOError):
            service.accept()
    inside = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('made.sock'); s.listen(); "
        "socket.socket(socket.AF_UNIX).connect('made.sock'); print('connected')"
    )
    assert "connected" in contained(sandbox, f'python3 -c "{inside}"', grounds.work).output
