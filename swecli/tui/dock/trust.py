"""The question whether a folder is trusted, and the one about a single setting of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from swecli.safe_text import safe_line
from swecli.tui.dock.panel import DockPanel, Weight
from swecli.tui.trust_gate import TrustChoice, TrustItem, TrustQuestion

_TRUST_KEYS: Mapping[str, TrustChoice] = {"y": "trust", "s": "session", "n": "decline"}


class ChoicePanel(DockPanel):
    """A question with one key for each answer. Keys that were meant for what was there before decide nothing."""

    DEFAULT_CSS = """
    ChoicePanel { border-top: solid $warning; }
    ChoicePanel .dock--title { color: $warning; }
    ChoicePanel #lines { height: auto; }
    """

    def __init__(
        self,
        title: str,
        lines: Sequence[str],
        note: str,
        keys: Sequence[tuple[str, str]],
        done: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._title = title
        self._lines = [safe_line(line) for line in lines]
        self._note = note
        self._keys = keys
        self._done = done
        self._decided = False

    def compose(self) -> ComposeResult:
        yield Static(Content(self._title), classes="dock--title")
        yield Static(Content(""), id="lines")
        yield Static(Content(self._note), classes="dock--note")
        yield Static(self._legend(), classes="dock--keys")

    def on_mount(self) -> None:
        self.appear()
        self.fit()

    def fit(self) -> None:
        """Show as many lines as there is room for."""
        super().fit()
        room = max(1, self.available() - 6)
        shown = self._lines if len(self._lines) <= room else self._lines[: room - 1]
        hidden = len(self._lines) - len(shown)
        width = max(10, self.screen.size.width - 4)
        lines = [line if len(line) <= width else line[: width - 1] + "…" for line in shown]
        text = "\n".join([*lines, *([f"… and {hidden} more"] if hidden else [])])
        # A terminal that changes its size may ask before the lines are there.
        for place in self.query("#lines").results(Static):
            place.update(Content(text))

    def weight(self, key: str) -> Weight:
        return "decides" if key != "esc" and key.lower() in {name for name, _ in self._keys} else "nothing"

    def take(self, key: str) -> None:
        self._decide(key.lower())

    def escape(self) -> None:
        self._decide("esc")

    def _decide(self, key: str) -> None:
        if not self._decided:
            self._decided = True
            self.post_message(self.Finished())
            self._done(key)

    def _legend(self) -> Content:
        return Content.assemble(
            *(
                part
                for key, word in self._keys
                for part in ((key, "bold $accent"), (f" {word}   ", "$foreground-muted"))
            )
        )


def trust_panel(question: TrustQuestion, done: Callable[[TrustChoice], None]) -> ChoicePanel:
    """The question about a folder."""
    return ChoicePanel(
        f"Do you trust {safe_line(question.folder)}?",
        ["It holds files that would tell swecli how to work:", *(f"  {name}" for name in question.names)],
        "None of them has been read. Without trust they don't count, and changes are asked about.",
        (("y", "yes"), ("s", "this time"), ("n", "no, never"), ("esc", "not now")),
        lambda key: done(_TRUST_KEYS.get(key, "later")),
    )


def item_panel(item: TrustItem, done: Callable[[bool], None]) -> ChoicePanel:
    """The question about one setting."""
    return ChoicePanel(
        f"The project sets {safe_line(item.key)}. Let it?",
        [item.value[at : at + 70] for at in range(0, min(len(item.value), 2_000), 70)],
        f"{safe_line(item.origin)}. If it changes, it is asked about again.",
        (("y", "yes"), ("n", "no"), ("esc", "no")),
        lambda key: done(key == "y"),
    )
