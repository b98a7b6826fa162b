"""What the user may answer to a question of plain mode, and what an answered line means."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.commands.base import Offer
from swecli.core.protocol.blocks import DiffBlock
from swecli.core.protocol.commands import ReplyPermission
from swecli.core.protocol.events import PermissionRequested, Question, hunk_texts

_WORDS = {
    "y": "once",
    "yes": "once",
    "once": "once",
    "a": "always",
    "always": "always",
    "e": "edit",
    "edit": "edit",
    "n": "reject",
    "no": "reject",
}


class NotUnderstood(Exception):
    """The line is no answer; the message says what would be one."""


def approval_hint(request: PermissionRequested) -> str:
    always = f", a always ({request.rule}, for this session)" if request.rule else ""
    edit = ""
    if _command(request) is not None:
        edit = ", e and another command, which is then shown for approval,"
    elif len(request.hunks) > 1:
        edit = f", e and the numbers of the changes to apply, 1 to {len(request.hunks)},"
    note = f" {request.rule_note}" if request.rule_note else ""
    return f"Answer with y once{always}{edit} or n reject, with a note on what to do instead.{note}"


def hunk_lines(request: PermissionRequested) -> Sequence[str]:
    """The changes that can be chosen singly, with their numbers; none where there is only one."""
    if len(request.hunks) < 2:
        return ()
    lines = [f"{len(request.hunks)} changes:"]
    for number, hunk in enumerate(request.hunks, 1):
        block = request.blocks[hunk.block]
        if isinstance(block, DiffBlock):
            removed, added = hunk_texts(block, hunk)
            lines.append(f"{number}. {block.path}, line {hunk.new_start}")
            lines += [*(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    return lines


def _command(request: PermissionRequested) -> str | None:
    command = (request.arguments or {}).get("command")
    return command if request.tool == "run_command" and isinstance(command, str) else None


def _changed(request: PermissionRequested, rest: str) -> ReplyPermission:
    """The reply to an ``e`` with what follows it.

    Raises:
        NotUnderstood: that is nothing that can be changed here.
    """
    if _command(request) is not None and rest:
        arguments = {**(request.arguments or {}), "command": rest}
        return ReplyPermission(request.request, "edit", arguments=arguments)
    words = rest.replace(",", " ").split()
    numbers = tuple(sorted({int(word) for word in words if word.isdecimal()}))
    fits = all(1 <= number <= len(request.hunks) for number in numbers)
    if numbers and fits and all(word.isdecimal() for word in words):
        return ReplyPermission(request.request, "once", hunks=numbers)
    raise NotUnderstood(f"Nothing was run. {approval_hint(request)}")


def reply(request: PermissionRequested, line: str) -> ReplyPermission:
    """The reply that a line asks for.

    Raises:
        NotUnderstood: it is neither y, a, e nor n. An empty line never approves.
    """
    word, _, rest = line.strip().partition(" ")
    match _WORDS.get(word.lower().strip(",.")):
        case "once" if not rest:
            return ReplyPermission(request.request, "once")
        case "always" if not rest and request.rule is not None:
            return ReplyPermission(request.request, "always")
        case "reject":
            return ReplyPermission(request.request, "reject", rest.strip())
        case "edit":
            return _changed(request, rest.strip())
        case _:
            raise NotUnderstood(f"Nothing was run. {approval_hint(request)}")


def question_hint(question: Question) -> str:
    if not question.options:
        return "Type your answer."
    several = ", or several with commas" if question.multiple else ""
    return f"Answer with a number{several}{'' if question.closed else ', or in your own words'}."


def answer(question: Question, line: str) -> tuple[str, ...]:
    """The chosen labels, or the words themselves.

    Raises:
        NotUnderstood: it is empty, or a number that no option has.
    """
    text = line.strip()
    if not text:
        raise NotUnderstood(question_hint(question))
    parts = [part.strip() for part in text.split(",")] if question.multiple else [text]
    named = {option.label.casefold(): option.label for option in question.options}
    if all(part.casefold() in named or (question.options and part.isdecimal()) for part in parts):
        return tuple(dict.fromkeys(named.get(part.casefold()) or _label(question, int(part)) for part in parts))
    if question.closed:
        raise NotUnderstood(question_hint(question))
    return (text,)


def question_lines(question: Question, place: int, count: int) -> Sequence[str]:
    number = f" {place} of {count}" if count > 1 else ""
    header = f"{question.header}: " if question.header else ""
    lines = [f"Question{number}: {header}{question.text}"]
    for at, option in enumerate(question.options, 1):
        lines.append(f"{at}. {option.label}{f': {option.description}' if option.description else ''}")
    return [*lines, question_hint(question)]


def _label(question: Question, number: int) -> str:
    if not 1 <= number <= len(question.options):
        raise NotUnderstood(f"There are options 1 to {len(question.options)}. {question_hint(question)}")
    return question.options[number - 1].label


def offer_lines(offer: Offer) -> Sequence[str]:
    return [offer.title, f"Answer with y {_choice(offer.yes)}, or n {_choice(offer.no)}."]


def _choice(labels: tuple[str, str]) -> str:
    label, follows = labels
    return f"{label.lower()} ({follows})"


def accepted(offer: Offer, line: str) -> bool:
    """Whether a line says yes to an offer, or no.

    Raises:
        NotUnderstood: it says neither. An empty line never accepts.
    """
    match _WORDS.get(line.strip().lower().strip(",.")):
        case "once":
            return True
        case "reject":
            return False
        case _:
            raise NotUnderstood(f"Nothing was changed. {offer_lines(offer)[-1]}")
