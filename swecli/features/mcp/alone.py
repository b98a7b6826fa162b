"""A host for a server that is only tested."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.core.engine.services import Mentionable, PromptTemplate
from swecli.core.ports import Asker
from swecli.core.protocol.events import NoticeLevel
from swecli.core.protocol.request_events import Question
from swecli.core.tools.registry import ToolRegistry


class Alone:
    """Stand-in for a session when a server is only tested."""

    def __init__(self) -> None:
        self.tools = ToolRegistry(())

    @property
    def asker(self) -> Asker:
        return self

    async def ask(self, item: str, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...] | None:
        return None

    def notice(self, text: str, level: NoticeLevel = "info", hint: str = "") -> None:
        """Problems are reported at the end."""

    def tell_model(self, title: str, text: str) -> None:
        """There is no model."""

    def instruct(self, source: str, text: str) -> None:
        """There is no model."""

    def offer(
        self, source: str, prompts: Sequence[PromptTemplate] = (), mentionables: Sequence[Mentionable] = ()
    ) -> None:
        """Discarded."""
