"""The index of one project: words and definitions of each file, and links between files.

Another process builds it once; after that it is one read-only value of bytes. Postings are arrays that a query extracts
one by one, so the index needs about as much memory as disk.
"""

from __future__ import annotations

import json
import struct
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final, Literal

from msgspec import Struct, field

from swecli.core.retrieval.definitions import SOURCE_ENDINGS, Definition, definitions, ending_of
from swecli.core.retrieval.terms import identifiers, is_data, terms_of
from swecli.lazy_pattern import lazy_pattern

Kind = Literal["source", "test", "other"]
KINDS: Final[tuple[Kind, ...]] = ("source", "test", "other")
Field = Literal["b", "s", "p", "h", "c"]
"""Place of a term: the body of a file, names that it defines, its path, messages of commits that changed it; or the
message of one commit, by the number of the commit."""

_TEST = lazy_pattern(
    r"(?:^|/)(?i:tests?|__tests__|testing|specs?|fixtures?|testdata|test_\w+|mocks?|__mocks__|__snapshots__|snapshots?"
    r"|e2e|evals?|benchmarks?|benches|examples?|[^/]*[-_.]tests?)/|[^/]*[a-z0-9]Tests?/"
    r"|(?:^|/)(?:test_[^/]*|conftest\.py)$"
    r"|[^/]*(?:_test|_tests|_spec|\.test|\.spec|Tests?|TestCase)\.\w+$"
)


@lru_cache(maxsize=32_768)
def kind_of(path: str) -> Kind:
    """Kind of a file, by its name."""
    if _TEST.search(path):
        return "test"
    return "source" if ending_of(path) in SOURCE_ENDINGS else "other"


class FileState(Struct, frozen=True):
    """``modified`` is nanoseconds; ``size`` is bytes."""

    path: str
    size: int = 0
    modified: int = 0


class Document(Struct, frozen=True):
    """One file as input of an index."""

    state: FileState
    names: Mapping[str, int]
    """Identifiers and words with their number of occurrences."""
    defined: Sequence[Definition] = ()


def document(state: FileState, text: str) -> Document:
    """The indexed form of a text."""
    return Document(state, Counter(identifiers(text)), definitions(state.path, text))


class Change(Struct, frozen=True):
    """One commit: the terms of its message with weights from 1 to 10, and the paths that it changed."""

    terms: Mapping[str, int]
    paths: Sequence[str]


class History(Struct, frozen=True):
    """Facts from git. ``together`` are pairs of paths with how strongly they change together; ``churn`` is how much a
    file changed recently; ``said`` are words of the messages of commits that changed it; ``changes`` are the commits,
    newest first."""

    together: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: {})
    churn: Mapping[str, float] = field(default_factory=lambda: {})
    said: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: {})
    changes: Sequence[Change] = ()
    head: str = ""
    """The commit from which it was read."""


# --- postings -------------------------------------------------------------------------------------------------

_COUNTS: Final = (0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 24, 36, 60, 110, 220)
"""Numbers of occurrences for the sixteen levels of four bits."""
_BITS: Final = 4
_LEVEL = bytes(next((at for at in range(15, 0, -1) if _COUNTS[at] <= count), 1) for count in range(221))
_COMMON_SHARE: Final = 0.6
"""A term in a larger share of the files, and of the sources alone, is left out: it distinguishes none."""
_COMMON_FROM: Final = 40
"""Least number of files for that rule."""


def key_of(where: Field, term: str) -> int:
    """Hash of a term, 32 bits: about one pair in four thousand million collides. The field is part of the hashed bytes:
    as the start value of the checksum it would only change the first letter."""
    return zlib.crc32(f"{where}{term}".encode("utf-8", "replace"))


def level_of(count: int) -> int:
    return _LEVEL[count] if count <= 220 else 15


class _Postings:
    """Collects the files of each term."""

    def __init__(self) -> None:
        self._terms: dict[Field, dict[str, array[int]]] = {"b": {}, "s": {}, "p": {}, "h": {}, "c": {}}

    def add(self, number: int, where: Field, counts: Mapping[str, int]) -> None:
        terms, shifted = self._terms[where], number << _BITS
        for term, count in counts.items():
            postings = terms.get(term)
            if postings is None:
                terms[term] = array("I", (shifted | level_of(count),))
            else:
                postings.append(shifted | level_of(count))

    def packed(self, kinds: Sequence[int]) -> tuple[array[int], array[int], array[int]]:
        """Keys in order, the start of each key's postings, and all postings: distance from the previous file << 4 |
        level of the count, small numbers that compress well."""
        files = len(kinds)
        most = files * _COMMON_SHARE if files >= _COMMON_FROM else files
        most_sources = kinds.count(0) * _COMMON_SHARE

        def common(postings: array[int]) -> bool:
            return len(postings) > most and sum(not kinds[posting >> _BITS] for posting in postings) >= most_sources

        by_key = {
            key_of(where, term): postings
            for where, terms in self._terms.items()
            for term, postings in terms.items()
            if where == "c" or not common(postings)
        }
        self._terms.clear()
        keys, starts, values = array("I", sorted(by_key)), array("I"), array("I")
        for key in keys:
            starts.append(len(values))
            before = 0
            for value in by_key.pop(key):
                values.append(value - before)
                before = value & ~15
        starts.append(len(values))
        return keys, starts, values


# --- the index ------------------------------------------------------------------------------------------------

_NAME: Final = b"swecli-index "
_MAGIC: Final = _NAME + b"6\n"
_BLOCK: Final = 16
"""Files with definitions compressed together."""
_MAX_EDGES: Final = 12
_DAMAGED = "cannot read the index"


class DamagedIndexError(Exception):
    """The bytes are not an index of this version."""


class OtherVersionError(DamagedIndexError):
    """The bytes are an index that another version of swecli made."""


class Index(Struct, frozen=True):
    """``edges`` leads from a file to those with definitions that it uses, ``together`` to those that change with it,
    each as number << 8 | strength; ``changed`` from a commit to its files, by their numbers; ``folders`` has the
    modification times of folders, in nanoseconds."""

    files: tuple[FileState, ...]
    folders: Mapping[str, int]
    head: str
    complete: bool
    """False if the project has more files than the index."""
    kinds: array[int]
    """Places in ``KINDS``."""
    lengths: array[int]
    churn: array[int]
    """0 to 255."""
    central: array[int]
    """Centrality of each file in the graph of uses, 0 to 255."""
    keys: array[int]
    starts: array[int]
    values: array[int]
    edges: tuple[array[int], array[int]]
    together: tuple[array[int], array[int]]
    changed: tuple[array[int], array[int]]
    message_lengths: array[int]
    """Number of terms in the message of each commit."""
    definition_ends: array[int]
    definition_blocks: bytes
    left_out: tuple[tuple[str, int], ...] = ()
    """Folders with most of the files that are left out, with their numbers of such files."""

    def postings(self, where: Field, term: str) -> list[tuple[int, int]]:
        """Numbers of the files (of the commits for "c") with a term, each with its number of occurrences."""
        key = key_of(where, term)
        at = bisect_left(self.keys, key)
        if at == len(self.keys) or self.keys[at] != key:
            return []
        values = self.values[self.starts[at] : self.starts[at + 1]]
        numbers = accumulate([value >> _BITS for value in values])
        return list(zip(numbers, [_COUNTS[value & 15] for value in values], strict=True))

    def holding(self, where: Field, term: str) -> int:
        """Number of files with a term."""
        key = key_of(where, term)
        at = bisect_left(self.keys, key)
        return self.starts[at + 1] - self.starts[at] if at < len(self.keys) and self.keys[at] == key else 0

    def neighbours(self, of: tuple[array[int], array[int]], number: int) -> Iterator[tuple[int, float]]:
        """Files that ``edges`` or ``together`` lead to from a file, with strengths from 0 to 1."""
        starts, values = of
        for value in values[starts[number] : starts[number + 1]]:
            yield value >> 8, (value & 255) / 255

    def changed_by(self, commit: int) -> Sequence[int]:
        """The numbers of the files that a commit changed."""
        starts, values = self.changed
        return values[starts[commit] : starts[commit + 1]]

    def definitions(self, number: int) -> list[Definition]:
        """Definitions of a file.

        Raises:
            DamagedIndexError: they can't be read.
        """
        block = number // _BLOCK
        start = self.definition_ends[block - 1] if block else 0
        try:
            text = zlib.decompress(self.definition_blocks[start : self.definition_ends[block]]).decode()
            lines = text.split("\x1e")[number % _BLOCK].split("\n")
            return [(name, int(line)) for line, _, name in (entry.partition(" ") for entry in lines if entry)]
        except (zlib.error, ValueError, IndexError) as error:
            raise DamagedIndexError(_DAMAGED) from error


def build(
    documents: Iterable[Document],
    history: History | None = None,
    folders: Mapping[str, int] | None = None,
    *,
    complete: bool = True,
    left_out: tuple[tuple[str, int], ...] = (),
) -> Index:
    """Build an index of documents with distinct paths."""
    history = history or History()
    files: list[FileState] = []
    names: list[Sequence[str]] = []
    defined: list[Sequence[Definition]] = []
    postings, lengths = _Postings(), array("I")
    for number, entry in enumerate(documents):
        files.append(entry.state)
        names.append([name for name in entry.names if len(name) > 3])
        defined.append(entry.defined)
        lengths.append(_put(postings, number, entry, history.said.get(entry.state.path, {})))
    numbers = {file.path: number for number, file in enumerate(files)}
    edges = _uses(names, defined)
    for number, change in enumerate(history.changes):
        postings.add(number, "c", change.terms)
    kinds = array("B", (KINDS.index(kind_of(file.path)) for file in files))
    keys, starts, values = postings.packed(kinds)
    ends, blocks = _definition_blocks(defined)
    together = [
        [
            (numbers[other], strength)
            for other, strength in history.together.get(file.path, {}).items()
            if other in numbers
        ]
        for file in files
    ]
    return Index(
        files=tuple(files),
        folders=dict(folders or {}),
        head=history.head,
        complete=complete,
        left_out=left_out,
        kinds=kinds,
        lengths=lengths,
        churn=_scaled([history.churn.get(file.path, 0.0) for file in files]),
        central=_scaled(_ranks(edges)),
        keys=keys,
        starts=starts,
        values=values,
        edges=_packed_edges(edges),
        together=_packed_edges(together),
        changed=_packed_lists(
            [numbers[path] for path in commit.paths if path in numbers] for commit in history.changes
        ),
        message_lengths=array("I", (len(commit.terms) for commit in history.changes)),
        definition_ends=ends,
        definition_blocks=blocks,
    )


def field_terms(one: Document) -> dict[Field, Mapping[str, int]]:
    """The terms of a file by field."""
    counts: dict[str, int] = {}
    for name, count in one.names.items():
        if not is_data(name):
            for term in terms_of(name):
                counts[term] = counts.get(term, 0) + count
    return {
        "b": counts,
        "s": Counter(term for name, _ in one.defined for term in _words_of(name)),
        "p": Counter(_words_of(one.state.path)),
    }


def _words_of(text: str) -> Iterator[str]:
    for word in identifiers(text):
        yield from terms_of(word)


def _put(postings: _Postings, number: int, entry: Document, message_words: Mapping[str, int]) -> int:
    """Add a document; returns its length in terms."""
    fields = field_terms(entry)
    for where, counts in fields.items():
        postings.add(number, where, counts)
    postings.add(number, "h", message_words)
    return sum(fields["b"].values())


def _uses(names: Sequence[Sequence[str]], defined: Sequence[Sequence[Definition]]) -> list[list[tuple[int, float]]]:
    """From each file to those with definitions that it uses, the strongest first: a name that few files define and few
    use counts most."""
    owners: dict[str, list[int]] = {}
    for number, several in enumerate(defined):
        for name, _ in several:
            if len(name) > 3:
                owners.setdefault(name, []).append(number)
    owners = {name: files for name, files in owners.items() if len(files) <= 3}
    users = Counter(name for several in names for name in several if name in owners)
    edges: list[list[tuple[int, float]]] = []
    for number, several in enumerate(names):
        strength: dict[int, float] = {}
        for name in several:
            for owner in owners.get(name, ()):
                if owner != number:
                    strength[owner] = strength.get(owner, 0.0) + 1 / (len(owners[name]) * (1 + users[name]) ** 0.5)
        edges.append(sorted(strength.items(), key=lambda edge: (-edge[1], edge[0]))[:_MAX_EDGES])
    return edges


def _ranks(edges: Sequence[Sequence[tuple[int, float]]]) -> list[float]:
    """Share of a random walk along the edges that ends in each file."""
    if not edges:
        return []
    rank = [1.0] * len(edges)
    totals = [sum(strength for _, strength in several) for several in edges]
    for _ in range(8):
        flow = [0.15] * len(edges)
        for number, several in enumerate(edges):
            for target, strength in several:
                flow[target] += 0.85 * rank[number] * strength / totals[number]
        rank = flow
    return [value**0.5 for value in rank]


def _scaled(values: Sequence[float]) -> array[int]:
    most = max(values, default=0.0)
    return array("B", (round(255 * value / most) if most > 0 else 0 for value in values))


def _packed_edges(edges: Sequence[Sequence[tuple[int, float]]]) -> tuple[array[int], array[int]]:
    starts, values = array("I", (0,)), array("I")
    for several in edges:
        most = max((strength for _, strength in several), default=1.0) or 1.0
        values.extend(target << 8 | max(1, round(255 * strength / most)) for target, strength in several)
        starts.append(len(values))
    return starts, values


def _packed_lists(lists: Iterable[Sequence[int]]) -> tuple[array[int], array[int]]:
    starts, values = array("I", (0,)), array("I")
    for several in lists:
        values.extend(several)
        starts.append(len(values))
    return starts, values


def _definition_blocks(defined: Sequence[Sequence[Definition]]) -> tuple[array[int], bytes]:
    blocks: list[bytes] = []
    for first in range(0, len(defined), _BLOCK):
        texts = ("\n".join(f"{line} {name}" for name, line in several) for several in defined[first : first + _BLOCK])
        blocks.append(zlib.compress("\x1e".join(texts).encode("utf-8", "replace"), 6))
    return array("I", accumulate(len(block) for block in blocks)), b"".join(blocks)


# --- as bytes -------------------------------------------------------------------------------------------------

_HEADER = struct.Struct("<II")


def pack(index: Index) -> bytes:
    """Serialise the index."""
    head = {
        "files": [[file.path, file.size, file.modified] for file in index.files],
        "folders": index.folders,
        "head": index.head,
        "complete": index.complete,
        "left_out": index.left_out,
    }
    numbers = (
        *(index.kinds, index.lengths, index.churn, index.central, index.keys, index.starts, index.values),
        *(*index.edges, *index.together, *index.changed, index.message_lengths, index.definition_ends),
    )
    parts = [zlib.compress(json.dumps(head, ensure_ascii=True).encode(), 6)]
    parts += [zlib.compress(several.tobytes(), 3) for several in numbers]
    parts.append(index.definition_blocks)
    body = b"".join(struct.pack("<I", len(part)) + part for part in parts)
    return _MAGIC + _HEADER.pack(len(body), zlib.crc32(body)) + body


def unpack(data: bytes) -> Index:
    """Restore the index from the bytes of ``pack``.

    Raises:
        OtherVersionError: another version made it.
        DamagedIndexError: the bytes are something else, or damaged.
    """
    version = data[len(_NAME) : len(_NAME) + 8].partition(b"\n")[0]
    if data.startswith(_NAME) and version.isdigit() and not data.startswith(_MAGIC):
        raise OtherVersionError(_DAMAGED)
    at = len(_MAGIC) + _HEADER.size
    if not data.startswith(_MAGIC) or len(data) < at:
        raise DamagedIndexError(_DAMAGED)
    size, checksum = _HEADER.unpack_from(data, len(_MAGIC))
    if len(data) - at != size or zlib.crc32(memoryview(data)[at:]) != checksum:
        raise DamagedIndexError(_DAMAGED)
    try:
        parts: list[bytes] = []
        while at < len(data):
            (length,) = struct.unpack_from("<I", data, at)
            parts.append(data[at + 4 : at + 4 + length])
            at += 4 + length
        return _unpacked(parts)
    except (ValueError, KeyError, TypeError, struct.error, zlib.error) as error:
        raise DamagedIndexError(_DAMAGED) from error


def _unpacked(parts: Sequence[bytes]) -> Index:
    head = json.loads(zlib.decompress(parts[0]))
    codes = "BIBBIIIIIIIIIII"
    numbers = [array(code, zlib.decompress(part)) for code, part in zip(codes, parts[1:-1], strict=True)]
    kinds, lengths, churn, central, keys, starts, values, edges_at, edges, together_at, together, *rest = numbers
    changed_at, changed, message_lengths, ends = rest
    return Index(
        files=tuple(FileState(*state) for state in head["files"]),
        folders=head["folders"],
        head=head["head"],
        complete=head["complete"],
        left_out=tuple((folder, count) for folder, count in head.get("left_out", ())),
        kinds=kinds,
        lengths=lengths,
        churn=churn,
        central=central,
        keys=keys,
        starts=starts,
        values=values,
        edges=(edges_at, edges),
        together=(together_at, together),
        changed=(changed_at, changed),
        message_lengths=message_lengths,
        definition_ends=ends,
        definition_blocks=parts[-1],
    )
