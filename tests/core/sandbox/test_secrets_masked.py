"""What contained commands can't read: files that may hold secrets, in the workspace at any depth and below home, and
files that rules keep from being read."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.permissions.rules import ReadRules
from swecli.core.permissions.types import Rule
from swecli.core.sandbox import survey
from swecli.core.sandbox.launch import MASKS_HELPER, can_mask_many
from swecli.core.sandbox.plan import MAX_MASKED, MOST_MASKED, Request, mount_plan
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.sandbox.survey import Survey, Surveyor
from swecli.core.secret_names import secret_names
from swecli.core.workspace.process import ProcessResult, run_process
from tests.core.sandbox.fake_disk import FakeDisk
from tests.core.sandbox.support import SECRET, Grounds, contained, laid_out
from tests.support.waiting import PATIENCE

IN_WORKSPACE = """id_rsa server.pem config/.env deep/down/below/.env.production secrets/db_password
  conf/.aws/credentials src/wp-config.php terraform.tfvars
  .env~ sub/.ssh/known_hosts app/oauth_creds.json"""
BELOW_HOME = """.local/share/fish/fish_history .config/rclone/rclone.conf projects/other/.env work/a/prod.kubeconfig
  .m2/settings.xml .gradle/gradle.properties passwords.txt .config/gh/hosts.yml .docker/config.json"""
OPEN = """src/secrets.py .env.example tests/data/server.pem notes.txt design-tokens.json"""


@pytest.fixture
def grounds() -> Iterator[Grounds]:
    with laid_out() as made:
        for folder, names in (
            (made.work, f"{IN_WORKSPACE} {OPEN} private/plan.txt own.vault"),
            (made.home, BELOW_HOME),
        ):
            for name in names.split():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{SECRET} of {name}\n")
        yield made


def working(grounds: Grounds, path: str | None) -> Sandbox:
    sandbox = grounds.sandbox(path=path)
    if not sandbox.check().contains:
        pytest.skip(f"nothing contains commands here: {sandbox.state.text}")
    return sandbox


@pytest.mark.parametrize("path", [None, "/nowhere"], ids=["bubblewrap", "landlock"])
def test_a_contained_command_reads_no_secret_of_workspace_and_home(grounds: Grounds, path: str | None) -> None:
    sandbox = working(grounds, path)
    result = contained(
        sandbox, f"cat {grounds.work}/.env; grep -r {SECRET} {grounds.work} {grounds.home}", grounds.work
    )
    shown = {line.partition(":")[0] for line in result.output.splitlines() if line.endswith(tuple(OPEN.split()))}
    assert shown == {f"{grounds.work}/{name}" for name in OPEN.split()}
    for name in (*IN_WORKSPACE.split(), *BELOW_HOME.split()):
        assert f"of {name}\n" not in result.output
    masked = {str(path) for path in sandbox.masked}
    assert {f"{grounds.work}/config/.env", f"{grounds.home}/.ssh", f"{grounds.home}/projects/other/.env"} <= masked


def test_what_rules_keep_from_being_read_is_masked(grounds: Grounds) -> None:
    sandbox = working(grounds, None)
    rules = ReadRules(
        (Rule("deny", "Read(private/**)", "user"), Rule("ask", "Read(notes.txt)", "user")), (str(grounds.work),), ""
    )
    launch = sandbox.begin(grounds.work, full=True, rules=rules)
    denied = launch.plan.paths("denied", "hidden")
    launch.end()
    assert f"{grounds.work}/notes.txt" in denied
    assert any(path.startswith(f"{grounds.work}/private") for path in denied)
    plain = sandbox.begin(grounds.work, full=True)
    assert f"{grounds.work}/notes.txt" not in plain.plan.paths("denied")
    plain.end()
    sandbox.close()


def test_the_users_own_names_count(grounds: Grounds) -> None:
    names = secret_names(("*.vault", "!server.pem"))
    found = Surveyor((str(grounds.work),), "", lambda: names).survey().secrets
    assert f"{grounds.work}/own.vault" in found
    assert f"{grounds.work}/server.pem" not in found
    assert f"{grounds.work}/id_rsa" in found


def test_a_link_to_a_secret_masks_what_it_leads_to(grounds: Grounds) -> None:
    (grounds.work / "real.txt").write_text(SECRET)
    (grounds.work / "app" / ".env").symlink_to("../real.txt")
    assert SECRET not in contained(working(grounds, None), "cat app/.env real.txt", grounds.work).output


def masked(sandbox: Sandbox, command: str, grounds: Grounds, *rules: str) -> ProcessResult:
    """Run a command that may do everything but read what deny rules cover."""
    read = ReadRules(tuple(Rule("deny", text, "user") for text in rules), (str(grounds.work),), str(grounds.home))
    launch = sandbox.begin_masked(grounds.work, read)
    try:
        return asyncio.run(
            run_process(
                command,
                cwd=grounds.work,
                environment={**os.environ, **launch.environment},
                timeout=PATIENCE,
                prefix=launch.prefix,
                inherited=launch.inherited,
            )
        )
    finally:
        launch.end()


def test_a_masked_command_may_do_everything_but_read_what_rules_cover(grounds: Grounds) -> None:
    sandbox = working(grounds, None)
    if not sandbox.state.masks:
        pytest.skip(f"nothing masks files here: {sandbox.state.text}")
    rules = ("Read(private/**)", "Read(~/.ssh/**)", f"Read(/{grounds.outside}/victim)", "Read(*.vault)")
    outside = grounds.outside
    steps = (
        "python3 -c \"print(open('pri' + 'vate/plan.txt').read())\"",
        f"cat pri*/* own.v* {outside}/victim {outside}/folder/deep {grounds.home}/.ssh/* id_rsa",
        "cp -r . ../copy; cat ../copy/*/plan.txt ../copy/own.vault",
        "ln -s private p; cat p/plan.txt; mv private moved; cat moved/plan.txt",
        f"echo new > private/later.txt; echo x > {outside}/made; echo y > .git/config",
    )
    command = "\n".join(steps)
    result = masked(sandbox, command, grounds, *rules)
    for name in ("private/plan.txt", "own.vault"):
        assert f"of {name}" not in result.output
    assert f"{SECRET} of id_rsa" in result.output  # a secret, but no rule covers it
    assert result.output.count("keep") == 1  # the one that is not covered
    assert (outside / "made").read_text() == "x\n"
    assert (grounds.work / ".git" / "config").read_text() == "y\n"
    assert (grounds.work / "private" / "plan.txt").read_text().startswith(SECRET)
    assert not (grounds.work / "private" / "later.txt").exists()


def test_a_masked_command_sees_no_other_process_that_sees_the_files(grounds: Grounds) -> None:
    sandbox = working(grounds, None)
    if not sandbox.state.masks:
        pytest.skip(f"nothing masks files here: {sandbox.state.text}")
    result = masked(sandbox, f"cat /proc/[0-9]*/root{grounds.work}/private/plan.txt", grounds, "Read(private/**)")
    assert SECRET not in result.output


def test_rules_that_cover_nothing_cost_no_sandbox(grounds: Grounds) -> None:
    sandbox = working(grounds, None)
    if not sandbox.state.masks:
        pytest.skip(f"nothing masks files here: {sandbox.state.text}")
    read = ReadRules((Rule("deny", "Read(elsewhere/**)", "user"),), (str(grounds.work),), str(grounds.home))
    launch = sandbox.begin_masked(grounds.work, read)
    launch.end()
    assert launch.prefix == ()


def test_what_rules_cover_outside_workspace_and_home_is_masked_too(grounds: Grounds) -> None:
    read = ReadRules(
        (Rule("deny", f"Read(/{grounds.outside}/**)", "user"), Rule("ask", "Read(~/projects/**/.env)", "user")),
        (str(grounds.work),),
        str(grounds.home),
    )
    found = Surveyor((str(grounds.work),), str(grounds.home)).survey(read)
    assert found.ruled == (f"{grounds.home}/projects/other/.env", str(grounds.outside))


def test_what_nobody_looked_into_below_home_is_hidden_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(os.path.realpath(tmp_path)) / "home"
    work = home / "projects" / "mine"
    for name in ("projects/mine/src", "projects/other/a/b/c/d/e", ".local/bin", ".m2/repository/org", "data/set"):
        (home / name).mkdir(parents=True)
    (home / "projects/other/a/b/c/d/e/.env").write_text("x")
    for number in range(300):
        (home / "data" / "set" / f"{number}").mkdir()
    whole = Surveyor((str(work),), str(home), secret_names).survey()
    assert f"{home}/projects/other/a/b/c/d/e/.env" in whole.secrets
    assert (whole.unlooked, whole.open) == ((), ())
    monkeypatch.setattr(survey, "_MAX_HOME", 12)
    part = Surveyor((str(work),), str(home), secret_names, needed=(str(home / ".local"),)).survey()
    assert part.open == ()
    assert f"{home}/data/set" in part.unlooked or f"{home}/data" in part.unlooked
    looked_at = {f"{home}/projects", f"{home}/.local", str(work), str(home), f"{home}/.m2", f"{home}/.m2/repository"}
    assert not looked_at & set(part.unlooked)
    for secret in whole.secrets:
        assert secret in part.secrets or any(secret.startswith(f"{folder}/") for folder in part.unlooked)


def test_folders_full_of_secrets_are_hidden_as_wholes_and_the_rest_is_named() -> None:
    certificates = [f"/h/certs/{number}.pem" for number in range(3_000)]
    spread = [f"/w/{number}/.env" for number in range(100)]
    disk = FakeDisk(
        {**dict.fromkeys([*certificates, *spread], "x"), "/w/": "", "/p/": "", "/tmp/": "", "/dev/shm/": ""}
    )
    plan = mount_plan(Request(("/w",), "/h", "/p", found=Survey(secrets=(*certificates, *spread))), disk)
    assert "/h/certs" in plan.paths("hidden")
    assert set(spread) <= set(plan.paths("denied"))
    assert (len(plan.mounts) < MAX_MASKED, plan.uncovered) == (True, ())
    many = [f"/w/{number}/.env" for number in range(MAX_MASKED + 7)]
    disk = FakeDisk({**dict.fromkeys(many, "x"), "/w/": "", "/p/": "", "/tmp/": "", "/dev/shm/": ""})
    request = Request(("/w",), "/h", "/p", found=Survey(secrets=tuple(many)))
    plan = mount_plan(request, disk)
    assert plan.uncovered == (f"7 of {len(many)} files that may hold secrets, from {many[-7]} to {many[-1]}",)
    plan = mount_plan(replace(request, most_masked=MOST_MASKED), disk)
    assert (set(many) <= set(plan.paths("denied")), plan.uncovered) == (True, ())


@pytest.mark.parametrize("masks_only", [False, True])
def test_six_hundred_spread_secrets_are_all_hidden(grounds: Grounds, masks_only: bool) -> None:
    for number in range(600):
        folder = grounds.work / f"p{number}"
        folder.mkdir()
        (folder / ".env").write_text(f"CANARY-{number}\n")
        (folder / "code.py").write_text("harmless\n")
    sandbox = working(grounds, None)
    if not sandbox.state.masks or not can_mask_many((str(grounds.work),)):
        pytest.skip(f"not so many files can be hidden here: {sandbox.state.text}")
    assert (sandbox.state.level, sandbox.state.uncovered) == ("full", ())
    read = ReadRules((Rule("deny", "Read(**/.env)", "user"),), (str(grounds.work),), str(grounds.home))
    launch = sandbox.begin_masked(grounds.work, read) if masks_only else sandbox.begin(grounds.work, full=True)
    script = """
        cat */.env; tar cf - . ; head -1 p1/code.py; echo no > p5/.env || echo refused
        umount "$PWD/p5/.env"; rm -f p6/.env; mv p7/.env p7/x; mv p8 p9x; cat p9x/.env p7/x; echo new > p10/made
    """
    try:
        ended = subprocess.run(
            [*launch.prefix, "sh", "-c", script],
            cwd=grounds.work,
            pass_fds=launch.inherited,
            capture_output=True,
            check=False,
        )
    finally:
        launch.end()
    assert b"CANARY" not in ended.stdout + ended.stderr
    assert b"harmless" in ended.stdout
    assert b"refused" in ended.stdout
    assert {(grounds.work / f"p{number}" / ".env").read_text() for number in (5, 6, 7)} == {
        f"CANARY-{number}\n" for number in (5, 6, 7)
    }
    assert (grounds.work / "p10" / "made").read_text() == "new\n"


def test_a_helper_that_fails_leaves_the_command_unrun_and_says_why(tmp_path: Path) -> None:
    descriptor = os.memfd_create("masks")
    os.write(descriptor, f"{tmp_path}\0".encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    command = [sys.executable, "-I", "-S", str(MASKS_HELPER), str(descriptor), "--", "/bin/echo", "ran"]
    ended = subprocess.run(command, pass_fds=(descriptor,), capture_output=True, text=True, check=False)
    os.close(descriptor)
    assert (ended.returncode, ended.stdout) == (126, "")
    assert ended.stderr.startswith("swecli sandbox: ")
