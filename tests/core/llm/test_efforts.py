"""Which words for effort a model is offered with."""

from __future__ import annotations

import pytest

from swecli.core.llm.dialects import offered
from swecli.core.llm.providers import ProviderConfig, resolve
from swecli.core.llm.types import ModelInfo


def test_the_list_of_models_says_it_where_the_host_reads_words() -> None:
    config = resolve("openai/gpt-5", {"OPENAI_API_KEY": "sk-1"})
    assert config.info.efforts is not None
    assert {"low", "high"} <= set(config.info.efforts)


def test_a_host_with_a_switch_has_two_words_and_an_unknown_model_none_that_are_known() -> None:
    assert resolve("ollama/anything", {}).info.efforts == ("none", "high")
    own = ProviderConfig("mine", "openai-chat", "http://127.0.0.1:9/v1", local=True)
    assert resolve("mine/anything", {}, (own,)).info.efforts is None


def test_old_models_take_no_word() -> None:
    assert resolve("anthropic/claude-3-5-sonnet-20241022", {"ANTHROPIC_API_KEY": "k"}).info.efforts == ()


@pytest.mark.parametrize("listed", [None, ("low",), ("none", "high")])
def test_where_the_host_reads_nothing_nothing_is_offered(listed: tuple[str, ...] | None) -> None:
    assert offered("none", listed) == ()


def test_a_model_that_does_not_reason_is_offered_nothing() -> None:
    assert offered("reasoning_effort", ()) == ()


def test_what_a_model_is_asked_with_makes_it_no_other_model() -> None:
    model = ModelInfo("openai", "gpt-5")
    same, other = ModelInfo("openai", "gpt-5", efforts=("low",)), ModelInfo("openai", "gpt-4")
    assert (model == same, model != same, model == other, model != other) == (True, False, False, True)
