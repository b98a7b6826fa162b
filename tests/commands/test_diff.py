"""/diff and /doctor."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.commands.base import CommandResult
from swecli.commands.registry import CommandCall, parse
from swecli.core.checkpoints.generated import GeneratedFiles
from swecli.core.checkpoints.git_changes import GitChanges, GitRefused
from swecli.core.checkpoints.history import Difference
from swecli.core.protocol.blocks import DiffBlock, TextBlock
from tests.commands.support import CommandSession

FILES = (
    DiffBlock("/proj/a.py", "1\n", "2\n"),
    DiffBlock("/proj/sub/new.py", None, "x\n"),
    DiffBlock("/else/c", "c", None),
)


async def shown(changed: Difference, line: str) -> CommandResult:
    session = CommandSession(Path("/proj"))
    session.files.changed = changed
    found = parse(line)
    assert isinstance(found, CommandCall)
    return await found.command.run(session, found.arguments)


async def test_each_file_is_a_diff_with_its_path_as_the_user_knows_it() -> None:
    *diffs, said = (await shown(Difference(FILES), "/diff")).blocks
    assert [block.path for block in diffs if isinstance(block, DiffBlock)] == ["a.py", "sub/new.py", "/else/c"]
    ways = "/undo reverts the newest change, /rewind every change since a message"
    assert said == TextBlock(f"3 files changed in this session (1 new, 1 removed); {ways}.", "dim")


async def test_a_path_narrows_it() -> None:
    diff, _ = (await shown(Difference(FILES), "/diff sub")).blocks
    assert isinstance(diff, DiffBlock)
    assert diff.path == "sub/new.py"
    (said,) = (await shown(Difference(FILES), "/diff nowhere")).blocks
    assert isinstance(said, TextBlock)
    assert "no file below nowhere" in said.text


@pytest.mark.parametrize("line", ["/diff link", "/diff HEAD link"])
async def test_a_link_is_meant_before_its_target(tmp_path: Path, line: str) -> None:
    (tmp_path / "link").symlink_to("target")  # which may be missing
    own, target = DiffBlock(f"{tmp_path}/link", None, None, "a link"), DiffBlock(f"{tmp_path}/target", "1\n", "2\n")
    for files, expected in (((own, target), "link"), ((target,), "target")):
        session = CommandSession(tmp_path)
        session.files.changed, session.files.tree = Difference(files), GitChanges(files)
        found = parse(line)
        assert isinstance(found, CommandCall)
        blocks = (await found.command.run(session, found.arguments)).blocks
        assert [block.path for block in blocks if isinstance(block, DiffBlock)] == [expected]


async def test_nothing_changed_nothing_known_and_more_than_is_shown() -> None:
    for changed, expected in (
        (Difference(), "changed no file"),
        (Difference(reason="Checkpoints are off."), "Checkpoints are off."),
        (Difference(FILES, more=7), "7 more files"),
    ):
        assert expected in said(await shown(changed, "/diff"))


def said(result: CommandResult) -> str:
    return "\n".join(block.text for block in result.blocks if isinstance(block, TextBlock))


async def test_files_in_generated_folders_are_one_line() -> None:
    found = Difference(FILES, generated=GeneratedFiles(214, ("/proj/build", "/proj/out"), ("/proj/node_modules",)))
    assert "and 214 files in generated folders (build/, out/); not tracked: node_modules/" in said(
        await shown(found, "/diff")
    )
    only = said(await shown(Difference(generated=GeneratedFiles(1, ("/proj/dist",))), "/diff"))
    assert "changed no file" in only
    assert "and 1 file in a generated folder (dist/)" in only


async def against(line: str, tree: GitChanges | GitRefused, session: CommandSession) -> str:
    session.files.tree = tree
    found = parse(line)
    assert isinstance(found, CommandCall)
    return said(await found.command.run(session, found.arguments))


async def test_head_compares_with_git_and_any_other_revision_where_no_path_is_meant() -> None:
    session = CommandSession(Path("/proj"))
    tree = GitChanges(FILES, 3, GeneratedFiles(2, ("/proj/build",)))
    text = await against("/diff head", tree, session)
    assert "3 files differ from HEAD (1 new, 1 removed)." in text
    assert "and 3 more files" in text
    assert "and 2 files in a generated folder (build/)" in text
    assert "1 file differs from v1.0" in await against("/diff v1.0 sub", GitChanges(FILES[:2]), session)
    assert session.files.revisions == [("HEAD", ""), ("v1.0", "/proj/sub")]
    assert "No file differs from HEAD." in await against("/diff HEAD", GitChanges(), session)
    nested = await against("/diff HEAD", GitChanges(nested=("/proj/a", "/proj/b")), session)
    assert "No other file differs from HEAD." in nested
    assert "repositories of their own, not compared: a/, b/" in nested


async def test_without_git_one_clause_says_so() -> None:
    session = CommandSession(Path("/proj"))
    refused = GitRefused("no repository", "This folder is not in a git repository.")
    assert await against("/diff HEAD", refused, session) == "This folder is not in a git repository."
    assert "changed no file below nowhere" in await against("/diff nowhere", refused, session)


async def test_a_name_of_nothing_is_named_as_such(tmp_path: Path) -> None:
    session = CommandSession(tmp_path)
    session.files.changed = Difference()
    unknown = GitRefused("no revision", "unknown git revision.")
    nothing = "no file below {}, and there is no file or git revision of this name"
    assert f"{nothing.format('nope')}." in await against("/diff nope", unknown, session)
    assert "; !git diff a..b shows any comparison." in await against("/diff a..b", unknown, session)
    assert "; !git diff --staged shows any comparison." in await against("/diff --staged", unknown, session)
    unsafe = GitRefused("unsafe", "swecli does not start git here.")
    assert "no file of this name. swecli does not start git here." in await against("/diff nope", unsafe, session)
    assert "neither here nor in HEAD" in await against("/diff HEAD nope", GitChanges(), session)
    (tmp_path / "a").write_text("a")
    assert "No file below a differs from HEAD." in await against("/diff HEAD a", GitChanges(), session)


async def test_head_is_named_only_in_a_repository(tmp_path: Path) -> None:
    session = CommandSession(tmp_path)
    session.files.changed = Difference()
    refused = GitRefused("no repository", "This folder is not in a git repository.")
    assert "HEAD" not in await against("/diff", refused, session)
    (tmp_path / ".git").mkdir()
    assert "/diff HEAD compares with the last commit." in await against("/diff", refused, session)


async def test_doctor_asks_providers_only_where_told_to() -> None:
    session = CommandSession()
    assert await session.slash("/doctor") == "not asked"
    assert await session.slash("/doctor online") == "asked"
    assert "/doctor online" in await session.slash("/doctor everything")
