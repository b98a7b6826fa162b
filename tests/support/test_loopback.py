"""The loopback server itself: what it sends is what the script says, as strictly and as unkindly as asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer, Manners
from tests.support.waiting import PATIENCE, wait_until

SCRIPT = """
[[step]]
reasoning = "hm hm"
text = "Let me look."
call = [{ tool = "search", arguments = { pattern = "ü" } }, { tool = "list_files" }]
"""
FAULT = '[[step]]\ntext = "one two three"\nfault = {{ {} }}'
HELLO: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "stream": True,
    "stream_options": {"include_usage": True},
    "messages": [{"role": "user", "content": "hello"}],
}
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}


def post(
    server: LoopbackServer, protocol: str, body: dict[str, Any] = HELLO, headers: dict[str, str] | None = None
) -> httpx.Response:
    return httpx.post(server.url + PATHS[protocol], json=body, headers=headers, timeout=PATIENCE, trust_env=False)


def events(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def openai_answer(text: str) -> tuple[str, str, list[tuple[str, str, str]], list[str]]:
    spoken, thought, calls, finish = "", "", {}, []
    for event in events(text):
        for choice in event["choices"]:
            delta = choice["delta"]
            spoken += delta.get("content") or ""
            thought += delta.get("reasoning_content") or ""
            finish += [choice["finish_reason"]] if choice["finish_reason"] else []
            for call in delta.get("tool_calls", []):
                known = calls.setdefault(call["index"], ["", "", ""])
                known[0] += call.get("id", "")
                known[1] += call["function"].get("name", "")
                known[2] += call["function"].get("arguments", "")
    return spoken, thought, [tuple(call) for call in calls.values()], finish


def anthropic_answer(text: str) -> tuple[str, str, list[tuple[str, str, str]], list[str]]:
    spoken, thought, calls, stop = "", "", {}, []
    for event in events(text):
        match event["type"]:
            case "content_block_start" if event["content_block"]["type"] == "tool_use":
                block = event["content_block"]
                calls[event["index"]] = [block["id"], block["name"], ""]
            case "content_block_delta":
                delta = event["delta"]
                spoken += delta.get("text", "")
                thought += delta.get("thinking", "")
                if "partial_json" in delta:
                    calls[event["index"]][2] += delta["partial_json"]
            case "message_delta":
                stop.append(event["delta"]["stop_reason"])
            case _:
                pass
    return spoken, thought, [tuple(call) for call in calls.values()], stop


@pytest.mark.parametrize(
    "manners",
    [Manners(), Manners(chunk_bytes=1), Manners(keep_alives=True, crlf=True)],
    ids=["kind", "single bytes", "keep-alives and CRLF"],
)
def test_both_protocols_send_the_same_answer(manners: Manners) -> None:
    calls = [("search", '{"pattern": "ü"}'), ("list_files", "{}")]
    with LoopbackServer(parse_script(SCRIPT * 2), manners=manners) as server:
        chat = post(server, "openai", headers={"authorization": "Bearer k"}).text
        messages = post(server, "anthropic").text
        assert [received.headers.get("authorization") for received in server.asked] == ["Bearer k", None]
    expected = ("Let me look.", "hm hm")
    *spoken, got, finish = openai_answer(chat)
    assert (tuple(spoken), finish) == (expected, ["tool_calls"])
    assert got == [(f"call_{number}", *call) for number, call in enumerate(calls, 1)]
    *spoken, got, stop = anthropic_answer(messages)
    assert (tuple(spoken), stop) == (expected, ["tool_use"])
    assert got == [(f"toolu_{number}", *call) for number, call in enumerate(calls, 1)]
    assert chat.rstrip().endswith("data: [DONE]")
    assert messages.rstrip().endswith('{"type":"message_stop"}')
    assert events(chat)[-1]["usage"]["prompt_tokens"] > 0


@pytest.mark.parametrize(
    ("fault", "openai", "anthropic"),
    [
        ('kind = "auth"', (401, "invalid_api_key"), (401, "authentication_error")),
        ('kind = "rate_limit", retry_after = 2', (429, "rate_limit_exceeded"), (429, "rate_limit_error")),
        ('kind = "overloaded"', (503, "overloaded"), (529, "overloaded_error")),
        ('kind = "not_found"', (404, "model_not_found"), (404, "not_found_error")),
        ('kind = "overflow", tokens = 9, window = 8', (400, "context_length_exceeded"), (400, "9 tokens > 8 maximum")),
    ],
)
def test_faults_before_the_answer(fault: str, openai: tuple[int, str], anthropic: tuple[int, str]) -> None:
    with LoopbackServer(parse_script(FAULT.format(fault) + "\n" + FAULT.format(fault))) as server:
        for protocol, (status, word) in (("openai", openai), ("anthropic", anthropic)):
            response = post(server, protocol)
            assert (response.status_code, word in response.text) == (status, True)
            assert response.headers.get("retry-after") == ("2" if "rate_limit" in fault else None)


@pytest.mark.parametrize("protocol", PATHS)
def test_faults_within_the_answer(protocol: str) -> None:
    script = "\n".join(FAULT.format(f'kind = "{kind}", after = 6') for kind in ("overloaded", "garbage", "cut"))
    with LoopbackServer(parse_script(script)) as server:
        broken = post(server, protocol)
        assert broken.status_code == 200
        assert "one two" not in broken.text
        assert '"error"' in broken.text
        assert "[DONE]" not in broken.text
        assert "{broken" in post(server, protocol).text
        with pytest.raises(httpx.RemoteProtocolError):
            post(server, protocol)
    with LoopbackServer(
        parse_script(FAULT.format('kind = "cut", after = 3')), manners=Manners(clean_cut=True)
    ) as server:
        assert "message_stop" not in post(server, protocol).text
        wait_until(lambda: server.asked[0].whole)


@pytest.mark.parametrize("protocol", PATHS)
def test_other_misery(protocol: str) -> None:
    script = "\n".join(FAULT.format(f'kind = "{kind}"') for kind in ("garbage", "network", "empty"))
    with LoopbackServer(parse_script(script)) as server:
        page = post(server, protocol)
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html")
        with pytest.raises(httpx.RemoteProtocolError):
            post(server, protocol)
        assert "one" not in post(server, protocol).text


def test_a_stall_lasts_until_the_client_goes_away() -> None:
    with LoopbackServer(parse_script(FAULT.format('kind = "stall", after = 3'))) as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(server.url + PATHS["openai"], json=HELLO, timeout=0.3, trust_env=False)
        assert not server.asked[0].whole


@pytest.mark.parametrize("protocol", PATHS)
def test_the_wrong_key_is_refused(protocol: str) -> None:
    with LoopbackServer(parse_script(SCRIPT), manners=Manners(key="right")) as server:
        assert (
            post(server, protocol, headers={"x-api-key": "wrong", "authorization": "Bearer wrong"}).status_code == 401
        )
        assert (
            post(server, protocol, headers={"x-api-key": "right", "authorization": "Bearer right"}).status_code == 200
        )


OPENAI_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "function": {"name": "t", "arguments": "{}"}}],
}
ANTHROPIC_CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]}
USER = HELLO["messages"][0]


@pytest.mark.parametrize(
    ("protocol", "messages"),
    [
        ("openai", [USER, OPENAI_CALL]),
        ("openai", [USER, OPENAI_CALL, USER]),
        ("openai", [USER, {"role": "tool", "tool_call_id": "a", "content": "x"}]),
        ("openai", [USER, {"role": "assistant", "content": ""}]),
        ("openai", []),
        ("anthropic", [USER, ANTHROPIC_CALL]),
        ("anthropic", [USER, ANTHROPIC_CALL, USER]),
        ("anthropic", [ANTHROPIC_CALL]),
        ("anthropic", [{"role": "user", "content": [{"type": "text", "text": " "}]}]),
        ("anthropic", [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]),
    ],
)
def test_a_request_that_real_providers_refuse_is_refused(protocol: str, messages: list[object]) -> None:
    server = LoopbackServer(parse_script(SCRIPT))
    with pytest.raises(AssertionError, match="request 1: "), server:
        assert post(server, protocol, {**HELLO, "messages": messages}).status_code == 400


def test_an_unexpected_request_fails_the_test() -> None:
    server = LoopbackServer(parse_script('[[step]]\ntext = "a"\nexpect = { last_result = "passed" }'))
    with pytest.raises(AssertionError, match="step 1: the newest tool results should contain 'passed'"), server:
        assert post(server, "openai").status_code == 400


@pytest.mark.parametrize("protocol", PATHS)
def test_conditions_see_the_tool_results(protocol: str) -> None:
    results = {
        "openai": [OPENAI_CALL, {"role": "tool", "tool_call_id": "a", "content": "5 passed"}],
        "anthropic": [
            ANTHROPIC_CALL,
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "5 passed"}]},
        ],
    }[protocol]
    script = """
    [[step]]
    text = "no"
    when = { last_result = "failed" }
    [[step]]
    text = "yes"
    expect = { last_result = "5 p" }
    """
    with LoopbackServer(parse_script(script)) as server:
        assert '"yes"' in post(server, protocol, {**HELLO, "messages": [USER, *results]}).text


def test_it_runs_on_its_own_and_prints_its_port(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCRIPT)
    command = [
        sys.executable,
        "-m",
        "tests.support.loopback",
        "--protocol",
        "openai",
        "--script",
        str(tmp_path / "s.toml"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    try:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        assert "Let" in httpx.post(url + PATHS["openai"], json=HELLO, timeout=PATIENCE, trust_env=False).text
        assert httpx.post(url + PATHS["anthropic"], json=HELLO, timeout=PATIENCE, trust_env=False).status_code == 404
        assert httpx.get(url + "/v1/models", timeout=PATIENCE, trust_env=False).json()["data"]
    finally:
        process.terminate()
        process.wait(PATIENCE)
