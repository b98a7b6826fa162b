"""PDF files in whole runs: attached, continued, exported and imported."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.pdf import pdf_of
from tests.support.program import Program

pytest.importorskip("pypdf")
pytestmark = pytest.mark.e2e

MODEL = "anthropic/claude-opus-4-5"
SOUP = pdf_of(["Salt the soup", "Eat it"])
HELLO = '[[step]]\ntext = "Read."\n' * 6


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(parse_script(HELLO)) as server:
        yield server


@pytest.fixture
def program(tmp_path: Path, server: LoopbackServer) -> Program:
    """A model that reads PDF files, at an address of this machine."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (project / "soup.pdf").write_bytes(SOUP)
    return Program(project, home, {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "not-a-key"})


def read_no_pdf(program: Program) -> None:
    (program.home / "config.toml").write_text(f'[models.capabilities]\n"{MODEL}" = {{ documents = false }}\n')


def blocks(body: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The user's blocks of this kind, without marks for the cache."""
    users = (message["content"] for message in body["messages"] if message["role"] == "user")
    found = [block for content in users for block in content if block["type"] == kind]
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in found]


def last(server: LoopbackServer) -> dict[str, Any]:
    return [sent.body for sent in server.requests if "messages" in sent.body][-1]


def test_an_attached_file_is_sent_continued_and_carried_to_another_machine(
    program: Program, server: LoopbackServer, tmp_path: Path
) -> None:
    ended = program.run("-p", "Read @soup.pdf", "-m", MODEL)
    assert ended.code == 0, ended.stderr
    (document,) = blocks(last(server), "document")
    assert base64.b64decode(document["source"]["data"]) == SOUP
    assert document["title"] == "soup.pdf"
    (program.folder / "soup.pdf").unlink()
    assert program.run("-p", "And now?", "-m", MODEL, "-c").code == 0
    assert blocks(last(server), "document") == [document]

    for name in ("session.md", "session.html", "session.json"):
        assert program.run("-p", f"/export {name}", "-c").code == 0
        exported = (program.folder / name).read_text()
        assert "Salt the soup" in exported
        assert "PDF file soup.pdf, 2 pages" in exported or name.endswith(".json")
    elsewhere = Program(program.folder, tmp_path / "other", program.variables)
    assert elsewhere.run("sessions", "import", "session.json").code == 0
    assert elsewhere.run("-p", "And here?", "-m", MODEL, "-c").code == 0
    assert blocks(last(server), "document") == [document]


def test_another_model_gets_the_text_and_pages_are_selectable(program: Program, server: LoopbackServer) -> None:
    read_no_pdf(program)
    ended = program.run("-p", "Read @soup.pdf:2-2", "-m", MODEL)
    assert ended.code == 0, ended.stderr
    sent = json.dumps(last(server))
    assert "page 2 of 2" in sent
    assert "Eat it" in sent
    assert "Salt the soup" not in sent
    assert not blocks(last(server), "document")


def test_a_model_switched_to_one_without_pdf_gets_the_text(program: Program, server: LoopbackServer) -> None:
    assert program.run("-p", "Read @soup.pdf", "-m", MODEL).code == 0
    read_no_pdf(program)
    ended = program.run("-p", "And now?", "-m", MODEL, "-c")
    assert ended.code == 0, ended.stderr
    assert not blocks(last(server), "document")
    assert "Salt the soup" in json.dumps(last(server))


def test_a_damaged_file_is_named_and_the_message_goes_without_it(program: Program, server: LoopbackServer) -> None:
    (program.folder / "soup.pdf").write_bytes(b"%PDF-1.4 no more")
    ended = program.run("-p", "Read @soup.pdf", "-m", MODEL)
    assert ended.code == 0, ended.stderr
    assert "@soup.pdf was not attached: soup.pdf could not be read: it is damaged." in ended.stderr
    assert not blocks(last(server), "document")
