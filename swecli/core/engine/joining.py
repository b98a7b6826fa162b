"""How the user's messages join the conversation: expanded, allowed by the companions, with their attachments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from swecli.core.engine.attachments import attach
from swecli.core.engine.companion import Joined, Refused, TurnStopped
from swecli.core.engine.core import Core
from swecli.core.engine.invoked import Invoking, NotInvoked
from swecli.core.engine.work import absorb_steering, edit_queue
from swecli.core.protocol.commands import Steer, Submit
from swecli.core.protocol.events import Notice, Queued, TurnOutcome
from swecli.core.protocol.messages import TextPart
from swecli.core.workspace.mentions import mentioned

if TYPE_CHECKING:
    from swecli.core.extensions.markdown_commands import Invocation


class Begun(Struct, frozen=True):
    """The message that begins a turn; with an ``invocation`` its text is made from that first."""

    item: str
    typed: str
    """The user's own words: a command's expanded text comes from the project."""
    words: Sequence[str] = ()
    """The words that mention files and other things to attach."""
    invocation: Invocation | None = None


def words_of(message: Submit | Steer | Queued) -> tuple[str, ...]:
    """Mentions of a message: its own list, or else those found in its text."""
    if message.mentions is not None:
        return message.mentions
    return mentioned(message.text) if "@" in message.text else ()


class Joining:
    """Takes the message that begins a turn, and those that the user writes meanwhile."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._recorder = core.recorder
        self._connection = core.connection
        self._screened: set[tuple[str, str]] = set()
        """Steering messages that the companions have allowed, by id and text: the user may edit them meanwhile."""

    async def begin(self, message: Begun) -> None:
        """Let the first message join; its item has begun. Raises ``TurnStopped``: it is blocked, or can't be made."""
        text = message.typed if message.invocation is None else await self._invoked(message.item, message.invocation)
        try:
            await self._core.companions.screen(text, first=True)
        except Refused as refused:
            raise TurnStopped("blocked", f"{refused.by} blocked your message: {refused}", "hook") from None
        await self._core.models.ready()
        if message.words:
            await self._attach(message.words)
        await self._core.companions.joined(Joined(text, message.typed, True))

    async def steer(self) -> None:
        """Add the user's steering messages to the conversation."""
        await self.screen_steering()
        steering = absorb_steering(self._recorder)
        if steering:
            words = [word for one in steering for word in words_of(one)]
            await self._attach(words)
            text = "\n\n".join(one.text for one in steering)
            await self._core.companions.joined(Joined(text, text, False))

    async def _attach(self, words: Sequence[str]) -> None:
        await self._core.offered.arrived(words)
        cwd, known, client = self._core.services.workspace.cwd, self._core.offered.mentionables, self._connection.client
        assert client is not None  # as in the turn
        await attach(self._recorder, self._core.scheduler, words, cwd, client.info, known)

    async def screen_steering(self) -> None:
        """Let the companions check steering messages before they join; refused ones are removed."""
        while self._core.companions.screens:
            queue = self._recorder.state.queue
            queued = next((one for one in queue if one.steer and (one.id, one.text) not in self._screened), None)
            if queued is None:
                return
            try:
                await self._core.companions.screen(queued.text, first=False)
                self._screened.add((queued.id, queued.text))
            except Refused as refused:
                if queued not in self._recorder.state.queue:
                    continue  # the user has edited or removed it
                edit_queue(self._recorder, queued.id, None)
                text = f"{refused.by[:1].upper()}{refused.by[1:]} blocked your message: {refused}"
                self._recorder.emit(Notice(text, "warning", "hooks"))

    async def _invoked(self, item: str, invocation: Invocation) -> str:
        """Make the turn's first message from an invocation. Returns its text."""
        if invocation.model:
            self._core.models.lend(invocation.model)
        try:
            await Invoking(self._recorder, self._core.scheduler).send(item, invocation)
        except NotInvoked as error:
            outcome: TurnOutcome = "interrupted" if error.rejected else "error"
            raise TurnStopped(outcome, str(error), "command") from error
        parts = self._recorder.ledger.items[item].parts
        return "".join(part.text for part in parts if isinstance(part, TextPart))
