"""Structs from data of outside: what fits, what is converted, and how each problem is named."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from swecli.core.validation import (
    Checked,
    InvalidError,
    changed,
    check,
    choices,
    compact_schema,
    default_of,
    fields_by_name,
    in_words,
    validated,
)
from tests.support.thorough import examples


def loud(text: str) -> str:
    if not text.isupper():
        raise ValueError("must be loud")
    return f"{text}!"


def as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Loud = Annotated[str, check(loud)]
Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(gt=0, le=1)]


class Inner(Checked):
    name: Loud
    size: Count = 1


class Outer(Checked):
    inner: Inner | None = None
    many: Annotated[tuple[Inner, ...], Meta(max_length=2)] = ()
    named: dict[Loud, Count] = {}
    amount: Count | Share | None = None
    mode: Literal["on", "off"] = "off"
    words: Annotated[list[str], check(lambda value: value, before=as_list)] = []
    pair: tuple[int, int] | None = None
    flag: bool = False
    free: Any = None
    later: bool = msgspec.field(default=False, name="async")

    def problem(self) -> str:
        return "must not be on without a flag" if self.mode == "on" and not self.flag else ""


def problems(data: object, *, lenient: bool = False) -> list[tuple[str, str]]:
    with pytest.raises(InvalidError) as refused:
        validated(Outer, data, lenient=lenient)
    return [(".".join(one.place), one.message) for one in refused.value.problems]


def test_values_of_every_type_arrive() -> None:
    data = {
        "inner": {"name": "A"},
        "many": [{"name": "B", "size": 2}],
        "named": {"C": 3},
        "amount": 0.5,
        "mode": "on",
        "words": "one",
        "pair": [1, 2],
        "flag": True,
        "free": {"x": [None]},
        "async": True,
    }
    assert validated(Outer, data) == Outer(
        Inner("A!"), (Inner("B!", 2),), {"C!": 3}, 0.5, "on", ["one"], (1, 2), True, {"x": [None]}, True
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([], [("", "must be a table")]),
        ({"inner": 1}, [("inner", "must be a table")]),
        ({"inner": {}}, [("inner.name", "must be given too")]),
        ({"inner": {"name": "a", "size": 0}}, [("inner.name", "must be loud"), ("inner.size", "must be at least 1")]),
        (
            {"many": [{"name": 1}, {"name": "B", "x": 1}]},
            [("many.0.name", "must be text"), ("many.1.x", "must not be here: unknown key")],
        ),
        ({"many": [{"name": "A"}] * 3}, [("many", "must have at most 2 entries")]),
        ({"named": {"c": 1, "D": 0}}, [("named.c", "must be loud"), ("named.D", "must be at least 1")]),
        ({"named": {"c": 0}}, [("named.c", "must be loud"), ("named.c", "must be at least 1")]),
        ({"amount": 10**400}, [("amount", "must be at most 9,223,372,036,854,775,807")]),
        ({"pair": [1, -(2**63)]}, [("pair.1", "must be at least -9,223,372,036,854,775,807")]),
        ({"amount": 1.5}, [("amount", "must be at most 1")]),
        ({"amount": float("inf")}, [("amount", "must be a finite number")]),
        ({"amount": "x"}, [("amount", "must be a whole number from 1 or a number above 0 to 1")]),
        ({"amount": True}, [("amount", "must be a whole number from 1 or a number above 0 to 1")]),
        ({"mode": "On"}, [("mode", 'must be one of "on", "off"')]),
        ({"mode": "on"}, [("", "must not be on without a flag")]),
        ({"words": 1}, [("words", "must be a list")]),
        ({"pair": [1]}, [("pair", "must be a list of 2 entries")]),
        ({"flag": 1}, [("flag", "must be true or false")]),
        ({"later": True}, [("later", "must not be here: unknown key")]),
    ],
)
def test_each_problem_has_its_place_and_a_clause(data: object, expected: list[tuple[str, str]]) -> None:
    assert problems(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"flag": "true", "async": 0}, Outer(flag=True)),
        ({"flag": "No"}, Outer()),
        ({"flag": "t", "async": "n"}, Outer(flag=True)),
        ({"amount": "7"}, Outer(amount=7)),
        ({"amount": "0.25"}, Outer(amount=0.25)),
        ({"pair": ["3", 4.0]}, Outer(pair=(3, 4))),
        ({"words": [1, 2.5]}, Outer(words=["1", "2.5"])),
    ],
)
def test_only_clear_meanings_are_converted_and_only_if_asked(data: dict[str, Any], expected: Outer) -> None:
    assert validated(Outer, data, lenient=True) == expected
    assert problems(data)


@pytest.mark.parametrize(
    "data",
    [
        {"amount": "1e999"},
        {"amount": "9" * 400},
        {"amount": "9" * 5_000},
        {"amount": "nan"},
        {"pair": [True, 1]},
        {"words": [True]},
    ],
)
def test_what_has_no_clear_meaning_is_refused(data: dict[str, Any]) -> None:
    assert problems(data, lenient=True)


def test_what_may_be_anything_has_no_bounds() -> None:
    assert validated(Outer, {"free": math.inf}) == Outer(free=math.inf)
    assert validated(Outer, {"free": 10**400}) == Outer(free=10**400)


def test_a_missing_field_does_not_hide_what_contradicts_itself() -> None:
    class Pair(Checked):
        one: str
        other: str = ""

        def problem(self) -> str:
            return "" if self.other else "needs the other"

    with pytest.raises(InvalidError) as refused:
        validated(Pair, {})
    assert [(one.place, one.kind) for one in refused.value.problems] == [(("one",), "missing"), ((), "value")]


def test_what_was_changed_is_as_one_would_write_it() -> None:
    assert changed(Outer()) == {}
    made = validated(Outer, {"many": [{"name": "A", "size": 1}], "async": True, "inner": {"name": "B", "size": 2}})
    assert changed(made) == {"inner": {"name": "B!", "size": 2}, "many": [{"name": "A!"}], "async": True}


def test_defaults_words_and_choices() -> None:
    fields = fields_by_name(Outer)
    assert default_of(Outer, "named") == {}
    assert default_of(Inner, "name") is None
    assert in_words(fields["many"].type) == "a list, each a table"
    assert choices(fields["mode"].type) == ("on", "off")
    assert choices(fields["flag"].type) == (True, False)
    assert choices(fields["amount"].type) == ()


def test_the_schema_has_types_choices_and_what_is_required() -> None:
    inner = {
        "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
        "required": ["name"],
        "type": "object",
    }
    schema = compact_schema(Outer)
    assert schema["properties"]["inner"] == inner
    assert schema["properties"]["many"] == {"items": inner, "type": "array"}
    assert schema["properties"]["mode"] == {"enum": ["on", "off"], "type": "string"}
    assert "required" not in schema


@given(
    data=st.dictionaries(
        st.sampled_from([*Outer.__struct_encode_fields__, "x"]),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text("A1on", max_size=3)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["name", "size", "A"]), inner, max_size=3)
            ),
            max_leaves=6,
        ),
        max_size=4,
    ),
    lenient=st.booleans(),
)
@settings(deadline=None, max_examples=examples(100, 1_000))
def test_any_data_fit_msgspec_or_are_refused(data: dict[str, Any], lenient: bool) -> None:
    try:
        found = validated(Outer, data, lenient=lenient)
    except InvalidError as error:
        assert error.problems  # noqa: PT017
        return
    again = msgspec.convert(msgspec.to_builtins(found), Outer)
    assert repr(again) == repr(found)  # nan, free of checks, equals nothing
