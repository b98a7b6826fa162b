"""Every colour on the screen, by what it is for, derived from a scheme so that all text can be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

from swecli.tui.themes import colours
from swecli.tui.themes.colours import exact, mix, of_256
from swecli.tui.themes.scheme import Scheme


@dataclass(frozen=True, slots=True)
class Tones:
    """Grounds: ``background``, ``panel``, ``selection``, ``added``, ``removed``, ``added_word``, ``removed_word``,
    ``match``, ``match_current``. ``rule`` is for lines that carry no text. The rest is text."""

    background: str
    panel: str
    selection: str
    added: str
    removed: str
    added_word: str
    removed_word: str
    match: str
    match_current: str
    rule: str
    text: str
    muted: str
    accent: str
    success: str
    warning: str
    error: str
    link: str
    code: str
    number: str
    keyword: str
    type: str
    function: str
    string: str
    on_selection: str
    on_added: str
    on_removed: str
    on_added_word: str
    on_removed_word: str
    on_match: str

    def pairs(self) -> Iterator[tuple[str, str, str]]:
        """Every text and ground that meet on the screen: their names, and the two colours."""
        plain = ("text", "muted", "accent", "success", "warning", "error", "link", "code")
        program = ("number", "keyword", "type", "function", "string")
        for name in (*plain, *program, "error", "muted"):
            yield f"{name} on background", getattr(self, name), self.background
        for name in plain:
            yield f"{name} on panel", getattr(self, name), self.panel
        for name in (*program, "muted", "error"):
            yield f"{name} on added", getattr(self, name), self.added
            yield f"{name} on removed", getattr(self, name), self.removed
        yield "selected text", self.on_selection, self.selection
        yield "text added", self.on_added, self.added
        yield "text removed", self.on_removed, self.removed
        yield "word added", self.on_added_word, self.added_word
        yield "word removed", self.on_removed_word, self.removed_word
        yield "match", self.on_match, self.match
        yield "current match", self.on_match, self.match_current


@lru_cache(maxsize=64)
def tones_of(scheme: Scheme) -> Tones:
    """Colours of the scheme, lightened or darkened where they could not be read on what they stand on."""
    seen = of_256 if scheme.coarse else exact
    legible, ground = partial(colours.legible, seen=seen), partial(colours.ground, seen=seen)
    back = scheme.background
    panel, selection = ground(scheme.panel, back), ground(scheme.selection, back)
    added, removed = (ground(mix(back, colour, 0.16), back) for colour in (scheme.green, scheme.red))
    added_word, removed_word = (ground(mix(back, colour, 0.36), back) for colour in (scheme.green, scheme.red))
    plain = (back, panel)
    program = (*plain, added, removed)
    match = mix(scheme.yellow, back, 0.15)
    current = mix(scheme.orange, back, 0.0)
    return Tones(
        background=back,
        panel=panel,
        selection=selection,
        added=added,
        removed=removed,
        added_word=added_word,
        removed_word=removed_word,
        match=match,
        match_current=ground(current, match),
        rule=mix(back, scheme.muted, 0.45),
        text=legible(scheme.foreground, plain),
        muted=legible(scheme.muted, program),
        accent=legible(scheme.accent, plain),
        success=legible(scheme.green, plain),
        warning=legible(scheme.yellow, plain),
        error=legible(scheme.red, program),
        link=legible(scheme.cyan, plain),
        code=legible(scheme.purple, plain),
        number=legible(scheme.orange, program),
        keyword=legible(scheme.purple, program),
        type=legible(scheme.cyan, program),
        function=legible(scheme.blue, program),
        string=legible(scheme.green, program),
        on_selection=legible(scheme.foreground, (selection,)),
        on_added=legible(mix(scheme.foreground, scheme.green, 0.3), (added,)),
        on_removed=legible(mix(scheme.foreground, scheme.red, 0.3), (removed,)),
        on_added_word=legible(scheme.foreground, (added_word,)),
        on_removed_word=legible(scheme.foreground, (removed_word,)),
        on_match=legible(back, (match, ground(current, match))),
    )
