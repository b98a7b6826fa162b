"""Forms of servers: formats, defaults in the words of the choices, and what an empty line means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types
import pytest

from swecli.core.mcp.elicitation import elicit
from swecli.core.protocol.request_events import Question

FORM = {
    "mail": {"type": "string", "title": "Mail", "format": "email"},
    "site": {"type": "string", "format": "uri"},
    "born": {"type": "string", "format": "date"},
    "at": {"type": "string", "format": "date-time"},
    "hero": {
        "type": "string",
        "oneOf": [{"const": "h1", "title": "Ann"}, {"const": "h2", "title": "Bob"}],
        "default": "h2",
    },
    "tools": {"type": "array", "items": {"type": "string", "enum": ["saw", "axe"]}, "default": ["axe"]},
    "note": {"type": "string", "default": "none"},
}


class Answers:
    """Gives one reply to each round of questions."""

    def __init__(self, *rounds: Sequence[Sequence[str]]) -> None:
        self.rounds = list(rounds)
        self.asked: list[Sequence[Question]] = []

    async def ask(self, item: str, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...]:
        self.asked.append(questions)
        return tuple(tuple(one) for one in self.rounds.pop(0))


async def filled(form: Mapping[str, Any], answers: Answers, *required: str) -> mcp_types.ElicitResult:
    schema = {"type": "object", "properties": form, "required": list(required)}
    params = mcp_types.ElicitRequestFormParams(message="Say more.", requested_schema=schema)
    result, _ = await elicit(params, "hub", "t1", answers)
    return result


async def test_what_is_no_such_format_is_asked_again() -> None:
    first = (("nomail",), ("here",), ("31.1.2026",), ("noon",), ("Ann",), ("saw",), ("",))
    second = (("a@b.org",), ("https://b.org",), ("2026-01-31",), ("2026-01-31T09:30:00Z",))
    answers = Answers(first, second)
    result = await filled(FORM, answers, "mail")
    assert result.content == {
        "mail": "a@b.org",
        "site": "https://b.org",
        "born": "2026-01-31",
        "at": "2026-01-31T09:30:00Z",
        "hero": "h1",
        "tools": ["saw"],
        "note": "none",
    }
    texts = [question.text for question in answers.asked[1]]
    assert texts[0] == "email\nhub asks for a different answer: 'nomail' is not an email address"
    assert [text.rpartition(": ")[2] for text in texts[1:]] == [
        "'here' is not an address such as https://example.org",
        "'31.1.2026' is not a date such as 2026-01-31",
        "'noon' is not a date with time such as 2026-01-31T09:30:00Z",
    ]


async def test_defaults_are_told_as_the_user_sees_them_and_an_empty_line_has_a_meaning() -> None:
    answers = Answers((("a@b.org",), ("",), ("",), ("",), ("Bob",), ("axe",), ("",)))
    result = await filled(FORM, answers, "mail")
    assert result.content == {"mail": "a@b.org", "hero": "h2", "tools": ["axe"], "note": "none"}
    mail, site, *_, hero, tools, note = answers.asked[0]
    assert [one.blank for one in (mail, site, hero, tools, note)] == ["", "leaves it out", "", "", "takes none"]
    assert hero.text.startswith("(optional) [default: Bob]")
    assert tools.text.startswith("(optional) [default: axe]")


@pytest.mark.parametrize(
    "form", [{"a": {"type": "string", "format": "email"}}, {"a": {"type": "string", "format": "hostname"}}]
)
async def test_an_unknown_format_takes_what_is_said(form: Mapping[str, Any]) -> None:
    assert (await filled(form, Answers((("x@y.z",),)), "a")).content == {"a": "x@y.z"}


@pytest.mark.parametrize(
    "form",
    [{"a": True}, {"a": {"enum": 3}}, {"a": {"oneOf": ["x"]}}, {"a": {"type": "array", "items": "x"}}, ["a"], "ab"],
)
async def test_a_form_of_another_shape_is_declined(form: Any) -> None:
    params = mcp_types.ElicitRequestFormParams(message="Say more.", requested_schema={"properties": form})
    result, why = await elicit(params, "hub", "t1", Answers())
    assert result.action == "decline"
    assert "does not follow the protocol" in why


@pytest.mark.parametrize("said", ["nan", "inf", "-1e999", "many"])
async def test_what_json_does_not_have_is_no_number(said: str) -> None:
    answers = Answers(((said,),), (("2.5",),))
    assert (await filled({"a": {"type": "number"}}, answers, "a")).content == {"a": 2.5}
    assert len(answers.asked) == 2
