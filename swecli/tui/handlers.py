"""What messages of the screen's parts lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events, on

from swecli.tui.dock.panel import DockPanel
from swecli.tui.driver import BackgroundReported
from swecli.tui.keys import KeyActions
from swecli.tui.prompt.box import Prompt
from swecli.tui.prompt.editor import PromptEditor
from swecli.tui.screens.told import ScreenClosed, ScreenReady

if TYPE_CHECKING:
    from swecli.core.protocol.messages import ImagePart
    from swecli.tui.transcript.view import Transcript


class Handlers(KeyActions, inherit_bindings=True):
    """Handlers of messages. What the user sends before everything is loaded waits for it."""

    @on(PromptEditor.Submitted)
    def _submitted(self, message: PromptEditor.Submitted) -> None:
        if self.prompt.editor.text.strip():
            # A slash command may ask for consent and wait: never inside of a message handler.
            text = self.prompt.take()
            images = self.prompt.editor.attachments.sent(text)
            self.run_worker(self._submit(text, message.queue, images), group="talk")

    async def _submit(self, text: str, queue: bool, images: tuple[ImagePart, ...]) -> None:
        await self.can_talk.wait()
        self.transcript.follow()  # what is sent, and what comes of it, is in sight wherever the user was reading
        await self.talk.submit(text, queue=queue, images=images)

    @on(Prompt.Recall)
    def _recalled(self, message: Prompt.Recall) -> None:
        from swecli.core.protocol.commands import EditQueue

        self.stage.link.send(EditQueue(message.queued.id, None))
        self.prompt.editor.put(message.queued.text)

    @on(Prompt.Scroll)
    def _scrolled(self, message: Prompt.Scroll) -> None:
        if self.furnished:
            self.action_scroll(message.where)

    @on(Prompt.Edited)
    def _edited(self) -> None:
        if self.prompt.editor.text:
            self.armed = None

    @on(Prompt.Leave)
    def _left(self) -> None:
        self.leave()

    @on(Prompt.Palette)
    def _palette_wanted(self) -> None:
        if self.furnished:
            self.screens.palette()

    @on(Prompt.Walk)
    def _walked(self) -> None:
        if not self.furnished:
            return
        self.transcript.focus()
        self.transcript.action_cursor_previous()

    def on_transcript_left(self) -> None:
        self.slot.focus_panel()

    def on_transcript_copy_requested(self, message: Transcript.CopyRequested) -> None:
        self.copier.copy(message.text, message.what)

    def on_transcript_edit_requested(self, message: Transcript.EditRequested) -> None:
        self.run_worker(self.open_in_editor(message.text, message.path), group="editor")

    @on(DockPanel.Finished)
    def _finished(self, message: DockPanel.Finished) -> None:
        if message.command is None:
            self.slot.close()
        else:
            self.stage.answer(message.command)

    @on(ScreenReady)
    def _screen_ready(self) -> None:
        self.slot.focus_panel()

    @on(ScreenClosed)
    def _screen_closed(self) -> None:
        self.screens.closed()

    @on(BackgroundReported)
    def _background_known(self, message: BackgroundReported) -> None:
        self.appearance.background_known(message.dark)

    async def on_key(self, event: events.Key) -> None:
        """A character that nobody took is meant for the prompt."""
        if self.furnished and self.place.current is not None:
            if self.slot.panel is None:
                await self.place.current.take_key(event)
        elif event.is_printable and event.character and self.slot.panel is None:
            self.prompt.editor.focus()
            self.prompt.editor.add(event.character)
