"""What servers, gateways and the servers behind gateways say when they fail, in their own forms."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from swecli.core.engine.model_call import passes_with_time
from swecli.core.llm.framing import WireEvent
from swecli.core.llm.protocols.registry import decoder_for
from swecli.core.llm.remedies import ErrorContext
from swecli.core.llm.types import ErrorKind, Failed
from swecli.core.protocol.messages import Origin
from tests.core.llm.support import classify

TABLE = Path(__file__).parents[2] / "data" / "error-bodies.jsonl"


@dataclass(frozen=True)
class Body:
    """``body`` as JSON or text, and what it means: ``remedy`` stands in the sentence for the user, ``retry`` is whether
    the same request may succeed later, ``waits`` whether it is repeated for minutes, also before any answer."""

    host: str
    status: int
    body: Any
    kind: ErrorKind
    prompt: int | None = None
    window: int | None = None
    after: float | None = None
    remedy: str = ""
    retry: bool | None = None
    waits: bool = False

    def __str__(self) -> str:
        return f"{self.host}-{self.status}-{self.kind}"

    @property
    def data(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


def err(message: Any, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


def wrapped(body: Any) -> str:
    return json.dumps(body, indent=2)


GEMINI_MINUTE = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"violations": [{"quotaId": "GenerateContentInputTokensPerModelPerMinute-FreeTier"}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26s"},
        ],
    }
}


def bodies() -> list[Body]:
    """The table: one JSON object per line."""
    lines = TABLE.read_text("utf-8").splitlines()
    return [Body(**json.loads(line)) for line in lines]


@pytest.mark.parametrize("body", bodies(), ids=str)
def test_what_a_body_means(body: Body) -> None:
    error = classify(
        body.status, {}, body.data, ErrorContext("mine", "m", "http://127.0.0.1:9/v1") if body.remedy else None
    )
    assert (error.kind, error.prompt_tokens, error.window, error.retry_after) == (
        body.kind,
        body.prompt,
        body.window,
        body.after,
    ), error.message
    assert error.message
    assert not error.message.lstrip().startswith('{"'), error.message
    assert body.remedy in error.hint
    assert body.retry in (None, error.retryable)
    assert not body.waits or passes_with_time(error, answered=False)


def test_a_message_that_is_json_is_told_as_its_sentence() -> None:
    nested = err(wrapped(GEMINI_MINUTE), code=429)
    assert classify(429, {}, json.dumps(nested).encode()).message == GEMINI_MINUTE["error"]["message"]
    assert classify(400, {}, b'{"errors":[{"message":"AiError: no"}]}').message == "AiError: no"
    assert classify(429, {}, b'{"status":429,"title":"Too Many Requests"}').message == "Too Many Requests"


def test_the_request_that_a_server_quotes_says_nothing_of_the_error() -> None:
    quoted = {"detail": [{"loc": ["body"], "msg": "no", "input": "my key hit the rate limit: insufficient_quota"}]}
    assert classify(422, {}, json.dumps(quoted).encode()).kind == "bad_request"


def test_a_headers_delay_counts_before_words() -> None:
    body = json.dumps(err("Please try again in 30s")).encode()
    assert classify(429, {"Retry-After": "7"}, body).retry_after == 7
    assert classify(429, {}, json.dumps(err("slow down, up to 3 at once")).encode()).retry_after is None


def test_a_refusal_of_what_was_said_is_no_matter_of_keys() -> None:
    body = json.dumps(err("Your input was flagged by moderation", code=403)).encode()
    error = classify(403, {}, body)
    assert "key" not in error.hint
    assert "rejected the content of the request" in error.hint


@pytest.mark.parametrize(
    "words",
    ["insufficient_quota", "The engine is overloaded", "Add 10 credits: no credits left", "invalid_api_key", "x" * 9],
)
def test_a_router_s_429_is_a_rate_limit_whatever_it_quotes(words: str) -> None:
    router = ErrorContext("openrouter", "m", "https://openrouter.ai/api/v1")
    assert classify(429, {}, json.dumps(err(words, code=429)).encode(), router).kind == "rate_limit"
    metadata = {"raw": json.dumps(err(words)), "provider_name": "Some host"}
    passed_on = err("Provider returned error", code=429, metadata=metadata)
    assert classify(429, {}, json.dumps(passed_on).encode()).kind == "rate_limit"
    decoder = decoder_for("openai-chat", Origin("openai-chat", "openrouter.ai", "m"))
    last = decoder.feed(WireEvent(json.dumps({**passed_on, "choices": []})))[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == "rate_limit"
    assert classify(402, {}, json.dumps(passed_on).encode(), router).kind == "quota"


def test_a_host_that_answers_a_long_prompt_with_nothing() -> None:
    cerebras = ErrorContext("cerebras", "m", "https://api.cerebras.ai/v1")
    assert classify(400, {}, b"", cerebras).kind == "context_overflow"
    assert classify(400, {}, b"", ErrorContext("openai")).kind == "bad_request"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}, "choices": None}, "quota"),
        ({"base_resp": {"status_code": 2013, "status_msg": "context window exceeds limit"}}, "context_overflow"),
        ({"error": {"message": wrapped(GEMINI_MINUTE)}}, "rate_limit"),
        ({"error": {"message": "blocked", "code": "content_filter"}}, "bad_request"),
        ({"error": {"message": "Provider disconnected unexpectedly", "code": "server_error"}, "choices": []}, "server"),
        ({"error": {"message": "slow", "code": "429"}}, "rate_limit"),
        ({"error": "the worker died"}, "server"),
        ({"object": "error", "message": "Model not found", "code": 404}, "not_found"),
    ],
)
def test_errors_in_the_middle_of_a_stream(data: Any, kind: ErrorKind) -> None:
    decoder = decoder_for("openai-chat", Origin("openai-chat", "h", "m"))
    decoder.feed(WireEvent('{"choices":[{"index":0,"delta":{"content":"half"}}]}'))
    last = decoder.feed(WireEvent(json.dumps(data)))[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == kind
    assert last.message is not None
    assert last.message.text == "half"


def test_a_good_answer_with_a_status_of_its_own_is_no_error() -> None:
    decoder = decoder_for("openai-chat", Origin("openai-chat", "h", "m"))
    whole = {
        "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}],
        "base_resp": {"status_code": 0, "status_msg": ""},
    }
    decoder.feed(WireEvent(json.dumps(whole)))
    decoder.end()
    assert decoder.answer.outcome == "completed"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [({"detail": "Not Found"}, "Not Found"), ({"code": 500, "msg": "系统异常", "success": False}, "系统异常")],
)
def test_json_of_another_kind_is_told_with_what_it_says(body: Any, sentence: str) -> None:
    decoder = decoder_for("openai-chat", Origin("openai-chat", "h", "m"))
    decoder.feed(WireEvent(json.dumps(body)))
    last = decoder.end()[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == "protocol"
    assert last.error.message == f"the answer is JSON, but does not follow this protocol: {sentence}"


def test_a_request_that_is_refused_for_what_it_says_is_marked() -> None:
    azure = err("The response was filtered by the content management policy", code="content_filter")
    assert classify(400, {}, json.dumps(azure).encode()).moderated
    assert not classify(400, {}, json.dumps(err("bad field")).encode()).moderated


@pytest.mark.parametrize(
    ("status", "message", "advice"),
    [
        (403, "Country, region, or territory not supported", "does not serve your region"),
        (400, "User location is not supported for the API use.", "does not serve your region"),
        (400, "Your organization must be verified to stream this model.", "Verify the organization"),
        (404, "No endpoints found matching your data policy (Free model publication).", "account's settings"),
        (404, "No allowed providers are available for the selected model.", "account's settings"),
        (400, "No models loaded. Please load a model in the developer page.", "load the model"),
        (500, "model requires more system memory (17.6 GiB) than is available (7.1 GiB)", "choose a smaller one"),
        (404, "This model is only supported in v1/responses and not in v1/chat/completions.", "another protocol"),
        (400, "temperature: 3 is greater than the maximum of 2", "change what the server names"),
        (400, "tools.0.name: String should match pattern", "description of a tool"),
        (400, "Invalid 'tools': array too long. Expected an array with maximum length 128", "description of a tool"),
        (
            400,
            "Invalid schema for function 'x': schema must be a JSON Schema of 'type: object'",
            "description of a tool",
        ),
        (400, "tools: Tool names must be unique.", "description of a tool"),
        (400, "m does not support tools", "may not support tools or images"),
        (400, "Unrecognized request argument supplied: functions", "may not support tools or images"),
        (
            400,
            "Invalid content type. image_url is only supported by certain models.",
            "may not support tools or images",
        ),
        (400, "This model does not support image input.", "may not support tools or images"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser', "with the option"),
        (500, "tools param requires --jinja flag", "with the option"),
        (500, "Error rendering prompt with jinja template: Cannot call something that is not a function", "template"),
        (400, "Conversation roles must alternate user/assistant/user/assistant/...", "earlier conversation"),
        (400, "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.", "earlier"),
        (400, "An assistant message with 'tool_calls' must be followed by tool messages", "earlier conversation"),
        (400, "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after", "earlier"),
        (400, "No tool output found for function call call_x.", "earlier conversation"),
        (400, "Please ensure that the number of function response parts is equal to the number of calls", "earlier"),
        (400, "Function call is missing a thought_signature in functionCall parts.", "earlier conversation"),
        (400, "Tool call id was x but must be a-z, A-Z, 0-9, with a length of 9.", "earlier conversation"),
        (400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum", "rejects an image"),
        (400, "The image dimensions exceed max allowed size: 8000 pixels", "rejects an image"),
        (507, "cannot free enough memory to load the model", "choose a smaller one"),
        (400, "Content Exists Risk", "rephrase it"),
        (403, "<html><title>Just a moment...</title></html>", "proxy or firewall"),
    ],
)
def test_the_advice_fits_the_cause_that_the_server_names(status: int, message: str, advice: str) -> None:
    body = message.encode() if message.startswith("<") else json.dumps(err(message)).encode()
    error = classify(status, {}, body)
    assert advice in error.hint
    assert "Check the key" not in error.hint
    assert "does not recognise" not in error.hint


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            err(
                "Provider returned error",
                code=429,
                metadata={"raw": "m is rate-limited upstream.", "provider_name": "P"},
            ),
            "P: m is rate-limited upstream.",
        ),
        (
            err("Provider returned error", code=400, metadata={"raw": json.dumps(err("bad tool_choice"))}),
            "bad tool_choice",
        ),
        (
            err(f"litellm.BadRequestError: X - {json.dumps(err('no such field'))}. Received Model Group=x"),
            "no such field",
        ),
        (
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "n"], "msg": "Extra inputs are not permitted"}]},
            "Extra inputs are not permitted (body.n)",
        ),
        (
            err(
                "Provider returned error",
                code=400,
                metadata={
                    "raw": json.dumps({"code": 400, "reason": "INVALID_BODY", "message": "no such thing here"}),
                    "provider_name": "P",
                },
            ),
            "P: no such thing here",
        ),
        (err('The schema {"message": "x"} is not valid here'), 'The schema {"message": "x"} is not valid here'),
    ],
)
def test_the_sentence_of_the_server_behind_the_server_is_shown(body: object, sentence: str) -> None:
    assert classify(400, {}, json.dumps(body).encode()).message == sentence


def test_a_wait_until_a_moment() -> None:
    moment = round((datetime.now(UTC).timestamp() + 7200) * 1000)
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(moment)}
    body = err("Rate limit exceeded: free-models-per-day", code=429, metadata={"headers": headers})
    after = classify(429, {}, json.dumps(body).encode()).retry_after
    assert after is not None
    assert 7000 < after < 7201  # the moment is a rounded millisecond


def test_the_servers_clock_tells_the_wait() -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1754667660000"}
    body = err("Rate limit exceeded: limit_rpm/meta-llama", code=429, metadata={"headers": headers})
    error = classify(429, {"Date": "Fri, 08 Aug 2025 15:40:34 GMT"}, json.dumps(body).encode())
    assert (error.kind, error.retry_after) == ("rate_limit", 26)


def test_a_call_that_its_own_server_cannot_read_is_tried_again() -> None:
    body = err("Failed to call a function.", code="tool_use_failed", failed_generation="<function=read>{}")
    error = classify(400, {}, json.dumps(body).encode())
    assert error.retryable
    assert "could not read" in error.hint


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, err("Error rendering prompt with jinja template: Cannot call something that is not a function")),
        (500, err("Value is not callable: null at row 62, column 114:\n{{ x }}", code=500, type="server_error")),
        (200, err("Failed to apply the chat template: only user and assistant roles are supported")),
        (429, err("To use this with your plan, upgrade to Plus.", type="usage_not_included")),
        (507, {"detail": "cannot free enough memory"}),
        (500, err("model requires more system memory (17.6 GiB) than is available (7.1 GiB)")),
        (500, err("Model loading was aborted due to insufficient system resources.")),
    ],
)
def test_what_waiting_does_not_mend_is_not_tried_again(status: int, body: Any) -> None:
    assert not classify(status, {}, json.dumps(body).encode()).retryable


@pytest.mark.parametrize(
    ("quotas", "kind"),
    [
        (["GenerateRequestsPerDayPerProjectPerModel-FreeTier"], "quota"),
        (["GenerateRequestsPerMinutePerProjectPerModel-FreeTier"], "rate_limit"),
        (["GenerateRequestsPerMinutePerProject-FreeTier", "GenerateRequestsPerDayPerProject-FreeTier"], "quota"),
    ],
)
@pytest.mark.parametrize("message", ["You exceeded your current quota.", "Resource has been exhausted."])
def test_a_quota_of_a_day_does_not_refill_in_time(quotas: list[str], kind: ErrorKind, message: str) -> None:
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": one} for one in quotas]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26s"},
    ]
    body = err(message, code=429, status="RESOURCE_EXHAUSTED", details=details)
    error = classify(429, {}, json.dumps(body).encode())
    assert (error.kind, error.retryable) == (kind, kind == "rate_limit")


def test_a_plan_without_the_model_is_named() -> None:
    body = err("To use this with your plan, upgrade to Plus.", type="usage_not_included")
    error = classify(429, {}, json.dumps(body).encode())
    assert error.kind == "quota"
    assert "does not include the model" in error.hint
