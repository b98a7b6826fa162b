"""A write keeps what belongs to the file and refuses what it must not touch."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from swecli.core.workspace import atomic_write as module
from swecli.core.workspace.atomic_write import PREFIX, StaleFileError, atomic_write, sweep_temporary
from swecli.core.workspace.text_file import NotRegularError, TooLargeError, read_bytes


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def leftovers(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(PREFIX)]


def test_replaces_content_and_keeps_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_bytes(b"old")
    path.chmod(0o750)
    before = path.stat()
    written = atomic_write(path, b"new bytes", digest(b"old"))
    after = path.stat()
    assert path.read_bytes() == b"new bytes"
    assert stat.S_IMODE(after.st_mode) == 0o750
    assert after.st_ino != before.st_ino
    assert after.st_mtime_ns >= before.st_mtime_ns
    assert written.sha256 == digest(b"new bytes")
    assert not written.in_place
    assert leftovers(tmp_path) == []


def test_new_file_follows_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        atomic_write(tmp_path / "new", b"x", None)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert (tmp_path / "new").stat().st_nlink == 1
    assert leftovers(tmp_path) == []


def test_link_stays_a_link_and_its_target_changes(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to("target")
    atomic_write(link, b"new", digest(b"old"))
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_hard_links_stay_one_file(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"a longer old content")
    os.link(first, second)
    written = atomic_write(first, b"short", digest(b"a longer old content"))
    assert written.in_place
    assert second.read_bytes() == b"short"
    assert first.stat().st_ino == second.stat().st_ino


@pytest.mark.skipif(sys.platform != "linux", reason="extended attributes")
def test_extended_attributes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    atomic_write(path, b"new", digest(b"old"))
    assert os.getxattr(path, "user.note") == b"mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner")
def test_owner_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 1234, 4321)
    atomic_write(path, b"new", digest(b"old"))
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_changed_missing_or_appeared_file_is_stale(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"user edit")
    mtime = path.stat().st_mtime_ns
    with pytest.raises(StaleFileError):
        atomic_write(path, b"new", digest(b"as shown"))
    with pytest.raises(StaleFileError):
        atomic_write(path, b"new", None)
    with pytest.raises(StaleFileError):
        atomic_write(tmp_path / "gone", b"new", digest(b"x"))
    assert path.read_bytes() == b"user edit"
    assert path.stat().st_mtime_ns == mtime
    assert leftovers(tmp_path) == []


def test_change_between_read_and_rename_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    copy_attributes = module._copy_attributes

    def meanwhile(*args: object) -> None:
        path.write_bytes(b"someone else was here")
        copy_attributes(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_copy_attributes", meanwhile)
    with pytest.raises(StaleFileError):
        atomic_write(path, b"new", digest(b"old"))
    assert path.read_bytes() == b"someone else was here"
    assert leftovers(tmp_path) == []


def test_failed_write_in_place_puts_the_old_bytes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old content")
    os.link(path, tmp_path / "other")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        atomic_write(path, b"n", digest(b"old content"))
    assert path.read_bytes() == b"old content"


def test_special_files_are_refused_without_blocking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    listener = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(tmp_path)
    listener.bind("sock")
    try:
        for name, kind in (("pipe", "pipe"), ("folder", "directory"), ("sock", "socket")):
            with pytest.raises(NotRegularError, match=kind):
                atomic_write(tmp_path / name, b"x", None)
            with pytest.raises(NotRegularError, match=kind):
                read_bytes(tmp_path / name, 10)
        with pytest.raises(NotRegularError, match="character device"):
            read_bytes(Path("/dev/null"), 10)
    finally:
        listener.close()


def test_reading_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as stream:
        stream.truncate(6 << 30)
    with pytest.raises(TooLargeError):
        read_bytes(path, 1_000_000)


def test_sweep_removes_what_dead_writers_left(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = (f"{PREFIX}{dead.pid}-aa", f"{PREFIX}{os.getpid()}-bb", f"{PREFIX}x-cc", "mine")
    for name in names:
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (0, 0))
    fresh = tmp_path / f"{PREFIX}{dead.pid}-dd"
    fresh.write_bytes(b"")
    assert sweep_temporary(tmp_path) == (tmp_path / names[0],)
    assert sorted(os.listdir(tmp_path)) == sorted((*names[1:], fresh.name))


KILLS = 1_000 if int(os.environ.get("SWECLI_EXAMPLES", "0")) >= 500 else 8
"""1,000 in `make soak`."""


def test_killed_writers_leave_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [bytes([letter]) * 400_000 for letter in b"ab"]
    path.write_bytes(contents[0])
    script = (
        "import sys\nfrom hashlib import sha256\nfrom pathlib import Path\n"
        "from swecli.core.workspace.atomic_write import atomic_write\n"
        "path, turn = Path(sys.argv[1]), 1\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    old = path.read_bytes()\n"
        "    atomic_write(path, bytes([b'ab'[turn % 2]]) * 400_000, sha256(old).hexdigest())\n"
        "    turn += 1\n"
    )
    for trial in range(KILLS):
        writer = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        # A different moment of the loop each time, without measuring time.
        for _ in range(trial % 40 * 400):
            path.stat()
        writer.kill()
        writer.wait()
        writer.stdout.close()
        assert path.read_bytes() in contents
    for name in leftovers(tmp_path):
        os.utime(tmp_path / name, (0, 0))
    sweep_temporary(tmp_path)
    assert os.listdir(tmp_path) == ["file"]


def test_what_a_writer_left_that_is_known_to_be_gone_goes_at_once(tmp_path: Path) -> None:
    dead = [subprocess.Popen([sys.executable, "-c", ""]) for _ in range(2)]
    for one in dead:
        one.wait()
        (tmp_path / f"{PREFIX}{one.pid}-aa").write_bytes(b"")
    assert sweep_temporary(tmp_path, dead[0].pid) == (tmp_path / f"{PREFIX}{dead[0].pid}-aa",)
    assert os.listdir(tmp_path) == [f"{PREFIX}{dead[1].pid}-aa"]
    assert sweep_temporary(tmp_path, os.getpid()) == ()
