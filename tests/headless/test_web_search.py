"""Web search in the whole program: the provider's in the transcript and the next request, the user's as a tool."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.llm.test_echo import blocks, outputs
from tests.core.llm.test_web_searches import CALL, QUERY, RESULT, SAID, SEARCHED, text
from tests.support.json_server import read_request
from tests.support.program import Program
from tests.support.server_thread import ServerThread

pytestmark = pytest.mark.e2e

SETTINGS = "[web_search]\nenabled = true\nallowed_domains = ['docs.example.org']\n"


class Searching(ServerThread):
    """A Messages or Responses server with fixed answers, one for each request."""

    def __init__(self, *answers: list[dict[str, Any]]) -> None:
        super().__init__()
        self.answers = list(answers)
        self.bodies: list[dict[str, Any]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asked := await read_request(reader)) is not None:
                status, data = "404 Not Found", b"{}"
                if asked.path.endswith(("/messages", "/responses")):
                    self.bodies.append(json.loads(asked.body))
                    events = self.answers.pop(0)
                    status, data = "200 OK", "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
                head = f"HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\ncontent-length: {len(data)}\r\n\r\n"
                writer.write(head.encode() + data)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def program(tmp_path: Path, server: Searching, settings: str = SETTINGS) -> Program:
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    (tmp_path / "settings.toml").write_text(settings)
    variables = {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.port}",
        "ANTHROPIC_API_KEY": "k",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1",
        "OPENAI_API_KEY": "k",
        "SWECLI_MODEL": "anthropic/claude-opus-5-5",
        "SWECLI_CONFIG": str(tmp_path / "settings.toml"),
    }
    return Program(folder, tmp_path / "home", variables)


def test_the_providers_search_is_shown_and_goes_back_as_it_came(tmp_path: Path) -> None:
    fetch = {"type": "tool_use", "id": "toolu_1", "name": "web_fetch", "input": {"url": "https://docs.example.org/a"}}
    asks = blocks(({**fetch}, []), stop="tool_use")
    with Searching(SEARCHED, asks, blocks(text("Done."))) as server:
        made = program(tmp_path, server)
        ended = made.run("-p", "Is it so?", "--output-format", "stream-json")
        assert ended.code == 0, ended.stderr
        later = made.run(
            *("-c", "-p", "Look there.", "--output-format", "stream-json"),
            *("--allowed-tools", "WebFetch(domain:docs.example.org)"),
        )
        assert later.code == 62, later.stderr
    assert ended.result["text"].endswith("By the page, it is so.")
    assert server.bodies[0]["tools"][-1]["allowed_domains"] == ["docs.example.org"]
    shown = [
        (body["name"], body.get("title"))
        for body in ended.events
        if body.get("type") == "item_started" and body["kind"] == "tool"
    ]
    assert shown == [("web_search", "what is so"), ("cited_sources", "of the answer")]
    tables = [block for body in ended.events if body.get("type") == "item_completed" for block in body["blocks"]]
    assert [row[1] for row in tables[0]["rows"]] == ["https://docs.example.org/a", "https://other.example/"]
    assert [row[0] for row in tables[1]["rows"]] == ["A page"]
    sent = next(message["content"] for message in server.bodies[1]["messages"] if message["role"] == "assistant")
    assert sent[1:3] == [{**QUERY, "input": {"query": "what is so"}}, RESULT]
    assert [block.get("citations") is not None for block in sent[3:]] == [False, True, False]
    assert server.bodies[1]["tools"] == server.bodies[0]["tools"]
    # A page of a host that a rule allows asks all the same: the results of the search came from outside.
    assert "needs approval after text from outside" in later.stderr


def test_the_search_counts_in_the_usage(tmp_path: Path) -> None:
    with Searching(SEARCHED) as server:
        made = program(tmp_path, server)
        assert made.run("-p", "Is it so?").code == 0
        usage = made.run("-c", "-p", "/usage")
    assert "Web searches" in usage.stdout
    assert "cited_sources" not in usage.stdout
    assert "1 ($0.01, part of the cost)" in usage.stdout


def test_a_model_whose_provider_caps_only_requests_is_told_once_in_a_turn(tmp_path: Path) -> None:
    def looks(number: int) -> list[dict[str, Any]]:
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "list_files", "input": {"path": "."}}
        searched = {**QUERY, "id": f"srvtoolu_{number}"}
        found = {**RESULT, "tool_use_id": f"srvtoolu_{number}"}
        events = blocks((searched, []), (found, []), (call, []), stop="tool_use")
        events[-2]["usage"] = {"output_tokens": 9, "server_tool_use": {"web_search_requests": 1}}
        return events

    with Searching(looks(1), looks(2), looks(3), blocks(text("Done.")), blocks(text("Hi."))) as server:
        made = program(tmp_path, server, f"{SETTINGS}max_per_turn = 2\n")
        assert made.run("-p", "Is it so?").code == 0
        assert made.run("-c", "-p", "And now?").code == 0
    told = [json.dumps(body["messages"]).count("web searches are used up") for body in server.bodies]
    assert told == [0, 0, 1, 1, 1]
    note = next(message for message in server.bodies[-1]["messages"] if "are used up" in str(message))
    assert note["role"] == "system"
    assert "clear_at" not in note, "a note for a step is gone with the next result"
    assert "searches are possible again" in json.dumps(server.bodies[-1]["messages"])
    assert all(body["tools"] == server.bodies[0]["tools"] for body in server.bodies)


def test_an_export_has_each_search_where_it_was(tmp_path: Path) -> None:
    with Searching(SEARCHED) as server:
        made = program(tmp_path, server)
        session = made.run("-p", "Is it so?", "--output-format", "json").result["session"]
        exported = made.run("sessions", "export", session)
    assert exported.code == 0, exported.stderr
    words = ["I look.", "Search the web what is so", "A page", "it is so."]
    words.append("Sources of the answer")
    places = [exported.stdout.index(word) for word in words]
    assert places == sorted(places)


def test_openai_searches_only_as_often_as_a_turn_may(tmp_path: Path) -> None:
    looks = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "list_files", "arguments": "{}"}
    settings = f"{SETTINGS}max_per_turn = 2\n[providers.openai]\nprotocol = 'openai-responses'\n"
    with Searching(
        outputs(CALL, {**looks}),
        outputs({**CALL, "id": "ws_9"}, {**looks, "id": "fc_2", "call_id": "c2"}),
        outputs(SAID),
    ) as server:
        ended = program(tmp_path, server, settings).run("-m", "openai/gpt-6", "-p", "Is it so?")
    assert ended.code == 0, ended.stderr
    assert [body.get("max_tool_calls") for body in server.bodies] == [2, 1, None]
    assert server.bodies[2]["tool_choice"]["type"] == "allowed_tools"
    assert all(body["tools"] == server.bodies[0]["tools"] for body in server.bodies)
    assert CALL in server.bodies[1]["input"]


def test_it_is_off_by_default(tmp_path: Path) -> None:
    with Searching(blocks(text("Hi."))) as server:
        assert program(tmp_path, server, "").run("-p", "Hi").code == 0
    assert "web_search" not in json.dumps(server.bodies[0]["tools"])


def test_a_search_engine_of_the_user_takes_the_place_of_the_providers(tmp_path: Path) -> None:
    with Searching(blocks(text("Hi."))) as server:
        settings = f"{SETTINGS}url = 'http://localhost:1/search'\n"
        assert program(tmp_path, server, settings).run("-p", "Hi").code == 0
    searches = [tool for tool in server.bodies[0]["tools"] if tool["name"] == "web_search"]
    assert len(searches) == 1
    assert "input_schema" in searches[0]
