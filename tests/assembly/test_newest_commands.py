"""The commands on which a permission rule is tried: the model's newest ones of this folder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from swecli.assembly.permissions import newest_commands
from swecli.core.config.paths import user_paths
from swecli.core.protocol.events import Event, ItemCheckpointed
from swecli.core.protocol.messages import ToolCallPart
from swecli.core.sessions.database import DATABASE, open_database
from swecli.core.sessions.store import SessionStore


def test_a_call_with_unreadable_arguments_hides_no_other(tmp_path: Path) -> None:
    paths = user_paths({"SWECLI_HOME": str(tmp_path / "home")})
    calls = ['{"command": "make"}', '{"command": ' + "[" * 20_000, '{"command": 5}', '{"command": "ls"}']
    with closing(SessionStore(open_database(paths.workspace_data(tmp_path) / DATABASE))) as store:
        session = store.create(str(tmp_path), "p/m", "0").id
        parts = [ToolCallPart(f"c{number}", "run_command", call) for number, call in enumerate(calls)]
        store.append(
            [Event(n, float(n), session, 1, ItemCheckpointed(f"t{n}", part)) for n, part in enumerate(parts, 1)]
        )
    assert [call.effects.command for call in newest_commands(paths, tmp_path)] == ["ls", "make"]
