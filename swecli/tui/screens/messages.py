"""What a screen tells the application; small, since it is loaded before the first frame."""

from __future__ import annotations

from textual.message import Message


class ScreenReady(Message):
    """The screen can take the keyboard."""


class ScreenClosed(Message):
    """The user is done with the screen."""
