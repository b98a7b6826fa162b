"""Everything that can be done now, in one list: commands, modes, models, themes, screens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swecli.tui.keys import KeyActions


@dataclass(frozen=True, slots=True)
class Action:
    """``value`` names what is done: a kind, a blank, and what it is done with."""

    value: str
    label: str
    detail: str = ""


def entries(app: KeyActions, models: Sequence[str]) -> list[Action]:
    """What makes sense now: nothing that waits for the end of a turn while one runs, no mode, model or theme that is
    there already."""
    from swecli.commands.mode import MODE_MEANINGS

    view = app.stage.link.view
    busy = app.stage.is_busy()
    found = [
        Action(f"command {command.name}", f"/{command.name} {command.arguments}".rstrip(), command.summary)
        for command in app.talk.commands
        if not busy or command.while_busy
    ]
    present = view.mode if view is not None else None
    found += [
        Action(f"mode {mode}", f"mode: {mode}", meaning) for mode, meaning in MODE_MEANINGS.items() if mode != present
    ]
    model = view.model.ref if view is not None and view.model is not None else None
    found += [Action(f"model {ref}", f"model: {ref}") for ref in models if ref != model]
    appearance = app.appearance
    found += [
        Action(f"theme {name}", f"theme: {name}")
        for name in ("auto", *appearance.library.names)
        if name != appearance.wanted
    ]
    return found


def run(app: KeyActions, value: str) -> None:
    """Do what was picked."""
    kind, _, what = value.partition(" ")
    match kind:
        case "mode":
            app.talk.set_mode(what)
        case "model":
            app.talk.set_model(what)
        case "theme":
            app.run_worker(app.talk.submit(f"/theme {what}"), group="talk")
        case _:
            command = next(command for command in app.talk.commands if command.name == what)
            if command.arguments.startswith("<"):
                app.prompt.editor.put(f"/{what} ")
            else:
                app.run_worker(app.talk.submit(f"/{what}"), group="talk")
