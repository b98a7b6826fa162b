"""A full disk under the whole program: no file of the user is cut, and every time the user is told."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import Program
from tests.support.waiting import PATIENCE

TRIALS = int(os.environ.get("SWECLI_FULL_DISKS", "3"))
"""100 in `make soak`."""
SIZE = 3_072
"""Kilobytes of the disk."""
OLD = "".join(f"line {number} of a file of the user\n" for number in range(3_000))
NEW = OLD.replace("line 7 of", "line seven of")
CHANGE = '{ path = "user.txt", old_string = "line 7 of", new_string = "line seven of" }'
SCRIPT = f"""
window = 128000
[[step]]
text = "Reading. {"word " * 2_000}"
call = [{{ tool = "read_file", arguments = {{ path = "user.txt", limit = 20 }} }}]
[[step]]
call = [{{ tool = "edit_file", arguments = {CHANGE} }}]
[[step]]
text = "Done. {"word " * 2_000}"
"""
# Mounts in a namespace of its own: what is filled is a small disk that nobody else sees and that ends with it.
INSIDE = """
set -e
[ "$(readlink /proc/self/ns/mnt)" != "$OUTSIDE" ]
mount -t tmpfs -o size=3072k tmpfs "$DISK"
[ "$(stat -f -c %T "$DISK")" = tmpfs ]
mkdir "$DISK/work" "$DISK/home"
cp "$TEMPLATE" "$DISK/work/user.txt"
cd "$DISK/work"
FREE=$(df -k --output=avail "$DISK" | tail -1)
head -c $(( (FREE - LEFT) * 1024 )) /dev/zero > "$DISK/ballast"
set +e
"$PYTHON" -m swecli.cli -p "change it" -m openai/m --yolo --output-format stream-json >"$OUT/stdout" 2>"$OUT/stderr"
echo $? >"$OUT/code"
cp "$DISK/work/user.txt" "$OUT/user.txt"
ls -A "$DISK/work" >"$OUT/names"
"""
_PRIVATE = ("unshare", "--user", "--map-root-user", "--mount")


def _can_mount() -> bool:
    probe = ("sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt")
    return (
        shutil.which("unshare") is not None and subprocess.run([*_PRIVATE, *probe], capture_output=True).returncode == 0
    )


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform != "linux", reason="mount namespaces are Linux's")
@pytest.mark.parametrize("trial", range(TRIALS))
def test_a_full_disk_cuts_no_file_and_is_told(tmp_path: Path, trial: int) -> None:
    if not _can_mount():
        pytest.skip("no private mount namespace here")
    left = random.Random(trial).choice((0, 8, 40, 100, 160, 220, 300)) if trial else 0
    disk, out, template = tmp_path / "disk", tmp_path / "out", tmp_path / "user.txt"
    disk.mkdir()
    out.mkdir()
    template.write_text(OLD)
    with LoopbackServer(parse_script(SCRIPT)) as server:
        program = Program(disk / "work", disk / "home", server.environment())
        named = {"DISK": str(disk), "OUT": str(out), "TEMPLATE": str(template), "LEFT": str(left)}
        outside = os.readlink("/proc/self/ns/mnt")
        subprocess.run(
            [*_PRIVATE, "sh", "-c", INSIDE],
            env={**program.environment, **named, "OUTSIDE": outside, "PYTHON": sys.executable},
            check=True,
            timeout=PATIENCE,
        )
    assert not any(disk.iterdir())  # nothing of it was outside
    text, said = (out / "user.txt").read_text(), (out / "stdout").read_text() + (out / "stderr").read_text()
    assert text in (OLD, NEW)
    assert (out / "names").read_text().split() == ["user.txt"]
    stored = "Cannot store the session" in said or "kept in memory only" in said or "can't be used" in said
    events = [json.loads(line) for line in (out / "stdout").read_text().splitlines()]
    failed = text == OLD and "No space left" in said
    assert stored or failed or (left and text == NEW), (left, said[-2000:])
    assert events or (out / "code").read_text().strip() != "0"
