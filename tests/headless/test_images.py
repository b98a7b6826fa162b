"""An image that a server refuses is left out, and the session goes on."""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from swecli.core.llm.scripted import parse_script
from tests.headless.test_protocols import PROTOCOLS, run
from tests.support.loopback import LoopbackServer, Manners

pytestmark = pytest.mark.e2e

READ = """
[[step]]
call = [{ tool = "read_file", arguments = { path = "mid.png" } }]
[[step]]
expect = { request = "The image mid.png (image/png) was left out: the server rejected it." }
text = "I can't see it."
"""
ATTACHED = """
[[step]]
expect = { request = "The image mid.png (image/png) was left out: the server rejected it." }
text = "I can't see it."
"""
LATER = """
[[step]]
expect = { last_user = "plain question" }
text = "Plain answer."
"""
LIMIT = 60_000
"""Characters: above any text of swecli's own requests."""


def noise(path: Path) -> None:
    """A PNG of about 48 kB, 64,000 characters of base64."""
    rows = b"".join(b"\0" + os.urandom(160 * 3) for _ in range(100))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 160, 100, 8, 2, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def server(script: str, protocol: Any) -> LoopbackServer:
    return LoopbackServer(parse_script(script), protocol, Manners(image_characters=LIMIT))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("script", [READ, ATTACHED], ids=["read", "attached"])
def test_a_refused_image_does_not_block_the_session(tmp_path: Path, protocol: str, script: str) -> None:
    (tmp_path / "project").mkdir()
    noise(tmp_path / "project" / "mid.png")
    with server(script, protocol) as provider:
        message = "Look at @mid.png" if script is ATTACHED else "Look"
        ended = run(tmp_path, provider, protocol, "-p", message)
        statuses = [request.status for request in provider.asked]
    assert ended.code == 0, ended.stderr
    assert ended.result["text"] == "I can't see it."
    assert statuses.count(400) == 1
    assert "The server rejected the image mid.png" in json.dumps(ended.events)
    with server(LATER, protocol) as provider:
        later = run(tmp_path, provider, protocol, "-c", "-p", "plain question")
        assert [request.status for request in provider.asked] == [200]  # the session remembers it
    assert later.code == 0, later.stderr
    assert later.result["text"] == "Plain answer."


def test_a_session_continues_without_the_image_that_its_server_refused(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    noise(tmp_path / "project" / "mid.png")
    with server(READ + LATER, "anthropic") as provider:
        assert run(tmp_path, provider, "anthropic", "-p", "Look").code == 0
        later = run(tmp_path, provider, "anthropic", "-c", "-p", "plain question")
        statuses = [request.status for request in provider.asked]
        sent = [json.dumps(request.body["messages"][:4]) for request in provider.asked[2:]]
    assert later.code == 0, later.stderr
    assert statuses == [200, 400, 200, 200]
    assert all("was left out: the server rejected it" in body for body in sent)
