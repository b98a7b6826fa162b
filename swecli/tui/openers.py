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
    from swecli.tui.interface import Interface


def show_help(interface: Interface, words: str = "") -> None:
    from swecli.tui.screens.help import HelpPage

    def take(text: str) -> None:
        interface.main.close_list()
        interface.main.prompt.editor.put(text)

    interface.main.open_list(HelpPage(interface.commands.all(), interface.keymap, take), words)


def show_settings(interface: Interface, words: str = "") -> None:
    from swecli.tui.screens.settings import Offered, Preview, SettingsPage

    try:
        port = interface.program.settings()
    except ValueError as error:
        interface.main.flash(str(error))
    else:
        appearance = interface.appearance

        async def themes() -> Sequence[str]:
            return await asyncio.to_thread(lambda: interface.themes.names)

        async def models() -> Sequence[str]:
            return tuple(await interface.models.known.find())

        offers = {
            "ui.theme": Offered(themes, Preview(appearance.preview, appearance.apply)),
            "model.name": Offered(models),
        }
        interface.main.open_list(SettingsPage(port, interface.changes.changed, interface.main.flash, offers), words)


def show_permissions(interface: Interface, words: str = "") -> None:
    from swecli.tui.screens.permissions import PermissionsPage

    try:
        port = interface.program.permissions()
    except ValueError as error:
        interface.main.flash(str(error))
    else:

        def session_rules() -> Sequence[Rule]:
            return view.rules if (view := interface.session.view) is not None else ()

        page = PermissionsPage(
            port, interface.main.flash, interface.changes.follow, session_rules, interface.session.send
        )
        interface.main.open_list(page, words)


def show_sessions(interface: Interface, words: str = "", *, everywhere: bool = False) -> None:
    from swecli.tui.screens.sessions import SessionsPage

    stored, view = interface.program.sessions, interface.session.view
    if stored is None:
        interface.main.flash("Sessions are not stored here, so none can be resumed")
        return
    page = SessionsPage(
        stored(),
        interface.switch.go_to,
        interface.main.flash,
        partial(ask, interface.main, interface.session),
        present=view.session_id if view is not None else "",
        folder=str(view.cwd) if view is not None else "",
        everywhere=everywhere,
        clock=interface.wall,
    )
    interface.main.open_list(page, words)


def show_jobs(interface: Interface, words: str = "") -> None:
    from swecli.tui.screens.jobs import JobsPage, SessionCommands

    commands = SessionCommands(interface.session, interface.main.transcript)
    interface.main.open_list(
        JobsPage(commands, interface.main.flash, partial(ask, interface.main, interface.session), interface.wall), words
    )


def show_context(interface: Interface, words: str = "") -> None:
    from swecli.tui.screens.inspector import Inspector

    port = interface.session.port
    if port is not None:
        interface.main.open_board(Inspector(port, interface.session.send, interface.main.flash, interface.wall, words))


def show_plan(interface: Interface) -> None:
    from swecli.tui.screens.compaction import PlanBoard

    port = interface.session.port
    if port is not None:
        interface.main.open_board(PlanBoard(port, interface.session.send, interface.main.flash))


def show_wire(interface: Interface, draft: str = "") -> None:
    from swecli.tui.screens.wire import WireBoard

    port = interface.session.port
    if port is not None:
        interface.main.open_board(WireBoard(port, interface.main.flash, draft))


def show_cache(interface: Interface, words: str = "") -> None:
    from swecli.tui.screens.cache import CacheBoard

    port = interface.session.port
    if port is not None:
        interface.main.open_board(CacheBoard(port, words))


def find(interface: Interface, words: str = "") -> None:
    """Open the transcript search; if it is open, go to the previous match."""
    from swecli.tui.dock.find import FindPanel

    screen = interface.main
    interface.session.show_all()
    if screen.list_view is not None:
        screen.dock.focus_panel()
    elif isinstance(screen.dock.panel, FindPanel):
        screen.transcript.action_find_previous()
    else:
        screen.dock.show(FindPanel(screen.transcript, words))


async def trust_folder(interface: Interface) -> None:
    """Trust the folder as the user asked, and reopen the session, which then has its settings and instructions."""
    gate = interface.program.trust
    if gate is None:
        interface.main.flash("This folder can't be trusted from here; `swecli permissions trust` does it")
    elif trouble := await asyncio.to_thread(gate.answer, "trust"):
        interface.main.flash(trouble)
    elif interface.session.spoke and (interface.program.sessions is None or not interface.session.continuable):
        interface.main.flash("This folder is now trusted; it counts from the next session (/clear starts one)")
    else:
        interface.switch.reopen("This folder is now trusted")


async def switch_editing(interface: Interface) -> None:
    """Switch vim keys in the prompt on or off, now and for later starts."""
    wanted = "usual" if interface.main.prompt.editing else "vim"
    message = "Vim keys: Esc for normal mode, i to type" if wanted == "vim" else "Vim keys off"
    interface.main.prompt.use_vim(wanted == "vim")
    await keep_setting(interface.main, interface.program, "ui.editing", wanted, message)


def _show_keys(interface: Interface, words: str) -> None:
    interface.main.transcript.show(keymap.key_blocks(interface.keymap, words), f"/keys {words}".rstrip())


def _add_folder(interface: Interface, folder: str) -> None:
    interface.program.open.add_folder(Path(folder))
    interface.switch.reopen(f"Added {folder} to the session")


OPENERS: Mapping[Screen, Callable[[Interface, str], object]] = {
    "quit": lambda interface, _: interface.main.post_message(Prompt.Leave()),
    "clear": lambda interface, _: interface.switch.start_over(),
    "pick_mode": lambda interface, _: interface.modes.pick(),
    "pick_model": lambda interface, _: interface.main.run_worker(interface.models.pick()),
    "pick_effort": lambda interface, _: interface.models.pick_effort(),
    "pick_theme": lambda interface, name: interface.themes.pick(name),
    "keys": _show_keys,
    "find": find,
    "login": lambda interface, provider: interface.models.log_in(provider),
    "help": show_help,
    "settings": show_settings,
    "permissions": show_permissions,
    "sessions": show_sessions,
    "rewind": show_rewind,
    "fork": lambda interface, name: interface.switch.fork(name),
    "jobs": show_jobs,
    "context": show_context,
    "compact": lambda interface, _: show_plan(interface),
    "wire": show_wire,
    "cache": show_cache,
    "editing": lambda interface, _: interface.main.run_worker(switch_editing(interface)),
    "edit_file": lambda interface, file: interface.main.run_worker(edit_file(interface, Path(file))),
    "price": lambda interface, model: interface.models.ask_price(model),
    "edit_plan": lambda interface, _: interface.plan.edit(),
    "keep_model": lambda interface, ref: interface.main.run_worker(interface.models.keep(ref)),
    "trust_folder": lambda interface, _: interface.main.run_worker(trust_folder(interface)),
    "add_folder": _add_folder,
}
"""By name; the words after the command are the search or the initial input of those that take one."""
