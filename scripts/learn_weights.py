"""Learn from labelled sentences which traits speak for a sentence about one project and which for advice that holds
everywhere, and write swecli/core/playbook/weights_of_traits.txt: ``python scripts/learn_weights.py [--write]``.

Without ``--write`` it only says how well each file of sentences is told apart by weights learned from the others, as
a file stands for an author and a style. ``tests/data/playbook/held_out.txt`` is never learned from.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from swecli.core.playbook.claims import ENOUGH, traits

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data" / "playbook"
WEIGHTS = ROOT / "swecli" / "core" / "playbook" / "weights_of_traits.txt"
LEAST = 3
"""Sentences that have a trait before it has a weight."""
SMALLEST = 0.04
"""A weight below this is left out."""
PENALTY = 3.3
PASSES = 40


class Labelled(NamedTuple):
    style: str
    traits: frozenset[str]
    specific: bool


def labelled() -> list[Labelled]:
    found: list[Labelled] = []
    for path in sorted((*DATA.glob("*.txt"), *DATA.glob("batches/*.txt"))):
        if path.name in ("held_out.txt", "held_out_second.txt", "context_format.txt", "readme_blocks.txt"):
            continue
        style = "first" if path.name in ("generic.txt", "specific.txt") else path.stem
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(("- ", "+ ")):
                found.append(Labelled(style, traits(line[2:]), line.startswith("+")))
            elif style == "first" and line and not line.startswith("#"):
                found.append(Labelled(style, traits(line), path.name == "specific.txt"))
    return found


def learned(sentences: Sequence[Labelled]) -> dict[str, float]:
    """Weights of a logistic regression, the sum of squares held small; one trait after the other, until all fit."""
    often = Counter(trait for one in sentences for trait in one.traits)
    having: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(sentences):
        for trait in one.traits:
            if often[trait] >= LEAST:
                having[trait].append(place)
    having[""] = list(range(len(sentences)))
    weights = dict.fromkeys(sorted(having), 0.0)
    sums = [0.0] * len(sentences)
    wanted = [float(one.specific) for one in sentences]
    for _ in range(PASSES):
        for trait in weights:
            penalty = PENALTY if trait else 0.0
            slope, bend = penalty * weights[trait], penalty
            for place in having[trait]:
                odds = 1 / (1 + math.exp(-sums[place]))
                slope += odds - wanted[place]
                bend += odds * (1 - odds)
            step = max(-1.0, min(1.0, slope / (bend + 1e-9)))
            weights[trait] -= step
            for place in having[trait]:
                sums[place] -= step
    return weights


def score(weights: Mapping[str, float], one: Labelled) -> float:
    return weights[""] + sum(weights.get(trait, 0.0) for trait in one.traits)


def crossed(sentences: Sequence[Labelled]) -> None:
    """Say of each style how much of it is told apart by what was learned from the others."""
    total: Counter[str] = Counter()
    for style in sorted({one.style for one in sentences}):
        weights = learned([one for one in sentences if one.style != style])
        counts: Counter[str] = Counter()
        for one in sentences:
            if one.style == style:
                label = "specific" if one.specific else "advice"
                taken = score(weights, one) >= ENOUGH
                counts[label] += 1
                counts[f"right {label}"] += taken == one.specific
        total.update(counts)
        _say(style, counts)
    _say("all", total)


def _say(style: str, counts: Counter[str]) -> None:
    parts = [f"{name} {counts[f'right {name}']} of {counts[name]}" for name in ("advice", "specific") if counts[name]]
    print(f"{style:12} {', '.join(parts)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    sentences = labelled()
    if not options.write:
        crossed(sentences)
        return
    weights = learned(sentences)
    kept = {trait: weight for trait, weight in sorted(weights.items()) if abs(weight) >= SMALLEST or not trait}
    lines = (f"{weight:.2f} {trait}" for trait, weight in kept.items())
    head = "# Written by scripts/learn_weights.py: what each trait of a sentence speaks for (above 0: for one project)."
    WEIGHTS.write_text("\n".join((head, *lines)) + "\n", encoding="utf-8")
    print(f"{len(weights)} traits of {len(sentences)} sentences")


if __name__ == "__main__":
    main()
