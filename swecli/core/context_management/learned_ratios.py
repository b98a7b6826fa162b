"""How models count tokens, learned from the usage that they report and kept in a small file for later sessions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date
from pathlib import Path

from swecli.core.context_management.calibration import HIGHEST_RATIO, LOWEST_RATIO, Learned, family_ratio
from swecli.core.llm.json_values import JsonObject, as_object, as_text, parse_object
from swecli.core.whole_file import put_aside, write_whole

_MOST_MODELS = 300
_MOST_BYTES = 1_000_000
_VERSION = 1
_UNIT = "o200k_base"


class LearnedRatios:
    """The file. Nothing here raises: what can't be kept is learned again.

    ``tell`` gets a sentence for the user, in whatever thread it happens, when the file can't be used. Every call
    reads the file anew, so that sessions that run at the same time see what the others learned.
    """

    def __init__(self, path: Path, today: Callable[[], date] = date.today) -> None:
        self._path = path
        self._today = today
        self._told = False
        self.tell: Callable[[str], None] = lambda _text: None

    def known(self, model: str) -> Learned:
        """What is known of ``provider/name``: from its own sessions, else from those of the same name at another
        provider, else by its family."""
        models = self._read()
        name = model.rpartition("/")[2]
        others = sorted(
            (other for other in models if other.rpartition("/")[2] == name),
            key=lambda other: as_text(as_object(models[other]).get("day")),
        )
        for candidate in (model, *reversed(others)):
            learned = _learned(as_object(models.get(candidate)))
            if learned is not None:
                return learned
        return Learned(family_ratio(model))

    def keep(self, model: str, learned: Learned) -> None:
        """Write what was learned of a model."""
        entry: JsonObject = {
            "ratio": round(learned.ratio, 4),
            "tokens": round(learned.tokens),
            "day": self._today().isoformat(),
        }
        if learned.fixed_ratio is not None:
            entry["fixed_ratio"] = round(learned.fixed_ratio, 4)
        try:
            aside = self._put_aside_if_broken()
            self._write(_newest({**self._read(), model: entry}))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self._tell_once(f"What was learned of {model}'s tokens could not be kept in {self._path}: {reason}.")
            return
        if aside is not None:
            self._tell_once(f"{self._path} was broken; it is kept as {aside}.")

    def _tell_once(self, text: str) -> None:
        if not self._told:
            self._told = True
            self.tell(text)

    def _read(self) -> JsonObject:
        data = self._data()
        return as_object(data.get("models")) if data is not None else {}

    def _data(self) -> JsonObject | None:
        """The file's content; None where there is none of ours."""
        try:
            with self._path.open("rb") as file:
                data = parse_object(file.read(_MOST_BYTES + 1).decode("utf-8", "replace"))
        except OSError:
            return None
        ours = data is not None and data.get("version") == _VERSION and data.get("unit") == _UNIT
        return data if ours else None

    def _put_aside_if_broken(self) -> Path | None:
        """Move a file away that is none of ours, so that nothing in it is lost; where it is now."""
        if not self._path.exists() or self._data() is not None:
            return None
        return put_aside(self._path)

    def _write(self, models: JsonObject) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        data = {"version": _VERSION, "unit": _UNIT, "models": models}
        write_whole(self._path, json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True) + "\n")


def _learned(entry: JsonObject) -> Learned | None:
    ratio = _number(entry.get("ratio"))
    if ratio is None or not LOWEST_RATIO <= ratio <= HIGHEST_RATIO:
        return None
    fixed = _number(entry.get("fixed_ratio"))
    plausible = fixed is not None and LOWEST_RATIO <= fixed <= HIGHEST_RATIO
    return Learned(ratio, max(0.0, _number(entry.get("tokens")) or 0.0), fixed if plausible else None)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _newest(models: JsonObject) -> JsonObject:
    """The models learned last, not more than are reasonable to keep."""
    days = sorted(models, key=lambda model: as_text(as_object(models[model]).get("day")), reverse=True)
    return {model: models[model] for model in days[:_MOST_MODELS]}
