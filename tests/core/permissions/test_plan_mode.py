"""Tricks that would write in plan mode, tried for real through the calls of a session: the tree stays as it was."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from swecli.assembly.tool_batch import tool_batch

TRICKS = [
    *("touch new", "echo x > README.md", "echo x >> README.md", "echo x | tee README.md", "cat README.md > copy"),
    *(
        "sed -i s/a/b/ README.md",
        "sed -n 'w out' README.md",
        "sed 's/a/b/w out' README.md",
        "sed 1e\\ touch\\ new README.md",
    ),
    *("awk 'BEGIN{system(\"touch new\")}'", "awk '{print > \"out\"}' README.md", 'awk \'BEGIN{print "x" | "sh"}\''),
    *("find . -fprintf out x", "find . -name README.md -delete", "find . -exec touch new {} +", "find . -fls out"),
    *("sort -o README.md README.md", "sort --output=out README.md", "uniq README.md out", "shuf -o out README.md"),
    *(
        "tar cf x.tar README.md",
        "tar xf x.tar",
        "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=touch\\ new .",
    ),
    *(
        "git add .",
        "git commit -am x",
        "git checkout -b y",
        "git -c alias.x='!touch new' x",
        "git config a.b c",
        "git tag v1",
    ),
    *(
        "git -c core.pager='touch new' log",
        "git diff --output=out",
        "git stash",
        "git grep -Otouch a",
        "git branch new",
    ),
    *(
        "rg --pre 'touch new' a",
        "fd -x touch new",
        "xargs touch new < README.md",
        "ls | xargs rm",
        "dd if=README.md of=out",
    ),
    *(
        "cp README.md new",
        "mv README.md new",
        "ln -s README.md new",
        "mkdir new",
        "install README.md new",
        "chmod 777 README.md",
    ),
    *(
        'python3 -c \'open("new","w")\'',
        "perl -e 'open F,\">new\"'",
        'node -e \'require("fs").writeFileSync("new","")\'',
    ),
    *(
        "bash -c 'touch new'",
        "eval 'touch new'",
        "sh <<EOF\ntouch new\nEOF",
        "env touch new",
        "nice touch new",
        "command touch new",
    ),
    *(
        "cat <<EOF > new\nx\nEOF",
        "printf x>new",
        ": >new",
        "exec >new",
        "{ echo x; } >new",
        "(touch new)",
        "echo $(touch new)",
    ),
    *(
        "echo `touch new`",
        "cat <(touch new)",
        "X=$(touch new)",
        "[[ -n $(touch new) ]]",
        "ls; touch new",
        "ls && touch new",
    ),
    *(
        "ls\ntouch new",
        "ls & touch new",
        "truncate -s 0 README.md",
        "rm README.md",
        "unlink README.md",
        "vim -c ':w new' -c q",
    ),
    *(
        "make",
        "npm run x",
        "pip install .",
        "curl -o new file:///etc/hosts",
        "wget -O new http://127.0.0.1:9",
        "rsync -a . new/",
    ),
    *(
        'ta""r cf x.tar README.md',
        "$'touch' new",
        "t{ou,}ch new",
        "\\touch new",
        "ed -s README.md <<< w",
        "patch < README.md",
    ),
    *(
        "tree -Lo 1 new",
        "tree -L1o new",
        "tree -Po '*.md' new",
        "tree -o new",
        "xxd README.md new",
        "xxd -r README.md new",
    ),
    *(
        "sdiff -o new README.md Makefile",
        "iconv -o new README.md",
        "csplit README.md 1",
        "split README.md",
        "gzip -k README.md",
    ),
    *(
        "awk '{print $1/2 > \"new\"}' README.md",
        "awk '/a|b/ {print > \"new\"}' README.md",
        "sed 's/[\\t]*/x/w new' README.md",
    ),
    *(
        "sed -n '/[a]/w new' README.md",
        "find . -fprint0 new",
        "find . -name README.md -ok rm {} +",
        "echo x >| README.md",
    ),
    *(
        "echo x 1<>README.md",
        "exec 3>new",
        "echo x >& new",
        "echo x &>> new",
        "cat README.md |& tee new",
        ">new cat README.md",
    ),
    *("for f in new; do touch $f; done", "if true; then touch new; fi", "while read x; do touch new; done < README.md"),
    *("f() { touch new; }; f", "trap 'touch new' EXIT", "coproc touch new", "x='a[$(touch new)]'; echo $((x))"),
    *(
        "printf -v 'a[$(touch new)]' x",
        "test -v 'a[$(touch new)]'",
        "mapfile -C 'touch new' -c 1 < README.md",
        "hash -p /bin/touch ls; ls new",
    ),
    *(
        "alias ls='touch new'; ls",
        "PATH=.:$PATH; ls > new",
        "git worktree add new",
        "git format-patch -1",
        "git archive -o new HEAD",
    ),
    *(
        "git bundle create new HEAD",
        "git init new",
        "git hash-object -w README.md",
        "git update-ref refs/heads/y HEAD",
        "git notes add -m x",
    ),
    *(
        "mktemp -p .",
        "mkfifo new",
        "cmake -E touch new",
        "tar --create --file new README.md",
        "base64 README.md > new",
        "ls !$ > new",
    ),
]
PATCH = "*** Begin Patch\n*** Add File: new\n+x\n*** Delete File: README.md\n*** End Patch"
EDITS = [
    {"name": "apply_patch", "arguments": {"input": PATCH}},
    {"name": "write_file", "arguments": {"path": "README.md", "content": "x"}},
    {"name": "write_file", "arguments": {"path": ".swecli/memory/x.md", "content": "x"}},
    {"name": "run_command", "arguments": {"command": "touch new", "outside": True}},
    {"name": "run_command", "arguments": {"command": "touch new", "background": True}},
    {"name": "write_file", "arguments": {"path": "new.txt", "content": "x"}},
    {"name": "edit_file", "arguments": {"path": "README.md", "old_string": "a", "new_string": "b"}},
]


def _state(folder: Path) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for path in sorted(folder.rglob("*")):
        text = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path)] = (path.lstat().st_mode, hashlib.sha256(text).hexdigest())
    return found


def _commit(folder: Path) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "maintenance.auto=false"]
    for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)


@pytest.mark.parametrize("approve", [False, True])
async def test_no_trick_writes_in_plan_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approve: bool) -> None:
    assert len(TRICKS) >= 120
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    (folder / "README.md").write_text("a\nb\n")
    (folder / "Makefile").write_text("all:\n\ttouch new\n")
    _commit(folder)
    before = _state(folder)
    calls = [{"name": "run_command", "arguments": {"command": command}} for command in TRICKS] + EDITS
    lines = [json.dumps({**call, "cwd": str(folder), "mode": "plan", "approve": approve}) for call in calls]
    ran: list[str] = []
    position = 0
    async for line in tool_batch(lines):
        if json.loads(line)["executed"]:
            ran.append(str(calls[position]["arguments"]))
        position += 1
    assert position == len(calls)
    assert ran == []
    assert _state(folder) == before
