"""The parts of the interface that are loaded after the first frame, and how they are connected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swecli.tui import compat, keymap
from swecli.tui.browsing import Browsing
from swecli.tui.clipboard import Copier
from swecli.tui.dock.mode import ModeChoice
from swecli.tui.dock.palette import Palette
from swecli.tui.dock.plan import PlanQuestion
from swecli.tui.input_controller import InputController
from swecli.tui.model_choice import ModelChoice
from swecli.tui.prompt.command_table import CommandTable
from swecli.tui.session_controller import SessionController
from swecli.tui.session_switch import SessionSwitch
from swecli.tui.setting_changes import SettingChanges
from swecli.tui.suggestion_line import SuggestionLine
from swecli.tui.themes.picker import ThemeChoice
from swecli.tui.transcript.view import Transcript

if TYPE_CHECKING:
    from swecli.commands.base import Screen
    from swecli.tui.app import SwecliApp


class Interface:
    """Built once; openers and keys act on it."""

    def __init__(self, app: SwecliApp) -> None:
        self.main = main = app.main
        self.program = program = app.program
        self.keymap = app.keymap
        self.appearance = app.appearance
        self.wall = app.wall
        transcript = Transcript(clock=app.wall, id="transcript")
        compat.replace_bindings(transcript, keymap.transcript(app.keymap))
        main.add_transcript(transcript)
        greet = app.session_start.greeting if program.greets else None
        self.session = session = SessionController(main, app.terminal, program.branch, greet, app.opened, app.wall)
        self.switch = SessionSwitch(main, session, program)
        self.changes = SettingChanges(main, session, program, self.switch)
        self.models = ModelChoice(main, session, program, app.wall)
        self.modes = ModeChoice(main, session)
        self.themes = ThemeChoice(main, app.appearance, program)
        self.commands = CommandTable(program, session, app.appearance, self.models.known)
        self.palette = Palette(main, session, self.commands, self.modes, self.models, self.themes)
        self.plan = PlanQuestion(main, session)
        self.suggestion = SuggestionLine(main, session, app.keymap)
        self.copier = Copier(app, main.prompt.editor, app.write, main.activity.flash, program.state)
        self.input = InputController(main, session, self.commands, self.models, self.open, self.copier)
        self.browsing = Browsing(main, app.keymap, app.clock)
        self._connect(transcript)

    def _connect(self, transcript: Transcript) -> None:
        """Give the widgets of the first frame what they show of the session."""
        main, session, prompt = self.main, self.session, self.main.prompt
        session.left = self.input.cancel_all_beside
        prompt.editor.blind = session.no_images
        prompt.editor.weigh_with(lambda text, images: session.weigh(text, images).shown)
        prompt.mentions.weigh = session.mentions_shown
        prompt.mentions.weighed = main.activity.look_ahead
        prompt.suggestions.look = lambda: main.run_worker(self.input.own_commands(), group="commands")
        prompt.suggestions.commands = self.commands.all
        prompt.suggestions.words = self.commands.words
        prompt.suggestions.mentionables = lambda: session.mentionable_words
        main.activity.suggest = self.suggestion.shown
        main.watch(transcript, "unseen", main.activity.show_unseen, init=False)

    def open(self, name: Screen, words: str = "") -> None:
        """Open what a command or key asks for."""
        from swecli.features import feature_screens
        from swecli.tui.openers import OPENERS

        opener = OPENERS.get(name) or feature_screens()[name]
        opener(self, words)
