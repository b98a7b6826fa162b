"""Facts about a project for a task, looked up before a model is asked: a document, for programs.

A session has its own way (``swecli/features/retrieval/companion.py``), which adds places rather than their content.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from swecli.core.context_management.counter import CountsTokens, PieceEstimator
from swecli.core.retrieval.project import OpenProject, open_project, refreshed
from swecli.core.secret_names import secret_names
from swecli.core.workspace.process import scrubbed_environment
from swecli.core.workspace.search import ListingError, SearchError, SearchRequest, list_tree, search
from swecli.lazy_pattern import lazy_pattern

MOST_MATCHES: Final = 10
"""Matches of one pattern to keep."""
MOST_PATTERNS: Final = 5
TELLING: Final = 3
"""Most files with a pattern for which these are likely the subject."""
LONGEST_LISTING: Final = 1_000
"""Characters of a listing."""
_MAX_BYTES: Final = 65_536
"""Bytes of a named file that count as read."""


def now() -> datetime:
    return datetime.now(UTC)


class Document(BaseModel):
    """A part of the context as JSON."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)


class TaskContext(Document):
    """Results of a lookup for one task."""

    task_description: str
    relevant_files: list[str] = Field(default_factory=list)
    grep_results: list[dict[str, Any]] = Field(default_factory=list)
    bash_outputs: list[dict[str, Any]] = Field(default_factory=list)
    retrieved_at: datetime = Field(default_factory=now)
    tokens: int = Field(default=0, ge=0)

    def texts(self) -> Sequence[str]:
        """All its texts that count as tokens."""
        rest = (self.relevant_files, self.grep_results, self.bash_outputs)
        return [self.task_description, *(json.dumps(part, ensure_ascii=False) for part in rest if part)]


class Entities(Struct, frozen=True):
    """Subjects of a text: ``files`` as it names them, ``patterns`` to search for, the rarest first, and whether it asks
    for a listing of files."""

    files: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    needs_file_listing: bool = False


_FILE = lazy_pattern(r"(?<![\w/.:@-])((?:~?/|\./)?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7})(?![\w/@])")
_LISTING = lazy_pattern(
    r"\b(?:list|show|which|what)\b[^.?!\n]{0,30}\b(?:files|folders|directories)\b|\b(?:project|folder|directory|repo\w*)"
    r" (?:structure|layout|overview)\b|\bstructure of\b",
    re.IGNORECASE,
)


class ContextRetriever:
    """Looks things up without a model. ``on_retrieval`` receives for each retrieval the steps, as phrases such as "grep
    'login'" and "read src/a.py", and the tokens that it adds."""

    def __init__(
        self,
        counter: CountsTokens | None = None,
        on_retrieval: Callable[[Sequence[str], int], object] = lambda actions, tokens: None,
    ) -> None:
        self._counter = counter or PieceEstimator()
        self._on_retrieval = on_retrieval
        self._projects: dict[Path, OpenProject] = {}

    async def retrieve_for_task(self, user_input: str, working_dir: str | os.PathLike[str]) -> TaskContext:
        """Matches for the subjects of the text, the files that it names, those that it is most likely about, among them
        the few that contain a subject, and a listing if it asks for one. A missing folder gives an empty document."""
        root = await asyncio.to_thread(_folder, working_dir)
        context = TaskContext(task_description=user_input)
        actions: list[str] = []
        read: list[str] = []
        if root is not None:
            entities = await self._extract_entities(user_input)
            telling: dict[str, None] = {}
            for pattern in entities.patterns:
                result, files = await _grep(pattern, root)
                context.grep_results.append(result)
                if result["file_count"] <= TELLING and not entities.files:  # files are subject enough
                    telling |= dict.fromkeys(files)
                actions.append(f"grep {pattern!r}")
            opened = await asyncio.to_thread(self._opened, root)
            retrieval = await asyncio.to_thread(opened.retrieval, user_input)
            named = await asyncio.to_thread(_existing, (*entities.files, *retrieval.mentioned_paths), root)
            for path, text in named.items():
                read.append(text)
                actions.append(f"read {path}")
            pointed = [pointer.path for pointer in retrieval.pointers if pointer.path not in named]
            context.relevant_files = list(dict.fromkeys((*named, *pointed, *telling)))
            if entities.needs_file_listing:
                context.bash_outputs.append(await _listing(root))
                actions.append("list files")
        context.tokens = sum(map(self._counter.count, (*context.texts(), *read)))
        self._on_retrieval(tuple(actions), context.tokens)
        return context

    async def _extract_entities(self, user_input: str) -> Entities:
        """Subjects of the text, found by their form, without a model."""
        from swecli.core.retrieval.ranking import query_of
        from swecli.core.retrieval.terms import STOP_WORDS, TASK_WORDS

        files = tuple(dict.fromkeys(_FILE.findall(user_input)))
        query = query_of(user_input)
        quoted = re.findall(r"[\"'`]([\w .:-]{3,40})[\"'`]", user_input)
        plain = re.findall(r"[^\W\d][\w]{2,39}", _FILE.sub(" ", user_input))
        common = STOP_WORDS | TASK_WORDS
        words = [word for word in plain if word.lower() not in common and word not in query.names]
        patterns = dict.fromkeys((*quoted, *sorted(query.names - set(quoted)), *words))
        chosen = [pattern for pattern in patterns if pattern.strip() and pattern not in files]
        return Entities(files, tuple(chosen[:MOST_PATTERNS]), _LISTING.search(user_input) is not None)

    def _opened(self, root: Path) -> OpenProject:
        known = self._projects.get(root)
        if known is not None:
            known, outdated = refreshed(known.corpus.index, root, known)
            if not outdated:
                self._projects[root] = known
                return known
        opened = self._projects[root] = open_project(root, None)
        return opened


def _folder(name: str | os.PathLike[str]) -> Path | None:
    path = Path(os.path.realpath(name))
    return path if os.path.isdir(path) else None


async def _grep(pattern: str, root: Path) -> tuple[dict[str, Any], Sequence[str]]:
    """The first matches as a document, and the files that have one."""
    request = SearchRequest(re.escape(pattern), root, (root,), ignore_case=True, leave_out=secret_names())
    try:
        result = await search(request, scrubbed_environment(os.environ))
    except (SearchError, OSError) as error:
        return {"pattern": pattern, "matches": [], "file_count": 0, "problem": str(error)}, ()
    lines = [(line.path.relative_to(root).as_posix(), line) for line in result.lines if line.matched]
    matches = [f"{path}:{line.number}: {line.text.strip()}" for path, line in lines[:MOST_MATCHES]]
    document = {"pattern": pattern, "matches": matches, "file_count": result.files}
    return document, tuple(dict.fromkeys(path for path, _ in lines))


def _existing(names: Sequence[str], root: Path) -> dict[str, str]:
    """Existing files of these names inside the folder, with their texts."""
    from swecli.core.retrieval.indexing import is_indexed, text_of
    from swecli.core.workspace.text_file import read_bytes

    texts: dict[str, str] = {}
    for name in names:
        try:
            path = (root / Path(name).expanduser()).resolve()
            if not path.is_relative_to(root) or not os.path.isfile(path) or not is_indexed(path.name):
                continue
            data, _ = read_bytes(path, _MAX_BYTES)
            text = text_of(data) or ""
        except (OSError, ValueError, RuntimeError):
            continue
        texts[path.relative_to(root).as_posix()] = text
    return texts


async def _listing(root: Path) -> dict[str, Any]:
    try:
        listing = await list_tree(root, (root,), environment=scrubbed_environment(os.environ))
    except (ListingError, OSError) as error:
        return {"command": "list files", "output": str(error)[:LONGEST_LISTING]}
    output = "\n".join(f"{entry.path}/" if entry.is_dir else entry.path for entry in listing.entries)
    return {"command": "list files", "output": output[:LONGEST_LISTING]}
