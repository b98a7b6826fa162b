"""Questions to the user of the client: the forms that permission requests and questions become, and what the answers
mean. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from swecli.block_text import block_lines
from swecli.core.protocol.commands import Answer, ReplyPermission
from swecli.core.protocol.events import PermissionRequested, QuestionAsked, grounds
from swecli.output import safe

ALLOW, REJECT = "Allow once", "Reject"
LONGEST: Final = 20_000
"""Characters of a permission question. A longer one is refused: the user must see all that would run."""

NO_FORMS: Final = "The client can't ask its user (it offers no elicitation)"
IN_BACKGROUND: Final = "Nobody is asked while a task works in the background"
UNANSWERED: Final = "The user gave no answer in time"
TOO_LONG: Final = f"What would run is longer than {LONGEST:,} characters, so it can't be shown in a question"


def permission_message(request: PermissionRequested) -> str:
    """All that the user has to see: danger and reasons first, then exactly what would run or change."""
    warnings = [f"Warning: {line}" for line in (request.danger, *request.warnings) if line]
    note = [f"For the session: {request.rule_note}"] if request.rule_note else []
    lines = [
        f"swecli asks: {request.tool} {request.title}".rstrip(),
        *warnings,
        *grounds(request),
        *request.facts,
        *note,
    ]
    for block in request.blocks:
        lines += ["", *block_lines(block)]
    return safe("\n".join(lines))


def permission_form(request: PermissionRequested) -> dict[str, Any]:
    choices = [ALLOW, *([_always(request)] if request.offered else []), REJECT]
    return {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Decision", "enum": choices},
            "note": {"type": "string", "title": "Note for swecli", "description": "Optional: what to do instead"},
        },
        "required": ["decision"],
    }


def _always(request: PermissionRequested) -> str:
    return safe(f"Allow {', '.join(request.offered)} in this session")


def permission_reply(request: PermissionRequested, action: str, content: Mapping[str, Any] | None) -> ReplyPermission:
    """What an answer means; one that was not offered approves nothing."""
    decision = (content or {}).get("decision")
    written = (content or {}).get("note")
    note = written.strip() if isinstance(written, str) else ""
    if action == "accept" and decision == ALLOW:
        return ReplyPermission(request.request, "once")
    if action == "accept" and request.offered and decision == _always(request):
        return ReplyPermission(request.request, "always")
    return ReplyPermission(request.request, "reject", note)


def refusal(request: PermissionRequested, why: str) -> ReplyPermission:
    """No, as nobody could be asked."""
    note = f"{why}. Do not retry it; go on without it and say what was left undone."
    return ReplyPermission(request.request, "reject", note, by="headless")


def question_message(asked: QuestionAsked) -> str:
    return safe("\n".join(question.text for question in asked.questions))


def question_form(asked: QuestionAsked) -> dict[str, Any]:
    """All questions of a request as one form."""
    properties: dict[str, Any] = {}
    for number, question in enumerate(asked.questions, 1):
        about = [f"{option.label}: {option.description}" for option in question.options if option.description]
        field: dict[str, Any] = {
            "title": safe(question.header or question.text)[:200],
            "description": safe("\n".join([question.text, *about])),
        }
        labels = [option.label for option in question.options]
        if labels and question.multiple:
            field |= {"type": "array", "items": {"type": "string", "enum": labels}}
        else:
            field |= {"type": "string", **({"enum": labels} if labels else {})}
        properties[f"question_{number}"] = field
    return {"type": "object", "properties": properties, "required": list(properties)}


def question_answers(asked: QuestionAsked, action: str, content: Mapping[str, Any] | None) -> Answer:
    """The answers of a form; dismissed where one is missing or is none of those that were offered."""
    answers: list[tuple[str, ...]] = []
    for number, question in enumerate(asked.questions, 1):
        value = (content or {}).get(f"question_{number}") if action == "accept" else None
        given = cast("list[Any]", value) if isinstance(value, list) else [value]
        labels = {option.label for option in question.options}
        chosen = tuple(one for one in given if isinstance(one, str) and (one in labels if labels else one.strip()))
        if not chosen or len(chosen) < len(given):
            return Answer(asked.request, ())
        answers.append(chosen)
    return Answer(asked.request, tuple(answers))
