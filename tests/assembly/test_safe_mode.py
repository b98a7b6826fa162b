"""What safe mode leaves out, as the user reads of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.app import open_session
from swecli.commands.registry import CommandCall, parse
from swecli.core.protocol.blocks import TextBlock
from swecli.launch import LaunchOptions


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    folder = tmp_path / "work"
    (folder / ".swecli" / "skills" / "mine").mkdir(parents=True)
    (folder / ".swecli" / "skills" / "mine" / "SKILL.md").write_text("---\nname: mine\ndescription: one\n---\nDo.\n")
    (tmp_path / "script.toml").write_text('[[step]]\ntext = "done"\n')
    return folder


async def said(work: Path, line: str, *, safe_mode: bool) -> str:
    options = LaunchOptions(cwd=work, script=work.parent / "script.toml", trust="session", safe_mode=safe_mode)
    session = await open_session(options)
    try:
        invocation = parse(line)
        assert isinstance(invocation, CommandCall)
        blocks = (await invocation.command.run(session, invocation.arguments)).blocks
        return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
    finally:
        await session.close()


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("/hooks", "hooks"),
        ("/mcp", "MCP servers of projects"),
        ("/skills", "skills"),
        ("/commands", "Markdown commands"),
        ("/agents", "agent profiles from files"),
        ("/lsp", "language servers"),
        ("/memory", "memory"),
        ("/playbook", "the playbook"),
        ("/where a", "the index"),
    ],
)
async def test_each_list_names_safe_mode_where_it_is_the_reason(work: Path, line: str, what: str) -> None:
    told = f"Safe mode (--safe-mode) turned {what} off."
    assert told in await said(work, line, safe_mode=True)
    assert "afe mode" not in await said(work, line, safe_mode=False)
