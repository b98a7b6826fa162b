"""The question about trust stands before everything else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from textual import events

from swecli.assembly.trust import TrustChoice, TrustItem, TrustQuestion
from swecli.tui.dock.panel import GRACE, TYPING
from swecli.tui.dock.trust import pages
from swecli.tui.preferences import Preferences
from tests.tui.support import Session, running

ITEM = TrustItem("approval.allow", '["Bash(make *)"]', "/w/.swecli/config.toml:2", "d")


class Gate:
    """Remembers what was answered. ``names`` are what the folder holds."""

    def __init__(self, names: tuple[str, ...] = (".swecli/config.toml",), items: Sequence[TrustItem] = ()) -> None:
        self.names = names
        self._items = items
        self.told: list[object] = []

    def question(self) -> TrustQuestion | None:
        return TrustQuestion("/proj", self.names) if self.names else None

    def answer(self, choice: TrustChoice) -> str:
        self.told.append(choice)
        return "It could not be kept." if choice == "decline" else ""

    def items(self) -> Sequence[TrustItem]:
        self.told.append("items")
        return self._items

    def accept(self, items: Sequence[TrustItem]) -> str:
        self.told.append(tuple(items))
        return ""

    def refuse(self, items: Sequence[TrustItem]) -> str:
        self.told.append(("no", *items))
        return ""

    def postpone(self, items: Sequence[TrustItem]) -> None:
        self.told.append(("later", *items))


class Opening:
    """Opens the session and notes what was answered before."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.session = Session()
        self.before: list[object] | None = None

    async def __call__(self) -> Session:
        self.before = list(self.gate.told)
        return self.session


@pytest.mark.parametrize(
    ("key", "choice"), [("y", "trust"), ("s", "session"), ("n", "decline"), ("escape", "later"), ("Y", "trust")]
)
async def test_nothing_is_opened_before_the_answer(key: str, choice: str) -> None:
    gate = Gate()
    opening = Opening(gate)
    async with running(open_session=opening, trust=gate) as it:
        await it.shows("Do you trust /proj?", ".swecli/config.toml", "These files have no effect yet")
        assert opening.before is None
        it.clock.now += GRACE
        await it.press(key)
        await it.until(lambda: opening.before is not None)
        assert opening.before is not None
        assert opening.before[0] == choice
        await it.until(lambda: it.editor.has_focus)
        if choice == "decline":
            await it.shows("It could not be kept.")


async def test_a_folder_with_nothing_to_read_is_not_asked_about() -> None:
    gate = Gate(())
    opening = Opening(gate)
    async with running(open_session=opening, trust=gate) as it:
        await it.until(lambda: opening.before == ["items"])
        assert gate.told == ["items"]


async def test_a_trusted_project_is_asked_about_what_is_new_in_it() -> None:
    hook = TrustItem("hooks.PreToolUse", "Bash: ./check.sh", "/w/.claude/settings.json", "h")
    gate = Gate((), (ITEM, hook))
    opening = Opening(gate)
    async with running(open_session=opening, trust=gate) as it:
        await it.shows(
            "Allow this project to do these 2 things?",
            "• run this command before each Bash call (.claude/settings.json)",
        )
        it.clock.now += GRACE
        await it.press("o")
        await it.shows("Allow this project to set approval.allow?")
        it.clock.now += GRACE
        await it.press("n")
        await it.shows("Allow this project to run this command before each Bash call?", "Bash: ./check.sh")
        it.clock.now += GRACE
        await it.press("y")
        await it.until(lambda: opening.before is not None)
    assert opening.before == ["items", ("no", ITEM), (hook,)]


async def test_single_settings_are_asked_about_one_by_one() -> None:
    other = TrustItem("providers.x.base_url", '"http://e"', "/w/.swecli/config.toml:4", "e")
    gate = Gate(items=(ITEM, other))
    opening = Opening(gate)
    async with running(open_session=opening, trust=gate) as it:
        await it.shows("Do you trust")
        it.clock.now += GRACE
        await it.press("y")
        await it.shows("these 2 things?", "Bash(make *)", '"http://e"')
        it.clock.now += GRACE
        await it.press("o")
        await it.shows("Allow this project to set approval.allow?", "Bash(make *)", "1 of 2 · ")
        it.clock.now += GRACE
        await it.press("y")
        await it.shows("Allow this project to set providers.x.base_url?", "2 of 2 · /w/.swecli/config.toml:4")
        it.clock.now += GRACE
        await it.press("escape")
        await it.until(lambda: opening.before is not None)
    assert opening.before == ["trust", "items", (ITEM,), ("later", other)]


async def test_keys_that_were_on_their_way_to_the_prompt_decide_nothing() -> None:
    gate = Gate()
    opening = Opening(gate)
    async with running(open_session=opening, trust=gate) as it:
        await it.shows("Do you trust")
        await it.press("y", "e", "s", "y")
        assert gate.told == []
        it.clock.now += GRACE + TYPING
        await it.press("n")
        await it.until(lambda: gate.told == ["decline"])


async def test_names_are_shown_as_text_and_cut_to_the_screen() -> None:
    names = ("[red]x[/red]", "a\x1b]52;c;eA==\x07b", *(f".swecli/{number}" for number in range(300)))
    gate = Gate(names)
    async with running(open_session=Opening(gate), trust=gate, size=(70, 18)) as it:
        await it.shows("[red]x[/red]", "more", "yes")
        assert "\x1b" not in it.screen()


@pytest.mark.parametrize("size", [(80, 24), (40, 15), (30, 8), (30, 6)])
async def test_files_and_keys_are_seen_at_every_size(size: tuple[int, int]) -> None:
    gate = Gate(tuple(f"file-{number}" for number in range(6)))
    async with running(open_session=Opening(gate), trust=gate, size=size) as it:
        await it.shows("Do you trust /proj?", "file-0", "yes", "esc")


async def test_where_nothing_can_be_read_nothing_is_trusted() -> None:
    gate = Gate()
    async with running(open_session=Opening(gate), trust=gate, size=(30, 3)) as it:
        await it.shows("Enlarge the window")
        it.clock.now += 5
        await it.press("y", "s")
        assert gate.told == []
        await it.pilot.resize_terminal(80, 24)
        await it.shows("1 yes")
        await it.press("y")
        await it.until(lambda: "trust" in gate.told)


async def test_letters_and_pastes_there_go_to_the_prompt() -> None:
    gate = Gate()
    async with running(open_session=Opening(gate), trust=gate) as it:
        await it.shows("1 yes")
        it.clock.now += 5
        for key in "fix my bugs":
            await it.press("space" if key == " " else key)
            it.clock.now += 0.2
        assert gate.told == []
        it.app.post_message(events.Paste(" now"))
        await it.until(lambda: it.text == "fix my bugs now")


@pytest.mark.parametrize(("key", "told"), [("y", ()), ("n", ("no",)), ("escape", ("later",))])
async def test_several_things_are_asked_about_on_one_panel(key: str, told: tuple[str, ...]) -> None:
    server = TrustItem("mcp.time", "uvx mcp-server-time", "/w/.mcp.json; it runs with your permissions", "s", "time")
    gate = Gate((), (ITEM, server))
    opening = Opening(gate)
    async with running(open_session=opening, trust=gate) as it:
        await it.shows("• start the MCP server time (.mcp.json; it runs with your permissions)", "uvx mcp-server-time")
        it.clock.now += GRACE
        await it.press(key)
        await it.until(lambda: opening.before is not None)
    assert opening.before == ["items", (*told, ITEM, server)]


MANY = tuple(
    TrustItem(f"mcp.s{number}", f"server {number}", "/w/.mcp.json", f"d{number}", f"s{number}") for number in range(8)
)


async def test_what_does_not_fit_on_one_panel_is_on_the_next() -> None:
    gate = Gate((), MANY)
    opening = Opening(gate)
    async with running(open_session=opening, trust=gate) as it:
        await it.pilot.resize_terminal(80, 24)
        await it.shows("these 6 things?", "server 0", "server 5", "Things 1 to 6 of 8.", "yes, all of these")
        assert "server 6" not in it.screen()
        it.clock.now += GRACE
        await it.press("y")
        await it.shows("these 2 things?", "server 6", "server 7", "Things 7 to 8 of 8.")
        assert gate.told == ["items", MANY[:6]]
        it.clock.now += GRACE
        await it.press("o")
        await it.shows("start the MCP server s6?", "7 of 8")
        it.clock.now += GRACE
        await it.press("y")
        await it.shows("start the MCP server s7?", "8 of 8")
        it.clock.now += GRACE
        await it.press("n")
        await it.until(lambda: opening.before is not None)
    assert opening.before == ["items", MANY[:6], (MANY[6],), ("no", MANY[7])]


def test_things_share_a_panel_where_each_can_be_read_whole() -> None:
    long = TrustItem("hooks.Stop", "x" * 900, "a", "h")
    assert pages((), 80, 24) == []
    assert pages((ITEM,), 80, 24) == [[ITEM]]
    assert pages((ITEM, ITEM), 80, 24) == [[ITEM, ITEM]]
    assert pages((ITEM, ITEM), 30, 24) == [[ITEM, ITEM]]
    assert pages((ITEM, ITEM, ITEM), 12, 24) == [[ITEM], [ITEM], [ITEM]]
    assert pages((ITEM, long, ITEM, ITEM), 80, 24) == [[ITEM], [long], [ITEM, ITEM]]
    assert pages((ITEM, long, ITEM), 80, 60) == [[ITEM, long, ITEM]]
    assert pages((ITEM, ITEM), 80, 10) == [[ITEM], [ITEM]]


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (24, 10)])
async def test_nothing_is_allowed_before_all_of_it_was_on_the_screen(size: tuple[int, int]) -> None:
    value = f"true {'x' * 2_500} {'word ' * 300}; rm -rf /"
    hook = TrustItem("hooks.PreToolUse", value, "/w/.swecli/config.toml:9", "h")
    gate = Gate((), (hook,))
    opening = Opening(gate)
    async with running(open_session=opening, trust=gate, size=size) as it:
        await it.shows("true", "lines 1–")
        it.clock.now += 5
        assert "rm -rf" not in it.screen()
        await it.press("y")
        it.clock.now += 5
        await it.until(lambda: "Read all of it" in it.screen() or size[0] == 24)
        assert opening.before is None
        await it.press("pagedown", "end")
        await it.shows("; rm -rf", "/")
        await it.press("y")
        await it.until(lambda: opening.before is not None)
    assert opening.before == ["items", (hook,)]


async def test_a_screen_that_shrinks_takes_no_line_away_unseen() -> None:
    gate = Gate((), MANY)
    opening = Opening(gate)
    async with running(open_session=opening, trust=gate, size=(100, 50)) as it:
        await it.shows("these 8 things?")
        await it.pilot.resize_terminal(60, 14)
        await it.shows("lines 1–", "s0 (.mcp.json)")
        it.clock.now += 5
        await it.press("end")
        await it.shows("of 16", "server 7")
        await it.press("pageup", "home")
        await it.shows("lines 1–", "s0 (.mcp.json)")


async def test_the_question_is_drawn_with_the_users_settings_and_the_answer_may_change_them() -> None:
    gate = Gate()
    read: list[list[object]] = []

    def preferences() -> Preferences:
        read.append(list(gate.told))
        return Preferences(glyphs="ascii", theme="missing")

    async with running(open_session=Opening(gate), trust=gate, preferences=preferences) as it:
        await it.shows("Do you trust /proj?")
        assert it.screen().isascii()
        it.clock.now += GRACE
        await it.press("n")
        await it.until(lambda: len(read) == 2)
        assert read == [[], ["decline"]]
        await it.shows("missing")
        assert it.screen().count("missing") == 1


async def test_without_a_question_the_settings_are_read_once() -> None:
    gate = Gate(names=())
    opening = Opening(gate)
    read: list[bool] = []
    async with running(open_session=opening, trust=gate, preferences=lambda: read.append(True) or Preferences()) as it:
        await it.until(lambda: opening.before is not None)
    assert read == [True]
