from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.sandbox.bubblewrap import bwrap_argv, version_of
from swecli.core.sandbox.landlock import MAKE_REG, READ_FILE, WRITE_FILE, handled, ruleset, uncovered
from swecli.core.sandbox.plan import HELD_NAMES, Access, Plan, Request, SandboxOptions, mount_plan
from swecli.core.sandbox.seatbelt import profile
from swecli.core.sandbox.survey import Survey
from tests.core.sandbox.fake_disk import FakeDisk

REPOSITORY = {"/w/.git/config": "[core]\n", "/w/.git/HEAD": "", "/w/.git/hooks/": "", "/w/src/a.py": ""}
MACHINE = {"/tmp/": "", "/run/user/1/bus": "", "/var/tmp/": "", "/dev/shm/": "", "/usr/bin/env": "", "/p/": ""}


def request(roots: tuple[str, ...] = ("/w",), **more: object) -> Request:
    return Request(roots, "/home/u", "/p", **more)  # pyright: ignore[reportArgumentType]


def plan(files: Mapping[str, str], links: Mapping[str, str] | None = None, wish: Request | None = None) -> Plan:
    return mount_plan(wish or request(), FakeDisk({**MACHINE, **files}, links))


def access(made: Plan, path: str) -> Access | None:
    return next((mount.access for mount in made.mounts if mount.path == path), None)


def held(made: Plan) -> dict[str, bytes | None]:
    return {one.path: one.content for one in made.placeholders}


def test_the_workspace_is_writable_and_what_steers_git_is_not() -> None:
    made = plan({**REPOSITORY, "/w/.git/modules/sub/config": "", "/w/.git/worktrees/x/HEAD": ""})
    assert access(made, "/w") == "write"
    for name in ("hooks", "config", "modules", "worktrees"):
        assert access(made, f"/w/.git/{name}") == "read"
    assert access(made, "/w/.git") == "write", "pinned, so that it can't be moved away"
    assert held(made)["/w/.git/commondir"] == b".\n"
    assert held(made)["/w/.git/info"] is None
    assert not made.uncovered


def test_absent_names_are_held_as_empty_folders_which_git_does_not_show() -> None:
    made = plan({"/w/a": ""})
    assert {path for path, content in held(made).items() if content is None} == {
        f"/w/{name}" for name in (".git", *HELD_NAMES)
    }
    assert {".swecli", ".vscode", ".mcp.json", ".npmrc", ".pre-commit-config.yaml", ".husky", ".cursor"} <= {
        *HELD_NAMES
    }
    assert not {"rust-toolchain.toml", ".python-version", ".yarnrc.yml"} & {*HELD_NAMES}, "builds stumble over folders"


def test_present_tool_configuration_is_read_only_and_sources_are_not() -> None:
    made = plan({**REPOSITORY, "/w/.pre-commit-config.yaml": "", "/w/.husky/pre-push": "", "/w/.vscode/x": ""})
    for name in (".pre-commit-config.yaml", ".husky", ".vscode"):
        assert access(made, f"/w/{name}") == "read"
    assert access(made, "/w/src") is None


def test_hooks_in_the_work_tree_are_read_only() -> None:
    made = plan({**REPOSITORY, "/w/.git/config": '[core]\n\thooksPath = "tools/hooks"\n', "/w/tools/hooks/x": ""})
    assert access(made, "/w/tools/hooks") == "read"
    assert access(made, "/w/tools") == "write", "pinned"


def test_a_repository_inside_is_guarded_and_its_folder_can_not_be_moved() -> None:
    made = plan({**REPOSITORY, "/w/lib/.git/config": "", "/w/lib/.git/hooks/": ""})
    assert access(made, "/w/lib/.git/hooks") == "read"
    assert access(made, "/w/lib") == access(made, "/w/lib/.git") == "write"


def test_a_work_tree_may_write_the_repository_that_names_it_in_turn() -> None:
    files = {
        "/w/.git": "gitdir: /main/.git/worktrees/w\n",
        "/main/.git/worktrees/w/commondir": "../..\n",
        "/main/.git/worktrees/w/gitdir": "/w/.git\n",
        "/main/.git/config": "",
        "/main/.git/hooks/": "",
    }
    made = plan(files)
    assert access(made, "/main/.git") == access(made, "/main/.git/worktrees/w") == "write"
    assert access(made, "/main/.git/hooks") == access(made, "/main/.git/worktrees") == "read"
    assert access(made, "/main/.git/worktrees/w/commondir") == access(made, "/w/.git") == "read"


def test_a_file_that_points_to_someone_elses_repository_gets_nothing() -> None:
    files = {
        "/w/.git": "gitdir: /other/.git/worktrees/w\n",
        "/other/.git/worktrees/w/commondir": "../..\n",
        "/other/.git/worktrees/w/gitdir": "/elsewhere/.git\n",
        "/other/.git/config": "",
    }
    made = plan(files)
    assert not [mount for mount in made.mounts if mount.path.startswith("/other")]
    assert access(made, "/w/.git") == "read"


def test_a_submodule_may_write_its_own_directory() -> None:
    files = {"/w/.git": "gitdir: ../s/.git/modules/w\n", "/s/.git/modules/w/config": "[core]\n\tworktree = /w\n"}
    made = plan(files)
    assert access(made, "/s/.git/modules/w") == "write"
    assert access(made, "/s/.git/modules/w/config") == "read"


def test_what_can_not_be_guarded_is_named() -> None:
    assert plan({"/w/a": "", "/x/.git/config": ""}, {"/w/.git": "/x/.git"}).uncovered == ("/w/.git is a symbolic link",)
    assert plan({"/w/a": ""}, {"/w/.vscode": "/x"}).uncovered == ("/w/.vscode is a symbolic link",)
    home = plan({"/home/u/a": ""}, wish=request(("/home/u",)))
    assert home.uncovered == ("/home/u contains your home directory",)
    assert plan(REPOSITORY, wish=request(options=SandboxOptions(network=True))).uncovered == (
        "your settings open the network",
    )


def test_secrets_and_services_are_out_of_sight() -> None:
    files = {
        **REPOSITORY,
        "/w/.env": "K=1",
        "/w/.env.example": "K=",
        "/w/sub/.env.local": "",
        "/w/sub/.git/config": "",
        "/w/deep/config/.ssh/id": "",
        "/home/u/other/.env": "",
        "/home/u/.ssh/id": "",
        "/home/u/.netrc": "",
        "/data/swecli/db": "",
        "/srv/agent.sock": "",
        "/private/": "",
    }
    wish = request(
        own_dirs=("/data/swecli",),
        environment={"SSH_AUTH_SOCK": "/srv/agent.sock", "XDG_RUNTIME_DIR": "/", "DOCKER_HOST": "tcp://h:1"},
        options=SandboxOptions(hide=("/private",)),
        found=Survey(secrets=("/home/u/other/.env", "/w/sub/.env.local", "/w/deep/config/.ssh")),
    )
    made = plan(files, wish=wish)
    assert access(made, "/w/.env") == access(made, "/w/sub/.env.local") == "denied"
    assert access(made, "/home/u/other/.env") == "denied"
    assert access(made, "/w/deep/config/.ssh") == "hidden"
    assert access(made, "/w/.env.example") is None
    for path in ("/home/u/.ssh", "/home/u/.netrc", "/data/swecli", "/srv/agent.sock", "/private", "/run"):
        assert access(made, path) == "hidden", path
    assert access(made, "/") is None


def test_caches_are_writable_only_below_home() -> None:
    files = {**REPOSITORY, "/home/u/.npm/": "", "/home/u/.cargo/registry/": "", "/etc/x": "", "/home/u/go/pkg/mod/": ""}
    made = plan(files, wish=request(environment={"GOMODCACHE": "/etc", "CARGO_HOME": "/home/u/.cargo"}))
    assert access(made, "/home/u/.npm") == access(made, "/home/u/.cargo/registry") == "write"
    assert access(made, "/etc") is None
    assert access(made, "/home/u/.cargo") is None, "its programs and settings stay"


def test_swecli_in_the_workspace_is_read_only_there() -> None:
    made = plan({**REPOSITORY, "/w/.venv/bin/python": ""}, wish=request(own_code=("/w/.venv", "/usr/lib/x")))
    assert access(made, "/w/.venv") == "read"
    assert access(made, "/usr/lib/x") is None


def test_a_workspace_in_a_hidden_or_temporary_place_stays_in_sight() -> None:
    made = plan({"/run/w/a": "", "/tmp/v/b": ""}, wish=request(("/run/w", "/tmp/v")))
    paths = [mount.path for mount in made.mounts]
    assert paths.index("/run") < paths.index("/run/w")
    assert paths.index("/tmp") < paths.index("/tmp/v")


NAMES = st.sampled_from(["a", ".git", ".env", "b", ".vscode", "hooks", "config", ".ssh", "x y"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: "/w/" + "/".join(parts) + "/")


@settings(deadline=None, max_examples=60)
@given(st.lists(PATHS, max_size=8))
def test_parents_are_mounted_before_what_lies_in_them_and_nothing_twice(paths: list[str]) -> None:
    made = plan(dict.fromkeys(["/w/", *paths], ""))
    order = [mount.path for mount in made.mounts]
    assert len(set(order)) == len(order)
    for position, path in enumerate(order):
        assert not any(path.startswith(later + "/") for later in order[position + 1 :])
    present = {mount.path for mount in made.mounts}
    assert all(one.path in present for one in made.placeholders)


# --- bubblewrap -----------------------------------------------------------------------------------------------------


def options(argv: list[str], name: str) -> list[tuple[str, ...]]:
    return [tuple(argv[index + 1 : index + 3]) for index, word in enumerate(argv) if word == name]


def test_arguments_for_bubblewrap() -> None:
    made = plan({**REPOSITORY, "/w/.env": "", "/home/u/.ssh/id": "", "/home/u/.netrc": ""})
    argv = bwrap_argv("/usr/bin/bwrap", made, "/w", seccomp=5, status=6, lock=7)
    assert argv[0] == "/usr/bin/bwrap"
    assert {"--unshare-user", "--unshare-pid", "--unshare-net", "--disable-userns", "--die-with-parent"} < set(argv)
    assert options(argv, "--ro-bind")[0] == ("/", "/")
    assert ("/w", "/w") in options(argv, "--bind")
    assert ("/p", "/tmp") in options(argv, "--bind")
    assert ("/dev/null", "/w/.env") in options(argv, "--ro-bind"), "can't be opened"
    assert ("/dev/null", "/home/u/.netrc") in options(argv, "--dev-bind"), "looks empty"
    assert argv.index("--remount-ro") > max(i for i, word in enumerate(argv) if word in ("--bind", "--tmpfs"))
    assert ("/proc/sys", "/proc/sys") not in options(argv, "--ro-bind-try")
    assert ("/proc/sys", "/proc/sys") in options(bwrap_argv("bwrap", made, "/w", root=True), "--ro-bind-try")
    assert argv[-9:] == ["--seccomp", "5", "--json-status-fd", "6", "--sync-fd", "7", "--chdir", "/w", "--"]


def test_an_old_bubblewrap_and_an_open_network() -> None:
    made = plan(REPOSITORY, wish=request(options=SandboxOptions(network=True)))
    argv = bwrap_argv("bwrap", made, "/w", version=(0, 4, 1))
    assert "--disable-userns" not in argv
    assert "--unshare-net" not in argv


@pytest.mark.parametrize(
    ("text", "version"), [("bubblewrap 0.8.0", (0, 8, 0)), ("bubblewrap 0.11", (0, 11, 0)), ("hello", None), ("", None)]
)
def test_versions(text: str, version: tuple[int, int, int] | None) -> None:
    assert version_of(text) == version


# --- Landlock -------------------------------------------------------------------------------------------------------


def test_landlock_names_the_siblings_of_what_is_left_out() -> None:
    files = {**REPOSITORY, "/w/.env": "", "/home/u/.ssh/id": "", "/home/u/notes": "", "/etc/passwd": ""}
    disk = FakeDisk({**MACHINE, **files})
    rules = {grant.path: grant.rights for grant in ruleset(mount_plan(request(), disk), disk, 7).grants}
    assert rules["/w/src"] & MAKE_REG
    assert rules["/w/.git/HEAD"] & WRITE_FILE
    assert not rules["/w"] & (MAKE_REG | WRITE_FILE | READ_FILE)
    assert not rules["/w/.git/config"] & WRITE_FILE
    assert rules["/w/.git/config"] & READ_FILE
    assert rules["/etc"] & READ_FILE
    assert rules["/home/u/notes"] & READ_FILE
    assert not {"/w/.env", "/home/u/.ssh", "/run", "/dev", "/home", "/home/u"} & set(rules)
    assert rules["/p"] & MAKE_REG, "the temporary directory"


def test_what_each_version_of_landlock_can_refuse() -> None:
    assert handled(1, network=False) == (0x1FFF, 0, 0)
    assert handled(2, network=False)[0] == 0x3FFF
    assert handled(3, network=False)[0] == 0x7FFF
    assert handled(4, network=False) == (0x7FFF, 3, 0)
    assert handled(5, network=True) == (0xFFFF, 0, 0)
    assert handled(6, network=False) == (0xFFFF, 3, 3)
    assert "signals to other programs" in uncovered(5, network=False, filtered=True)
    assert "signals to other programs" not in uncovered(6, network=False, filtered=True)
    assert "truncating files outside" in uncovered(2, network=False, filtered=True)


# --- seatbelt -------------------------------------------------------------------------------------------------------


def test_the_profile_denies_what_the_plan_guards() -> None:
    made = plan({**REPOSITORY, "/w/.env": "", '/w/.vscode/"x': ""})
    text = profile(made)
    assert text.count("(") == text.count(")")
    assert '(allow file-write* (subpath "/w"))' in text
    assert text.index('(allow file-write* (subpath "/w"))') < text.index('(deny file-write* (subpath "/w/.git/hooks"))')
    assert '(deny file-read* file-write* (literal "/w/.env"))' in text
    assert "(deny network*)" in text
    assert '(deny file-write* (subpath "/w/.mcp.json"))' in text


def test_names_are_quoted_in_the_profile() -> None:
    assert '(subpath "/a\\"b\\\\c")' in profile(plan({'/a"b\\c/x': ""}, wish=request(('/a"b\\c',))))
