"""Ranking of an index's files by a text: several signals, each between 0 and 1, added up with fixed weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest
from math import log
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.retrieval.index import (
    KINDS,
    Definition,
    Document,
    Field,
    FileState,
    Index,
    Kind,
    field_terms,
    kind_of,
)
from swecli.core.retrieval.terms import (
    STOP_WORDS,
    TASK_WORDS,
    identifiers,
    is_compound,
    is_data,
    is_run,
    stem,
    terms_of,
)
from swecli.lazy_pattern import lazy_pattern

# The informative part of a text. Bug reports contain form headings, versions, output and code: many words that rarely
# point to a place.


Part = Literal["title", "words", "code", "output"]

_COMMENT = lazy_pattern(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DETAILS = lazy_pattern(r"</?(?:details|summary|br|p|kbd|sub|sup|img|pre|code|b|i|hr)\b[^>\n]{0,300}/?>", re.IGNORECASE)
_FENCE = lazy_pattern(r"^\s{0,12}(?:>\s?)?(`{3,}|~{3,})\s*([\w+#-]*)")
_BOX = lazy_pattern(r"^\s*[-*+] \[[ xX]?\]")
_HEADING = lazy_pattern(r"^\s{0,3}(?:#{1,6}\s+(.{1,90}?)[\s#:]*|\*\*([^*\n]{1,60}?):?\*\*:?|(?=\S)([^\n]{1,40}):)\s*$")
_SURROUNDINGS = lazy_pattern(
    r"(?:(?:your|my|the|system|test|runtime|relevant|software) |output of `?)*"
    r"(?:environment|versions?|system(?: info(?:rmation)?| details)?|platform|setup info|os|dependencies|hardware"
    r"|browser|pip (?:list|freeze)|installed (?:packages|versions)|\w{0,10}\.?show_versions\(\)|system_info\(\)|doctor"
    r"|additional environment|[\w./-]+ versions?|check ?list|code of conduct|before submitting.{0,30})`?"
    r"(?: (?:info(?:rmation)?|details|versions?|used|installed|data))*(?: and .{1,40})?(?: ?\(.{1,60}\))?",
    re.IGNORECASE,
)
"""Headings above facts about the machine rather than the project."""
_FORM_WORDS = """
    bug issue issues problem feature short brief detailed current actual expected observed desired minimal full complete
    code possible proposed suggested additional other step steps how to the of a an and for or any what is it you i did
    do does happen happens happened happening went wrong here please your describe description reproduce reproduction
    reproducing reproducer reproducible behavior behaviour result results outcome output input example examples sample
    snippet context information info details summary report request solution alternative alternatives considered
    motivation rationale screenshot screenshots log logs traceback stack trace error message messages configuration
    config command used relevant related background introduction tl dr tldr note notes expectation version would like
    want should instead have link links see anything else we know about this console"""
_FORM = frozenset(_FORM_WORDS.split())
"""Words of generic headings in report forms."""
_OF_MACHINE = lazy_pattern(
    r"[-*+>|]*\s*[*_`]*(?:os|operating system|platform|(?:[\w.+-]+ ){0,2}versions?|python(?:-bits|_\w+)?|node(?:js)?"
    r"|npm|yarn|pnpm|go|java|jdk|rustc?|cargo|ruby|php|browser|shell|terminal|locale|lc_all|lang|byteorder|machine|processor"
    r"|kernel|arch(?:itecture)?|distro|cpu|gpu|ram|memory|commit|installation|installed (?:via|with|from)|os-release"
    r"|libhdf5|libnetcdf|ide|editor)[*_`]*\s*(?:[:=|]|==).{0,120}",
    re.IGNORECASE,
)
_PINNED = lazy_pattern(
    r"(?:[-*+|]\s{0,4})?[\w.\[\]-]{2,40}(?: {0,20}(?:==|[:|]) {0,4}| {2,40}| (?=v?\d+\.\d+[\w.+-]*$))"
    r"v?\d+\.\d+[\w.+-]{0,40}(?:[ |].{0,40})?"
)
"""A package with its version, as in lists of installed packages."""
_SOURCE_TRACE = lazy_pattern(r"""^\W*(?:INTERNALERROR>\s*)?File ["'][^"'\n]+["'], line \d+|^\s+at \S+.*[:(]\d+""")
_ERROR = lazy_pattern(
    r"^\s*(?:E\s+)?(?:[\w.]*(?:Error|Exception|Warning|Panic)\b|error(?:\[\w+\])?:|fatal:|panic:|thread '.*' panicked)"
)
_SESSION = lazy_pattern(r"^\s*(?:>>>|\.\.\.|In \[\d+\]:|Out\[\d+\]:)\s?")
_OUTPUT = frozenset(("text", "txt", "log", "console", "output", "pytb", "plain", "plaintext", "stacktrace", "trace"))
_OUTPUT_LINES: Final = 25
"""Least number of lines of a block that is taken for output."""
_FORM_WIDTH: Final = 200
"""Most characters of a line in a form."""


def parts_of(text: str) -> Iterator[tuple[Part, str]]:
    """The meaningful lines of a text, each with its kind."""
    text = _DETAILS.sub(" ", _COMMENT.sub("\n", text)).strip()
    title, _, rest = text.partition("\n")
    yield "title", title
    if not rest.strip():
        return
    section, fence, language, block = _Section(), "", "", list[str]()
    for line in rest.splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2]:
                yield from () if section.aside else _block(block, language)
                fence, block = "", []
            else:
                block.append(line)
        elif mark:
            fence, language = mark[1], mark[2].lower()
        elif not section.leaves_out(line) and not _is_of_machine(line):
            yield _kind_of(line), line
    if fence and not section.aside:
        yield from _block(block, language)


class _Section:
    """Effect of the headings so far on the lines below them."""

    def __init__(self) -> None:
        self.aside = False
        self._until_blank = self._begun = False

    def leaves_out(self, line: str) -> bool:
        """Whether a line carries no information: a form's heading, a checkbox, or a line below such a heading."""
        if _BOX.match(line):
            return True
        heading = _HEADING.match(line) if len(line) <= _FORM_WIDTH else None
        if heading is not None:
            words = next(group for group in heading.groups() if group is not None).strip()
            self.aside = _SURROUNDINGS.fullmatch(words) is not None
            self._until_blank, self._begun = heading[3] is not None, False
            return self.aside or _FORM.issuperset(re.findall(r"\w+", words.lower()))
        if self.aside and self._until_blank and self._begun and not line.strip():
            self.aside = False  # a line with a colon heads one paragraph
        self._begun = self._begun or bool(line.strip())
        return self.aside


def _is_of_machine(line: str) -> bool:
    bare = line.strip()
    return len(bare) <= _FORM_WIDTH and bool(_OF_MACHINE.fullmatch(bare) or _PINNED.fullmatch(bare))


def _kind_of(line: str) -> Part:
    """Kind of a line outside fences."""
    if _ERROR.match(line):
        return "words"
    if _SOURCE_TRACE.match(line):
        return "output"
    return "code" if _SESSION.match(line) or line.startswith(("    ", "\t")) else "words"


def _block(lines: list[str], language: str) -> Iterator[tuple[Part, str]]:
    """Classify a fenced block: an example, or output of a program."""
    traced = any(_SOURCE_TRACE.match(line) for line in lines)
    kind: Part = "output" if traced or language in _OUTPUT or len(lines) > _OUTPUT_LINES else "code"
    last = max((at for at, line in enumerate(lines) if _ERROR.match(line)), default=-1)
    for at, line in enumerate(lines):
        if not _is_of_machine(line):
            yield ("words" if at == last else kind), line


# --- ranking ------------------------------------------------------------------------------------------------


WEIGHTS: Final[Mapping[str, float]] = {
    "body": 1.25,
    "cover": 0.4,
    "path": 0.5,
    "symbol": 0.3,
    "said": 0.5,
    "alike": 0.4,
    "mention": 1.2,
    "refs": 0.1,
    "together": 0.15,
    "beside": 0.2,
    "churn": 0.25,
    "central": 0.1,
}
"""Set by hand on histories of public repositories and checked on others, see docs/retrieval.md. ``cover`` is how many
of the words a file has, however often; ``said`` are the words of all commits that changed it, ``alike`` single commits
with a message like the text; ``refs`` are files with definitions that the best files use, ``together`` files that
change with them, ``beside`` files in their folders."""

ASIDE: Final[Mapping[Kind, float]] = {"source": 1.0, "test": 0.3, "other": 0.2}
ASKED: Final[Mapping[Kind, float]] = {"source": 1.0, "test": 0.7, "other": 0.5}
"""Tests and documents rank lower, less so if the first line asks for them."""
_ASKS: Final[Mapping[Kind, re.Pattern[str]]] = {
    "test": lazy_pattern(
        r"\b(?:(?:failing|flaky|unit|regression|integration|write|fix|the|these|those) tests?"
        r"|tests? (?:fail|suite|case|for)|test_\w+|spec|fixture|benchmark)\b",
        re.IGNORECASE,
    ),
    "other": lazy_pattern(
        r"\b(?:docs?|documentation|readme|markdown|json|ya?ml|toml|ini|html|template|config file|workflow|ci|docker\w*"
        r"|makefile|changelog|dependenc\w+|package|lock ?file)\b",
        re.IGNORECASE,
    ),
}
_K1: Final = 1.5
_LENGTH_PENALTY: Final[Mapping[Field, float]] = {"b": 0.75, "s": 0.0, "p": 0.0, "h": 0.2}
"""Length penalty of BM25 for each field."""
_OF_FILES: Final = ("b", "s", "p", "h")
_SEED_FILES: Final = 8
"""Best files by words that bring in their neighbours by uses and by history."""
_FOLDER_SEEDS: Final = 12
"""Best files that bring in their folders."""
_LIKELY_FILES: Final = 200
"""Best files that get a share from those beside them."""
_SIMILAR_COMMITS: Final = 60
"""Commits most like a text to examine."""
_PENALTY_PER_TERM: Final = 0.02
"""Penalty for each term of a commit message."""


class Query(Struct, frozen=True):
    """Query made from a text: terms with weights, names written as in code, kinds of files, and the number of
    meaningful words."""

    terms: Mapping[str, float]
    names: frozenset[str]
    kinds: frozenset[Kind]
    words: int


_TRAILER = lazy_pattern(
    r"^(?:[\w-]+-by|co-authored-by|change-id|git-svn-id|fixes|closes|refs?): .*$", re.IGNORECASE | re.MULTILINE
)
_ADDRESS = lazy_pattern(r"https?://\S+|(?<!\S)\S[^\s@]*@\S+\.\w+|\b[0-9a-f]{7,40}\b|#\d+")
"""Web and mail addresses, hashes and numbers of issues. A mail address begins after a blank and is looked for
behind the first @: from each character, or each @, on it takes up to a second for 20,000 without a blank."""
_QUOTED = lazy_pattern(r"`([^`\n]{2,80})`")
_LONGEST: Final = 20_000
"""Characters of a text searched for words."""
_MAX_TERMS: Final = 160
_MAX_QUERY_TERMS: Final = 45
"""Most terms of a text to look up, by weight and rarity."""
_FEW_TERMS: Final = 12
"""Up to this number of terms all are looked up."""
_COMMON_SHARE: Final = 0.5
"""Share of the files from which on a term costs more time than it contributes, beside many others."""
_PLACE_WEIGHTS: Final[Mapping[Part, float]] = {"title": 1.0, "words": 0.3, "code": 0.15, "output": 0.06}
"""Weight of a word by its place."""
_REPETITION_BONUS: Final = 1.0
"""Extra weight of a repeated word."""
_HALF_WEIGHT: Final = 2.0
"""Weight that counts half of the maximum."""
_TASK_WORD_WEIGHT: Final = 0.5
"""Weight of a word about the work itself, relative to other words."""
_CODE_NAME_WEIGHT: Final = 1.5
"""Weight of a name written as in code, relative to other words."""


def query_of(text: str) -> Query:
    """Query made from a text. Its first line counts most, then sentences, then code and program output; names written
    as in code count more than other words."""
    text = _ADDRESS.sub(" ", _TRAILER.sub(" ", text[:_LONGEST]))
    quoted = frozenset(word for piece in _QUOTED.findall(text) for word in identifiers(piece))
    names: set[str] = set()
    distinct: set[str] = set()
    counts: dict[Part, dict[str, float]] = {part: {} for part in _PLACE_WEIGHTS}
    first = ""
    for part, line in parts_of(text):
        first = line if part == "title" else first
        part_counts = counts[part]
        before = ""
        for word in identifiers(line):
            if is_data(word) or word.lower() in STOP_WORDS:
                before = ""
                continue
            run = is_run(word)
            distinct.update(terms_of(word) if run else (word.lower(),))
            compound = is_compound(word)
            marked = compound or word in quoted
            if marked and part != "output":
                names.add(word)
            weight = _CODE_NAME_WEIGHT if marked else _TASK_WORD_WEIGHT if word.lower() in TASK_WORDS else 1.0
            for term in terms_of(word):
                if term not in _STEMMED_STOPS:
                    part_counts[term] = part_counts.get(term, 0.0) + weight
            if before and not compound and not run:  # "shell config" may be written shellConfig
                joined = f"{before}{word}".lower()
                part_counts[joined] = part_counts.get(joined, 0.0) + 1.0
            before = "" if compound or run else word
    weights: dict[str, float] = {}
    for part, part_counts in counts.items():
        for term, count in part_counts.items():
            worth = count if count <= 1 else 1 + _REPETITION_BONUS * log(count)
            weights[term] = weights.get(term, 0.0) + _PLACE_WEIGHTS[part] * worth
    most = dict(sorted(weights.items(), key=lambda pair: -pair[1])[:_MAX_TERMS])
    kinds: set[Kind] = {"source"}
    kinds |= {kind for kind, pattern in _ASKS.items() if pattern.search(first)}
    terms = {term: weight / (_HALF_WEIGHT + weight) for term, weight in most.items()}
    return Query(terms, frozenset(names), frozenset(kinds), len(distinct))


_STEMMED_STOPS: Final = frozenset(stem(word) for word in STOP_WORDS if len(word) > 2)
STEMMED_TASK_WORDS: Final = frozenset(map(stem, TASK_WORDS))

Scores = dict[int, float]


class Fresh(Struct, frozen=True):
    """A file that was read after the index was made."""

    state: FileState
    fields: Mapping[Field, Mapping[str, int]]
    length: int
    defined: Sequence[Definition]

    @classmethod
    def of(cls, one: Document) -> Fresh:
        fields = field_terms(one)
        return cls(one.state, fields, sum(fields["b"].values()), one.defined)


class Corpus(Struct, frozen=True):
    """An index with the changes since: ``fresh`` files replace others, or follow with numbers from the index's last on;
    ``gone`` are the numbers of outdated files."""

    index: Index
    fresh: tuple[Fresh, ...] = ()
    gone: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        return len(self.index.files) - len(self.gone) + len(self.fresh)

    def path(self, number: int) -> str:
        base = len(self.index.files)
        return self.index.files[number].path if number < base else self.fresh[number - base].state.path

    def paths(self) -> Iterator[tuple[int, str]]:
        for number, file in enumerate(self.index.files):
            if number not in self.gone:
                yield number, file.path
        for number, document in enumerate(self.fresh, len(self.index.files)):
            yield number, document.state.path

    def definitions(self, number: int) -> Sequence[Definition]:
        base = len(self.index.files)
        return self.index.definitions(number) if number < base else self.fresh[number - base].defined


def telling(corpus: Corpus, query: Query) -> Query:
    """The query reduced to its most informative terms: the many others of a long text only cost time."""
    if len(query.terms) <= _FEW_TERMS:
        return query
    meant = _meant(corpus, query)
    size = max(1, sum(meant))

    def count(where: Field, term: str) -> int:
        holding = corpus.index.holding(where, term)
        if holding <= _COMMON_SHARE * size:
            return holding  # of all files, which is quick; at least as many as of those that are meant
        return max(1, sum(meant[number] for number, _ in corpus.index.postings(where, term)))

    told: dict[str, float] = {}
    for term, weight in query.terms.items():
        having = [files for where in _OF_FILES if (files := count(where, term))]
        if not having or max(having) <= _COMMON_SHARE * size:
            told[term] = weight * log(1 + size / min(having, default=size))
    chosen = frozenset(nlargest(_MAX_QUERY_TERMS, told, key=told.__getitem__))
    return replace(query, terms={term: weight for term, weight in query.terms.items() if term in chosen})


def _meant(corpus: Corpus, query: Query) -> bytes:
    """For each file 1 if a text may be about its kind, else 0. The rest, such as generated documents that repeat every
    name, says nothing about how rare a word is. All ones if there are no such files."""
    flags = bytes(kind in query.kinds for kind in KINDS)
    meant = corpus.index.kinds.tobytes().translate(flags.ljust(256, b"\0"))
    meant += bytes(kind_of(document.state.path) in query.kinds for document in corpus.fresh)
    return meant if any(meant) else b"\1" * len(meant)


def _rarity(having: int, size: int) -> float:
    """Information in a term that ``having`` of ``size`` files have, as in BM25."""
    return log(1 + (size - having + 0.5) / (having + 0.5))


class Words:
    """The occurrences of a query's terms in a corpus."""

    def __init__(self, corpus: Corpus, query: Query) -> None:
        self.corpus = corpus
        self._meant = _meant(corpus, query)
        self._size = max(1, sum(self._meant) - sum(self._meant[number] for number in corpus.gone))
        self._rarity: dict[tuple[Field, str], float] = {}
        self._fresh = list(enumerate(corpus.fresh, len(corpus.index.files)))
        self.lengths = {number: document.length for number, document in self._fresh}
        self.found: dict[tuple[Field, str], list[tuple[int, int]]] = {
            (where, term): self._postings(where, term) for where in _OF_FILES for term in query.terms
        }
        self._holders: dict[tuple[Field, str], frozenset[int]] = {}

    def _postings(self, where: Field, term: str) -> list[tuple[int, int]]:
        outdated = self.corpus.gone
        postings = self.corpus.index.postings(where, term)
        if outdated:
            postings = [posting for posting in postings if posting[0] not in outdated]
        if self._fresh:
            counts = ((number, document.fields.get(where, {}).get(term, 0)) for number, document in self._fresh)
            postings += [(number, count) for number, count in counts if count]
        return postings

    def holders(self, where: Field, term: str) -> frozenset[int]:
        """Numbers of the files with a term."""
        known = self._holders.get((where, term))
        if known is None:
            known = self._holders[where, term] = frozenset(number for number, _ in self.found[where, term])
        return known

    def rarity(self, where: Field, term: str) -> float:
        """Information in a term: the rarer in files of the kinds that are meant, the higher."""
        known = self._rarity.get((where, term))
        if known is None:
            postings = self.found[where, term]
            having = sum(self._meant[number] for number, _ in postings)
            known = _rarity(having, self._size) if postings else 0.0
            self._rarity[where, term] = known
        return known

    def rarity_in_all(self, where: Field, term: str) -> float:
        """The same for files of all kinds."""
        having = len(self.found[where, term])
        return _rarity(having, max(1, self.corpus.size)) if having else 0.0

    def scores(self, where: Field, query: Query) -> Scores:
        """BM25 of one field."""
        lengths, fresh = self.corpus.index.lengths, self.lengths
        base, share = len(self.corpus.index.files), _LENGTH_PENALTY[where]
        mean = max(1.0, sum(lengths) / max(1, len(lengths)))
        least, more = _K1 * (1 - share), _K1 * share / mean
        scores: Scores = {}
        known = scores.get
        for term, weight in query.terms.items():
            told = weight * self.rarity(where, term) * (_K1 + 1)
            if more:
                for number, count in self.found[where, term]:
                    length = lengths[number] if number < base else fresh[number]
                    scores[number] = known(number, 0.0) + told * count / (count + least + more * length)
            else:
                for number, count in self.found[where, term]:
                    scores[number] = known(number, 0.0) + told * count / (count + least)
        return scores

    def coverage(self, query: Query) -> Scores:
        """Summed rarity of the terms that each file has at all."""
        scores: Scores = {}
        for term, weight in query.terms.items():
            told = weight * self.rarity("b", term)
            for number in self.holders("b", term) | self.holders("s", term) | self.holders("p", term):
                scores[number] = scores.get(number, 0.0) + told
        return scores


def _alike(corpus: Corpus, query: Query) -> Scores:
    """Files changed by commits with messages like the text; only the sources among them if a commit changed any."""
    index = corpus.index
    size = len(index.message_lengths)
    likeness: Scores = {}
    for term, weight in query.terms.items():
        postings = index.postings("c", term)
        told = weight * _rarity(len(postings), size)
        for commit, worth in postings:
            likeness[commit] = likeness.get(commit, 0.0) + told * worth
    for commit in likeness:
        likeness[commit] /= 1 + _PENALTY_PER_TERM * index.message_lengths[commit]
    scores: Scores = {}
    for commit, score in sorted(likeness.items(), key=lambda pair: -pair[1])[:_SIMILAR_COMMITS]:
        files = [number for number in index.changed_by(commit) if number not in corpus.gone]
        files = [number for number in files if kind_of(corpus.path(number)) == "source"] or files
        for number in files:
            scores[number] = scores.get(number, 0.0) + score**2 / len(files) ** 0.5
    return scores


def _beside(corpus: Corpus, scores: Scores) -> Scores:
    """For each file the scores of the best others in its folder."""
    likely = sorted(
        nlargest(_LIKELY_FILES, scores, key=scores.__getitem__), key=lambda number: (-scores[number], number)
    )
    best = likely[:_FOLDER_SEEDS]
    folders: dict[str, float] = {}
    for number in best:
        folder = corpus.path(number).rpartition("/")[0]
        folders[folder] = folders.get(folder, 0.0) + scores[number]
    folders.pop("", None)
    shares = {number: folders.get(corpus.path(number).rpartition("/")[0], 0.0) for number in likely}
    for number in best:
        shares[number] -= scores[number]
    return {number: score for number, score in shares.items() if score > 0}


def _unit(scores: Scores) -> Scores:
    most = max(scores.values(), default=0.0)
    return {number: score / most for number, score in scores.items()} if most > 0 else {}


def scored(corpus: Corpus, query: Query, words: Words, mentioned: Mapping[int, float]) -> Scores:
    """Scores of all files with any signal. ``mentioned`` are files named in the text, 0 to 1."""
    lexical: Scores = {}
    _add(lexical, "body", _unit(words.scores("b", query)))
    _add(lexical, "cover", _unit(words.coverage(query)))
    _add(lexical, "path", _unit(words.scores("p", query)))
    _add(lexical, "symbol", _unit(words.scores("s", query)))
    _add(lexical, "said", _unit(words.scores("h", query)))
    _add(lexical, "alike", _unit(_alike(corpus, query)))
    _add(lexical, "mention", mentioned)
    worth = _Worth(corpus, query)
    index = corpus.index
    base = len(index.files)
    seeds = nlargest(_SEED_FILES, ((score * worth[number], -number) for number, score in lexical.items()))
    known = [(-number, score) for score, number in seeds if -number < base]
    total = dict(lexical)
    _add(total, "refs", _unit(_spread(known, lambda number: index.neighbours(index.edges, number), corpus.gone)))
    _add(total, "together", _unit(_spread(known, lambda number: index.neighbours(index.together, number), corpus.gone)))
    _add(total, "churn", {number: index.churn[number] / 255 for number in lexical if number < base})
    _add(total, "central", {number: index.central[number] / 255 for number in lexical if number < base})
    total = {number: score * worth[number] for number, score in total.items()}
    for number, score in _unit(_beside(corpus, total)).items():
        total[number] += WEIGHTS["beside"] * score * worth[number]
    return total


def _add(total: Scores, name: str, scores: Mapping[int, float]) -> None:
    weight = WEIGHTS[name]
    known = total.get
    for number, score in scores.items():
        total[number] = known(number, 0.0) + weight * score


class _Worth(dict[int, float]):
    """Weight of a file by its kind, computed once."""

    def __init__(self, corpus: Corpus, query: Query) -> None:
        self._corpus, self._query = corpus, query

    def __missing__(self, number: int) -> float:
        kind = kind_of(self._corpus.path(number))
        worth = self[number] = ASKED[kind] if kind in self._query.kinds else ASIDE[kind]
        return worth


def _spread(
    seeds: Sequence[tuple[int, float]],
    neighbours: Callable[[int], Iterator[tuple[int, float]]],
    outdated: frozenset[int],
) -> Scores:
    scores: Scores = {}
    for number, score in seeds:
        for other, strength in neighbours(number):
            if other not in outdated:
                scores[other] = scores.get(other, 0.0) + score * strength
    return scores
