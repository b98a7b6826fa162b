"""The Textual front-end, the only package that imports textual."""

from swecli.tui.launch import run
from swecli.tui.link import SessionNotOpened
from swecli.tui.options import Options

__all__ = ["Options", "SessionNotOpened", "run"]
