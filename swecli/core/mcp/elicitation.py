"""Elicitation: a server's form for the user in the middle of a call, as questions and answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from swecli.core.ports import Asker
from swecli.core.protocol.request_events import Option, Question

if TYPE_CHECKING:
    import mcp_types

MOST_FIELDS = 24
MOST_ROUNDS = 4
"""Maximum number of attempts to fill in a form."""
DECLINE = "Decline"
SKIP = "Leave it out"
NOBODY = "no user can answer here, so it was declined"
REFUSED = "the user declined"


async def elicit(
    params: mcp_types.ElicitRequestParams, server: str, item: str, asker: Asker
) -> tuple[mcp_types.ElicitResult, str]:
    """The answer for the server and, if there is none, the reason as a clause."""
    import mcp_types

    if params.mode == "url":
        question = Question(
            f"{server} asks you to open {params.url}\n{params.message}",
            (Option("I opened it", "then the call continues"), Option(DECLINE)),
            header=server,
            closed=True,
        )
        answers = await asker.ask(item, (question,))
        agreed = bool(answers) and answers[0] == ("I opened it",)
        return mcp_types.ElicitResult(action="accept" if agreed else "decline"), "" if agreed else _why(answers)
    schema: Mapping[str, Any] = params.requested_schema
    if not _readable(schema):
        return mcp_types.ElicitResult(action="decline"), "its form does not follow the protocol, so it was declined"
    fields = cast("dict[str, Mapping[str, Any]]", dict(schema.get("properties") or {}))
    if len(fields) > MOST_FIELDS:
        return mcp_types.ElicitResult(action="decline"), f"its form has {len(fields)} fields, more than {MOST_FIELDS}"
    required = set(cast("Sequence[str]", schema.get("required") or ()))
    asked = f"{server} asks: {params.message}"
    questions = [_question(name, field, asked, name in required) for name, field in fields.items()]
    if not questions:
        questions = [Question(asked, (Option("Yes"), Option(DECLINE)), header=server, closed=True)]
    answers = await asker.ask(item, questions)
    if not answers:
        action = "cancel" if answers is not None else "decline"
        return mcp_types.ElicitResult(action=action), _why(answers)
    if not fields:
        agreed = answers[0] == ("Yes",)
        return mcp_types.ElicitResult(action="accept" if agreed else "decline"), "" if agreed else REFUSED
    given = dict(zip(fields, answers, strict=True))
    content: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for number in range(MOST_ROUNDS):
        if (DECLINE,) in given.values():
            return mcp_types.ElicitResult(action="decline"), REFUSED
        content, wrong = _content(fields, given, required)
        if not wrong:
            return mcp_types.ElicitResult(action="accept", content=content), ""
        if number == MOST_ROUNDS - 1:
            break
        lead = f"{server} asks for a different answer: "
        again = [_question(name, fields[name], lead + why, name in required) for name, why in wrong.items()]
        answers = await asker.ask(item, again)
        if not answers:
            return mcp_types.ElicitResult(action="cancel" if answers is not None else "decline"), _why(answers)
        given.update(zip(wrong, answers, strict=True))
    return mcp_types.ElicitResult(action="decline"), f"{'; '.join(wrong.values())}, so it was declined"


def _readable(schema: Mapping[str, Any]) -> bool:
    """Whether a form has the shape in which it is read."""
    properties: object = schema.get("properties") or {}
    required: object = schema.get("required") or []
    if not isinstance(properties, dict) or not isinstance(required, list):
        return False
    for field in cast("dict[str, Any]", properties).values():
        source = cast("dict[str, Any]", field).get("items", field) if isinstance(field, dict) else None
        if not isinstance(source, dict):
            return False
        choices = cast("dict[str, Any]", source)
        if not all(isinstance(choices.get(name) or [], list) for name in ("oneOf", "anyOf", "enum", "enumNames")):
            return False
        titled = cast("list[Any]", choices.get("oneOf") or choices.get("anyOf") or [])
        if not all(isinstance(choice, dict) for choice in titled):
            return False
    return True


def _content(
    fields: Mapping[str, Mapping[str, Any]], given: Mapping[str, Sequence[str]], required: Collection[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The form's content, and for each field the reason why an answer is invalid."""
    content: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name, field in fields.items():
        answer = given[name]
        text = ", ".join(answer)[:80]
        try:
            value = _value(field, answer)
        except ValueError:
            wrong[name] = f"{text!r} is not of type {field.get('type', 'value')}"
            continue
        if value is None:
            if name in required:
                wrong[name] = f"{field.get('title') or name} needs an answer"
        elif why := _outside(field, value):
            wrong[name] = f"{text!r} {why}"
        else:
            content[name] = value
    return content, wrong


def _dated(read: Callable[[str], object]) -> Callable[[str], bool]:
    def is_one(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return is_one


_FORMATS: dict[str, tuple[str, Callable[[str], object] | None]] = {
    "email": ("an email address", re.compile(r"[^@\s]+@[^@\s]+").fullmatch),
    "uri": ("an address such as https://example.org", re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+").fullmatch),
    "date": ("a date such as 2026-01-31", _dated(date.fromisoformat)),
    "date-time": ("a date with time such as 2026-01-31T09:30:00Z", _dated(datetime.fromisoformat)),
}
"""The formats of the specification, each with its name and a check that is no stricter than the format."""


def _outside(field: Mapping[str, Any], value: Any) -> str:
    """Why a value is outside the bounds of its field, as a clause; empty if it is inside."""
    shape, read = _FORMATS.get(str(field.get("format")), ("", None))
    if read and isinstance(value, str) and not read(value):
        return f"is not {shape}"
    bounds = ("minItems", "maxItems") if isinstance(value, list) else ("minLength", "maxLength")
    unit = "choices" if isinstance(value, list) else "characters"
    size: float = 0
    if isinstance(value, bool):
        return ""
    if isinstance(value, (int, float)):
        bounds, unit, size = ("minimum", "maximum"), "", value
    elif isinstance(value, (str, list)):
        size = len(cast("Sequence[Any]", value))
    least, most = (field.get(bound) for bound in bounds)
    if isinstance(least, (int, float)) and size < least:
        return f"is less than {least} {unit}".rstrip()
    if isinstance(most, (int, float)) and size > most:
        return f"is more than {most} {unit}".rstrip()
    return ""


def _why(answers: object) -> str:
    return NOBODY if answers is None else REFUSED


def _choices(field: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Value and label of each choice."""
    source = cast("Mapping[str, Any]", field.get("items") or field)
    titled = source.get("oneOf") or source.get("anyOf")
    if titled:
        return [(str(choice.get("const")), str(choice.get("title") or choice.get("const"))) for choice in titled]
    values = [str(value) for value in cast("Sequence[Any]", source.get("enum") or ())]
    names = [str(name) for name in cast("Sequence[Any]", source.get("enumNames") or ())]
    return [(value, names[at] if at < len(names) else value) for at, value in enumerate(values)]


def _default(field: Mapping[str, Any]) -> str:
    """The default value, in the words of the choices."""
    default = field.get("default")
    if isinstance(default, bool):
        return "yes" if default else "no"
    if default is None:
        return ""
    labels = dict(_choices(field))
    values = cast("Sequence[Any]", default) if isinstance(default, list) else [default]
    return ", ".join(labels.get(str(value), str(value)) for value in values)


def _question(name: str, field: Mapping[str, Any], asked: str, required: bool) -> Question:
    title = str(field.get("title") or name)
    about = str(field.get("description") or field.get("format") or "")
    default = _default(field)
    notes = (about, "" if required else "(optional)", f"[default: {default}]" if default else "")
    text = "\n".join(filter(None, (" ".join(filter(None, notes)), asked)))
    if field.get("type") == "boolean":
        skip = () if required else (Option(SKIP),)
        return Question(text, (Option("Yes"), Option("No"), *skip, Option(DECLINE)), header=title, closed=True)
    options = [Option(label) for _, label in _choices(field)]
    if options and not required:
        options.append(Option(SKIP))
    if options and field.get("type") != "array":
        options.append(Option(DECLINE))
    blank = f"takes {default}" if default else "" if required else "leaves it out"
    return Question(text, tuple(options), field.get("type") == "array", title, bool(options), "" if options else blank)


def _value(field: Mapping[str, Any], answer: Sequence[str]) -> Any:
    """The answer as the field's type; None for no answer.

    Raises:
        ValueError: the answer is not a valid value.
    """
    if SKIP in answer:
        return None
    values = {label: value for value, label in _choices(field)}
    chosen = [values.get(label, label) for label in answer]
    if field.get("type") == "array":
        return chosen
    text = chosen[0].strip() if chosen else ""
    if not text:
        return field.get("default")
    match field.get("type"):
        case "boolean":
            if text.lower() not in ("yes", "no", "true", "false"):
                raise ValueError(text)
            return text.lower() in ("yes", "true")
        case "integer":
            return int(text)
        case "number":
            number = float(text)
            if not isfinite(number):  # which JSON does not have
                raise ValueError(text)
            return number
        case _:
            return text
