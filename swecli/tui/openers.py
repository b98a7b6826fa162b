"""What commands and keys open: a list, a board, a question or another session, each by its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.commands.base import Screen
from swecli.tui import keymap
from swecli.tui.dock.confirm import ask
from swecli.tui.file_editing import edit_file
from swecli.tui.prompt.box import Prompt
from swecli.tui.rewinding import show_rewind
from swecli.tui.setting_changes import keep_setting

if TYPE_CHECKING:
    from swecli.core.permissions.types import Rule
    from swecli.tui.app import SwecliApp


def show_help(app: SwecliApp, words: str = "") -> None:
    from swecli.tui.screens.help import HelpPage

    def take(text: str) -> None:
        app.main.close_list()
        app.main.prompt.editor.put(text)

    app.main.open_list(HelpPage(app.command_table.all(), app.keymap, take), words)


def show_settings(app: SwecliApp, words: str = "") -> None:
    from swecli.tui.screens.settings import Offered, Preview, SettingsPage

    try:
        port = app.program.settings()
    except ValueError as error:
        app.main.flash(str(error))
    else:
        appearance = app.appearance

        async def themes() -> Sequence[str]:
            return await asyncio.to_thread(lambda: app.theme_choice.names)

        async def models() -> Sequence[str]:
            return tuple(await app.models.known.find())

        offers = {
            "ui.theme": Offered(themes, Preview(appearance.preview, appearance.apply)),
            "model.name": Offered(models),
        }
        app.main.open_list(SettingsPage(port, app.changes.changed, app.main.flash, offers), words)


def show_permissions(app: SwecliApp, words: str = "") -> None:
    from swecli.tui.screens.permissions import PermissionsPage

    try:
        port = app.program.permissions()
    except ValueError as error:
        app.main.flash(str(error))
    else:

        def session_rules() -> Sequence[Rule]:
            return view.rules if (view := app.session.view) is not None else ()

        page = PermissionsPage(port, app.main.flash, app.changes.follow, session_rules, app.session.send)
        app.main.open_list(page, words)


def show_sessions(app: SwecliApp, words: str = "", *, everywhere: bool = False) -> None:
    from swecli.tui.screens.sessions import SessionsPage

    stored, view = app.program.sessions, app.session.view
    if stored is None:
        app.main.flash("Sessions are not stored here, so none can be resumed")
        return
    page = SessionsPage(
        stored(),
        app.switch.go_to,
        app.main.flash,
        partial(ask, app.main, app.session),
        present=view.session_id if view is not None else "",
        folder=str(view.cwd) if view is not None else "",
        everywhere=everywhere,
        clock=app.wall,
    )
    app.main.open_list(page, words)


def show_jobs(app: SwecliApp, words: str = "") -> None:
    from swecli.tui.screens.jobs import JobsPage, SessionCommands

    commands = SessionCommands(app.session, app.main.transcript)
    app.main.open_list(JobsPage(commands, app.main.flash, partial(ask, app.main, app.session), app.wall), words)


def show_context(app: SwecliApp, words: str = "") -> None:
    from swecli.tui.screens.inspector import Inspector

    port = app.session.port
    if port is not None:
        app.main.open_board(Inspector(port, app.session.send, app.main.flash, app.wall, words))


def show_plan(app: SwecliApp) -> None:
    from swecli.tui.screens.compaction import PlanBoard

    port = app.session.port
    if port is not None:
        app.main.open_board(PlanBoard(port, app.session.send, app.main.flash))


def show_wire(app: SwecliApp, draft: str = "") -> None:
    from swecli.tui.screens.wire import WireBoard

    port = app.session.port
    if port is not None:
        app.main.open_board(WireBoard(port, app.main.flash, draft))


def show_cache(app: SwecliApp, words: str = "") -> None:
    from swecli.tui.screens.cache import CacheBoard

    port = app.session.port
    if port is not None:
        app.main.open_board(CacheBoard(port, words))


def find(app: SwecliApp, words: str = "") -> None:
    """Open the transcript search; if it is open, go to the previous match."""
    from swecli.tui.dock.find import FindPanel

    screen = app.main
    app.session.show_all()
    if screen.list_view is not None:
        screen.dock.focus_panel()
    elif isinstance(screen.dock.panel, FindPanel):
        screen.transcript.action_find_previous()
    else:
        screen.dock.show(FindPanel(screen.transcript, words))


async def trust_folder(app: SwecliApp) -> None:
    """Trust the folder as the user asked, and reopen the session, which then has its settings and instructions."""
    gate = app.program.trust
    if gate is None:
        app.main.flash("This folder can't be trusted from here; `swecli permissions trust` does it")
    elif trouble := await asyncio.to_thread(gate.answer, "trust"):
        app.main.flash(trouble)
    elif app.session.spoke and (app.program.sessions is None or not app.session.continuable):
        app.main.flash("This folder is now trusted; it counts from the next session (/clear starts one)")
    else:
        app.switch.reopen("This folder is now trusted")


async def switch_editing(app: SwecliApp) -> None:
    """Switch vim keys in the prompt on or off, now and for later starts."""
    wanted = "usual" if app.main.prompt.editing else "vim"
    message = "Vim keys: Esc for normal mode, i to type" if wanted == "vim" else "Vim keys off"
    app.main.prompt.use_vim(wanted == "vim")
    await keep_setting(app.main, app.program, "ui.editing", wanted, message)


def _show_keys(app: SwecliApp, words: str) -> None:
    app.main.transcript.show(keymap.key_blocks(app.keymap, words), f"/keys {words}".rstrip())


def _add_folder(app: SwecliApp, folder: str) -> None:
    app.program.open.add_folder(Path(folder))
    app.switch.reopen(f"Added {folder} to the session")


OPENERS: Mapping[Screen, Callable[[SwecliApp, str], object]] = {
    "quit": lambda app, _: app.main.post_message(Prompt.Leave()),
    "clear": lambda app, _: app.switch.start_over(),
    "pick_mode": lambda app, _: app.mode_choice.pick(),
    "pick_model": lambda app, _: app.main.run_worker(app.models.pick()),
    "pick_effort": lambda app, _: app.models.pick_effort(),
    "pick_theme": lambda app, name: app.theme_choice.pick(name),
    "keys": _show_keys,
    "find": find,
    "login": lambda app, provider: app.models.log_in(provider),
    "help": show_help,
    "settings": show_settings,
    "permissions": show_permissions,
    "sessions": show_sessions,
    "rewind": show_rewind,
    "fork": lambda app, name: app.switch.fork(name),
    "jobs": show_jobs,
    "context": show_context,
    "compact": lambda app, _: show_plan(app),
    "wire": show_wire,
    "cache": show_cache,
    "editing": lambda app, _: app.main.run_worker(switch_editing(app)),
    "edit_file": lambda app, file: app.main.run_worker(edit_file(app, Path(file))),
    "price": lambda app, model: app.models.ask_price(model),
    "edit_plan": lambda app, _: app.plan.edit(),
    "keep_model": lambda app, ref: app.main.run_worker(app.models.keep(ref)),
    "trust_folder": lambda app, _: app.main.run_worker(trust_folder(app)),
    "add_folder": _add_folder,
}
"""By name; the words after the command are the search or the initial input of those that take one."""
