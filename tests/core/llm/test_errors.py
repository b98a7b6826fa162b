from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from swecli.core.llm.remedies import GO_ON_LATER, ErrorContext, for_shell, for_task
from swecli.core.llm.retry_hints import reset_of, retry_after
from tests.core.llm.support import classify
from tests.core.llm.wire_cases import WireCase, all_cases

CONTEXT = ErrorContext("openai", "gpt-x", "https://example.com/v1", ("OPENAI_API_KEY",))


@pytest.mark.parametrize("case", [case for case in all_cases() if case.status != 200], ids=str)
def test_wire_cases(case: WireCase) -> None:
    error = classify(case.status, case.headers, case.body, CONTEXT)
    expected = case.expected["error"]
    assert (error.kind, error.status, error.error_type, error.code) == (
        expected["kind"],
        case.status,
        expected["type"],
        expected["code"],
    )


@pytest.mark.parametrize(
    ("message", "prompt", "window"),
    [
        ("prompt is too long: 3333404 tokens > 200000 maximum", 3333404, 200000),
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130010 tokens.",
            130010,
            128000,
        ),
        (
            "This endpoint's maximum context length is 1048565 tokens. However, you requested about 1200000 tokens",
            1200000,
            1048565,
        ),
        (
            "This model's maximum context length is 4096 tokens and your request has 2778 input tokens",
            2778,
            4096,
        ),
        ("The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).", 1250074, 1048576),
        ("request (4476 tokens) exceeds the available context size (4096 tokens), try increasing it", 4476, 4096),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 537812, 131072),
        ("too many tokens: size limit exceeded by 9 tokens. The limit for this model is 288000 tokens", None, 288000),
        (
            "keep the first 9000 tokens. However, the model is loaded with context length of only 4096 tokens",
            9000,
            4096,
        ),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 40000, 32768),
        ("Your request exceeded model token limit: 262144 (requested: 300000)", 300000, 262144),
        ("prompt too long; exceeded max context length by 12 tokens", None, None),
        ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
    ],
)
def test_overflow_and_its_numbers(message: str, prompt: int | None, window: int | None) -> None:
    error = classify(400, {}, json.dumps({"error": {"message": message}}).encode())
    assert (error.kind, error.prompt_tokens, error.window) == ("context_overflow", prompt, window)
    assert "/compact" in error.hint
    assert not error.retryable


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}, "auth"),
        (403, {"error": "forbidden"}, "auth"),
        (400, {"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}, "auth"),
        (404, {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}, "not_found"),
        (400, {"error": {"message": "Model Not Exist", "type": "invalid_request_error"}}, "not_found"),
        (402, {"error": {"message": "Insufficient Balance"}}, "quota"),
        (
            400,
            {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}},
            "quota",
        ),
        (429, {"error": {"message": "slow down"}}, "rate_limit"),
        (413, {"error": {"message": "Request too large on tokens per minute (TPM): Limit 8000"}}, "too_large"),
        (500, {"error": {"message": "oops"}}, "server"),
        (503, {}, "overloaded"),
        (408, {}, "server"),
        (400, {"object": "error", "message": "bad tools", "type": "BadRequestError", "code": 400}, "bad_request"),
        (422, {"detail": [{"loc": ["body"], "msg": "no"}]}, "bad_request"),
        (
            400,
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {"raw": '{"message":"prompt is too long: 5 tokens > 4 maximum"}'},
                }
            },
            "context_overflow",
        ),
        (429, {"error": {"message": "too many tokens: maximum context length is 5 per minute"}}, "rate_limit"),
    ],
)
def test_kinds(status: int, body: object, kind: str) -> None:
    assert classify(status, {}, json.dumps(body).encode()).kind == kind


def test_a_quota_of_a_minute_is_a_rate_limit() -> None:
    def body(quota: str) -> bytes:
        violation = {"quotaId": quota}
        details = [{"violations": [violation]}, {"retryDelay": "34.5s"}]
        message = "You exceeded your current quota, please check your plan and billing details."
        return json.dumps({"error": {"code": 429, "message": message, "details": details}}).encode()

    minute = classify(429, {}, body("GenerateRequestsPerMinutePerProjectPerModel"))
    assert (minute.kind, minute.retry_after) == ("rate_limit", 34.5)
    assert classify(429, {}, body("GenerateRequestsPerDayPerProjectPerModel")).kind == "quota"


def test_retry_after() -> None:
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after({"retry-after-ms": "0", "retry-after": "1"}) == 1
    assert retry_after({"retry-after-ms": "0"}) == 0
    assert retry_after({"retry-after": "0.25"}) == 0.25
    dated = {"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    assert retry_after(dated) == 30
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}) == 0
    for nonsense in ("soon", "nan", "-5", "inf", "", "Mon, 20 Nov 1995 19:12:08 +99999999999999999"):
        assert retry_after({"retry-after": nonsense}) is None
    assert classify(429, {"Retry-After": "17"}, b"").retry_after == 17
    assert classify(429, {}, b'{"error": "try again in %s h"}' % (b"9" * 400)).retry_after is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("choose another model with /model or -m", "choose another model with -m"),
        ("Start the server and use /model, or type openai/NAME.", "Start the server and use -m openai/NAME."),
        ("Type openai/NAME if you know one.", "Give -m openai/NAME if you know one."),
        ("set KEY or use /login openai.", "set KEY or use swecli login openai."),
        ("`swecli models` (/model in a session) lists them", "`swecli models` lists them"),
        ("Restart it, or use /login.", "Restart it, or use swecli login."),
        ("http://h/login, ./login/x, a/login.py, /login.html", "http://h/login, ./login/x, a/login.py, /login.html"),
        ("the content type application/json", "the content type application/json"),
    ],
)
def test_in_a_shell_remedies_are_what_works_there(text: str, said: str) -> None:
    assert for_shell(text) == said


def test_a_task_of_many_has_no_session_to_continue() -> None:
    assert for_task(f"openai: connection refused; use /model or -m. {GO_ON_LATER}") == (
        "openai: connection refused; use -m."
    )


def test_hints_name_what_to_do() -> None:
    assert "OPENAI_API_KEY" in classify(401, {}, b"{}", CONTEXT).hint
    stored = classify(401, {}, b"{}", replace(CONTEXT, key="stored")).hint
    assert "rejected the stored key" in stored
    assert "/login openai" in stored
    assert "OPENAI_API_KEY" not in stored
    absent = classify(401, {}, b"{}", replace(CONTEXT, key="none")).hint
    assert absent == "https://example.com/v1 requires a key: set OPENAI_API_KEY or use /login openai."
    login = classify(401, {}, b"{}", replace(CONTEXT, key="address")).hint
    assert "rejected the name and password in its base URL" in login
    assert "/login" not in login
    missing = classify(404, {}, b'{"error":"no such model"}', CONTEXT).hint
    assert "gpt-x" in missing
    assert "https://example.com/v1" in missing
    page = classify(404, {}, b"<html><head><title>Not Found</title></head><body>x</body></html>", CONTEXT)
    assert page.message == "a web page instead of an answer: Not Found"
    assert "base URL" in page.hint
    moved = classify(307, {"Location": "https://other.example/v1"}, b"", CONTEXT)
    assert moved.kind == "protocol"
    assert "https://other.example/v1" in moved.message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"[[[]]]",
        b"null",
        b'"text"',
        b"[" * 100_000,
        b'{"error":{}}',
        b'{"error":[{"message":"m"}]}',
        b'{"error":{"message":{"a":1},"code":{"b":2}}}',
    ],
)
def test_any_body_is_an_error_with_words(body: bytes) -> None:
    error = classify(400, {}, body)
    assert error.kind == "bad_request"
    assert error.message
    assert len(error.message) < 3000


DATE = {"date": "Fri, 27 Nov 2026 10:00:00 GMT"}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, 360),
        ({"x-ratelimit-reset-tokens": "59.9s", "x-ratelimit-remaining-tokens": "12"}, None),
        (
            {
                "x-ratelimit-reset-requests": "1h2m3.5s",
                "x-ratelimit-remaining-requests": "900",
                "x-ratelimit-reset-tokens": "120ms",
                "x-ratelimit-remaining-tokens": "0",
            },
            0.12,
        ),
        (
            {
                "anthropic-ratelimit-input-tokens-reset": "2026-11-27T10:00:42Z",
                "anthropic-ratelimit-input-tokens-remaining": "0",
            },
            42,
        ),
        ({"anthropic-ratelimit-unified-reset": "1795773630"}, 30),
        ({"x-ratelimit-reset": "1795773607000", "x-ratelimit-remaining": "0"}, 7),
        ({"x-ratelimit-reset-tokens-minute": "23.5", "x-ratelimit-remaining-tokens-minute": "0"}, 23.5),
        ({"ratelimit-reset": "9"}, 9),
        ({"ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-limit-requests": "9"}, None),
    ],
)
def test_when_a_limit_refills(headers: dict[str, str], seconds: float | None) -> None:
    assert reset_of({**DATE, **headers}) == seconds
    assert classify(429, {**DATE, **headers}, b"").retry_after == seconds
    assert classify(503, {**DATE, **headers}, b"").retry_after is None


def test_the_hint_does_not_repeat_the_servers_advice() -> None:
    told = classify(503, {}, b'{"error": "Overloaded, please try again later"}', CONTEXT).hint
    assert told == "If it persists, choose another model with /model or -m."
    assert classify(503, {}, b'{"error": "Overloaded"}', CONTEXT).hint.startswith("Try again later, or choose")


def test_the_most_precise_hint_counts() -> None:
    headers = {"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}
    assert classify(429, headers, b'{"error": {"message": "Please try again in 20s."}}').retry_after == 20
    assert classify(429, {**headers, "retry-after": "3"}, b"").retry_after == 3


@pytest.mark.parametrize(("url", "theirs"), [("http://127.0.0.1:8080/v1", True), ("https://example.com/v1", False)])
def test_the_owner_of_a_server_can_also_enlarge_its_window(url: str, theirs: bool) -> None:
    hint = classify(400, {}, b'{"error": "prompt is too long"}', replace(CONTEXT, base_url=url)).hint
    assert "/compact" in hint
    assert ("larger one" in hint) == theirs
