"""Project instructions: files with the user's directions to agents in a project.

They are one section of the system prompt, outside the history, so that changes of the history never affect them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.config.paths import PROJECT_FOLDER
from swecli.core.config.trust import AIDER_SETTINGS, INSTRUCTION_FILES, LOCAL_INSTRUCTIONS, RULE_FOLDERS
from swecli.core.context_management.counter import CountsTokens, PieceEstimator
from swecli.core.context_management.prompts import framed, read_prompt
from swecli.core.permissions.paths import is_secret
from swecli.core.secret_names import secret_names
from swecli.core.workspace.command_output import as_read
from swecli.core.workspace.text_file import marked_text, open_regular
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.context_management.rule_files import RuleFile


class FileHead(Struct, frozen=True):
    """``text`` is decoded as UTF-8, undecodable bytes replaced, line ends as ``\n``. ``size`` is the bytes of the whole
    file; ``whole`` says whether ``text`` is all of it. ``digest`` is the SHA-256 of the bytes read."""

    text: str
    size: int
    whole: bool
    digest: str
    above: int = 0
    """Lines of the file before ``text``."""


class OutsideError(OSError):
    """A symbolic link leads out of the project."""


def read_head(path: Path, limit: int, within: Path | None = None) -> FileHead:
    """Read at most ``limit`` bytes of a regular file. A link may not lead out of ``within``.

    Raises:
        OutsideError: the file is outside ``within``.
        OSError: there is no such file, or it can't be read.
    """
    resolved = Path(os.path.realpath(path))
    if within is not None and not resolved.is_relative_to(os.path.realpath(within)):
        raise OutsideError(f"{path.name} is a link to a file outside the project")
    with open_regular(resolved) as (descriptor, status):
        data = _read(descriptor, limit + 1)
    whole = len(data) <= limit
    data = data[:limit]
    text = marked_text(data)
    if text is None:
        text = data.decode("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8", "replace")
    if not whole:
        # The cut may be inside a character or a line; keep only whole lines.
        text = text[: text.rfind("\n") + 1] or text.rstrip("\ufffd")
    return FileHead(
        text.replace("\r\n", "\n").replace("\r", "\n"), status.st_size, whole, hashlib.sha256(data).hexdigest()
    )


def _read(descriptor: int, limit: int) -> bytes:
    pieces: list[bytes] = []
    while limit > 0 and (piece := os.read(descriptor, min(limit, 65_536))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


INSTRUCTION_NAMES = (INSTRUCTION_FILES[0], f"{PROJECT_FOLDER}/{INSTRUCTION_FILES[0]}", *INSTRUCTION_FILES[1:])
"""The first of these in each directory that exists and is not empty counts."""

Merge = Literal["folder", "nearest", "all", "none"]
"""Files of a project to use: one of each folder, one of the nearest folder that has any, all, or none."""

IMPORT_DEPTH = 5
MOST_IMPORTS = 20
MOST_BYTES = 256 * 1024
"""Limit of all files together."""

MAX_BYTES = 48 * 1024
"""Limit of one file in the prompt."""

MOST_RULE_BYTES = 32 * 1024
"""Limit of all rule files that are always in the prompt. The model reads further ones if it needs them."""

MOST_RULE_BYTES_AT_ONCE = 16 * 1024
"""Limit of the rules that begin to apply with one step."""

LONG_TOKENS = 4_000
"""A file of more tokens is reported to the user with its cost."""

SHARE = 0.35
"""Most of the effective window for all instructions in the prompt; what is more is cut at a heading."""
ESTIMATED = 0.8
"""Share of that room for estimated tokens, because a model's tokenizer may count a quarter more. The ratio learned in
a session is not used: the prompt keeps its bytes."""
LEAST_CUT = 40
"""Tokens that each file keeps at least, so that the model knows what it is about."""


class InstructionFile(Struct, frozen=True):
    """One file in the prompt. ``name`` is its path relative to the project's root, for the user's own file its absolute
    path; ``digest`` is the SHA-256 of the bytes read; ``tokens`` is an estimate."""

    path: Path
    name: str
    text: str
    digest: str
    tokens: int
    whole: bool = True
    quoted: bool = False
    """Whether it is information from an untrusted folder rather than an instruction."""
    own: bool = False
    """Whether it is the user's own file, which applies to every project."""
    importer: str = ""
    """The name of the file that imports it."""
    scope: str = ""
    """The globs of the files to which it applies; empty: to the folder that it is in."""
    above: int = 0
    """Lines of the file before ``text``."""

    @property
    def continues(self) -> int:
        """The line at which the file goes on after ``text``."""
        return self.above + self.text.count("\n") + 1


class Instructions(Struct, frozen=True):
    """All instruction files, the most general first. ``rules`` are files that apply under a condition; ``notices`` are
    sentences for the user."""

    files: tuple[InstructionFile, ...] = ()
    notices: tuple[str, ...] = ()
    rules: tuple[RuleFile, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(str(file.path) for file in self.files)

    def render(self) -> str:
        """All of them for the system prompt; empty without files. Equal files give equal bytes."""
        return "\n\n".join(part for part in (self.render_own(), self.render_project()) if part)

    def render_own(self) -> str:
        files = [file for file in self.files if file.own]
        return "\n\n".join([read_prompt("instructions"), *_tagged(files, "instructions")]) if files else ""

    def render_project(self) -> str:
        """The section of the project's files. Their introduction appears once: here, unless before the user's own
        file."""
        files = [file for file in self.files if not file.own and not file.quoted]
        quoted = [file for file in self.files if file.quoted]
        heading = [read_prompt("instructions")] if files and not any(file.own for file in self.files) else []
        warning = [read_prompt("instructions_untrusted")] if quoted else []
        offer = [_offer(self.rules)] if any(rule.when == "described" for rule in self.rules) else []
        return "\n\n".join([*heading, *_tagged(files, "instructions"), *warning, *_tagged(quoted, "quoted"), *offer])

    def within(self, tokens: int) -> Instructions:
        """The same files, the longest ones cut so that together they have at most about so many tokens. ``notices`` of
        the result name the files cut here."""
        counter = PieceEstimator()
        if sum(file.tokens for file in self.files) <= tokens:
            return replace(self, notices=())
        most = _share_of_each([file.tokens for file in self.files], tokens)
        files: list[InstructionFile] = []
        notices: list[str] = []
        for file in self.files:
            if file.tokens > most:
                text = _beginning(file.text, most, counter)
                cut = replace(file, text=text, tokens=counter.count(text), whole=False)
                at_least = "" if file.whole else "more than "
                notices.append(
                    f"{file.name} has {at_least}{file.tokens:,} tokens, too many for this model's window. Its first "
                    f"{cut.tokens:,} are in the prompt; the model can read on from line {cut.continues}."
                )
                file = cut
            files.append(file)
        return replace(self, files=tuple(files), notices=tuple(notices))

    @property
    def digest(self) -> str:
        return sha256(self.render().encode("utf-8", "replace")).hexdigest()


def _offer(rules: Iterable[RuleFile]) -> str:
    """The rules that the model chooses by their description."""
    from swecli.core.context_management.rule_files import offered_lines

    lines = "\n".join(offered_lines([rule for rule in rules if rule.when == "described"]))
    return f"{read_prompt('instructions_rules')}\n\n{framed(lines)}"


def _tagged(files: Iterable[InstructionFile], tag: str) -> Iterator[str]:
    for file in files:
        name = _one_line(file.name)
        note = "" if file.whole else f"\n(The file continues: read {name} from line {file.continues} when you need it.)"
        importer = f' imported-by="{_one_line(file.importer)}"' if file.importer else ""
        text = file.text.strip()
        if file.quoted:  # untrusted: it must not be able to end its frame
            text = framed(text)
        scope = f' applies-to="{_one_line(file.scope)}"' if file.scope else ""
        yield f'<{tag} path="{name}"{importer}{scope}>\n{text}{note}\n</{tag}>'


def _one_line(name: str) -> str:
    """A name in the form for a frame's mark: folders may have any name."""
    return " ".join(framed(name).replace('"', "'").replace(">", "").split())


def _none_approved(path: Path, digest: str) -> bool:
    return False


def load_instructions(
    cwd: Path,
    *,
    user_directory: Path | None = None,
    other_agents: Sequence[Path] = (),
    project: Literal["trusted", "quoted", "none"] = "trusted",
    approved: Callable[[Path, str], bool] = _none_approved,
    merge: Merge = "folder",
    imports: bool = True,
    rules: bool = True,
    own_names: tuple[str, ...] = (),
) -> Instructions:
    """Collect the user's own file and those of the directories from the project's root down to ``cwd``, each followed
    by its imports with ``@path``. Without an own file for swecli, the first of ``other_agents`` with text counts.

    ``project`` decides whether files of the project are instructions, information, or not read at all; a file with
    content (its SHA-256) that the user ``approved`` is an instruction. A file with the same content as an earlier one
    is left out. Links that lead out of the project, special files, unreadable ones and those whose names suggest
    secrets (``own_names`` are the user's patterns) are skipped with a notice.
    """
    root = project_root(cwd)
    reader = _Reader(root, PieceEstimator(), approved if project == "quoted" else None, imports=imports, rules=rules)
    reader.own_names = own_names
    if user_directory is not None and not reader.read_directory(user_directory, None, whole=False):
        reader.read_first(other_agents)
    folders = instruction_folders(cwd) if project != "none" and merge != "none" else ()
    for folder in reversed(folders) if merge == "nearest" else folders:
        if reader.read_directory(folder, root, whole=merge == "all") and merge == "nearest":
            break
    return reader.found()


def nested_instructions(
    folder: Path,
    root: Path,
    known: Iterable[str],
    *,
    quoted: bool = False,
    rules: bool = True,
    own_names: tuple[str, ...] = (),
) -> Instructions:
    """The files of a folder below the working directory, with their imports; empty without one. ``known`` are digests
    of files already read."""
    approved = _none_approved if quoted else None
    reader = _Reader(root, PieceEstimator(), approved, imports=True, rules=rules)
    reader.seen.update(known)
    reader.own_names = own_names
    reader.read_directory(folder, root, whole=False)
    return reader.found()


def matching_rules(
    rules: Iterable[RuleFile], root: Path, known: Iterable[str], quoted: bool = False, own_names: tuple[str, ...] = ()
) -> Instructions:
    """The present text of rules that begin to apply, with their imports. ``rules`` of the result are those whose text
    is too much."""
    approved = _none_approved if quoted else None
    reader = _Reader(root, PieceEstimator(), approved, imports=True, rules=True)
    reader.seen.update(known)
    reader.own_names = own_names
    reader.rule_bytes = MOST_RULE_BYTES_AT_ONCE
    for rule in rules:
        reader.read_rule(rule)
    return reader.found()


class _Reader:
    """Reads instruction files one after the other. ``approved`` is None if files of the project are trusted."""

    def __init__(
        self,
        root: Path,
        counter: CountsTokens,
        approved: Callable[[Path, str], bool] | None,
        *,
        imports: bool,
        rules: bool,
    ) -> None:
        self._root = root
        self._counter = counter
        self._approved = approved
        self._imports = imports
        self._with_rules = rules
        self._imported = 0
        self._left = MOST_BYTES
        self.rule_bytes = MOST_RULE_BYTES
        self.own_names: tuple[str, ...] = ()
        self.files: list[InstructionFile] = []
        self.notices: list[str] = []
        self.rules: list[RuleFile] = []
        self._copies: dict[str, int] = {}
        """Where in ``rules`` a text is."""
        self.seen: set[str] = set()

    def found(self) -> Instructions:
        return Instructions(tuple(self.files), tuple(self.notices), tuple(self.rules))

    def read_directory(self, directory: Path, within: Path | None, *, whole: bool) -> bool:
        """Read the first nonempty file of the directory, or all of them, and what counts beside it. False if there is
        none."""
        before = len(self.seen) + len(self.rules)
        has_file = False
        unreadable: dict[str, list[Path]] = {}
        for name in INSTRUCTION_NAMES:
            head = self._head(directory / name, within, unreadable)
            if head is not None:
                self._add(directory / name, head, within, ())
                has_file = True
                if not whole:
                    break
        if within is not None:
            if self._with_rules and any(os.path.isdir(directory / folder) for folder in RULE_FOLDERS):
                self._read_rules(directory, within, unreadable)
            path = directory / LOCAL_INSTRUCTIONS
            if (head := self._head(path, within, unreadable)) is not None:
                self._add(path, head, within, ())
            if os.path.isfile(directory / AIDER_SETTINGS):
                self._read_aider(directory / AIDER_SETTINGS, within, unreadable)
        for reason, paths in unreadable.items():
            named = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more beside it"
            verb = "is" if len(paths) == 1 else "are"
            self.notices.append(f"{named} {verb} ignored as project instructions: {reason}.")
        return has_file or len(self.seen) + len(self.rules) > before

    def read_first(self, paths: Sequence[Path]) -> None:
        """Read the first of the user's own files that has text."""
        heads = ((path, self._head(path, None, {})) for path in paths)
        path, head = next(((path, head) for path, head in heads if head is not None), (None, None))
        if path is not None and head is not None:
            self._add(path, head, None, ())

    def _head(self, path: Path, within: Path | None, unreadable: dict[str, list[Path]]) -> FileHead | None:
        """The file's text; None if there is none."""
        try:
            head = read_head(path, MAX_BYTES, within)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if path.name not in RULE_FOLDERS or not os.path.isdir(path):
                unreadable.setdefault(error.strerror or str(error), []).append(path)
            return None
        return head if head.text.strip() else None

    def _read_rules(self, directory: Path, within: Path, unreadable: dict[str, list[Path]]) -> None:
        from swecli.core.context_management.rule_files import MOST_RULES, read_rule, rule_paths

        left_out: list[str] = []
        for folder, paths in rule_paths(directory):
            if len(paths) > MOST_RULES:
                name = self._name(directory / folder, within)
                self.notices.append(f"{name} has more than {MOST_RULES} files; the others are ignored.")
            for path in paths[:MOST_RULES]:
                head = self._head(path, within, unreadable)
                if head is None or "\0" in head.text:
                    continue
                rule, text, problems = read_rule(head.text, path, self._name(path, within), directory, folder)
                self.notices += (f"{rule.name}:{problem.line}: {problem.text}." for problem in problems)
                if rule.when == "always" and _bytes(text) > self.rule_bytes:
                    left_out.append(rule.name)
                    rule = replace(rule, when="described")
                if rule.when == "always":
                    self.rule_bytes -= _bytes(text)
                    if text.strip():
                        self._add(path, _without_front(head, text), within, ())
                elif rule.when != "described" or self._trusts(path, head.digest, within):
                    self._keep(rule, text)
        if left_out:
            more = f" and {len(left_out) - 1} more are" if len(left_out) > 1 else " is"
            self.notices.append(
                f"{left_out[0]}{more} in the prompt by name only: rules that apply always have more than"
                f" {MOST_RULE_BYTES:,} bytes together."
            )

    def _read_aider(self, path: Path, within: Path, unreadable: dict[str, list[Path]]) -> None:
        """Read the texts that aider's settings name, like imports."""
        from swecli.core.extensions.front_matter import read_front_matter

        head = self._head(path, within, unreadable)
        if head is None or not self._imports or not self._trusts(path, head.digest, within):
            return
        front = read_front_matter(f"---\n{head.text.removeprefix('---')}\n---")
        name = self._name(path, within)
        self.notices += (f"{name}:{max(1, problem.line - 1)}: {problem.text}." for problem in front.problems)
        if isinstance(front.fields.get("read"), dict):
            self.notices.append(f"{name}:{front.lines.get('read', 2) - 1}: read is not a list of files; it is ignored.")
        for word in front.words("read") or ():
            if Path(word).suffix in _PROSE:
                self._import(word, (path,), within)

    def _keep(self, rule: RuleFile, text: str) -> None:
        """Add a rule with a condition. Of copies for several agents the first stands for all."""
        copy = sha256(f"{rule.when}\n{rule.base}\n{text.strip()}".encode("utf-8", "replace")).hexdigest()
        first = self._copies.setdefault(copy, len(self.rules))
        if first == len(self.rules):
            self.rules.append(rule)
        else:
            known = self.rules[first]
            self.rules[first] = replace(known, globs=tuple(dict.fromkeys((*known.globs, *rule.globs))))

    def read_rule(self, rule: RuleFile) -> None:
        """Read a rule that begins to apply, if it is still there."""
        from swecli.core.extensions.front_matter import read_front_matter

        head = self._head(rule.path, self._root, {})
        if head is not None and "\0" not in head.text:
            text = read_front_matter(head.text).body
            if _bytes(text) > self.rule_bytes:
                self.rules.append(rule)
                return
            self.rule_bytes -= _bytes(text)
            self._add(rule.path, _without_front(head, text), self._root, (), ", ".join(rule.globs))

    def _trusts(self, path: Path, digest: str, within: Path | None) -> bool:
        return self._approved is None or within is None or self._approved(path, digest)

    def _add(self, path: Path, head: FileHead, within: Path | None, chain: tuple[Path, ...], scope: str = "") -> None:
        """``chain`` are the files that import it, the outermost first. The model gets the text as people see it."""
        head = replace(head, text=as_read(head.text))
        copy = sha256(head.text.strip().encode("utf-8", "replace")).hexdigest()
        if head.digest in self.seen or copy in self.seen:
            return
        name = self._name(path, within)
        if _bytes(head.text) > self._left:
            self.notices.append(f"{name} is left out: the instruction files exceed {MOST_BYTES:,} bytes together.")
            return
        self.seen.update((head.digest, copy))
        self._left -= _bytes(head.text)
        tokens = self._counter.count(head.text)
        quoted = not self._trusts(path, head.digest, within)
        own = within is None
        self.files.append(
            InstructionFile(
                path,
                name,
                head.text,
                head.digest,
                tokens,
                head.whole,
                quoted,
                own,
                self._name(chain[-1], within) if chain else "",
                scope,
                head.above,
            )
        )
        self.notices.extend(_cost(name, head, tokens))
        if "\ufffd" in head.text:
            self.notices.append(f"{name} is not UTF-8; unreadable bytes are shown as \ufffd.")
        if self._imports and not quoted:
            for word in imported_paths(head.text):
                self._import(word, (*chain, path), within)

    def _name(self, path: Path, within: Path | None) -> str:
        inside = within is not None and path.is_relative_to(within)
        return path.relative_to(self._root).as_posix() if inside else str(path)

    def _import(self, word: str, chain: tuple[Path, ...], within: Path | None) -> None:
        """Read an imported file. The user's own file may import from anywhere, a project's file from the project."""
        path = chain[-1]
        name = self._name(path, within)
        target = Path(os.path.normpath(path.parent / Path(word).expanduser())) if word != "~" else path.parent
        trouble = ""
        if within is not None and not target.is_relative_to(within):
            trouble = "it is outside the project"
        elif is_secret(str(target), secret_names(self.own_names)):
            trouble = "its name suggests secrets"
        elif len(chain) > IMPORT_DEPTH:
            trouble = f"imports nest at most {IMPORT_DEPTH} files deep"
        elif self._imported >= MOST_IMPORTS:
            trouble = f"at most {MOST_IMPORTS} files can be imported"
        if not trouble:
            try:
                head = read_head(target, MAX_BYTES, within)
            except FileNotFoundError:
                trouble = "it does not exist" if target.suffix in _PROSE else ""
            except (OSError, ValueError) as error:
                trouble = f"{error.strerror or error}" if isinstance(error, OSError) else "it is not a path"
            else:
                if "\0" in head.text:
                    trouble = "it is not text"
                elif target in chain:
                    circle = [self._name(file, within) for file in (*chain[chain.index(target) :], target)]
                    self.notices.append(f"Imports form a circle ({' -> '.join(circle)}); each file is read once.")
                elif head.text.strip():
                    self._imported += 1
                    self._add(target, head, within, chain)
        if trouble and (target.suffix in _PROSE or os.path.isfile(target)):
            self.notices.append(f"{name} imports @{word}, which was not read: {trouble}.")


def _without_front(head: FileHead, text: str) -> FileHead:
    """The head of a rule file without its front matter."""
    return replace(head, text=text, above=head.text.count("\n") - text.count("\n") if head.text.endswith(text) else 0)


def _share_of_each(sizes: Sequence[int], tokens: int) -> int:
    """The most that each may have so that all together have ``tokens``; smaller ones leave their rest to the others."""
    left, most = tokens, 0
    for number, size in enumerate(sorted(sizes)):
        most = left // (len(sizes) - number)
        if size > most:
            break
        left -= size
    return max(LEAST_CUT, most)


_FENCE = lazy_pattern(r" {0,3}(?:```|~~~)")


def _beginning(text: str, tokens: int, counter: CountsTokens) -> str:
    """The beginning of a Markdown text of at most ``tokens``: up to a heading if one is in its second half, else up to
    the end of a line."""
    lines = text.splitlines(keepends=True)
    size, end, heading, fenced = 0, 0, 0, False
    for number, line in enumerate(lines):
        if not fenced and number and line.startswith("#"):
            heading = number
        if _FENCE.match(line):
            fenced = not fenced
        size += counter.count(line)
        if size > tokens:
            break
        end = number + 1
    if not end:  # one long line
        return lines[0][: max(1, len(lines[0]) * tokens // max(1, counter.count(lines[0])))]
    return "".join(lines[: heading if end / 2 <= heading <= end else end])


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


_PROSE = (".md", ".txt", ".rst", ".mdx")
_IMPORT = lazy_pattern(r"(?:^|(?<=[\s(\[]))@((?:~/|\.{0,2}/)?[\w.-](?:\\ |[^\s`'\"<>|*?])*)")
_CODE = lazy_pattern(r"^ {0,3}(```+|~~~+).*?^ {0,3}\1[^\n]*$|`[^`\n]*`|<!--.*?-->", re.MULTILINE | re.DOTALL)


def imported_paths(text: str) -> list[str]:
    """Imports of an instruction file, each once, in order: ``@path`` outside code and comments. A backslash before a
    blank makes it part of the path."""
    words = (match[1].rstrip(".,;:!?)]}").replace("\\ ", " ") for match in _IMPORT.finditer(_CODE.sub(" ", text)))
    return [word for word in dict.fromkeys(words) if word]


def project_root(cwd: Path) -> Path:
    """The nearest directory from ``cwd`` upwards that is a git work tree, else ``cwd``."""
    return next((directory for directory in (cwd, *cwd.parents) if os.path.exists(directory / ".git")), cwd)


def instruction_folders(cwd: Path) -> Sequence[Path]:
    """The folders from the project's root down to ``cwd``, which may have applicable files."""
    root = project_root(cwd)
    upwards = [cwd, *cwd.parents]
    return upwards[: upwards.index(root) + 1][::-1]


def applies_below(name: str) -> str:
    """The folder to which the instructions in a file apply, relative to the project's root."""
    for inner in RULE_FOLDERS:
        if f"/{inner}/" in f"/{name}":
            return f"/{name}".partition(f"/{inner}/")[0][1:] or "."
    known = next(
        (file_name for file_name in INSTRUCTION_NAMES if "/" in file_name and f"/{name}".endswith(f"/{file_name}")),
        name.split("/")[-1],
    )
    return name.removesuffix(known).rstrip("/") or "."


def _cost(name: str, head: FileHead, tokens: int) -> Iterator[str]:
    if not head.whole:
        yield (
            f"{name} has {head.size:,} bytes; its first {MAX_BYTES:,} are in the prompt"
            f" and cost about {tokens:,} tokens in each request. Shorten it."
        )
    elif tokens > LONG_TOKENS:
        yield f"{name} costs about {tokens:,} tokens in each request; shorten it to leave room for the work."
