"""Labelled conversations, made up: twenty that have gone bad, each in a way that is told of, and twenty that look like
it and are well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256

from swecli.core.protocol.context_events import RotKind, ViewEntry
from swecli.core.protocol.events import Body, CompactionCompleted, Event, FileChanged, FileRead, TurnEnded, TurnStarted
from tests.support.said import Said

ERROR = "exit status 1 after {n}.31 s\nE   AssertionError: assert 3 == {what}\nFAILED tests/test_{name}.py::test_it\n"


def text_of(name: str, lines: int, form: int = 0) -> str:
    return "".join(f"{number} value_{name}_{form} = compute({number}, '{name}')\n" for number in range(1, lines + 1))


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


class Talk(Said):
    """With turns, and what tools do to files."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = 0
        self.forms: dict[str, int] = {}

    def tell(self, *bodies: Body) -> None:
        for body in bodies:
            number = len(self.events) + 1
            self.events.append(Event(number, float(number), "s", self.turn, body))
            self.ledger.apply(self.events[-1])
            self.ledger.evict()

    def user(self, text: str) -> str:
        if self.turn:
            self.tell(TurnEnded("done"))
        self.turn += 1
        self.tell(TurnStarted(f"u{self._items + 1}"))
        return super().user(text)

    def read(self, path: str, lines: int = 120, first: int = 1, last: int = 0) -> str:
        text = text_of(path, lines, self.forms.get(path, 0))
        last = last or lines
        part = "".join(text.splitlines(keepends=True)[first - 1 : last])
        item = self.call("read_file", {"path": path}, part)
        self.tell(FileRead(f"/proj/{path}", digest(text), first, last, item))
        return item

    def edit(self, path: str, form: int) -> str:
        before = digest(text_of(path, 120, self.forms.get(path, 0)))
        self.forms[path] = form
        item = self.call("edit_file", {"path": path, "old_text": f"a{form}", "new_text": "b" * 400}, f"Edited {path}.")
        self.tell(FileChanged(f"/proj/{path}", before, digest(text_of(path, 120, form)), item))
        return item

    def run(self, command: str, name: str = "", what: int = 4) -> str:
        """A command that fails with this error; without a name it does not."""
        self._runs = getattr(self, "_runs", 0) + 1
        text = (
            ERROR.format(n=self._runs, what=what, name=name) * 6 if name else "exit status 0 after 1.20 s\nall passed\n"
        )
        return self.call("run_command", {"command": command}, text, 1 if name else 0)

    def summarise(self, *, by_model: bool = True) -> None:
        """A compaction of all that is before the newest turn."""
        item = f"k{self.next_id()}"
        turn = self.turn
        old = [one for one in self.ledger.view if one.id not in self.ledger.entries or self._before(one.id, turn)]
        new = [one for one in self.ledger.view if one not in old]
        sources = tuple(source for one in old for source in (one.sources or (one.id,)))
        words = (
            "# Summary\n\n" + "The work on the shop went on, prices were looked at. " * 200 if by_model else "# State"
        )
        view = (ViewEntry("summary", item, f"<compacted>\n{words}\n</compacted>", sources), *new)
        summary = "The work went on." if by_model else ""
        self.tell(CompactionCompleted(item, view, 50_000, 20_000, 20, 8, ("summary",), summary))

    def _before(self, entry: str, turn: int) -> bool:
        return self.ledger.entries[entry].turn < turn

    def chat(self, turns: int, about: str = "the shop") -> None:
        """Turns with small work on a file of their own each."""
        for number in range(turns):
            self.user(f"Step {self.turn} of {about}: look at it and go on.")
            self.answer(f"Step {number} is done.")

    def ended(self) -> Talk:
        self.tell(TurnEnded("done"))
        return self


# --- rotten -----------------------------------------------------------------------------------------------------


def reread(times: int, apart: int) -> Talk:
    """The whole of a file again and again, in turns of their own or in one."""
    talk = Talk()
    talk.user("Find out where prices are computed.")
    for _ in range(times):
        talk.read("src/prices.py")
        talk.answer("I looked at it.")
        if apart:
            talk.chat(apart)
    return talk.ended()


def reread_parts() -> Talk:
    """A file as a whole, then parts of it that were shown already."""
    talk = Talk()
    talk.user("Where is the discount?")
    talk.read("src/prices.py")
    for first, last in ((10, 60), (5, 70), (12, 66)):
        talk.user("And there?")
        talk.read("src/prices.py", first=first, last=last)
        talk.answer("In the middle.")
    return talk.ended()


def reread_compacted() -> Talk:
    """A file that is read again after each compaction."""
    talk = Talk()
    talk.user("Find out where prices are computed.")
    talk.read("src/prices.py")
    for _ in range(2):
        talk.user("Go on.")
        talk.summarise(by_model=False)
        talk.read("src/prices.py")
        talk.answer("I looked again.")
    return talk.ended()


def failing(times: int, turns: bool, edits: bool) -> Talk:
    """A test that fails the same way, whatever is done."""
    talk = Talk()
    talk.user("Make the test pass.")
    for number in range(times):
        if edits:
            talk.edit("src/prices.py", number + 1)
        talk.run("pytest  tests/test_prices.py" if number % 2 else "pytest tests/test_prices.py", "prices")
        talk.answer("It still fails.")
        if turns:
            talk.user("Try again.")
    talk.answer("I do not know why.")
    return talk.ended()


def reverted(forms: tuple[int, ...], turns: bool) -> Talk:
    """Edits that go back and forth."""
    talk = Talk()
    talk.user("Make the shop work.")
    talk.read("src/shop.py")
    talk.answer("It is a shop.")
    talk.user("Now fix the discount.")
    for form in forms:
        talk.edit("src/shop.py", form)
        talk.run("make check", "")
        talk.answer("Done.")
        if turns:
            talk.user("That is not right.")
    talk.answer("Here it is.")
    return talk.ended()


def contradicting(one: str, other: str, *, between: int = 2) -> Talk:
    """Two demands that can't both be met."""
    talk = Talk()
    talk.user(one)
    talk.answer("All right.")
    talk.chat(between)
    talk.user(other)
    talk.answer("All right.")
    return talk.ended()


def repeated(sentence: str, *variants: str) -> Talk:
    """A demand that is said again and again."""
    talk = Talk()
    for number, said in enumerate((sentence, *variants)):
        talk.user(f"Go on with part {number} of the report. {said}")
        talk.answer("Done.")
    return talk.ended()


def stale(turns: int, files: int, lines: int = 120) -> Talk:
    """Much was read at the beginning, and nothing of it matters any more."""
    talk = Talk()
    talk.user("Read all of the old importer.")
    for number in range(files):
        talk.read(f"old/importer_{number}.py", lines)
    talk.run("ls -la", "")
    talk.answer("Read it.")
    talk.chat(turns, "the new exporter")
    return talk.ended()


def summaries(depth: int) -> Talk:
    """Compacted again and again."""
    talk = Talk()
    talk.user("Build the shop.")
    for number in range(depth):
        talk.read(f"src/part_{number}.py")
        talk.answer("It is built.")
        talk.chat(2)
        talk.summarise()
    talk.answer("It is built.")
    return talk.ended()


ROTTEN: Mapping[str, tuple[RotKind, Callable[[], Talk]]] = {
    "a file three times in one turn": ("reread", lambda: reread(3, 0)),
    "a file five times in turns of their own": ("reread", lambda: reread(5, 1)),
    "parts of a file that was read": ("reread", reread_parts),
    "a file after each compaction": ("reread", reread_compacted),
    "a test three times in one turn": ("failing", lambda: failing(3, turns=False, edits=False)),
    "a test six times over turns": ("failing", lambda: failing(6, turns=True, edits=False)),
    "a test that edits don't help": ("failing", lambda: failing(4, turns=False, edits=True)),
    "edits to and fro in one turn": ("reverted", lambda: reverted((1, 0, 1, 0), turns=False)),
    "edits to and fro over turns": ("reverted", lambda: reverted((1, 0, 2, 0, 3, 0), turns=True)),
    "three edits thrown away at once": ("reverted", lambda: reverted((1, 2, 3, 0), turns=False)),
    "always and never": ("contradiction", lambda: contradicting("Always use tabs.", "Never use tabs.")),
    "one instead of the other": (
        "contradiction",
        lambda: contradicting("Use tabs instead of spaces. Then begin.", "Use spaces instead of tabs."),
    ),
    "two limits": (
        "contradiction",
        lambda: contradicting("Lines must have at most 80 columns.", "Lines must have at most 120 columns."),
    ),
    "demands in longer messages": (
        "contradiction",
        lambda: contradicting(
            "Write the report. Make sure to log every request to the server.",
            "The log is too long. Don't log every request to the server.",
            between=5,
        ),
    ),
    "a demand said three times": ("repeated", lambda: repeated(*["Never change the public ports."] * 3)),
    "a demand in other words": (
        "repeated",
        lambda: repeated(
            "Don't touch the generated files.",
            "Please don't touch generated files!",
            "Never touch the generated files.",
        ),
    ),
    "old reading": ("stale", lambda: stale(6, 8)),
    "old reading, long ago": ("stale", lambda: stale(25, 20, 60)),
    "a summary of a summary": ("summaries", lambda: summaries(2)),
    "a summary of summaries of summaries": ("summaries", lambda: summaries(4)),
}

# --- healthy ----------------------------------------------------------------------------------------------------


def edited_between() -> Talk:
    talk = Talk()
    talk.user("Fix the prices.")
    for form in range(1, 6):
        talk.read("src/prices.py")
        talk.edit("src/prices.py", form)
    talk.answer("Fixed.")
    return talk.ended()


def paged() -> Talk:
    talk = Talk()
    talk.user("Read the whole file.")
    for first in range(1, 1_000, 150):
        talk.read("src/long.py", 1_000, first, min(1_000, first + 160))
    talk.answer("Read.")
    return talk.ended()


def read_twice() -> Talk:
    talk = Talk()
    for _ in range(2):
        talk.user("Look at the prices.")
        talk.read("src/prices.py")
        talk.answer("Looked.")
    return talk.ended()


def many_files() -> Talk:
    talk = Talk()
    talk.user("Read the shop.")
    for number in range(30):
        talk.read(f"src/part_{number}.py")
    talk.answer("Read.")
    return talk.ended()


def fixed_between() -> Talk:
    talk = Talk()
    talk.user("Make the test pass.")
    for form in range(1, 4):
        talk.run("pytest tests/test_prices.py", "prices")
        talk.edit("src/prices.py", form)
        talk.run("pytest tests/test_prices.py")
    talk.answer("It passes.")
    return talk.ended()


def failing_with_progress() -> Talk:
    talk = Talk()
    talk.user("Make all tests pass.")
    for number, name in enumerate(("prices", "shop", "cart", "tax", "till"), 1):
        talk.run("pytest", name)
        talk.edit("src/shop.py", number)
    talk.run("pytest")
    talk.answer("They pass.")
    return talk.ended()


def fixed_at_last() -> Talk:
    talk = Talk()
    talk.user("Make the test pass.")
    for number in range(1, 5):
        talk.run("pytest tests/test_prices.py", "prices")
        talk.edit("src/prices.py", number)
    talk.run("pytest tests/test_prices.py")
    talk.answer("It passes.")
    return talk.ended()


def different_commands() -> Talk:
    talk = Talk()
    talk.user("Run the checks.")
    for name in ("prices", "shop", "cart", "tax"):
        talk.run(f"pytest tests/test_{name}.py", name)
    talk.answer("They all fail.")
    return talk.ended()


def nothing_found() -> Talk:
    talk = Talk()
    talk.user("Is it used anywhere?")
    for _ in range(4):
        talk.call("run_command", {"command": "grep -r old_price src"}, "exit status 1 after 0.01 s\n", 1)
        talk.chat(1)
    return talk.ended()


def print_for_a_moment() -> Talk:
    talk = Talk()
    talk.user("Why is it wrong?")
    talk.edit("src/prices.py", 1)
    talk.run("python src/prices.py")
    talk.edit("src/prices.py", 0)
    talk.edit("src/prices.py", 2)
    talk.answer("Fixed.")
    return talk.ended()


def test_without_the_fix() -> Talk:
    talk = Talk()
    talk.user("Does the test fail without the fix?")
    for form in (1, 0, 1):
        talk.edit("src/prices.py", form)
        talk.run("pytest", "" if form else "prices")
    talk.answer("Yes.")
    return talk.ended()


def long_ago() -> Talk:
    talk = reverted((1, 0, 1, 0), turns=False)
    talk.chat(14)
    return talk.ended()


def used_all() -> Talk:
    talk = Talk()
    talk.user("Read the importer.")
    for number in range(6):
        talk.read(f"old/importer_{number}.py")
    talk.answer("Read.")
    for turn in range(18):
        talk.user(f"Go on with old/importer_{turn % 6}.py.")
        talk.edit(f"old/importer_{turn % 6}.py", turn + 1)
        talk.answer("Done.")
    return talk.ended()


def mostly_new() -> Talk:
    talk = Talk()
    talk.user("Read the importer.")
    talk.read("old/importer.py")
    for number in range(6):
        talk.user("And the next.")
        talk.read(f"src/next_{number}.py")
        talk.answer("Read.")
    return talk.ended()


def only_talk() -> Talk:
    talk = Talk()
    for number in range(30):
        talk.user(f"What about chapter {number}? " + "It is long. " * 30)
        talk.answer("That is a matter of taste, and there is much to say about it. " * 40)
    return talk.ended()


def different_demands() -> Talk:
    talk = Talk()
    for said in (
        "Always write tests before the code.",
        "Never write comments that repeat the code.",
        "Don't change port 80 of the gateway.",
        "Don't change port 443 of the gateway.",
        "Never push to main.",
        "Always push to a branch of your own.",
        "Prefer composition over inheritance.",
        "Use dataclasses for values.",
    ):
        talk.user(f"{said} Then go on.")
        talk.answer("Yes.")
    return talk.ended()


def once_now_and_then() -> Talk:
    talk = Talk()
    for said in (
        "Don't commit yet.",
        "Show me the diff.",
        "OK, commit it now.",
        "Run the tests.",
        "Push it.",
        "Commit.",
    ):
        talk.user(said)
        talk.answer("Done.")
    return talk.ended()


def said_twice() -> Talk:
    return repeated("Never change the public ports.", "Never change the public ports.")


def one_summary() -> Talk:
    return summaries(1)


def by_record_alone() -> Talk:
    talk = Talk()
    talk.user("Build the shop.")
    for _ in range(3):
        talk.chat(2)
        talk.summarise(by_model=False)
    return talk.ended()


HEALTHY: Mapping[str, Callable[[], Talk]] = {
    "read again after edits in between": edited_between,
    "a long file page by page": paged,
    "read twice": read_twice,
    "many files once": many_files,
    "a failing command that was fixed each time": fixed_between,
    "a command that fails in another way each time": failing_with_progress,
    "a command that failed until it passed": fixed_at_last,
    "different commands that fail": different_commands,
    "a search that finds nothing": nothing_found,
    "a print for a moment": print_for_a_moment,
    "whether the test fails without the fix": test_without_the_fix,
    "edits to and fro, long ago": long_ago,
    "a long session that uses all of it": used_all,
    "old, but a small part": mostly_new,
    "a long talk without tools": only_talk,
    "demands about different things": different_demands,
    "one-time wishes": once_now_and_then,
    "a demand said twice": said_twice,
    "one summary": one_summary,
    "compactions without a model": by_record_alone,
}
