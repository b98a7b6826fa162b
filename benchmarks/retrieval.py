"""How well files are found by words, on the histories of any clones: ``python -m benchmarks.retrieval CLONE...``.

A case is a commit: its message is the text, and the files of programs, tests left out, that it modifies are to be found
in the tree of its parent. What is known of the past ends at the parent. Bare clones will do; nothing is checked out.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from swecli.core.retrieval.building import ARGUMENTS, Commit, commits_of, history_of
from swecli.core.retrieval.index import Document, FileState, Index, build, document, kind_of, pack, unpack
from swecli.core.retrieval.indexing import is_indexed, largest, text_of
from swecli.core.retrieval.named import Files
from swecli.core.retrieval.retrieve import Retrieval, retrieve

MOST_GOLD = 10
"""A commit that modifies more files is no case: no ten files could answer it."""
_NOISE = re.compile(
    r"^(?:merge|revert|bump|release|version|v?\d+\.\d+|chore\(release|chore\(deps|build\(deps)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Case:
    """``gold`` are the paths to be found; ``changed`` are all that the commit touches."""

    text: str
    parent: str
    gold: frozenset[str]
    changed: frozenset[str]
    past: Sequence[Commit]


@dataclass(frozen=True, slots=True)
class Outcome:
    """``mentioned`` are the paths that were taken as named by the text; ``seconds`` are of the processor."""

    case: Case
    ranked: Sequence[str]
    mentioned: Sequence[str]
    tokens: int
    seconds: float


class Clone:
    """Reads a repository without a work tree."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.name = place.parent.name if place.name in ("repo", "repo.git", ".git") else place.name
        self._documents: dict[tuple[str, str], Document] = {}

    def git(self, *arguments: str) -> bytes:
        command = ["git", "-c", "core.quotePath=false", "-C", str(self.place), *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout

    def commits(self) -> list[Commit]:
        """All of them, newest first."""
        arguments = [one for one in ARGUMENTS if not one.startswith("--max-count")]
        return list(commits_of(self.git(*arguments).decode("utf-8", "replace")))

    def documents(self, commit: str) -> list[Document]:
        """The tree of a commit as an index takes it; what was read for an earlier commit is not read again."""
        tree: list[tuple[str, str, int]] = []
        for line in self.git("ls-tree", "-r", "-z", "-l", commit).decode("utf-8", "replace").split("\0"):
            facts, _, path = line.partition("\t")
            if facts.startswith("100") and facts.split()[3].isdigit():  # a partial clone lacks some
                size = int(facts.split()[3])
                if is_indexed(path):
                    tree.append((path, facts.split()[2], size))
        new = [(path, blob, size) for path, blob, size in tree if (path, blob) not in self._documents]
        blobs = dict(self._blobs(list(dict.fromkeys(blob for path, blob, size in new if size <= largest(path)))))
        for path, blob, size in new:
            self._documents[path, blob] = document(FileState(path, size), text_of(blobs.get(blob, b"")) or "")
        return [self._documents[path, blob] for path, blob, _ in tree]

    def _blobs(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        command = ["git", "-C", str(self.place), "cat-file", "--batch"]
        done = subprocess.run(command, input="\n".join(names).encode(), capture_output=True, check=True)
        at = 0
        for name in names:
            end = done.stdout.index(b"\n", at)
            size = int(done.stdout[at:end].split()[2])
            yield name, done.stdout[end + 1 : end + 1 + size]
            at = end + 2 + size


def cases_of(clone: Clone, most: int) -> list[Case]:
    """The newest commits that are cases."""
    commits, found = clone.commits(), []
    for place, commit in enumerate(commits):
        if len(found) == most:
            break
        if _NOISE.match(commit.message.strip()) or len(commit.message.split()) < 4:
            continue
        try:
            listed = clone.git("diff-tree", "-r", "--no-renames", "--name-status", "-z", f"{commit.id}^", commit.id)
        except subprocess.CalledProcessError:
            continue  # the first of all, or the edge of a shallow clone
        words = listed.decode("utf-8", "replace").split("\0")
        changed = dict(zip(words[1::2], words[::2], strict=False))
        gold = frozenset(path for path, how in changed.items() if how == "M" and kind_of(path) == "source")
        if 1 <= len(gold) <= MOST_GOLD:
            past = commits[place + 1 : place + 2_001]
            found.append(Case(commit.message, f"{commit.id}^", gold, frozenset(changed), past))
    return found


def index_for(clone: Clone, case: Case) -> Index:
    documents = clone.documents(case.parent)
    return build(documents, history_of(case.past, [one.state.path for one in documents]))


def outcome(index: Index, case: Case) -> Outcome:
    started = time.process_time()
    found: Retrieval = retrieve(index, case.text)
    seconds = time.process_time() - started
    return Outcome(case, [one.path for one in found.ranked[:20]], found.mentioned_paths, found.tokens, seconds)


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Recall of the gold in the first ten, whether the first five have any of it, the mean of 1 / first right place,
    and the share of mentioned files that the commit touches."""
    recall = [len(one.case.gold & set(one.ranked[:10])) / len(one.case.gold) for one in outcomes]
    hits = [bool(one.case.gold & set(one.ranked[:5])) for one in outcomes]
    first = [
        next((1 / place for place, path in enumerate(one.ranked, 1) if path in one.case.gold), 0.0) for one in outcomes
    ]
    named = [path in one.case.changed for one in outcomes for path in one.mentioned]
    times = sorted(one.seconds for one in outcomes)
    count = max(1, len(outcomes))
    return {
        "cases": len(outcomes),
        "recall@10": sum(recall) / count,
        "hit@5": sum(hits) / count,
        "mrr": sum(first) / count,
        "mentions": len(named),
        "mentions_touched": sum(named) / len(named) if named else 1.0,
        "answered": sum(one.tokens > 0 for one in outcomes) / count,
        "tokens": sum(one.tokens for one in outcomes) / count,
        "query_p95_ms": 1000 * times[int(0.95 * (count - 1))] if times else 0.0,
    }


def named_figures(paths: Sequence[str], most: int = 200) -> dict[str, float]:
    """How many files are taken as named in sentences made of paths, the share of them that is right, and the share of
    what is named that is found. Beside them stand decoys: installed packages, addresses, files that are not there."""
    choice, files = Random(5), Files(paths, "/home/me/project")
    names = Counter(path.rpartition("/")[2] for path in paths)
    right = wrong = missed = 0
    for path in choice.sample(list(paths), min(most, len(paths))):
        name = path.rpartition("/")[2]
        sentences = (
            (f"The bug is in {path}.", path),
            (f"see `{path}:{choice.randint(1, 400)}` please", path),
            (f'  File "/srv/build/x/{path}", line 12, in run', path if "/" in path else ""),
            (f"{name} is broken", path if names[name] == 1 else ""),
            (f"/usr/lib/python3/dist-packages/{name}:12", ""),
            (f"https://example.org/{path}", ""),
            (f"at foo (/app/node_modules/lib/{name}:3:4)", ""),
            (f"create other/place/{name}2", ""),
            (f"not/there/{name}", ""),
        )
        for text, wanted in sentences:
            found = {one.path for one in files.named_by(text) if one.sure}
            right += wanted in found
            wrong += len(found - {wanted})
            missed += bool(wanted) and wanted not in found
    return {
        "named": right + wrong,
        "named_right": right / max(1, right + wrong),
        "named_found": right / max(1, right + missed),
    }


def measure(clone: Clone, most: int) -> tuple[list[Outcome], dict[str, float]]:
    """All cases of a clone, and what its newest index takes."""
    outcomes = [outcome(index_for(clone, case), case) for case in cases_of(clone, most)]
    documents = clone.documents("HEAD")
    started = time.perf_counter()
    data = pack(build(documents, history_of(clone.commits()[:2_000], [one.state.path for one in documents])))
    built = time.perf_counter()
    unpack(data)
    opened = time.perf_counter()
    return outcomes, {
        "files": len(documents),
        "index_mb": len(data) / 1e6,
        "assemble_s": built - started,
        "open_ms": 1000 * (opened - built),
        **named_figures([one.state.path for one in documents]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clones", nargs="+", type=Path, metavar="CLONE")
    parser.add_argument("--commits", type=int, default=80)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    total: list[Outcome] = []
    for place in options.clones:
        clone = Clone(place)
        outcomes, size = measure(clone, options.commits)
        total += outcomes
        _print(clone.name, figures(outcomes) | size, options.json)
    _print("all", figures(total), options.json)


def _print(name: str, values: dict[str, float], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"clone": name, **values}), flush=True)
    else:
        print(name, " ".join(f"{key} {value:.3g}" for key, value in values.items()), flush=True)


if __name__ == "__main__":
    main()
