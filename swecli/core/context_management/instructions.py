"""Project instructions: the files in which users tell agents how to work in their project.

They are one section of the system prompt, outside of the history, so that nothing that happens to the history
changes a byte of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from swecli.core.config.covered import INSTRUCTION_FILES
from swecli.core.context_management.file_head import FileHead, read_head
from swecli.core.context_management.prompts import read_prompt
from swecli.core.context_management.tokens import CountsTokens, PieceEstimator

INSTRUCTION_NAMES = INSTRUCTION_FILES
"""In each directory the first of these that is there and not empty counts."""

MAX_BYTES = 48 * 1024
"""More of one file does not go into the prompt."""

LONG_TOKENS = 4_000
"""A file of more tokens is named to the user with its cost."""

_CUT_NOTE = "(The file goes on; read it with `read_file` when you need the rest.)"


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """One file in the prompt. ``name`` is its path relative to the project's root, for the user's own file its
    absolute path; ``digest`` is the SHA-256 of the bytes that were read; ``tokens`` is an estimate."""

    path: Path
    name: str
    text: str
    digest: str
    tokens: int
    whole: bool = True
    quoted: bool = False
    """Whether it is information of a folder that the user did not say they trust, and no instruction."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """All instruction files, the most general first. ``notices`` are sentences for the user."""

    files: tuple[InstructionFile, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(str(file.path) for file in self.files)

    def render(self) -> str:
        """The section for the system prompt; empty without files. Equal files give equal bytes."""
        parts: list[str] = []
        for prompt, tag, quoted in (
            ("instructions", "instructions", False),
            ("instructions_untrusted", "quoted", True),
        ):
            files = [file for file in self.files if file.quoted == quoted]
            parts += [read_prompt(prompt)] if files else []
            for file in files:
                note = "" if file.whole else f"\n{_CUT_NOTE}"
                parts.append(f'<{tag} path="{file.name}">\n{file.text.strip()}{note}\n</{tag}>')
        return "\n\n".join(parts)

    @property
    def digest(self) -> str:
        """SHA-256 of the rendered section."""
        return sha256(self.render().encode("utf-8", "replace")).hexdigest()


def load_instructions(
    cwd: Path,
    *,
    user_directory: Path | None = None,
    counter: CountsTokens | None = None,
    project: Literal["trusted", "quoted", "none"] = "trusted",
) -> Instructions:
    """Collect the user's own file and one file for each directory from the project's root down to ``cwd``.

    ``project`` says whether files of the project are instructions, information, or not read at all. A file with the
    same content as an earlier one is left out. Links that lead out of the project, special files and unreadable ones
    are skipped with a notice.
    """
    counter = counter or PieceEstimator()
    root = project_root(cwd)
    files: list[InstructionFile] = []
    notices: list[str] = []
    seen: set[str] = set()
    for directory, within in _directories(cwd, root, user_directory):
        found = None if project == "none" and within is not None else _first(directory, within, notices)
        if found is None:
            continue
        path, head = found
        if head.digest in seen:
            continue
        seen.add(head.digest)
        name = str(path) if within is None else path.relative_to(root).as_posix()
        tokens = counter.count(head.text)
        quoted = project == "quoted" and within is not None
        files.append(InstructionFile(path, name, head.text, head.digest, tokens, head.whole, quoted))
        notices.extend(_cost(name, head, tokens))
    return Instructions(tuple(files), tuple(notices))


def project_root(cwd: Path) -> Path:
    """The nearest directory from ``cwd`` upwards that is a git work tree, else ``cwd``."""
    return next((directory for directory in (cwd, *cwd.parents) if (directory / ".git").exists()), cwd)


def _directories(cwd: Path, root: Path, user_directory: Path | None) -> Iterator[tuple[Path, Path | None]]:
    """Each directory to look at, and where its files must be inside of."""
    if user_directory is not None:
        yield user_directory, None
    down = [cwd, *cwd.parents]
    for directory in reversed(down[: down.index(root) + 1]):
        yield directory, root


def _first(directory: Path, within: Path | None, notices: list[str]) -> tuple[Path, FileHead] | None:
    for name in INSTRUCTION_NAMES:
        path = directory / name
        try:
            head = read_head(path, MAX_BYTES, within)
        except FileNotFoundError:
            continue
        except OSError as error:
            notices.append(f"{path} is not used as project instructions: {error.strerror or error}.")
            continue
        if head.text.strip():
            return path, head
    return None


def _cost(name: str, head: FileHead, tokens: int) -> Iterator[str]:
    if not head.whole:
        yield (
            f"{name} has {head.size:,} bytes; its first {MAX_BYTES:,} are in the prompt"
            f" and cost about {tokens:,} tokens in each request. Shorten it."
        )
    elif tokens > LONG_TOKENS:
        yield f"{name} costs about {tokens:,} tokens in each request; shorten it to leave room for the work."
