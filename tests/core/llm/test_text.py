from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.llm.text import SurrogateJoiner, ThinkSplitter, ThinkTags, clean


def test_pairs_are_joined_and_halves_replaced() -> None:
    assert clean("a\ud83d\ude00b\ud83dc") == "a😀b\ufffdc"
    joiner = SurrogateJoiner()
    assert joiner.feed("a\ud83d") == "a"
    assert joiner.feed("\ude00") == "😀"
    assert joiner.feed("\ude00x\ud83d") == "\ufffdx"
    assert joiner.end() == "\ufffd"


@given(st.lists(st.text(st.characters() | st.characters(categories=["Cs"]))))
@settings(max_examples=80, deadline=None)
def test_joining_does_not_depend_on_the_cuts(pieces: list[str]) -> None:
    joiner = SurrogateJoiner()
    joined = "".join(joiner.feed(piece) for piece in pieces) + joiner.end()
    assert joined == clean("".join(pieces))
    joined.encode()


def split(tags: ThinkTags, text: str, size: int) -> tuple[str, str]:
    splitter = ThinkSplitter(tags)
    pairs = [splitter.feed(text[i : i + size]) for i in range(0, len(text), size)]
    pairs.append(splitter.end())
    return "".join(pair[0] for pair in pairs), "".join(pair[1] for pair in pairs)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    ("tags", "text", "reasoning", "answer"),
    [
        ("split", "<think>plan</think>\n\nanswer", "plan", "answer"),
        ("split", "\n<think>plan < 3</th></think>a", "plan < 3</th>", "a"),
        ("split", "use <think>x</think>", "", "use <think>x</think>"),
        ("split", "<think>never closed", "never closed", ""),
        ("split", "<th", "", "<th"),
        ("opened", "plan</think>answer", "plan", "answer"),
        ("split", "<thought>plan</think></thought>a", "plan</think>", "a"),
        ("split", "<thinking>plan</thinking>a", "plan", "a"),
        ("split", "<thoughtful> a", "", "<thoughtful> a"),
        ("opened", "plan</thought>answer</think>", "plan", "answer</think>"),
        ("keep", "<think>a</think>b", "", "<think>a</think>b"),
        (
            "split",
            "<|channel|>analysis<|message|>plan <|<|end|><|start|>assistant<|channel|>final<|message|>answer<|return|>",
            "plan <|",
            "answer",
        ),
        (
            "split",
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
            "<|start|>assistant<|channel|>analysis<|message|>b<|start|>assistant<|channel|>final<|message|>c",
            "a\n\nb",
            "I look.\n\nc",
        ),
        (
            "split",
            "<|channel|>analysis<|message|>a<|end|>"
            "<|start|>assistant<|channel|>commentary to=functions.f<|message|>{}<|call|>",
            "a",
            "<|start|>assistant<|channel|>commentary to=functions.f<|message|>{}<|call|>",
        ),
        ("split", "<|channel|>analysis<|message|>a<|en", "a<|en", ""),
        ("split", "<|chan", "", "<|chan"),
        ("split", "<|channel|> is a token" + "!" * 400, "", "<|channel|> is a token" + "!" * 400),
        ("keep", "<|channel|>final<|message|>a", "", "<|channel|>final<|message|>a"),
    ],
)
def test_think_tags(tags: ThinkTags, text: str, reasoning: str, answer: str, size: int) -> None:
    assert split(tags, text, size) == (reasoning, answer)
