"""Random edits, commands and undos: taking everything back gives the tree of the beginning, to the byte."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.core.checkpoints.support import Bench
from tests.support.trees import tree

SEQUENCES = int(os.environ.get("SWECLI_EXAMPLES", "25"))
"""500 in `make soak`."""

NAMES = ("a", "b.txt", "d/c", "d/e/f", "g h", "ü", "d/x", "-n")


def _command(pick: random.Random) -> str:
    one, other = pick.choice(NAMES), pick.choice(NAMES)
    number = pick.randrange(1000)
    return pick.choice(
        (
            f"printf '%s\\n' {number} > './{one}'",
            f"printf {number} >> './{one}'",
            f"mv -f './{one}' './{other}'",
            f"cp -a './{one}' './{other}'",
            f"rm -rf './{one}'",
            "rm -rf d",
            f"mkdir -p './{one}.d/sub'",
            f"rmdir './{one}.d/sub' './{one}.d'",
            f"chmod {pick.choice(('600', '755', '444', '700'))} './{one}'",
            f"ln -sfn target{number} './{one}.link'",
            f"ln -sfn d './{one}.link'",
            f"ln -f './{one}' './{other}.hard'",
            f"rm -f './{one}.hard' './{one}.link'",
            f"sed -i s/1/{number}/ './{one}'",
            f"for i in 1 2 3 4 5 6 7 8; do echo $i{number} > './many'$i; done",
            "rm -f many*",
            f"echo x{number} > './{one}'; echo y{number} > './{one}'; rm './{one}'; echo z > './{one}'",
            f"mkdir -p p/q && echo {number} > p/q/r && chmod 500 p/q",
            "chmod -R u+w p; rm -rf p",
            f"rm -f './{one}'; mkdir './{one}'",
            f"rm -rf './{one}'; ln -s /nowhere './{one}'",
            "true",
        )
    )


def _edit(bench: Bench, pick: random.Random) -> None:
    name = pick.choice(NAMES)
    path = bench.work / name
    if any(parent.is_symlink() or parent.is_file() for parent in (path, *path.parents)) or path.is_dir():
        return
    bench.edit(name, pick.randbytes(pick.randrange(40)))


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_taking_all_back_gives_the_tree_of_the_beginning(tmp_path: Path, seed: int) -> None:
    pick = random.Random(seed)
    bench = Bench(tmp_path)
    for name in ("a", "b.txt", "d/c", "d/e/f"):
        path = bench.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pick.randbytes(pick.randrange(60)))
    os.link(bench.work / "a", bench.work / "a.twin")
    bench.history.first_copy()
    first = tree(bench.work)
    trees = [first]
    for _ in range(pick.randrange(3, 14)):
        chance = pick.random()
        if chance < 0.55:
            bench.command(_command(pick))
        elif chance < 0.85:
            _edit(bench, pick)
        elif chance < 0.93:
            before = tree(bench.work)
            undone = bench.undo()
            assert not undone.conflicts
            again = bench.redo()
            assert not again.conflicts
            if undone.files:
                assert tree(bench.work) == before
        else:
            bench.again()
        trees.append(tree(bench.work))
    last = trees[-1]
    count = 0
    while not (undone := bench.undo()).reason:
        assert not undone.conflicts, undone
        assert not undone.not_covered, undone
        count += 1
        assert count < 40
    assert tree(bench.work) == first
    for _ in range(count):
        again = bench.redo()
        assert not again.conflicts, again
    assert tree(bench.work) == last
    shutil.rmtree(bench.work)
