from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tool_context import ToolBench


@pytest.fixture
def bench(tmp_path: Path) -> ToolBench:
    """The built-in tools in an empty folder."""
    return ToolBench(tmp_path)
