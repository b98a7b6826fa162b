"""Every command of the protocol has a handler."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from swecli.core.protocol.commands import Command
from tests.core.engine.support import bench


async def test_each_type_of_command_has_a_handler(tmp_path: Path) -> None:
    async with bench("", tmp_path) as b:
        assert set(b.session._handlers) == set(get_args(Command))  # pyright: ignore[reportPrivateUsage]
