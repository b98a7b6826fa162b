"""The playbook: every bullet with its reason and track record; a second page lists the actions on one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.features.playbook.command import NONE, OFF, bullet_details, state_of
from swecli.features.playbook.companion import SessionPlaybook
from swecli.safe_text import safe_line
from swecli.tui.dock.confirm import ask
from swecli.tui.screens.list_screen import Ask, Entry, ListPage, heading

if TYPE_CHECKING:
    from swecli.features.playbook.companion import ShownBullet
    from swecli.tui.interface import Interface

_GROUPS: Mapping[str, frozenset[str]] = {
    "Proven, in every session": frozenset(("core",)),
    "Active where it applies": frozenset(("active",)),
    "On trial": frozenset(("probation",)),
    "Offered: switch on to keep": frozenset(("offered",)),
    "Off": frozenset(("off",)),
    "Archived": frozenset(("archived",)),
}
_ACTIONS = (
    ("up", "helps", "counts 5 times as helpful"),
    ("down", "mark as harmful", "counts 5 times as harmful"),
    ("edit", "edit", "change what it says"),
    ("freeze", "freeze or release", "neither outcomes nor time change a frozen one"),
    ("off", "switch off", "the model does not see it"),
    ("on", "switch on", "the model sees it where it applies"),
    ("delete", "delete", "swecli does not learn it again; not undoable"),
)


def open_playbook(interface: Interface, words: str = "") -> None:
    port = interface.session.port
    playbook = port.companion(SessionPlaybook) if port is not None else None
    if playbook is None:
        interface.main.flash(OFF)
    else:
        interface.main.open_list(
            PlaybookPage(playbook, interface.main.flash, partial(ask, interface.main, interface.session)), words
        )


class PlaybookPage(ListPage):
    """``notify`` gets a sentence for the user, ``ask`` confirms before a deletion by one key."""

    def __init__(self, playbook: SessionPlaybook, notify: Callable[[str], None], ask: Ask) -> None:
        super().__init__("Playbook (off for this session)" if playbook.paused else "Playbook")
        self._playbook = playbook
        self._notify = notify
        self._ask = ask
        self._shown: dict[str, ShownBullet] = {}
        self._read_once = False

    def begin(self) -> None:
        self.view.start(self._read, "read")

    async def _read(self) -> None:
        shown = await self._playbook.shown()
        if not self.view.shows(self):
            return
        self._read_once = True
        self._shown = {shown_bullet.bullet.id: shown_bullet for shown_bullet in shown}
        self.entries = entries(shown)
        self.view.show()

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        if entry is not None:
            return (bullet_details(self._shown[entry.name]),)
        if self._playbook.trouble:
            return (TextBlock(self._playbook.trouble, "error"),)
        return (TextBlock(NONE),) if self._read_once and not self._shown else ()

    def key_note(self, entry: Entry | None) -> str:
        if entry is None:
            return ""
        remove = self.view.keymap.shown("remove")
        return f"enter what to do with it{f' · {remove} deletes' if remove else ''}"

    def choose(self, entry: Entry) -> None:
        self.view.enter(ActionsPage(self._shown[entry.name], self._act))

    def remove(self, entry: Entry | None) -> None:
        shown_bullet = self._shown.get(entry.name) if entry is not None else None
        if shown_bullet is not None:
            name = shown_bullet.bullet.id
            self._ask(
                f"Delete {safe_line(shown_bullet.bullet.content)}?",
                ("Delete it", "swecli does not learn it again; not undoable"),
                lambda: self.view.start(lambda: self._act(name, "delete", "")),
            )

    async def _act(self, name: str, action: str, text: str) -> str:
        from swecli.core.playbook.changes import ChangeRefused

        message = refusal = ""
        try:
            message = await (self._playbook.edit(name, text) if action == "edit" else self._playbook.do(name, action))
        except ChangeRefused as refused:
            refusal = str(refused)
        self._notify(message or refusal)
        if self.view.shows(self):
            await self._read()
        return refusal


Act = Callable[[str, str, str], Coroutine[Any, Any, str]]
"""Does something with a bullet: its id, the action and a new text. Returns why it was refused, else an empty text."""


class ActionsPage(ListPage):
    """Actions on one bullet."""

    leave = "back to the list"

    def __init__(self, shown: ShownBullet, act: Act) -> None:
        super().__init__(shown.bullet.id, "type to filter")
        self._one = shown
        self._act = act
        idle = "on" if shown.bullet.live else "off"
        self.entries = [Entry(name, (label, what)) for name, label, what in _ACTIONS if name != idle]

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        return (bullet_details(self._one),)

    def key_note(self, entry: Entry | None) -> str:
        return "enter does it" if entry is not None else ""

    def choose(self, entry: Entry) -> None:
        bullet = self._one.bullet
        if entry.name == "edit":
            self.view.enter(EditPage(self._one, self._act), bullet.content)
            return
        view = self.view
        view.back()
        view.start(lambda: self._act(bullet.id, entry.name, ""))


class EditPage(ListPage):
    """Edits a bullet's text in the input line."""

    mark = "› "
    leave = "leaves it unchanged"

    def __init__(self, shown: ShownBullet, act: Act) -> None:
        super().__init__(f"Edit {shown.bullet.id}", "its new text")
        self._one = shown
        self._act = act
        self._refusal = ""

    def headline(self, count: int, total: int) -> str:
        return self.title

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        now = TextBlock(f"Now: {self._one.bullet.content}", "dim")
        return (TextBlock(self._refusal, "error"), now) if self._refusal else (now,)

    def key_note(self, entry: Entry | None) -> str:
        return "enter saves"

    def submitted(self, entry: Entry | None, text: str) -> None:
        self.view.start(lambda: self._save(text), "save")

    async def _save(self, text: str) -> None:
        """Store the text and return to the list; keep the text on the page if it is refused."""
        self._refusal = await self._act(self._one.bullet.id, "edit", text)
        if not self.view.shows(self):
            return
        if self._refusal:
            self.view.show()
            return
        self.view.back()
        self.view.back()


def entries(shown: Sequence[ShownBullet]) -> list[Entry]:
    """The bullets grouped by status."""
    out: list[Entry] = []
    for title, statuses in _GROUPS.items():
        inside = sorted(
            (shown_bullet for shown_bullet in shown if shown_bullet.bullet.status in statuses),
            key=lambda shown_bullet: shown_bullet.bullet.id,
        )
        if inside:
            out.append(heading(title))
        for shown_bullet in inside:
            bullet = shown_bullet.bullet
            tone = "warning" if shown_bullet.stale and bullet.live else "plain" if bullet.live else "dim"
            cells = (bullet.content, state_of(shown_bullet), f"+{bullet.helpful} -{bullet.harmful}")
            out.append(Entry(bullet.id, cells, tone, f"{bullet.section} {bullet.type}"))
    return out
