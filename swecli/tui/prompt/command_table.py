"""The slash commands that the prompt offers and runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from swecli.commands.base import SlashCommand, Word
from swecli.themes.names import AUTO
from swecli.tui.known_models import KnownModels
from swecli.tui.program import Program
from swecli.tui.session_controller import SessionController
from swecli.tui.themes.appearance import Appearance


class CommandTable:
    """Those that come with swecli, and ``own`` ones of the user, the project and servers."""

    def __init__(
        self, program: Program, session: SessionController, appearance: Appearance, models: KnownModels
    ) -> None:
        self._program = program
        self._session = session
        self._appearance = appearance
        self._models = models
        self._builtin: Sequence[SlashCommand] = ()
        self.own: Sequence[SlashCommand] = ()

    def all(self) -> Sequence[SlashCommand]:
        """All commands. Those that come with swecli are loaded when they are first asked for, in 6 ms."""
        if not self._builtin:
            self._builtin = self._program.commands()
        return (*self._builtin, *self.own)

    def words(self, name: str) -> Iterable[Word]:
        """What the arguments of the command with this name may begin with."""
        from swecli.commands.registry import find

        command = find(name, self.all())
        if command is None or self._session.port is None:
            return ()
        if command.name == "theme":
            return map(Word, (AUTO, *self._appearance.library.names))
        if command.name == "model":
            return map(Word, self._models.last)
        return command.words(self._session.port)
