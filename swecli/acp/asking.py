"""Questions to the editor's user: options of a permission request, a question or a plan, and the meaning of a chosen
option. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from acp.schema import (
    ElicitationFormSessionMode,
    ElicitationMultiSelectPropertySchema,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    EnumOption,
    PermissionOption,
    TitledMultiSelectItems,
    ToolCallUpdate,
)

from swecli.acp.updates import ToolContent, block_content, tool_text
from swecli.acp.words import clean, one_line, tool_kind, tool_title
from swecli.core.protocol.commands import Answer, CarryOut, Command, ReplyPermission, SetMode
from swecli.core.protocol.events import PermissionRequested, QuestionAsked
from swecli.core.protocol.request_events import FOR_SESSION, Question, grounds, rule_words
from swecli.figures import cut

ONCE, ALWAYS, FOLDER, EDITS = "once", "always", "project", "accept-edits"
REJECT, NEVER = "reject", "reject_always"
SKIP = "skip"
REFUSED_BEFORE = "The user rejected this for the whole session ({rules}). Do not retry it."
_RULE = 160
"""Characters of a rule in an option's name."""


def permission_options(request: PermissionRequested) -> list[PermissionOption]:
    """The answers to a request. Lasting ones name exactly what they allow or refuse."""
    options = [PermissionOption(option_id=ONCE, name="Allow once", kind="allow_once")]
    rules = _rules(request.offered)
    if request.offered:
        options += [
            PermissionOption(option_id=ALWAYS, name=f"Allow {rules} in this session", kind="allow_always"),
            PermissionOption(option_id=FOLDER, name=f"Always allow {rules} in this folder", kind="allow_always"),
        ]
    if request.acceptable:
        options.append(PermissionOption(option_id=EDITS, name="Allow all file edits", kind="allow_always"))
    options.append(PermissionOption(option_id=REJECT, name="Reject", kind="reject_once"))
    if request.offered:
        options.append(PermissionOption(option_id=NEVER, name=f"Reject {rules} in this session", kind="reject_always"))
    return options


def permission_reply(request: PermissionRequested, option: str | None) -> Command:
    """Meaning of an option; None and unknown options approve nothing."""
    offered = {each.option_id for each in permission_options(request)}
    match option if option in offered else None:
        case "once":
            return ReplyPermission(request.request, "once")
        case "always":
            return ReplyPermission(request.request, "always")
        case "project":
            return ReplyPermission(request.request, "always", span="project")
        case "accept-edits":
            return SetMode("accept-edits")
        case _:  # a note would be taken for the user's own words
            return ReplyPermission(request.request, "reject")


def refused_before(request: PermissionRequested, refused: Collection[str]) -> ReplyPermission | None:
    """The answer if the user has refused everything of this kind; None if they must be asked."""
    if request.offered and all(rule in refused for rule in request.offered):
        note = REFUSED_BEFORE.format(rules=_rules(request.offered))
        return ReplyPermission(request.request, "reject", note, by="headless")
    return None


def permission_call(request: PermissionRequested, cwd: Path) -> ToolCallUpdate:
    """The call as the user must see it: danger and reason first, then exactly the command or the changes."""
    warnings = [f"⚠ {line}" for line in (request.danger, *request.warnings) if line]
    reasons = [*warnings, *grounds(request), *request.facts, *filter(None, (rule_words(request, FOR_SESSION),))]
    content: list[ToolContent] = [tool_text("\n".join(reasons))] if reasons else []
    content += [block_content(block, cwd) for block in request.blocks]
    return ToolCallUpdate(
        tool_call_id=request.item,
        title=tool_title(request.tool, request.title),
        kind=tool_kind(request.tool),
        status="pending",
        content=content,
        raw_input=clean(dict(request.arguments)) if request.arguments is not None else None,
    )


def _rules(rules: Sequence[str]) -> str:
    return cut(one_line(", ".join(rules)), _RULE)


# --- plans ---


def plan_options() -> list[PermissionOption]:
    return [
        PermissionOption(option_id="accept-edits", name="Go ahead, accepting file edits", kind="allow_always"),
        PermissionOption(option_id="default", name="Go ahead, asking before edits", kind="allow_once"),
        PermissionOption(option_id=REJECT, name="Keep planning", kind="reject_once"),
    ]


def plan_reply(option: str | None) -> CarryOut | None:
    match option:
        case "accept-edits" | "default":
            return CarryOut(option)
        case _:
            return None


# --- questions of the model ---


def question_form(asked: QuestionAsked, session: str) -> ElicitationFormSessionMode:
    """All questions of a request as one form."""
    properties: dict[str, Any] = {}
    for number, question in enumerate(asked.questions, 1):
        title = clean(question.header or question.text)
        options = [
            EnumOption(const=clean(each.label), title=clean(each.label), description=clean(each.description) or None)
            for each in question.options
        ]
        if options and question.multiple:
            items = TitledMultiSelectItems(any_of=options)
            schema: Any = ElicitationMultiSelectPropertySchema(type="array", title=title, items=items)
        else:
            schema = ElicitationStringPropertySchema(type="string", title=title, one_of=options or None)
        schema.description = clean(question.text)
        properties[f"question_{number}"] = schema
    schema = ElicitationSchema(type="object", properties=properties, required=list(properties))
    return ElicitationFormSessionMode(session_id=session, tool_call_id=asked.item, requested_schema=schema)


def form_answers(asked: QuestionAsked, content: Mapping[str, Any] | None) -> Answer:
    """The answers of a form; dismissed if one is missing."""
    answers: list[tuple[str, ...]] = []
    for number in range(1, len(asked.questions) + 1):
        match (content or {}).get(f"question_{number}"):
            case str() as text if text.strip():
                answers.append((text,))
            case list() as chosen if chosen:
                answers.append(tuple(str(each) for each in chosen))
            case _:
                return Answer(asked.request, ())
    return Answer(asked.request, tuple(answers))


def question_options(question: Question) -> list[PermissionOption]:
    """One question with options, for a client without forms."""
    options = [
        PermissionOption(option_id=f"option_{number}", name=one_line(each.label), kind="allow_once")
        for number, each in enumerate(question.options)
    ]
    return [*options, PermissionOption(option_id=SKIP, name="Skip", kind="reject_once")]


def question_call(asked: QuestionAsked, question: Question) -> ToolCallUpdate:
    lines = [f"- **{each.label}**: {each.description}" for each in question.options if each.description]
    return ToolCallUpdate(
        tool_call_id=asked.item,
        title=one_line(question.text),
        kind="other",
        status="pending",
        content=[tool_text("\n".join([question.text, "", *lines]))],
    )


def chosen_label(question: Question, option: str | None) -> str | None:
    number = (option or "").removeprefix("option_")
    if not number.isdecimal() or int(number) >= len(question.options):
        return None
    return question.options[int(number)].label
