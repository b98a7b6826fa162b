"""Names of files that may hold secrets: one list for questions, searches, the sandbox and copies. Text only, no disk.

A worker process imports it, so it imports nothing that takes time."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from swecli.lazy_pattern import lazy_pattern

_LIST = Path(__file__).with_name("secret_names.tsv")

_ENDINGS = """adoc astro bash bat bzl c cc cfm clj cljs cmake cmd coffee cpp cs css csproj cts cxx d dart ejs elm erb
  erl ex exs f90 fish fs fsproj gleam go gradle groovy h haml hbs hcl hh hpp hrl hs htm html hxx inl ipynb java jl
  js jsx kt kts less lisp lock lua m markdown mdx md mjs mk ml mli mm mts nim nix php pl pm po pot proto ps1
  psm1 py pyi pyx r rake rb rkt rs rst sass sbt scala scm scss sh slim sol sql st styl svelte svg swift tcl tex
  tf ts tsx twig v vb vbproj vim vue xsd zig zsh
  pyc pyo pyd class o obj lo beam elc map snap rlib rmeta wasm"""
_PROGRAM_TEXT = frozenset(_ENDINGS.split())
"""Endings of program text, of what compilers make of it, and of documentation."""
_DESCRIPTIONS = """.editorconfig .gitattributes .gitignore .gitkeep .keep .npmignore build build.bazel build.gradle.kts
  cargo.toml cargo.lock cdk.json chart.yaml cmakelists.txt composer.json deno.json dockerfile go.mod go.sum
  jest.config.json kustomization.yaml kustomization.yml license license.txt makefile mix.lock mkdocs.yml
  module.bazel nx.json owners package-lock.json package.json pnpm-lock.yaml poetry.lock pom.xml project.json
  pyproject.toml readme readme.txt requirements.txt setup.cfg tox.ini tsconfig.json turbo.json yarn.lock"""
_PROJECT_FILES = frozenset(_DESCRIPTIONS.split())
"""Files of a project that describe it, also one about secrets."""
_FOLDERS = """testdata test-data test_data fixtures __fixtures__ __mocks__ mocks cassettes __snapshots__ snapshots
  templates lang langs locale locales i18n l10n translations messages"""
_ORDINARY_FOLDERS = frozenset(_FOLDERS.split())
"""Folders of test data, templates and translations."""
_COPIES = lazy_pattern(
    r"(?:~|\#|[._ -](?:bak|backup|bkp|old|orig|original|save|saved|sav|copy|tmp|temp|rej|prev|previous|swp|swo|swn|"
    r"\d{1,14}|gz|bz2|xz|zst|zip)\d*)+$"
)
"""What editors, people and packers append to a copy's name."""
_COPY_ENDINGS = (
    *(
        "~",
        "#",
        "bak",
        "backup",
        "bkp",
        "old",
        "orig",
        "original",
        "save",
        "saved",
        "sav",
        "copy",
        "tmp",
        "temp",
        "rej",
    ),
    *("prev", "previous", "swp", "swo", "swn", "gz", "bz2", "xz", "zst", "zip", *"0123456789"),
)
_SAMPLE = lazy_pattern(
    r"[._-](?:example|sample|template|tmpl|tpl|dist|defaults?|schema)"
    r"(?:\.(?:json|ya?ml|toml|ini|cfg|conf|properties|env|xml|txt|tfvars|php|j2|local))?$"
    r"|^(?:example|sample|template)\.(?:env|tfvars)$|\.example\.env$"
)
_WILD = lazy_pattern(r"[*?\[\]]")


def _expression(pattern: str) -> str:
    """A pattern as a regular expression, in which no wildcard matches a slash."""
    text = re.sub(r"\\([*?\[\]-])", r"\1", re.escape(pattern))
    return text.replace("*", "[^/]*").replace("?", "[^/]")


class _Patterns:
    """Patterns of names without slashes, split by how they can be compared fastest."""

    def __init__(self, patterns: Iterable[str]) -> None:
        exact, beginnings, endings, within, others = (list[str]() for _ in range(5))
        for pattern in patterns:
            bare = pattern.strip("*")
            if pattern == bare and not _WILD.search(pattern):
                exact.append(pattern)
            elif _WILD.search(bare):
                others.append(pattern)
            elif pattern[0] == "*":
                (within if pattern[-1] == "*" else endings).append(bare)
            else:
                beginnings.append(bare)
        self._exact = frozenset(exact)
        self._beginnings, self._endings = tuple(beginnings), tuple(endings)
        self._within = re.compile("|".join(map(re.escape, within)) or r"(?!)").search
        self._others = "|".join(map(_expression, others))
        last = [*endings, *(_WILD.split(pattern)[-1] for pattern in others)]
        self._first, self._begins = _beginnings(beginnings)
        self._last, self._ends = _beginnings(text[::-1] for text in last)

    def match(self, name: str) -> bool:
        if name in self._exact or self._within(name):
            return True
        if name[: self._first] in self._begins and name.startswith(self._beginnings):
            return True
        if name[: -self._last - 1 : -1] not in self._ends:  # nearly always
            return False
        return name.endswith(self._endings) or bool(self._others and re.fullmatch(self._others, name, re.DOTALL))


def _beginnings(texts: Iterable[str]) -> tuple[int, frozenset[str]]:
    """The length of the shortest text, and the beginnings of this length."""
    given = tuple(texts)
    length = min(map(len, given), default=0)
    return length, frozenset(text[:length] for text in given) if given else frozenset()


_MOST_KNOWN = 50_000
"""Names that are kept: about 5 MB."""


class SecretNames:
    """Decides by a path's text whether the file may hold secrets. ``patterns`` have the form that the list of names
    explains; ``loose`` are those of scope "data", ``settings`` of scope "settings".

    Raises:
        ValueError: a pattern is invalid.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        loose: Sequence[str] = (),
        own: Sequence[str] = (),
        settings: Sequence[str] = (),
    ) -> None:
        for pattern in own:
            check_pattern(pattern)
        self._others = SecretNames(patterns, loose, own) if settings else self
        """The names without those of settings."""
        loose = (*loose, *settings)
        self.own = tuple(own)
        """The user's own patterns."""
        self._listed, self._loosely = tuple(patterns), tuple(loose)
        strict = [pattern if pattern.startswith("~/") else pattern.casefold() for pattern in (*patterns, *own)]
        loosely = [pattern.casefold() for pattern in loose]
        self._never = _Patterns(pattern[1:] for pattern in strict if pattern.startswith("!"))
        self._below_home = tuple(pattern[2:] for pattern in strict if pattern.startswith("~/"))
        plain = [pattern for pattern in strict if not pattern.startswith(("!", "~/"))]
        self._names, self._folders, self._paths = _sorted(plain)
        self._loose_names, self._loose_folders, _ = _sorted(loosely)
        self._path_names = _Patterns(path.rstrip("/").rpartition("/")[2] for path in _slashed(plain, folder=False))
        self._path_folders = frozenset(path.rstrip("/").rpartition("/")[2] for path in _slashed(plain, folder=True))
        bare = [pattern for pattern in (*plain, *loosely) if not pattern.endswith("/")]
        self._any_name = _Patterns(pattern.rpartition("/")[2] for pattern in bare)
        self._harmless: set[str] = set()
        """File names that no pattern matches: nearly all, and each is compared many times."""

    def matches(self, path: str) -> bool:
        """Whether the name of the file, or of a folder around it, indicates keys, passwords or a private history."""
        parts = path.casefold().rstrip("/").split("/")
        name = parts[-1]
        if not self._folders.isdisjoint(parts):
            return True
        if self._matches_name(name, parts):
            return True
        if not self._path_folders.isdisjoint(parts) and self._paths.search("/".join(parts) + "/"):
            return True
        return not self._loose_folders.isdisjoint(parts) and not self._never.match(name) and _is_data(name, parts)

    def judged_by_content(self, path: str) -> bool:
        """Whether only the content can tell if a file holds secrets: by its name it is one of settings."""
        return self._others is not self and self.matches(path) and not self._others.matches(path)

    def _matches_name(self, name: str, parts: Sequence[str]) -> bool:
        if name in self._harmless:
            return False
        names = _without_copy_marks(name)
        if not any(map(self._any_name.match, names)):
            if len(self._harmless) < _MOST_KNOWN:
                self._harmless.add(name)
            return False
        for bare in names:
            if (
                self._names.match(bare)
                or (self._loose_names.match(bare) and _is_data(bare, parts))
                or (self._path_names.match(bare) and self._paths.search("/".join((*parts[:-1], bare))))
            ) and not (self._never.match(bare) or _SAMPLE.search(bare)):
                return True
        return False

    def cover_folder(self, path: str) -> bool:
        """Whether everything in the folder of this path may be secret."""
        parts = path.casefold().rstrip("/").split("/")
        if not self._folders.isdisjoint(parts):
            return True
        return not self._path_folders.isdisjoint(parts) and self._paths.search("/".join(parts) + "/") is not None

    def below_home(self) -> Iterator[str]:
        """Places relative to the home directory that sandboxed commands must not see."""
        for pattern in self._below_home:
            yield pattern.rstrip("/").replace("?", " ")

    @functools.cached_property
    def examples(self) -> tuple[str, ...]:
        """Names that a wildcard for secrets would match."""
        names: dict[str, None] = dict.fromkeys(_EXAMPLES)
        for pattern in (*self._listed, *self._loosely, *self.own):
            if not pattern.startswith(("!", "~", "/")) and not re.search(r"[?\[]|/", pattern):
                names |= dict.fromkeys(
                    name
                    for text in ("", "server", "x")
                    if self.matches("/" + (name := pattern.casefold().replace("*", text)))
                )
        return tuple(names)


_EXAMPLES = (
    *(".env", ".env.local", "id_rsa", "id_ed25519", "server.pem", "private.key", ".netrc", "credentials"),
    *("credentials.json", "secrets.yaml", ".npmrc", "store.p12", "token.json"),
)


def check_pattern(pattern: str) -> None:
    """
    Raises:
        ValueError: the pattern of a name is invalid.
    """
    bare = pattern.removeprefix("!").removeprefix("~/").strip("/")
    if not bare or bare.strip("*?") == "":
        raise ValueError(f"{pattern!r} names every file" if bare else f"{pattern!r} names no file")
    if any(not char.isprintable() for char in pattern) or "**" in pattern or "//" in pattern:
        raise ValueError(f"{pattern!r} is not a name such as *.vault, private/ or /config/keys.yml")
    if "/" in bare and not pattern.startswith(("/", "~/")):
        raise ValueError(f"{pattern!r} must begin with a slash, because it is the end of a path")
    if pattern.startswith("!") and "/" in pattern:
        raise ValueError(f"{pattern!r} must be a name without slashes")


def _slashed(patterns: Sequence[str], *, folder: bool) -> list[str]:
    return [pattern for pattern in patterns if pattern.startswith("/") and pattern.endswith("/") is folder]


def _sorted(patterns: Sequence[str]) -> tuple[_Patterns, frozenset[str], re.Pattern[str]]:
    """Names, folders, and an expression for paths: it matches a path, or the path of a folder with its slash."""
    names = _Patterns(pattern for pattern in patterns if "/" not in pattern)
    folders = frozenset(pattern[:-1] for pattern in patterns if "/" not in pattern[:-1] and pattern.endswith("/"))
    paths = [
        _expression(pattern) + ("" if pattern.endswith("/") else "$") for pattern in patterns if pattern.startswith("/")
    ]
    return names, folders, re.compile("|".join(paths) or r"(?!)", re.DOTALL)


def _without_copy_marks(name: str) -> tuple[str, ...]:
    """The name, and the names of which it may be a copy."""
    if not name.endswith(_COPY_ENDINGS) and not name.startswith(("#", ".#")):
        return (name,)
    bare = _COPIES.sub("", name)
    bare = bare.removeprefix("#").removeprefix(".#")
    hidden = bare.removeprefix(".") if name.startswith(".") and name != bare else bare
    return tuple(dict.fromkeys((name, bare, hidden)))


def _is_data(name: str, parts: Sequence[str]) -> bool:
    """Whether a file is not program text, documentation, test data or a translation."""
    _, dot, ending = name.rpartition(".")
    if (dot and ending in _PROGRAM_TEXT) or name in _PROJECT_FILES:
        return False
    return _ORDINARY_FOLDERS.isdisjoint(parts[:-1])


_TEST_FOLDERS = frozenset(("test", "tests", "testdata", "testing", "fixtures", "__fixtures__", "spec", "examples"))
_KEY_ENDINGS = (".pem", ".key", ".crt", ".p12", ".pfx", ".jks", ".keystore", ".truststore", ".asc", ".gpg")


def is_test_key(path: str) -> bool:
    """Whether a file is a key or certificate among tests, which need it: searches and the sandbox show it, though a
    command that names it asks."""
    folded = path.casefold()
    return folded.endswith(_KEY_ENDINGS) and not _TEST_FOLDERS.isdisjoint(folded.split("/")[:-1])


@functools.cache
def secret_names(own: tuple[str, ...] = ()) -> SecretNames:
    """The names of the list and the user's own.

    Raises:
        ValueError: one of the user's patterns is invalid.
    """
    rows = [line.split("\t") for line in _LIST.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return SecretNames(
        [row[0] for row in rows if row[1] == "any"],
        [row[0] for row in rows if row[1] == "data"],
        own,
        [row[0] for row in rows if row[1] == "settings"],
    )
