from __future__ import annotations

import json

import pytest

from swecli.core.llm.json_values import MAX_DEPTH, as_int, is_too_deep, parse_json, parse_object


@pytest.mark.parametrize(
    "text", ["[" * 300 + "]" * 300, '{"a":' * 201 + "1" + "}" * 201, "NaN", "[Infinity]", "1e999", "", "{"]
)
def test_what_is_no_usable_json(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_json(text)


def test_brackets_in_strings_are_not_depth() -> None:
    value = {"a": "[{" * 1000 + '\\"', "b": [[]] * 300}
    assert parse_json(json.dumps(value)) == value
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert parse_json(deep) is not None


def test_numbers() -> None:
    assert [as_int(value) for value in (3, 3.0, 3.5, True, "3", None)] == [3, 3, None, None, None, None]
    assert parse_object('{"a": 1.5}') == {"a": 1.5}
    assert parse_object("[1]") is None


def test_looking_for_depth_is_linear_in_a_string_that_is_never_closed() -> None:
    assert not is_too_deep("[" * 150 + '"\\' * 200_000 + "[" * 100)
    assert is_too_deep("[" * 201)
    assert not is_too_deep('["' + "[" * 500 + '"]')
