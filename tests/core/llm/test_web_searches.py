"""The providers' own web search: offered, decoded, sent back as it came, and paid for."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.llm.capabilities import Capabilities
from swecli.core.llm.catalog import with_searches
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.framing import BodyParser
from swecli.core.llm.protocols.base import Target
from swecli.core.llm.protocols.registry import decoder_for
from swecli.core.llm.providers import ProviderConfig, resolve
from swecli.core.llm.types import (
    AnswerFormat,
    Finished,
    SearchCited,
    SearchEnded,
    SearchStarted,
    StreamEvent,
    StreamNotice,
    WebSearch,
    WebSource,
)
from swecli.core.protocol.messages import Message, Response, Stop, TextPart, Usage, added
from tests.core.llm.histories import TOOL, build, request, target, user
from tests.core.llm.raw_server import head, say, serve
from tests.core.llm.test_echo import Json, blocks, outputs, parts
from tests.core.llm.test_text_tools_client import ask, refusal

WISH = WebSearch(max_uses=5, left=5)
LOOKED = "docs.example.org"


def able(protocol: str, model: str = "m", **more: Any) -> Target:
    return replace(target(protocol, model=model), capabilities=Capabilities(web_search=True, **more))


def body(protocol: str, wish: WebSearch = WISH, *, model: str = "m", **more: Any) -> Json:
    return build(request(user("hi"), tools=(TOOL,), web_search=wish, **more), able(protocol, model))


def decode(to: Target, events: list[Json]) -> list[StreamEvent]:
    decoder, parser = decoder_for(to.origin.protocol, to.origin), BodyParser("text/event-stream")
    raw = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    made = [event for wire in parser.feed(raw) + parser.end() for event in decoder.feed(wire)]
    return made + decoder.end_of_body(parser)


def message_of(events: list[StreamEvent]) -> Message:
    last = events[-1]
    assert isinstance(last, Finished)
    return last.message


# --- Anthropic -----------------------------------------------------------------------------------------------

CITATION: Json = {
    "type": "web_search_result_location",
    "url": f"https://{LOOKED}/a",
    "title": "A page",
    "encrypted_index": "SECRET1",
    "cited_text": "it is so",
}
QUERY: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
RESULT: Json = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {"type": "web_search_result", "url": f"https://{LOOKED}/a", "title": "A page", "encrypted_content": "SECRET2"},
        {"type": "web_search_result", "url": "https://other.example/", "title": "[red]B[/red]"},
    ],
}


def text(words: str, *citations: Json) -> tuple[Json, list[Json]]:
    deltas: list[Json] = [{"type": "citations_delta", "citation": citation} for citation in citations]
    return {"type": "text", "text": ""}, [*deltas, {"type": "text_delta", "text": words}]


SEARCHED: list[Json] = blocks(
    text("I look."),
    (QUERY, [{"type": "input_json_delta", "partial_json": '{"query": "what is so"}'}]),
    (RESULT, []),
    text("By the page, "),
    text("it is so", CITATION),
    text("."),
)
SEARCHED[-2]["usage"] = {"output_tokens": 9, "server_tool_use": {"web_search_requests": 1}}


def test_anthropics_tool_stands_behind_the_others_and_never_changes_in_a_turn() -> None:
    tools = body("anthropic-messages")["tools"]
    assert [tool["name"] for tool in tools] == ["read", "web_search"]
    assert tools[-1] == {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    assert body("anthropic-messages", replace(WISH, left=0))["tools"] == tools
    only = body("anthropic-messages", replace(WISH, allowed_domains=(LOOKED,)))["tools"][-1]
    assert only["allowed_domains"] == [LOOKED]
    never = body("anthropic-messages", replace(WISH, blocked_domains=(LOOKED,)))["tools"][-1]
    assert never["blocked_domains"] == [LOOKED]


def test_anthropic_combines_no_format_with_citations() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    to = able("anthropic-messages", output_format=True)
    asked = request(user("hi"), web_search=WISH, answer_format=AnswerFormat(schema))
    assert "output_config" not in build(asked, to)


def test_anthropics_search_is_told_with_its_sources_and_citations() -> None:
    events = decode(able("anthropic-messages"), SEARCHED)
    message = message_of(events)
    assert [event for event in events if isinstance(event, SearchStarted | SearchEnded | SearchCited)] == [
        SearchStarted(1, "what is so"),
        SearchEnded(
            1, (WebSource(f"https://{LOOKED}/a", "A page"), WebSource("https://other.example/", "[red]B[/red]"))
        ),
        SearchCited((WebSource(f"https://{LOOKED}/a", "A page"),)),
    ]
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    assert texts == ["I look.", "By the page, it is so."]
    assert message.response is not None
    assert message.response.usage is not None
    assert message.response.usage.web_searches == 1


def test_anthropics_blocks_go_back_as_they_came() -> None:
    to = able("anthropic-messages")
    message = message_of(decode(to, SEARCHED))
    sent = build(request(user("hi"), message, user("and now?")), to)["messages"][1]["content"]
    assert sent == [
        {"type": "text", "text": "I look."},
        {**QUERY, "input": {"query": "what is so"}},
        RESULT,
        {"type": "text", "text": "By the page, "},
        {"type": "text", "text": "it is so", "citations": [CITATION]},
        {"type": "text", "text": "."},
    ]
    other = build(request(user("hi"), message, user("and now?")), able("anthropic-messages", "another"))
    assert "SECRET" not in json.dumps(other)
    assert "it is so" in json.dumps(other)


def test_a_failed_search_is_told_with_its_problem() -> None:
    failed = {**RESULT, "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}
    events = decode(able("anthropic-messages"), blocks((QUERY, []), (failed, []), text("No more.")))
    assert SearchEnded(0, (), "max uses exceeded") in events


def test_a_search_that_broke_off_is_not_sent_back() -> None:
    """The API rejects a call of its tool without a result, except in a paused turn."""
    to = able("anthropic-messages")
    cut = decode(to, blocks(text("I look."), (QUERY, []), (RESULT, []), ({**QUERY, "id": "srvtoolu_2"}, []))[:-2])
    message = getattr(cut[-1], "message", None)
    assert isinstance(message, Message)
    sent = build(request(user("hi"), message, user("go on")), to)["messages"][1]["content"]
    assert [block.get("id") or block["type"] for block in sent] == ["text", "srvtoolu_1", "web_search_tool_result"]
    paused = replace(message, response=Response(to.origin, Stop("pause")))
    assert "srvtoolu_2" in json.dumps(build(request(user("hi"), paused), to)["messages"])
    interrupted = build(request(user("hi"), paused, user("stop")), to)["messages"]
    assert "srvtoolu_2" not in json.dumps(interrupted)


def test_a_result_whose_call_was_dropped_is_not_sent_back() -> None:
    to = able("anthropic-messages")
    message = message_of(decode(to, SEARCHED))
    edited = replace(message, parts=tuple(part for part in message.parts if getattr(part, "note", "") != "web_search"))
    sent = build(request(user("hi"), edited, user("and now?")), to)["messages"][1]["content"]
    assert {block["type"] for block in sent} == {"text"}


def test_a_paused_search_goes_on_in_the_next_answer() -> None:
    to = able("anthropic-messages")
    first = message_of(decode(to, blocks(text("I look."), (QUERY, []), stop="pause_turn")))
    events = decode(to, blocks((RESULT, []), text("It is so, "), text("see there.", CITATION)))
    assert any(isinstance(event, SearchEnded) and len(event.sources) == 2 for event in events)
    second = message_of(events)
    sent = build(request(user("hi"), first, second, user("and now?")), to)["messages"]
    assert [block["type"] for block in sent[1]["content"]] == [
        "text",
        "server_tool_use",
        "web_search_tool_result",
        "text",
        "text",
    ]


# --- OpenAI Responses ----------------------------------------------------------------------------------------

CALL: Json = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {
        "type": "search",
        "query": "what is so",
        "sources": [{"type": "url", "url": f"https://{LOOKED}/a"}],
    },
}
OPENED: Json = {
    "type": "web_search_call",
    "id": "ws_2",
    "status": "completed",
    "action": {"type": "open_page", "url": f"https://{LOOKED}/a"},
}
SAID: Json = {
    "type": "message",
    "id": "msg_1",
    "status": "completed",
    "content": [
        {
            "type": "output_text",
            "text": "It is so.",
            "annotations": [{"type": "url_citation", "url": f"https://{LOOKED}/a", "title": "A page"}],
        }
    ],
}


def test_openais_search_is_capped_beside_the_prompt() -> None:
    first = body("openai-responses", replace(WISH, allowed_domains=(LOOKED,)))
    assert first["tools"][-1] == {"type": "web_search", "filters": {"allowed_domains": [LOOKED]}}
    assert "web_search_call.action.sources" in first["include"]
    assert first["max_tool_calls"] == 5
    last = body("openai-responses", replace(WISH, allowed_domains=(LOOKED,), left=0))
    assert last["tools"] == first["tools"]
    assert "max_tool_calls" not in last
    assert last["tool_choice"]["tools"] == [{"type": "function", "name": "read"}]


def test_openais_calls_are_told_and_go_back_as_they_came() -> None:
    to = able("openai-responses")
    events = decode(to, outputs(CALL, OPENED, SAID))
    assert [event for event in events if isinstance(event, SearchStarted | SearchEnded | SearchCited)] == [
        SearchStarted(0, "what is so"),
        SearchEnded(0, (WebSource(f"https://{LOOKED}/a"),)),
        SearchStarted(1, f"https://{LOOKED}/a"),
        SearchEnded(1),
        SearchCited((WebSource(f"https://{LOOKED}/a", "A page"),)),
    ]
    message = message_of(events)
    sent = build(request(user("hi"), message, user("and now?")), to)["input"]
    assert sent[1:3] == [CALL, OPENED]


def test_openais_searches_are_counted_as_reported_or_by_their_calls() -> None:
    to = able("openai-responses")
    done = outputs(CALL, OPENED, SAID)
    done[-1]["response"]["usage"] = {"input_tokens": 3, "output_tokens": 2}
    assert _usage(decode(to, done)).web_searches == 1
    done[-1]["response"]["tool_usage"] = {"web_search": {"num_requests": 4}}
    assert _usage(decode(to, done)).web_searches == 4


def _usage(events: list[StreamEvent]) -> Usage:
    response = message_of(events).response
    assert response is not None
    assert response.usage is not None
    return response.usage


# --- Gemini --------------------------------------------------------------------------------------------------


def test_geminis_grounding_is_told_and_its_own_calls_go_back() -> None:
    to = able("gemini-generate", "gemini-3.8-flash")
    call: Json = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "1", "args": {"queries": ["what is so"]}}}
    found: Json = {
        "toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "1", "response": {}},
        "thoughtSignature": "S",
    }
    chunks = parts([call, found], [{"text": "It is so."}])
    chunks[-1]["candidates"][0]["groundingMetadata"] = {
        "webSearchQueries": ["what is so", "is it"],
        "groundingChunks": [{"web": {"uri": f"https://{LOOKED}/a", "title": "A page"}}],
    }
    chunks[-1]["usageMetadata"] = {"promptTokenCount": 7, "candidatesTokenCount": 2}
    events = decode(to, chunks)
    assert SearchEnded(3, (WebSource(f"https://{LOOKED}/a", "A page"),)) in events
    assert (_usage(events).web_searches, _usage(events).input_total) == (2, 7)
    sent = build(request(user("hi"), message_of(events), user("and now?")), to)["contents"]
    assert sent[1]["parts"] == [call, found, {"text": "It is so."}]


def test_gemini_searches_beside_functions_from_version_3_on() -> None:
    asked = body("gemini-generate", model="gemini-3.8-flash")
    assert asked["tools"][-1] == {"googleSearch": {}}
    assert asked["toolConfig"] == {"includeServerSideToolInvocations": True}
    assert "googleSearch" not in json.dumps(body("gemini-generate", model="gemini-2.5-pro"))


# --- all -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "wish"),
    [
        ("openai-responses", replace(WISH, blocked_domains=(LOOKED,))),
        ("gemini-generate", replace(WISH, blocked_domains=(LOOKED,))),
        ("gemini-generate", replace(WISH, allowed_domains=(LOOKED,))),
        ("openai-chat", WISH),
        ("ollama-chat", WISH),
    ],
)
def test_a_list_of_domains_that_would_be_ignored_is_no_search(protocol: str, wish: WebSearch) -> None:
    assert "search" not in json.dumps(body(protocol, wish, model="gemini-3.8-flash")).lower()


def test_a_model_without_search_is_not_asked_for_it() -> None:
    to = target("anthropic-messages")
    assert "web_search" not in json.dumps(build(request(user("hi"), web_search=WISH), to))


def test_searches_cost_what_the_provider_takes_for_them() -> None:
    usage = Usage(1, output_total=1, web_searches=3)
    assert with_searches(Decimal("0.5"), "anthropic", usage) == Decimal("0.53")
    assert with_searches(Decimal("0.5"), "gemini", usage) == Decimal("0.542")
    assert with_searches(Decimal("0.5"), "elsewhere", usage) is None
    assert with_searches(Decimal("0.5"), "elsewhere", Usage(1)) == Decimal("0.5")
    assert added(usage, Usage(1)).web_searches == 3


def _client(url: str, able: bool) -> HttpModelClient:
    mine = ProviderConfig("mine", "anthropic-messages", url, local=True)
    config = resolve("mine/m", {}, [mine])
    known = Capabilities(web_search=able)
    return HttpModelClient(
        replace(
            config, info=replace(config.info, capabilities=known), target=replace(config.target, capabilities=known)
        )
    )


ANSWER = say(head(), *(f"data: {json.dumps(event)}\n\n".encode() for event in blocks(text("Hi."))))


async def test_a_server_that_refuses_its_search_is_asked_without() -> None:
    async with serve(refusal("tools.1: web_search is not enabled for this organization"), ANSWER) as server:
        client = _client(server.url, able=True)
        asked = request(user("hi"), tools=(TOOL,), web_search=WISH)
        events = await ask(client, asked)
        assert isinstance(events[-1], Finished)
        assert [
            "does not offer its web search" in event.text for event in events if isinstance(event, StreamNotice)
        ] == [True]
        await ask(client, asked)
        assert [len(received.body["tools"]) for received in server.requests] == [2, 1, 1]
        await client.close()


async def test_the_user_is_told_once_why_a_model_does_not_search() -> None:
    async with serve(ANSWER) as server:
        client = _client(server.url, able=False)
        first, second = [await ask(client, request(user("hi"), web_search=WISH)) for _ in range(2)]
        assert StreamNotice("web_search has no effect here: this model has no web search of its own.") in first
        assert not any(isinstance(event, StreamNotice) for event in second)
        await client.close()
