"""A handoff bundle at the start of a session: read, compared with the folder, passed to the model."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from swecli.core.engine.session import Session
from swecli.core.protocol.blocks import Todo
from swecli.core.tools.outside_text import seen_line
from swecli.core.workspace.text_file import NotRegularError, TooLargeError, read_bytes
from swecli.exit_codes import ExitCode
from swecli.export.handoff import MAX_BYTES, Compared, Handoff, HandoffError, compared, handoff_note, read_handoff
from swecli.figures import plural
from swecli.launch import StartError


class Bundle(Struct, frozen=True):
    """A bundle with the differences between its files and the folder's."""

    name: str
    handoff: Handoff
    found: Compared

    def begin(self, session: Session) -> None:
        """Pass the bundle's content to a fresh session."""
        count = len(self.handoff.files)
        changed = plural(count, "changed file")
        title = f"Handoff from {self.name}: {changed}, {len(self.found.same)} here unchanged"
        name = seen_line(self.name)
        open_todos = [
            Todo(f"({name}) {seen_line(todo.text)}", todo.status)
            for todo in self.handoff.todos
            if todo.status != "completed"
        ]
        session.go_on_from(title, handoff_note(self.handoff, self.found, self.name), open_todos, f"handoff {self.name}")
        if self.found.words:
            session.notice(
                f"Files of the handoff bundle: {self.found.words}.",
                "warning",
                "The model gets this list; review the files before it continues.",
            )


def read_bundle(path: Path, cwd: Path) -> Bundle:
    """Read a bundle, and compare it with the folder ``cwd``.

    Raises:
        StartError: it can't be read, or is not a bundle.
    """
    try:
        data, _ = read_bytes(path, MAX_BYTES)
        handoff = read_handoff(data.decode("utf-8-sig"))
    except NotRegularError:
        raise StartError(f"--from {path} is not a file", ExitCode.BAD_INPUT) from None
    except TooLargeError as error:
        raise StartError(f"--from {path}: {error}", ExitCode.BAD_INPUT) from error
    except OSError as error:
        raise StartError(f"--from {path}: {error.strerror or error}", ExitCode.BAD_INPUT) from error
    except UnicodeDecodeError:
        raise StartError(f"--from {path} is not a handoff bundle: it is not UTF-8 text", ExitCode.BAD_INPUT) from None
    except HandoffError as error:
        raise StartError(f"--from {path} {error}. Nothing was started.", ExitCode.BAD_INPUT) from None
    return Bundle(path.name, handoff, compared(handoff, cwd))
