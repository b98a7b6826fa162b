"""Deferral of tools: those that the model sees at once, and those that it has to search for."""

from __future__ import annotations

import math
import re
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, cast

from msgspec import Struct

from swecli.core.llm.types import ToolSchema
from swecli.lazy_pattern import lazy_pattern

K1, B = 1.2, 0.6
NAME, DESCRIPTION, PARAMETER = 3, 2, 1
"""Weight of a word by its place."""
ALIKE = 0.45
"""Weight of a synonym, relative to the word itself."""
BEGINS = 0.4
"""The same for a word that is a prefix of the other."""
PREFIX = 4
"""Least letters of a prefix."""
SERVER = 1.2
"""Bonus for each word of a query that names the tool's server."""
COVERED = 0.3
"""Part of a score that depends on the share of the query's words matched by the tool."""

_WORDS = lazy_pattern(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+")
_PLURAL = lazy_pattern(r"\b([A-Z]{2,})s\b")
"""Plural of an abbreviation."""
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
    "new newest latest recent fresh current last",
    "big large size storage",
    "todo task reminder chore",
    "disk filesystem local",
    "javascript js script code evaluate",
    "document doc docs",
    "free busy available availability",
    "rain snow storm wind sun weather forecast severe",
    "warning alert alarm",
    "height altitude elevation",
    "speak speech voice aloud tts say",
    "scan ocr recognise recognize",
    "flight plane airline air ticket fare",
    "hotel stay accommodation room lodging",
    "drive travel route direction navigate",
    "mile kilometre kilometer meter inch foot pound kilogram celsius fahrenheit unit measure",
    "dispute chargeback claim complaint",
    "subtitle caption transcript transcription",
    "song track music",
    "film movie video clip",
    "lamp light bulb",
    "warm cold heat cool thermostat temperature",
    "share stock quote equity",
    "stock inventory quantity",
    "vulnerability security weakness cve",
    "hire employ recruit candidate job",
    "backup snapshot dump",
    "silence mute pause snooze",
    "postpone reschedule delay",
    "sort order rank",
    "encrypt hash checksum digest",
    "speed slow performance latency",
    "author writer creator owner",
    "answer question faq help",
    "graph chart plot diagram",
    "shift duty oncall rota",
    "draw paint sketch generate",
    "commit revision changeset",
    "host machine server vm instance computer",
    "queue topic stream",
    "translate language",
    "trash bin delete",
    "sms text message",
    "phone telephone call mobile",
    "shop store",
    "ship shipping delivery shipment track",
    "company organization organisation business firm",
    "lead prospect opportunity deal",
    "sprint cycle iteration milestone",
    "ci pipeline workflow build",
    "test spec check",
    "lint validate verify",
)
_IRREGULAR = {
    "indices": "index",
    "indexes": "index",
    "children": "child",
    "men": "man",
    "data": "datum",
    "criteria": "criterion",
    "vertices": "vertex",
    "matrices": "matrix",
    "colour": "color",
    "colours": "color",
    "favourite": "favorite",
    "centre": "center",
    "catalogue": "catalog",
    "doing": "do",
    "prs": "pr",
    "vms": "vm",
    "dbs": "db",
    "ids": "id",
}


@lru_cache(maxsize=8_192)
def stem(word: str) -> str:
    """The word without its usual endings."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    for ending, least in (("ies", 2), ("ing", 3), ("ions", 3), ("ion", 3), ("ed", 3), ("es", 3), ("s", 3), ("er", 4)):
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            cut = word[: -len(ending)]
            return f"{cut}y" if ending == "ies" else cut.rstrip("e") or cut
    return word.rstrip("e") if len(word) > 3 else word


@lru_cache(maxsize=8_192)
def terms(text: str) -> tuple[str, ...]:
    words = _WORDS.findall(_PLURAL.sub(r"\1", text))
    return tuple(stem(word) for raw in words if (word := raw.lower()) not in _STOP)


@cache
def _alike() -> Mapping[str, frozenset[str]]:
    """Words of like meaning by their stem; made at the first search."""
    related: dict[str, set[str]] = {}
    for line in _ALIKE:
        group = {stem(word) for word in line.split()}
        for word in group:
            related.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in related.items()}


class ToolIndex:
    """Search index of a fixed set of tools."""

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
        self._vocabulary = sorted(self._postings)
        self._servers: dict[str, set[int]] = {}
        for number, tool in enumerate(self._tools):
            for term in terms(tool.source or tool.name.removeprefix("mcp__").partition("__")[0]):
                self._servers.setdefault(term, set()).add(number)

    def search(self, query: str) -> tuple[ToolSchema, ...]:
        """The likeliest tools, best first; a tool named in the query precedes all others."""
        scores: dict[int, float] = {}
        asked = tuple(dict.fromkeys(terms(query)))
        covered: Counter[int] = Counter()
        for term in asked:
            best: dict[int, float] = {}
            for other, weight in self._meant(term, asked).items():
                postings = self._postings[other]
                rarity = math.log(1 + (len(self._tools) - len(postings) + 0.5) / (len(postings) + 0.5))
                for number, count in postings:
                    gain = weight * rarity * count * (K1 + 1) / (count + self._norms[number])
                    best[number] = max(best.get(number, 0.0), gain)
            for number in self._of_server(term):
                best[number] = best.get(number, 0.0) + SERVER
            for number, gain in best.items():
                scores[number] = scores.get(number, 0.0) + gain
                covered[number] += 1
        for number in scores:
            scores[number] *= 1 - COVERED + COVERED * covered[number] / len(asked)
        words = set(re.findall(r"[\w.-]+", query))
        for number, tool in enumerate(self._tools):
            if tool.name in words or tool.name.rpartition("__")[2] in words:
                scores[number] = scores.get(number, 0.0) + 100.0
        ranked = sorted(scores, key=lambda number: (-scores[number], self._tools[number].name))
        return tuple(self._tools[number] for number in ranked[:FOUND])

    def _meant(self, term: str, asked: Sequence[str]) -> Mapping[str, float]:
        """The words of the index that a word of a query may mean, with weights. Other words of the query are excluded:
        they count for themselves."""
        weights: dict[str, float] = {term: 1.0}
        for at in range(bisect_left(self._vocabulary, term), len(self._vocabulary)):
            if len(term) < PREFIX or not self._vocabulary[at].startswith(term):
                break
            weights.setdefault(self._vocabulary[at], BEGINS)
        for length in range(PREFIX, len(term)):
            weights.setdefault(term[:length], BEGINS)
        for other in _alike().get(term, ()):
            weights[other] = max(weights.get(other, 0.0), ALIKE)
        return {
            other: weight
            for other, weight in weights.items()
            if other in self._postings and (other == term or other not in asked)
        }

    def _of_server(self, term: str) -> set[int]:
        """The tools of the servers that a word names."""
        if term in self._servers:
            return self._servers[term]
        tools: set[int] = set()
        for name, numbers in self._servers.items():
            if min(len(name), len(term)) >= PREFIX and (name.startswith(term) or term.startswith(name)):
                tools |= numbers
        return tools


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
    return [(name, str(spec.get("description", "")) if isinstance(spec, Mapping) else "") for name, spec in named]  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]


THRESHOLD = 0.10
"""Share of the effective window available to tool descriptions."""
TARGET = 0.5
"""Share of the threshold to fill when tools are withheld: tools found later join, and must not pass it at once."""
FOUND = 5
"""Tools per search result."""


class Candidate(Struct, frozen=True):
    """A tool of a source. ``used`` is the rank of its last call, rising; 0 = never. ``first`` tools, those of servers,
    are withheld before all others."""

    schema: ToolSchema
    tokens: int
    used: int = 0
    first: bool = True


class Selection(Struct, frozen=True):
    """The model sees ``active``, in order of arrival; ``deferred`` are withheld. ``reason`` is a clause; empty if none
    is withheld."""

    active: tuple[ToolSchema, ...]
    deferred: tuple[ToolSchema, ...] = ()
    reason: str = ""


def select_for_context(
    candidates: Sequence[Candidate], told: Iterable[str], fixed: int, effective: int, threshold: float = THRESHOLD
) -> Selection:
    """Withhold tools if all of them would pass the threshold: those of servers first, the least recently used first.

    ``told`` are names already announced to the model, which stay; ``fixed`` are the tokens of swecli's own tools, which
    count and are never withheld; ``effective`` is the effective window in tokens.
    """
    everything = tuple(candidate.schema for candidate in candidates)
    known = set(told)
    total = fixed + sum(candidate.tokens for candidate in candidates)
    limit = threshold * effective
    if threshold >= 1 or total <= limit or all(tool.name in known for tool in everything):
        return Selection(everything)
    room = TARGET * limit - fixed - sum(candidate.tokens for candidate in candidates if candidate.schema.name in known)
    names = set(known)
    for candidate in sorted(candidates, key=lambda candidate: (candidate.first, -candidate.used)):
        if candidate.schema.name not in known and candidate.tokens <= room and (candidate.used or not candidate.first):
            room -= candidate.tokens
            names.add(candidate.schema.name)
    active = tuple(tool for tool in everything if tool.name in names)
    deferred = tuple(tool for tool in everything if tool.name not in names)
    reason = f"all tools would take {total:,} tokens, more than {threshold:.0%} of the window"
    return Selection(active, deferred, reason)


class DeferralManager:
    """The tools currently withheld from the model of one session, and their index."""

    def __init__(self) -> None:
        self.deferred: tuple[ToolSchema, ...] = ()
        self._sources: Counter[str] = Counter()
        """Tools of each source, withheld or not."""
        self._index: ToolIndex | None = None
        self._building = threading.Lock()

    def select(
        self,
        candidates: Sequence[Candidate],
        told: Iterable[str],
        fixed: int,
        effective: int,
        threshold: float = THRESHOLD,
    ) -> Selection:
        """Select the tools, and remember the withheld ones."""
        selection = select_for_context(candidates, told, fixed, effective, threshold)
        self._sources = Counter(candidate.schema.source for candidate in candidates)
        if selection.deferred != self.deferred:
            self.deferred, self._index = selection.deferred, None
        return selection

    def search(self, query: str) -> tuple[ToolSchema, ...]:
        """Withheld tools that match the words, best first."""
        return self.prepared().search(query)

    def prepared(self) -> ToolIndex:
        """The index of the withheld tools. Takes a moment the first time; may be called in any thread."""
        with self._building:
            deferred, index = self.deferred, self._index
            if index is None:
                index = ToolIndex(deferred)
                if deferred is self.deferred:
                    self._index = index
            return index

    @property
    def note(self) -> str:
        """One line for the model; empty if no tool is withheld. Its number includes the tools already found, so that
        finding some is no news."""
        if not self.deferred:
            return ""
        sources = sorted({tool.source for tool in self.deferred})
        count = sum(self._sources[source] for source in sources)
        named = [source for source in sources if source]
        most = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
        of = f" of {most}" if named else ""
        return f"Not all of the {count} tools{of} are listed, to save context: tool_search finds the others."
