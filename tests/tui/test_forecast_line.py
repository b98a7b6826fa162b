"""The forecast of the next request above the prompt."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from swecli.core.context_management.forecast import Forecast
from swecli.tui.forecast_line import cost_range, forecast_words, next_change
from swecli.tui.preferences import Preferences
from swecli.tui.shell_lines import shell_words
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.support import Session, running

TOLD = Forecast(12_400, 12_000, 12_800, 11_900, (Decimal("0.031"), Decimal("0.08")), 6, 40.0)


def test_the_line_gives_way_in_order() -> None:
    assert (
        forecast_words(TOLD, 100) == "next ~12K (12K cached) · $0.03-0.08 · compaction in ~6 turns · cache cold in 0:40"
    )
    assert forecast_words(TOLD, 70) == "next ~12K (12K cached) · $0.03-0.08 · cache cold in 0:40"
    assert forecast_words(TOLD, 45) == "next ~12K · $0.03-0.08 · cache cold in 0:40"
    assert forecast_words(TOLD, 12) == "next ~12K"
    assert forecast_words(TOLD, 3) == ""


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Forecast(900, 900, 900), "next ~900"),
        (Forecast(900, 900, 900, turns_left=0), "next ~900 · compaction now due"),
        (Forecast(900, 900, 900, turns_left=1), "next ~900 · compaction in ~1 turn"),
        (Forecast(900, 900, 900, turns_left=50), "next ~900"),
        (Forecast(900, 900, 900, cold_in=61.0), "next ~900"),
        (Forecast(900, 900, 900, 0, cold_in=0.0), "next ~900 · cache cold"),
        (Forecast(900, 900, 900, cost=(Decimal(0), Decimal(0))), "next ~900 · free"),
    ],
)
def test_only_what_matters_is_told(told: Forecast, words: str) -> None:
    assert forecast_words(told, 80) == words


def test_a_timer_runs_only_until_the_words_change() -> None:
    assert next_change(Forecast(1, 1, 1)) is None
    assert next_change(Forecast(1, 1, 1, cold_in=0.0)) is None
    assert next_change(Forecast(1, 1, 1, cold_in=200.0)) == 140.0
    assert next_change(Forecast(1, 1, 1, cold_in=39.25)) == 0.25
    assert next_change(Forecast(1, 1, 1, cold_in=39.0)) == 1.0
    assert cost_range(Decimal("0.031"), Decimal("0.033")) == "$0.03"


async def test_it_stands_above_the_prompt_while_a_message_is_typed() -> None:
    session = Session((WAIT_FOR_INTERRUPT,))
    session.view.foreseen = TOLD
    async with running(session=session) as it:
        await it.until(lambda: it.app.main.activity.foresee is not None)
        assert "next ~" not in it.screen()
        await it.type("hello")
        await it.shows("next ~12K (12K cached)", "cache cold in 0:40")
        await it.press("ctrl+u")
        await it.hides("next ~")
        await it.type("/help")
        await it.press("escape")
        assert "next ~" not in it.screen()
        await it.press("ctrl+u")
        await it.say("go")
        await it.shows("esc to interrupt")
        await it.type("more")
        assert "next ~" not in it.screen()


async def test_it_includes_the_files_that_the_message_mentions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large.py").write_text("word = 1\n" * 2_000)
    session = Session()
    view = session.view
    view.cwd, view.roots = tmp_path, (tmp_path,)

    def told(_text: str, _images: int, attached: int) -> Forecast:
        return Forecast(1_000 + 10_000 * (attached > 1_000), 0, 1_000)

    monkeypatch.setattr(view, "forecast", told)
    async with running(session=session) as it:
        await it.until(lambda: it.app.main.activity.foresee is not None)
        await it.type("explain")
        await it.shows("next ~1.0K")
        await it.type(" @large.py ")
        await it.shows("next ~11K", "@large.py: ~")
        await it.press("ctrl+u")
        await it.type("no file")
        await it.shows("next ~1.0K")


async def test_it_can_be_switched_off() -> None:
    session = Session()
    session.view.foreseen = TOLD
    async with running(session=session, preferences=lambda: Preferences(forecast=False)) as it:
        await it.type("hello")
        await it.shows("hello")
        assert it.app.main.activity.foresee is None
        assert "next ~" not in it.screen()


async def test_a_draft_for_the_shell_tells_what_becomes_of_it() -> None:
    async with running() as it:
        await it.type("!")
        await it.shows(shell_words("!"))
        await it.type("!")
        await it.shows(shell_words("!!"))
        await it.press("backspace", "backspace")
        await it.hides("runs in your shell")
