"""A file that a command replaces is the same loss however the command spells it: it asks where /undo cannot help."""

from __future__ import annotations

import gzip
import os
import struct
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from swecli.core.permissions import archive_names as module
from swecli.core.permissions.archive_names import archive_names
from swecli.core.permissions.types import Decision, Rule
from tests.support.shell_workspace import ShellWorkspace

OVERWRITES = (
    *(
        "echo x > README.md",
        "echo x | tee README.md",
        "tee -i -- README.md < package.json",
        "cp package.json README.md",
    ),
    *(
        "mv -f package.json README.md",
        "cp -t . src/README.md",
        "mv --target-directory=. src/README.md",
        "ln -sf a README.md",
    ),
    *("install -m 644 package.json README.md", "cp src/README.md .", "sort -o README.md a", "sort -uo README.md a"),
    *("sort --output=README.md a", "curl -so README.md http://localhost", "curl --output README.md http://localhost"),
    *(
        "curl -O http://localhost/README.md?x",
        "wget -qO README.md http://localhost",
        "awk '{ print > \"README.md\" }' a",
    ),
    *("sed -n 's/a/b/w README.md' a", "sed -n '/a/w README.md' a", "sed 'w README.md' a", "uniq a README.md"),
    *(
        "tar xf a.tar",
        "tar -xzf t.tgz --strip-components=1",
        "tar x -f a.tar -C .",
        "cd src && tar xvf ../t.tgz -C .. README.md",
    ),
    *("tar xf links.tar", "tar -xfa.tar", "tar -xf a.tar -C.", "tar -xf a.tar -C src --directory=.."),
    "tar xCf . a.tar",
    *(
        "gunzip -f a.gz",
        "gzip -dfk a.gz",
        "gzip -f a",
        "xz --decompress --force a.xz",
        "unzstd -qf a.zst",
        "bzip2 -f9 a",
    ),
    *("tar --extract --file=a.tar", "unzip -qo a.zip", "unzip -o a.zip -d .", "unzip -oj docs.zip"),
    *("split -l 5 a part.", "split a", "csplit a 5", "tar czf README.md src", "tar -c -f README.md src"),
    *(
        "sed -i 's/a.*/b/' README.md",
        "perl -pi -e 's/a.*/b/' README.md",
        "cd src && cp a ../README.md",
        "x=README.md; cp a $x",
    ),
)
KEEPS = (
    *("echo x > new.md", "echo x >> README.md", "tee -a README.md < a", "cp -n a README.md", "cp -b a README.md"),
    *("cp README.md new.md", "mv a src/new", "sort README.md", "sort -k 2 -o new.md README.md", "cp README.md docs"),
    *(
        "awk '{ print >> \"README.md\" }' a",
        "ln -s a README.md",
        "split -l 5 a other.",
        "tar tf README.md",
    ),
    *(
        "gunzip a.gz",
        "gzip -f src/README.md",
        "gunzip -fc a.gz",
        "xz -df a.gz",
        "zstd -f src/README.md",
        "gzip -tf a.gz",
    ),
    *("pytest --basetemp=new", "pytest --junitxml=new.xml", "ruff check -o new.txt", "go test -coverprofile=new ./..."),
    *("tar -xf a.tar -Cdocs", "tar xCf docs a.tar"),
    *("tar xf a.tar -C docs", "tar xkf a.tar", "tar tf a.tar", "tar xOf a.tar", "tar xf a.tar src/main.py"),
    *(
        "tar xf README.md",
        "tar xf none.tar",
        "unzip a.zip",
        "unzip -n a.zip",
        "unzip -o a.zip -d docs",
        "unzip -l a.zip",
    ),
    *("curl -s http://localhost/README.md", "sed -n '/w README/p' a", "install -d docs", "cp a empty", "ln -sf a link"),
)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    found = ShellWorkspace(tmp_path_factory.mktemp("outputs"))
    for name in ("a", "src/README.md", "part.aa", "xaa", "xx00", "a.gz", "a.xz", "a.zst", "a.bz2"):
        (found.root / name).write_text("text\n")
    (found.root / "empty").touch()
    for archive, mode in (("a.tar", "w"), ("t.tgz", "w:gz")):
        with tarfile.open(found.root / archive, mode) as tar:  # type: ignore[call-overload]
            for name in ("README.md", "src", "src/README.md"):
                tar.add(found.root / name, name, recursive=False)
            tar.add(found.root / "a", "src/a/new.py")
    with tarfile.open(found.root / "links.tar", "w") as tar:
        link = tarfile.TarInfo("README.md")
        link.type, link.linkname = tarfile.SYMTYPE, "a"
        tar.addfile(link)
    for archive, name in (("a.zip", "README.md"), ("docs.zip", "other/README.md")):
        with zipfile.ZipFile(found.root / archive, "w") as packed:
            packed.write(found.root / "README.md", name)
    return found


def auto(work: ShellWorkspace, command: str, *, restores: bool, rules: Sequence[str] = ()) -> Decision:
    allowed = tuple(Rule("allow", text, "user") for text in rules)
    known = {"sandbox": "full", "holds": True, "rules": allowed, "trust": "trusted"}
    return work.decide(command, work.policy(mode="auto", restores=lambda paths, command: restores, **known))


@pytest.mark.parametrize("command", OVERWRITES)
def test_what_would_be_lost_for_good_asks_however_it_is_spelled(work: ShellWorkspace, command: str) -> None:
    decision = auto(work, command, restores=False)
    assert (decision.outcome, bool(decision.danger)) == ("ask", True), decision.reason


@pytest.mark.parametrize("command", OVERWRITES)
def test_what_undo_restores_runs_in_the_sandbox(work: ShellWorkspace, command: str) -> None:
    decision = auto(work, command, restores=True)
    assert (decision.outcome, decision.contained) == ("allow", True), decision.reason


@pytest.mark.parametrize("command", KEEPS)
def test_what_is_kept_does_not_ask(work: ShellWorkspace, command: str) -> None:
    decision = auto(work, command, restores=False)
    assert decision.outcome == "allow", decision.reason


def test_the_members_that_replace_something_are_counted(work: ShellWorkspace) -> None:
    decision = work.decide("tar xf a.tar", work.policy(restores=lambda paths, command: False))
    assert decision.loss is not None
    assert decision.loss.line("them") == "overwrites 2 untracked files; /undo can't restore them"
    assert [path.removeprefix(f"{work.root}/") for path in decision.loss.paths] == ["README.md", "src/README.md"]


@pytest.mark.parametrize("member", [".git/hooks/pre-commit", "own/.git/config", "node_modules/.bin/eslint"])
@pytest.mark.parametrize("command", ["unzip -o hook.zip", "unzip hook.zip", "unzip -n hook.zip", "tar xkf hook.tar"])
def test_a_member_for_a_protected_place_is_a_danger_under_a_broad_rule(
    work: ShellWorkspace, command: str, member: str
) -> None:
    with zipfile.ZipFile(work.root / "hook.zip", "w") as packed:
        packed.writestr(member, "#!/bin/sh")
    with tarfile.open(work.root / "hook.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo(member))
    rules = (Rule("allow", f"Bash({command.split()[0]} *)", "user"),)
    told = work.decide(command, work.policy(rules=rules, restores=lambda paths, command: True))
    assert (told.outcome, bool(told.danger)) == ("ask", True), told.reason


def test_an_archive_is_listed_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = tmp_path / "bomb.tgz"
    with gzip.open(bomb, "wb") as file:
        member = tarfile.TarInfo("large")
        member.size = 1_000_000_000_000
        file.write(member.tobuf() + bytes(1_000_000))
    now = iter(range(1_000))
    assert archive_names(str(bomb), lambda: float(next(now))) is None
    assert next(now) < 5
    many = tmp_path / "many.zip"
    with zipfile.ZipFile(many, "w") as packed:
        for number in range(6):
            packed.writestr(f"f{number}", b"x")
    assert archive_names(str(many)) == tuple(f"f{number}" for number in range(6))
    os.mkfifo(tmp_path / "pipe")
    assert archive_names(str(tmp_path / "pipe")) is None
    monkeypatch.setattr(module, "MOST_NAMES", 5)
    assert archive_names(str(many)) is None


def test_a_zip_file_that_hides_its_size_is_not_listed(tmp_path: Path) -> None:
    archive = tmp_path / "large.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for number in range(50):
            member = zipfile.ZipInfo(f"f{number}")
            member.comment = bytes(65_000)
            packed.writestr(member, b"")
    data = archive.read_bytes()
    size, start = struct.unpack("<2L", data[-10:-2])
    large = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 50, 50, size, start)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(data) - 22, 1)
    small = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 46, 0, 0)
    archive.write_bytes(data[:-22] + large + locator + small)
    assert len(zipfile.ZipFile(archive).infolist()) == 50
    assert archive_names(str(archive)) is None


def test_the_question_of_another_mode_still_warns(work: ShellWorkspace) -> None:
    decision = work.decide("cp a README.md", work.policy(restores=lambda paths, command: True))
    assert decision.outcome == "ask"
    assert decision.loss is not None
    assert decision.loss.line("") == "overwrites 1 untracked file (/undo restores it)"
    assert (decision.counted, decision.told, decision.offers) == (True, True, ("Bash(cp a README.md)",))


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("rsync -av --delete src/ copy/", "deletes 2 untracked files"),
        ("rsync -a --delete src copy", "deletes 1 untracked file"),
        ("rsync -a --delete --exclude=x src/ copy/", None),
        ("rsync -a --delete src/ none/", None),
        ("rsync -d --delete src/ copy/", None),
    ],
)
def test_what_a_mirrored_folder_loses_is_counted(tmp_path: Path, command: str, line: str | None) -> None:
    work = ShellWorkspace(tmp_path)
    for name in ("copy/main.py", "copy/old/b.py", "copy/src/gone.py"):
        (work.root / name).parent.mkdir(parents=True, exist_ok=True)
        (work.root / name).write_text("text\n")
    decision = work.decide(command)
    assert decision.outcome == "ask"
    assert (decision.loss.clause if decision.loss is not None else None) == line


@pytest.mark.parametrize(
    "command",
    [
        "sed 'w /etc/new' a",
        "sed -n 's/a/b/w /etc/new' a",
        "awk '{ print > \"/etc/new\" }' a",
        "cp a /opt/new",
        "tee /opt/new",
    ],
)
def test_an_output_outside_the_workspace_asks_under_a_broad_rule(work: ShellWorkspace, command: str) -> None:
    rule = Rule("allow", f"Bash({command.split()[0]} *)", "user")
    decision = work.decide(command, work.policy(rules=(rule,), restores=lambda paths, command: True))
    assert (decision.outcome, "outside the workspace" in decision.danger) == ("ask", True), decision.reason
    inner = work.decide("sed 'w /dev/stdout' a", work.policy(rules=(Rule("allow", "Bash(sed *)", "user"),)))
    assert inner.outcome == "allow", inner.reason


def test_it_says_why_no_rule_is_offered(work: ShellWorkspace) -> None:
    notes = [auto(work, command, restores=False).offer_note for command in ("cp a README.md", "rm a", "rm -rf src")]
    assert notes == [
        "Can't be allowed in general: /undo could not restore what it overwrites.",
        "Can't be allowed in general: /undo could not restore what it deletes.",
        "Can't be allowed in general: swecli always asks about this.",
    ]


def test_only_the_files_that_are_replaced_are_asked_about(work: ShellWorkspace) -> None:
    asked: list[tuple[Sequence[str], str]] = []
    policy = work.policy(restores=lambda paths, command: not asked.append((tuple(paths), command)))
    work.decide("cp a README.md docs; tee src/main.py < a", policy)
    assert asked == [((str(work.root / "src/main.py"),), "cp a README.md docs; tee src/main.py < a")]


def test_a_rule_for_command_and_file_still_holds_when_the_file_has_content(work: ShellWorkspace) -> None:
    rules = ("Bash(pytest *)", "Edit(/README.md)")
    assert auto(work, "pytest > README.md", restores=True, rules=rules).rule is not None
    assert auto(work, "pytest > README.md", restores=False, rules=rules).outcome == "ask"


def test_a_rule_lets_no_edit_in_place_out_of_the_sandbox(work: ShellWorkspace) -> None:
    decision = auto(work, "sed -i 's/a.*/b/' README.md", restores=True, rules=("Bash(sed *)",))
    assert (decision.outcome, decision.contained) == ("allow", True)
    default = work.policy(rules=(Rule("allow", "Bash(sed *)", "user"),), restores=lambda paths, command: True)
    assert work.decide("sed -i 's/a.*/b/' README.md", default).outcome == "ask"


def test_an_output_outside_the_workspace_asks_even_if_it_can_be_undone(work: ShellWorkspace) -> None:
    assert auto(work, "echo x > /etc/hostname", restores=True).outcome == "ask"


GONE = (
    "rm a",
    "rm -f a && ls",
    "unlink a",
    "rm -- a part.aa",
    "mv a /tmp",
    "mv -t /tmp/swecli-none a",
    "mv src /tmp/swecli-none",
)


@pytest.mark.parametrize("command", GONE)
def test_a_file_that_would_be_gone_for_good_asks(work: ShellWorkspace, command: str) -> None:
    decision = auto(work, command, restores=False)
    assert (decision.outcome, bool(decision.danger)) == ("ask", True), decision.reason
    assert "/undo could not restore" in decision.reason
    assert auto(work, command, restores=True).outcome == "allow"
    unknown = work.policy(mode="auto", sandbox="full", holds=True, trust="trusted")
    assert work.decide(command, unknown).outcome == "allow", "nobody says what /undo covers"


@pytest.mark.parametrize("command", ["rm none", "rm empty", "mv a b", "mv a src", "rmdir docs"])
def test_what_loses_nothing_does_not_ask(work: ShellWorkspace, command: str) -> None:
    assert auto(work, command, restores=False).outcome == "allow"


TEMPORARY = (
    *(
        "make > /tmp/swecli-none.log 2>&1; tail -5 /tmp/swecli-none.log",
        "cat /tmp/swecli-none.log",
        "rm -f /tmp/swecli-none",
    ),
    *("rm -rf /tmp/swecli-none && mkdir /tmp/swecli-none && cp a /tmp/swecli-none/b && cat /tmp/swecli-none/b",),
)


@pytest.mark.parametrize("command", TEMPORARY)
def test_the_own_temporary_folder_of_a_full_sandbox_holds_nothing_of_yours(work: ShellWorkspace, command: str) -> None:
    decision = auto(work, command, restores=False, rules=("Bash(rm *)",))
    assert (decision.outcome, decision.contained) == ("allow", True), decision.reason
    landlock = work.policy(mode="auto", sandbox="partial", holds=True)
    assert [work.decide(command, policy).outcome for policy in (landlock, work.policy())] == ["ask", "ask"]


def test_a_file_in_the_real_temporary_folder_is_yours(work: ShellWorkspace) -> None:
    mine = work.outside / "mine.log"
    mine.write_text("mine\n")
    for command in (f"cat {mine}", f"rm -f {mine}", f"rm -rf {mine} /tmp/swecli-none", "rm -rf /tmp", "rm -f /tmp/*"):
        assert auto(work, command, restores=True).outcome != "allow", command
    assert auto(work, f"make > {mine}; tail {mine}", restores=True).outcome == "allow"
    for command in (
        "cat /tmp/../etc/hostname",
        "cat /tmp/swecli-none/../../etc/hostname",
        f"cat {mine} > /tmp/swecli-n",
    ):
        assert auto(work, command, restores=True).outcome == "ask", command
