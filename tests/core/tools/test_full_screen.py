"""Programs that need a terminal are not started; the same programs in batch mode are."""

from __future__ import annotations

import pytest

from swecli.core.tools.base import ToolError
from swecli.core.tools.full_screen import needs_terminal
from tests.support.tool_context import ToolBench


@pytest.mark.parametrize(
    "command", ["vim a", "/usr/bin/vi a", "EDITOR=x nvim", "nano notes.txt", "emacs a", "top", "htop -d 5", "tig"]
)
async def test_it_ends_at_once_with_the_reason(command: str, bench: ToolBench) -> None:
    with pytest.raises(ToolError, match="needs a terminal, which commands don't have, so it was not started"):
        await bench.call("run_command", command=command)


@pytest.mark.parametrize(
    "command",
    [
        "vim -es -c wq a",
        "vim +q a",
        "vim --version",
        "nvim --headless +q",
        "emacs --batch -l x.el",
        "top -b -n 1",
        "vim a < keys",
        "printf :q | vim a",
        "echo vim a",
        "which vim",
        "less a",
        "python3",
        "git rebase -i --root",
        "vim 'a",
    ],
)
def test_it_may_run(command: str) -> None:
    assert needs_terminal(command) == ""
