"""Finds out that a model goes round in circles: the same call, the same result, again and again. Pure.

A call counts as the same when tool, normalised arguments and result are the same. So waiting for something is no
circle as long as what is seen differs, and work that changes a file begins a new count.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, cast

Kind = Literal["failing", "looking", "running"]
"""Of what the circle is made: a call that fails; calls that only look at things inside; calls, some of which run a
program or ask a server, so that they may be waiting for something."""

LONGEST_CYCLE = 3
NOTED = {"failing": 3, "looking": 3, "running": 6}
"""So many rounds, and the model is told."""
ASKED = {"failing": 5, "looking": 5, "running": 20}
"""So many rounds, and it goes on only if the user wants it to."""

_KEPT = LONGEST_CYCLE * (max(ASKED.values()) + 1)
_HEADER = re.compile(r"\Aexit status (-?\d+) after \d+\.\d+ s$", re.MULTILINE)
_VARYING = re.compile(r"\b\d+\.\d+ ?(?:s|ms|seconds?)\b|\b0x[0-9a-f]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b", re.IGNORECASE)
"""What differs between two runs that fail for the same reason: durations with fractions, addresses, ids."""


@dataclass(frozen=True, slots=True)
class SeenCall:
    """One finished call. ``waits`` says whether its result may change without anything that the agent does."""

    tool: str
    arguments: str
    result: str
    failed: bool = False
    waits: bool = False
    about: str = ""
    """Tool and target on one line, for people."""

    @property
    def key(self) -> str:
        """Tool and normalised arguments."""
        return f"{self.tool} {normalised(self.arguments)}"

    @property
    def digest(self) -> str:
        """Hash of the result without what differs between two runs of the same."""
        text = _HEADER.sub(r"exit status \1", self.result)
        if self.failed:
            text = _VARYING.sub("*", text)
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Repetition:
    """A circle that the newest call is part of: ``rounds`` times the calls in ``about``, one after the other."""

    kind: Kind
    rounds: int
    about: tuple[str, ...]

    @property
    def asks(self) -> bool:
        """Whether it is time to ask the user."""
        return self.rounds >= ASKED[self.kind]


class RepeatDetector:
    """Feed it every finished call of a turn, in the order in which the model made them."""

    def __init__(self) -> None:
        self._failures: Counter[tuple[str, str]] = Counter()
        self._recent: list[tuple[str, str, SeenCall]] = []

    def reset(self) -> None:
        """Something changed: whatever comes now is no repetition of what was."""
        self._failures.clear()
        self._recent.clear()

    def forget_looking(self) -> None:
        """What was looked at is no longer before the model, so looking again is no repetition."""
        self._recent.clear()

    def observe(self, call: SeenCall) -> Repetition | None:
        """Take in a call. Returns the circle that it closes once more, from the round on at which it is noted."""
        key, digest = call.key, call.digest
        self._recent.append((key, digest, call))
        del self._recent[:-_KEPT]
        if call.failed:
            self._failures[key, digest] += 1
            rounds = self._failures[key, digest]
            if rounds >= NOTED["failing"]:
                return Repetition("failing", rounds, (call.about,))
        return self._cycle()

    def _cycle(self) -> Repetition | None:
        marks = [entry[:2] for entry in self._recent]
        for period in range(1, LONGEST_CYCLE + 1):
            rounds = _rounds(marks, period)
            if rounds < 2:
                continue
            calls = [entry[2] for entry in self._recent[-period:]]
            kind: Kind = "running" if any(call.waits for call in calls) else "looking"
            if rounds >= NOTED[kind]:
                return Repetition(kind, rounds, tuple(call.about for call in calls))
            return None
        return None


def _rounds(marks: list[tuple[str, str]], period: int) -> int:
    """How often the last ``period`` marks stand one after the other at the end."""
    last = marks[-period:]
    rounds = 0
    while marks[len(marks) - (rounds + 1) * period : len(marks) - rounds * period] == last:
        rounds += 1
        if (rounds + 1) * period > len(marks):
            break
    return rounds


def normalised(arguments: str) -> str:
    """Arguments without what makes no difference: order and spacing of the JSON, blanks around texts, nulls, and how
    a path is spelt."""
    try:
        data: object = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments.strip()
    return json.dumps(_plain(data), sort_keys=True, ensure_ascii=False)


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return {key: _plain(one, key) for key, one in entries.items() if one is not None}
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    text = value.strip()
    if name == "path" and text:
        return posixpath.normpath(text)
    return " ".join(text.split()) if name == "command" else text
