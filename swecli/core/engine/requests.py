"""Questions to the user that the engine waits for, as futures by request id."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from swecli.core.engine.asking_order import AskingOrder
from swecli.core.engine.recorder import Recorder
from swecli.core.protocol.blocks import DisplayBlock
from swecli.core.protocol.commands import Answer, ReplyPermission
from swecli.core.protocol.events import (
    PermissionRequested,
    PermissionResolved,
    Question,
    QuestionAnswered,
    QuestionAsked,
    RefusedEdit,
)
from swecli.core.protocol.hunks import Hunk

Answers = tuple[tuple[str, ...], ...]
T = TypeVar("T")


class Requests:
    """Open permission requests and questions. Answers to unknown or settled ids are ignored: the first
    answer counts."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._permissions: dict[str, asyncio.Future[ReplyPermission]] = {}
        self._questions: dict[str, asyncio.Future[Answer]] = {}
        self.order = AskingOrder()
        """Of the calls that run now."""

    def _new_id(self, prefix: str) -> str:
        return f"{prefix}{self._recorder.state.seq + 1}"

    async def permission(
        self,
        *,
        item: str,
        tool: str,
        title: str,
        blocks: Sequence[DisplayBlock],
        reason: str,
        binding: str,
        rule: str | None,
        evidence: Sequence[str],
        hunks: Sequence[Hunk] = (),
        facts: Sequence[str] = (),
        warnings: Sequence[str] = (),
        arguments: Mapping[str, Any] | None = None,
        refused: RefusedEdit | None = None,
    ) -> ReplyPermission:
        """Ask and wait. Cancelled while waiting, the request is settled as cancelled. "Always" is "once" where no
        rule was offered, or where the rule was offered for other arguments."""
        request = self._new_id("p")
        future: asyncio.Future[ReplyPermission] = asyncio.get_running_loop().create_future()
        self._permissions[request] = future
        self._recorder.emit(
            PermissionRequested(
                request,
                item,
                tool,
                title,
                tuple(blocks),
                reason,
                binding,
                rule,
                tuple(evidence),
                tuple(hunks),
                tuple(facts),
                tuple(warnings),
                arguments,
                refused,
            )
        )
        self.order.passed(item)
        settled = False
        try:
            reply = await future
            if reply.choice == "always" and (rule is None or reply.arguments is not None):
                reply = replace(reply, choice="once")
            self._recorder.emit(
                PermissionResolved(
                    request,
                    reply.choice,
                    reply.by,
                    reply.note,
                    reply.span,
                    reply.arguments,
                    reply.hunks,
                    reply.texts,
                )
            )
            settled = True
            return reply
        finally:
            del self._permissions[request]
            if not settled:
                self._recorder.emit(PermissionResolved(request, "cancelled", "engine"))

    async def ask(self, item: str, questions: Sequence[Question]) -> Answers | None:
        """Put questions and wait; an empty tuple when they were dismissed, None when nobody is there to answer."""
        await self.order.turn(item)
        request = self._new_id("q")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._questions[request] = future
        self._recorder.emit(QuestionAsked(request, item, tuple(questions)))
        self.order.passed(item)
        settled = False
        try:
            answer = await future
            self._recorder.emit(QuestionAnswered(request, answer.answers, answer.by))
            settled = True
            return answer.answers if answer.answers or answer.by == "user" else None
        finally:
            del self._questions[request]
            if not settled:
                self._recorder.emit(QuestionAnswered(request, (), "engine"))

    def reply(self, command: ReplyPermission) -> None:
        """Settle a permission request."""
        _settle(self._permissions.get(command.request), command)

    def answer(self, command: Answer) -> None:
        """Settle a question."""
        _settle(self._questions.get(command.request), command)


def _settle(future: asyncio.Future[T] | None, value: T) -> None:
    if future is not None and not future.done():
        future.set_result(value)
