"""Every text on every ground that it meets can be read, in all themes, known or made up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.style import Style

from swecli.themes.files import known
from swecli.themes.scheme import (
    AA,
    COLOURS,
    DARK,
    LIGHT,
    Depth,
    Scheme,
    contrast,
    legible,
    mix,
    normal,
    of_256,
    tones_of,
)
from swecli.tui.themes.library import Library, theme_of
from swecli.tui.transcript.palette import TERMINAL, palette_for, palette_of
from tests.support.thorough import examples

SCHEMES = (DARK, LIGHT, *known())
COLOUR = st.integers(0, 0xFFFFFF).map(lambda number: f"#{number:06x}")


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_shipped_themes_reach_aa(scheme: Scheme) -> None:
    pairs = {name: contrast(text, ground) for name, text, ground in tones_of(scheme).pairs()}
    assert len(pairs) > 25
    assert {name: ratio for name, ratio in pairs.items() if ratio < AA} == {}


@settings(deadline=None, max_examples=examples(60, 300))
@given(st.lists(COLOUR, min_size=len(COLOURS), max_size=len(COLOURS)))
def test_a_theme_of_any_colours_reaches_aa(colours: list[str]) -> None:
    scheme = Scheme("any", *colours)
    assert [name for name, text, ground in tones_of(scheme).pairs() if contrast(text, ground) < AA] == []


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_what_256_colours_leave_of_a_theme_reaches_aa(scheme: Scheme) -> None:
    pairs = tones_of(replace(scheme, coarse=True)).pairs()
    assert [name for name, text, ground in pairs if contrast(of_256(text), of_256(ground)) < AA] == []


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_bands_and_changed_lines_stand_out_in_256_colours(scheme: Scheme) -> None:
    tones = tones_of(replace(scheme, coarse=True))
    grounds = {name: of_256(getattr(tones, name)) for name in ("panel", "selection", "added", "removed")}
    assert [name for name, ground in grounds.items() if ground == of_256(tones.background)] == []


def _hue(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "green" if green > max(red, blue) else "red" if red > max(green, blue) else "grey"


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_added_lines_are_green_and_removed_ones_red_in_256_colours(scheme: Scheme, coarse: bool) -> None:
    tones = tones_of(replace(scheme, coarse=coarse))
    seen = of_256 if coarse else normal
    for kind, hue in (("added", "green"), ("removed", "red")):
        line, word = seen(getattr(tones, kind)), seen(getattr(tones, f"{kind}_word"))
        if coarse:
            assert (_hue(line), _hue(word)) == (hue, hue)
        assert line != word
        assert contrast(line, word) < contrast(line, seen(getattr(tones, f"on_{kind}")))


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", ["none", "16"])
def test_with_16_colours_every_theme_is_the_terminals_own(depth: Depth, dark: bool) -> None:
    library = Library(depth)
    library.add(SCHEMES)
    shown = {library.resolve(name, dark) for name in library.names}
    assert len(shown) == 1
    theme = library.theme(shown.pop() or "")
    assert theme.ansi
    assert palette_for(theme) is TERMINAL
    assert str(TERMINAL.added.color) == str(TERMINAL.added_word.color) == str(Style.parse("green").color)
    assert str(TERMINAL.removed.color) == str(Style.parse("red").color)
    colours = [getattr(TERMINAL, name) for name in TERMINAL.__struct_fields__]
    numbers = [
        colour.number
        for style in colours
        if isinstance(style, Style)
        for colour in (style.color, style.bgcolor)
        if colour
    ]
    assert numbers
    assert all(number in range(1, 7) for number in numbers)  # black and white are invisible on one of both grounds


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_palette_and_style_sheets_use_these_tones_and_no_other_colour(scheme: Scheme) -> None:
    tones = tones_of(scheme)
    allowed = {getattr(tones, name) for name in tones.__struct_fields__}
    palette = palette_of(scheme)
    styles = [getattr(palette, name) for name in palette.__struct_fields__]
    styles += [getattr(palette.tokens, name) for name in palette.tokens.__struct_fields__]
    used = {
        colour.get_truecolor().hex
        for style in styles
        if hasattr(style, "bgcolor")
        for colour in (style.color, style.bgcolor)
        if colour is not None
    }
    assert used
    assert used <= allowed
    theme = theme_of(scheme)
    sheet = {theme.primary, theme.warning, theme.error, theme.success, theme.foreground, theme.background, theme.panel}
    assert sheet | {value for value in theme.variables.values() if value.startswith("#")} <= allowed


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#123456", "#123456") == 1.0


def test_a_colour_that_can_be_read_stays_and_another_moves_no_further_than_needed() -> None:
    assert legible("#ffffff", ("#000000",)) == "#ffffff"
    moved = legible("#333344", ("#000000",))
    assert AA <= contrast(moved, "#000000") < AA + 1.0


def test_colours_are_read_in_both_spellings_and_nothing_else() -> None:
    assert (normal("#AbC"), normal("#A1B2C3")) == ("#aabbcc", "#a1b2c3")
    for wrong in ("", "red", "#12", "#12345g", "rgb(1,2,3)", "#1234567"):
        with pytest.raises(ValueError, match="is not a colour"):
            normal(wrong)
    assert mix("#000000", "#ffffff", 0.5) == "#808080"
