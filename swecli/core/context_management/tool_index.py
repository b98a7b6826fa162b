"""Finding tools by words: BM25 over names, descriptions and parameters, with the usual words for the usual deeds."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from swecli.core.llm.types import ToolSchema

K1, B = 1.2, 0.6
NAME, DESCRIPTION, PARAMETER = 3, 2, 1
"""How often a word counts by where it stands."""
ALIKE = 0.45
"""What a word of the same meaning counts, as a share of the word itself."""

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+")
_STOP_WORDS = """a an and any are as at be by can do does for from given has have how i if in into is it its me my of on
  one or our that the their them then there this to use used using want we what when which who will with you your"""
_STOP = frozenset(_STOP_WORDS.split())
_ALIKE = (
    "create add new make open insert register start file write append put upload report",
    "delete remove erase drop destroy clear discard unlink rid kill cancel",
    "list show get fetch retrieve read view display see enumerate all browse",
    "find search look lookup query locate discover",
    "update edit change modify set alter rename patch adjust revise",
    "send post mail email message notify publish deliver submit",
    "issue bug ticket problem defect",
    "pull pr merge",
    "repository repo project codebase",
    "image picture photo screenshot",
    "message chat conversation dm",
    "user person member people account contact colleague",
    "event meeting appointment calendar",
    "money payment pay invoice bill charge refund",
    "order purchase buy",
    "customer client buyer",
    "directory folder dir",
    "file document",
    "run execute start launch trigger invoke",
    "stop cancel abort end terminate halt kill",
    "copy duplicate clone replicate",
    "move transfer relocate",
    "upload import load",
    "download export save",
    "convert transform translate",
    "count number total amount sum",
    "weather forecast temperature",
    "time date clock day",
    "price cost",
    "error failure exception crash",
    "log logs trace",
    "table sheet spreadsheet",
    "db database sql",
    "website page web url site",
    "comment reply remark answer",
    "label tag category",
    "assign allocate delegate",
    "close resolve finish complete",
    "schedule plan book reserve",
    "compare diff difference",
    "approve accept confirm",
    "reject decline deny refuse",
    "enable activate on",
    "disable deactivate off",
    "permission access right role",
    "password credential secret key token",
    "deploy release ship rollout",
    "build compile",
    "map location place address position",
    "route direction",
    "metric statistic analytics report",
    "summary summarize overview",
)


@lru_cache(maxsize=8_192)
def stem(word: str) -> str:
    """The word without its usual endings."""
    for ending, least in (("ies", 2), ("ing", 3), ("ions", 3), ("ion", 3), ("ed", 3), ("es", 3), ("s", 3), ("er", 4)):
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            cut = word[: -len(ending)]
            return f"{cut}y" if ending == "ies" else cut.rstrip("e") or cut
    return word.rstrip("e") if len(word) > 3 else word


@lru_cache(maxsize=8_192)
def terms(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for found in _WORDS.findall(text) if (word := found.lower()) not in _STOP)


def _groups() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _ALIKE:
        group = {stem(word) for word in line.split()}
        for word in group:
            found.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in found.items()}


_SAME = _groups()


class ToolIndex:
    """An index of tools that do not change."""

    def __init__(self, tools: Iterable[ToolSchema]) -> None:
        self._tools = tuple(tools)
        self._postings: dict[str, list[tuple[int, float]]] = {}
        lengths: list[float] = []
        for number, tool in enumerate(self._tools):
            counts = _counts(tool)
            lengths.append(sum(counts.values()))
            for term, count in counts.items():
                self._postings.setdefault(term, []).append((number, count))
        usual = sum(lengths) / len(lengths) if lengths else 1.0
        self._norms = [K1 * (1 - B + B * length / (usual or 1.0)) for length in lengths]

    def search(self, query: str, limit: int = 5) -> tuple[ToolSchema, ...]:
        """The likeliest tools, best first; a tool whose name is in the query comes before all others."""
        scores: dict[int, float] = {}
        weights: dict[str, float] = {}
        for term in terms(query):
            weights[term] = 1.0
        for term in tuple(weights):
            for other in _SAME.get(term, ()):
                weights.setdefault(other, ALIKE)
        for term, weight in weights.items():
            found = self._postings.get(term, ())
            rarity = math.log(1 + (len(self._tools) - len(found) + 0.5) / (len(found) + 0.5))
            for number, count in found:
                gain = rarity * count * (K1 + 1) / (count + self._norms[number])
                scores[number] = scores.get(number, 0.0) + weight * gain
        words = set(re.findall(r"[\w.-]+", query))
        for number, tool in enumerate(self._tools):
            if tool.name in words or tool.name.rpartition("__")[2] in words:
                scores[number] = scores.get(number, 0.0) + 100.0
        ranked = sorted(scores, key=lambda number: (-scores[number], self._tools[number].name))
        return tuple(self._tools[number] for number in ranked[:limit])


def _counts(tool: ToolSchema) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text, weight in ((tool.name.removeprefix("mcp__"), NAME), (tool.description, DESCRIPTION)):
        for term in terms(text):
            counts[term] += weight
    for name, about in _parameters(tool.parameters):
        for term in terms(f"{name} {about}"):
            counts[term] += PARAMETER
    return counts


def _parameters(schema: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ()
    named = cast("Mapping[str, Any]", properties).items()
    return [(name, str(one.get("description", "")) if isinstance(one, Mapping) else "") for name, one in named]  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
