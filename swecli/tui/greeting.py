"""Start of a new session: folder, model, mode, and sessions to continue. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.core.llm.catalog import shown_ref
from swecli.figures import cut
from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.assembly.session_list import StoredSession
    from swecli.core.engine.session_view import SessionView

Shown = Callable[[str], str]
"""Display text of an action's keys."""

MODEL, NO_MODEL = "Model", "none yet"
FOLDER, LAST = "Folder", "Last session"
WIDE = 97
"""Cells from which the greeting is three centred lines: those of a terminal of 100 columns without margins and scroll
bar."""
TASK = "Describe a task below, for example: explain what this project does"

MOST_FILES = 6
"""Instruction files that are named; /status names all."""

TITLE = 34
"""Characters shown of the last session's first message."""

HINTS: tuple[Callable[[Shown], str], ...] = (
    lambda keys: "/undo reverts what a turn changed in files; /redo reapplies it.",
    lambda keys: "Plan mode changes nothing; it ends with a plan that you accept or reject.",
    lambda keys: "/context shows what fills the context window, /compact makes room.",
    lambda keys: "While a turn runs, Enter steers it and Tab queues a message for after it.",
    lambda keys: "/btw asks a side question that stays out of the conversation.",
    lambda keys: "/diff shows what this session changed; /review has the model check it.",
    lambda keys: f"{keys('expand')} shows every step with all of its output.",
)


def greeting(
    view: SessionView, earlier: Sequence[StoredSession], keys: Shown, now: float, home: str
) -> tuple[tuple[str, str], ...]:
    """Lines of label and text; the last one has no label and is a hint that varies by session."""
    from swecli.commands.base import no_instructions
    from swecli.commands.mode import mode_label, mode_meaning

    model = view.model
    lines = [
        (FOLDER, short(view.cwd, home)),
        (MODEL, NO_MODEL if model is None else _model(model.ref, model.address)),
        (
            f"Mode ({keys('next_mode')})",
            f"{mode_label(view.mode, yolo=view.yolo)} · {mode_meaning(view.mode, view.sandbox, yolo=view.yolo)}",
        ),
        ("Instructions", _instructions(view, home) or no_instructions(view)),
    ]
    if earlier:
        last = earlier[0]
        title = cut(safe_line(last.title), TITLE)
        lines.append((LAST, f"{title} · {age(now - last.updated)} · {keys('continue_session')}"))
    return (*lines, ("", HINTS[len(earlier) % len(HINTS)](keys)))


def centred(lines: Sequence[tuple[str, str]], *, advised: bool) -> tuple[str, ...]:
    """The greeting of a wide window: what is connected, what to type, and the newest session with its key. ``advised``:
    advice on connecting a model, which stands below the first line, says the first two."""
    known = dict(lines)
    model, folder = known.get(MODEL, ""), known.get(FOLDER, "")
    last = ""
    if LAST in known:
        title, when, key = known[LAST].rsplit(" · ", 2)
        last = f"{key} continues “{title}” ({when})"
    task = "" if advised or model == NO_MODEL else TASK
    connection = " · ".join(part for part in (model, folder) if part and part != NO_MODEL)
    return (connection, *filter(None, (task, last)))


def beside_advice(lines: Sequence[tuple[str, str]], *, brief: bool) -> tuple[tuple[str, str], ...]:
    """The lines of the greeting that advice on connecting a model leaves; ``brief``: the folder only."""
    return tuple((label, text) for label, text in lines if label == FOLDER or not (brief or label in ("", MODEL)))


def connected(lines: Sequence[tuple[str, str]], model: str, address: str) -> tuple[tuple[str, str], ...]:
    """The greeting once a model is connected: a line that said there is none names it; one that names a model stays."""
    return tuple(
        (label, _model(model, address) if (label, text) == (MODEL, NO_MODEL) else text) for label, text in lines
    )


def _model(ref: str, address: str) -> str:
    name = shown_ref(ref)
    return f"{name} at {address}" if address else name


def _instructions(view: SessionView, home: str) -> str:
    paths = [Path(name) for name in view.instructions]
    names = [str(path.relative_to(view.cwd)) if path.is_relative_to(view.cwd) else short(path, home) for path in paths]
    more = len(names) - MOST_FILES
    return ", ".join([*names[:MOST_FILES], *([f"and {more} more"] if more > 0 else ())])


def short(path: Path, home: str) -> str:
    """The path with ``~`` for the home folder."""
    return f"~/{path.relative_to(home)}".removesuffix("/.") if home and path.is_relative_to(home) else str(path)


def short_paths(text: str, home: str) -> str:
    """The text with ``~`` for the home folder in its paths."""
    home = home.rstrip("/")
    return text.replace(f"{home}/", "~/") if home else text


def age(seconds: float) -> str:
    """Age in one unit."""
    for size, unit in ((86400 * 365, "y"), (86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"
