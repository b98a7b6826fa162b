"""A program that runs beside commands, such as a language server, may write nothing of the workspace."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from swecli.core.sandbox.launch import SandboxError
from swecli.core.sandbox.sandbox import Sandbox
from tests.core.sandbox.support import SECRET, Grounds, laid_out

TRIES = """
for path in a source/b .git/c .vscode/d .swecli/e nested/f; do mkdir -p "$(dirname "$path")"; echo x >"$path"; done
echo changed >source/a.txt; rm source/a.txt; cat .env "$1/.ssh/id_ed25519"; echo x >"$TMPDIR/mine" && cat source/a.txt
"""


@pytest.fixture
def grounds() -> Iterator[Grounds]:
    with laid_out() as made:
        yield made


@pytest.mark.parametrize("path", [None, "/nonexistent"], ids=["bubblewrap", "landlock"])
def test_it_reads_the_workspace_and_writes_only_its_own_temporary_folder(grounds: Grounds, path: str | None) -> None:
    sandbox = grounds.sandbox(path=path)
    if not sandbox.check().contains:
        pytest.skip(f"no sandbox here: {sandbox.state.text}")
    before, names = grounds.fingerprint(), sorted(grounds.work.rglob("*"))
    launch = sandbox.begin_reader(grounds.work)
    try:
        run = subprocess.run(
            [*launch.prefix, "sh", "-c", TRIES, "sh", str(grounds.home)],
            cwd=grounds.work,
            env={"PATH": "/usr/bin:/bin", **launch.environment},
            pass_fds=launch.inherited,
            capture_output=True,
            text=True,
            check=False,
        )
        assert sorted(grounds.work.rglob("*")) == names  # while it runs, too
    finally:
        launch.end()
        sandbox.close()
    assert run.stdout.endswith("a\n"), run.stderr
    # Landlock can't take single files of the workspace out of sight.
    assert run.stdout.count(SECRET) == (sandbox.state.layer == "landlock")
    assert grounds.fingerprint() == before
    assert sorted(grounds.work.rglob("*")) == names


def test_where_nothing_contains_it_there_is_no_launch(grounds: Grounds) -> None:
    with pytest.raises(SandboxError, match="off"):
        Sandbox.none().begin_reader(grounds.work)
