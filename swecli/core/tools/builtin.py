"""The tools that every session has."""

from __future__ import annotations

from swecli.core.tools.apply_patch import ApplyPatch
from swecli.core.tools.ask_user import AskUser
from swecli.core.tools.base import AnyTool
from swecli.core.tools.compact_context import CompactContextTool
from swecli.core.tools.edit_file import EditFile
from swecli.core.tools.job import JobTool
from swecli.core.tools.list_files import ListFiles
from swecli.core.tools.read_file import ReadFile
from swecli.core.tools.read_result import ReadResult
from swecli.core.tools.recall import Recall
from swecli.core.tools.run_command import RunCommand
from swecli.core.tools.search import Search
from swecli.core.tools.update_todos import UpdateTodos
from swecli.core.tools.web_fetch import WebFetch
from swecli.core.tools.write_file import WriteFile


def builtin_tools() -> tuple[AnyTool, ...]:
    """One of each."""
    return (
        ApplyPatch(),
        AskUser(),
        CompactContextTool(),
        EditFile(),
        JobTool(),
        ListFiles(),
        ReadFile(),
        ReadResult(),
        Recall(),
        RunCommand(),
        Search(),
        UpdateTodos(),
        WebFetch(),
        WriteFile(),
    )
