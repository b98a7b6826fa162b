"""No test reaches a model server of this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from swecli.core.llm.servers import (
    HOST,
    find_local_servers,
    listening,
)
from swecli.core.llm.servers import (
    usual_ports as known_ports,
)
from tests.support import usual_ports
from tests.support.preloaded import Preloaded
from tests.support.program import Program

CONNECT = 'import socket; print([socket.socket().connect_ex(("127.0.0.1", port)) for port in (8080, 11434)])'


def test_each_usual_port_is_closed() -> None:
    assert {port for _, port in known_ports()} == set(usual_ports.PORTS)
    for _, port in known_ports():
        with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
            probe.connect((HOST, port))


async def test_nothing_is_found_there() -> None:
    assert await listening() == ()
    assert await find_local_servers() == ()


def test_a_program_reaches_none_either(tmp_path: Path) -> None:
    program = Program(tmp_path, tmp_path / "home")
    started = subprocess.run(
        [sys.executable, "-c", CONNECT], env=program.environment, capture_output=True, text=True, check=False
    )
    assert "ConnectionRefusedError" in started.stderr
    script = tmp_path / "connect.py"
    script.write_text(CONNECT)
    pipe = subprocess.PIPE
    forked = Preloaded([str(script)], cwd=tmp_path, env=program.environment, kind="sdk", stdout=pipe, stderr=pipe)
    assert b"ConnectionRefusedError" in forked.communicate()[1]
