"""What a name without a provider means, and which model is likely wanted."""

from __future__ import annotations

import pytest

from swecli.core.llm.model_names import chats, chatting, find_model, likeliest_first
from swecli.core.llm.offers import ModelOffer


def offer(ref: str, *, key: bool = True, listed: bool = False, deprecated: bool = False) -> ModelOffer:
    return ModelOffer(ref, "environment" if key else "missing", "THE_KEY", listed=listed, deprecated=deprecated)


ANTHROPIC = tuple(
    offer(f"anthropic/{name}")
    for name in ("claude-3-7-sonnet-latest", "claude-sonnet-4-5-20250929", "claude-sonnet-4-6", "claude-haiku-4-5")
)
SERVER = (offer("openai/mock", listed=True), offer("openai/mock-mini", listed=True), offer("openai/bge-mock"))


@pytest.mark.parametrize(
    ("name", "ref"),
    [
        ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4.6", "anthropic/claude-sonnet-4-6"),
        ("sonnet", "anthropic/claude-sonnet-4-6"),
        ("HAIKU", "anthropic/claude-haiku-4-5"),
        ("claude haiku", "anthropic/claude-haiku-4-5"),
        ("mock", "openai/mock"),
        ("mini", "openai/mock-mini"),
        ("bge-mock", "openai/bge-mock"),
    ],
)
def test_a_name_is_looked_up(name: str, ref: str) -> None:
    found = find_model(name, (*ANTHROPIC, *SERVER))
    assert (found.ref, found.problem) == (ref, "")


def test_names_that_differ_only_in_case_are_distinct() -> None:
    offers = (offer("mine/ok"), offer("mine/OK"))
    assert [find_model(name, offers).ref for name in ("ok", "OK")] == ["mine/ok", "mine/OK"]


def test_what_was_chosen_is_said_unless_it_was_named() -> None:
    assert find_model("mock", SERVER).note == ""
    assert find_model("sonnet", ANTHROPIC).note == "sonnet is anthropic/claude-sonnet-4-6."


def test_where_two_fit_both_are_named() -> None:
    offers = (offer("openai/gpt-5"), offer("openrouter/openai/gpt-5"), offer("openai/gpt-5-mini"))
    found = find_model("gpt-5", offers)
    assert found.ref == ""
    assert found.problem == "gpt-5 matches openai/gpt-5 and openrouter/openai/gpt-5; name one of them."
    assert found.candidates == ("openai/gpt-5", "openrouter/openai/gpt-5")
    families = find_model("qwen3", (offer("x/qwen3-coder"), offer("x/qwen3-max")))
    assert families.candidates == ("x/qwen3-coder", "x/qwen3-max")


def test_what_can_be_used_counts_before_what_needs_a_key() -> None:
    offers = (offer("openai/gpt-5", key=False), offer("openrouter/openai/gpt-5"))
    assert find_model("gpt-5", offers).ref == "openrouter/openai/gpt-5"
    without = find_model("gpt-5", offers[:1])
    assert without.ref == ""
    assert without.problem == "gpt-5 is openai/gpt-5, which has no key: set THE_KEY or use /login openai."
    several = find_model("gpt-5", [offer(f"{maker}/gpt-5", key=False) for maker in ("openai", "a", "b", "c", "d")])
    assert several.problem == (
        "gpt-5 matches openai/gpt-5, a/gpt-5, b/gpt-5, c/gpt-5 and 1 more, which have no key."
        " For openai/gpt-5, set THE_KEY or use /login openai."
    )


def test_a_mistyped_name_gets_the_nearest_and_others_a_way_out() -> None:
    assert "Did you mean openai/mock?" in find_model("mokc", SERVER).problem
    assert find_model("sonet", ANTHROPIC).problem.endswith("Did you mean anthropic/claude-sonnet-4-6?")
    assert find_model("cluade-hiaku", ANTHROPIC).problem.endswith("Did you mean anthropic/claude-haiku-4-5?")
    assert "Did you mean" not in find_model("sonnet haiku", ANTHROPIC).problem
    unknown = find_model("hello", SERVER).problem
    assert unknown.startswith("Model 'hello' is unknown.")
    assert "`swecli models` (/model in a session) lists" in unknown
    assert find_model("x", ()).problem.startswith("Model 'x' is unknown.")


def test_a_name_with_a_provider_that_is_unknown_goes_to_no_other_provider() -> None:
    for name in ("ofice/mock", "antropic/claude-sonnet-4-6", "office/claude-sonnet-4-6-20260101", "x/sonnet"):
        assert find_model(name, (*ANTHROPIC, *SERVER)).ref == ""
    assert "Did you mean openai/mock?" in find_model("opnai/mock", SERVER).problem
    routed = (offer("openrouter/openai/gpt-5"), offer("hf/Qwen/Qwen3-8B"), offer("x/maker/m-20250101"))
    for name, ref in (("openai/gpt-5", 0), ("qwen/qwen3-8b", 1), ("maker/m", 2)):
        assert find_model(name, routed).ref == routed[ref].ref


def test_the_likely_one_comes_first() -> None:
    offers = (
        offer("openai/text-embedding-3-small", listed=True),
        offer("openai/zephyr", listed=True),
        offer("openai/claude-sonnet-5.5", listed=True),
        offer("anthropic/claude-sonnet-5-5"),
        offer("gemini/gemini-3", key=False),
    )
    refs = [one.ref for one in likeliest_first(reversed(offers))]
    assert refs == [
        "openai/claude-sonnet-5.5",
        "openai/zephyr",
        "openai/text-embedding-3-small",
        "anthropic/claude-sonnet-5-5",
        "gemini/gemini-3",
    ]
    assert likeliest_first(offers, ("openai/zephyr",))[0].ref == "openai/zephyr"


@pytest.mark.parametrize(
    "name",
    [
        *("text-embedding-3", "whisper-1", "tts-1", "gpt-4o-mini-tts", "dall-e-3", "omni-moderation-latest"),
        *("gpt-image-1", "qwen-image-edit", "gemini-2.5-flash-image", "qwen3-asr", "hf/bge-m3", "all-minilm:l6"),
        *("jina-reranker-v2", "black-forest-labs/FLUX.1-dev", "llama-guard-4-12b", "Qwen3Guard-8B", "granite-guardian"),
        *(
            "veo-3.0-generate",
            "lyria-3-pro-preview",
            "nano-banana-pro-preview",
            "imagen-4",
            "sora-2",
            "gpt-4o-transcribe",
            "text-davinci-003",
            "davinci-002",
        ),
    ],
)
def test_what_does_not_chat_is_known_by_its_name(name: str) -> None:
    assert not chats(name)


@pytest.mark.parametrize(
    "name",
    [
        *("gpt-5.3-codex", "imagine-7b", "gpt-4o-audio-preview", "gpt-audio", "voxtral-small", "embed-chat"),
        *("vanguard-7b", "flux-coder", "influx-2", "soraka-8b", "davinci-8b-instruct", "whisperer-chat"),
    ],
)
def test_in_doubt_a_model_chats(name: str) -> None:
    assert chats(name)


def test_lists_leave_out_what_does_not_chat() -> None:
    refs = ("a/chat", "a/whisper-1", "a/tts-1", "a/bge-m3", "b/flux-1", "image/llama")
    offers = [ModelOffer(ref, "not needed") for ref in refs]
    shown = [offer.ref for offer in chatting(offers, ("a/tts-1",))]
    assert shown == ["a/chat", "a/tts-1", "b/flux-1", "image/llama"]


def test_the_server_knows_better_than_the_name() -> None:
    offers = (
        ModelOffer("a/plain", "not needed", chats=False),
        ModelOffer("a/embedder", "not needed", chats=True),
        ModelOffer("a/embed-2", "not needed"),
    )
    assert [offer.ref for offer in chatting(offers)] == ["a/embedder"]
