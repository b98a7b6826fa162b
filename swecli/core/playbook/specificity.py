"""How specific the names in a sentence are to one project, by their form and a list of common knowledge. Pure.

Common knowledge weighs nothing: programs, their subcommands and flags, files of most projects, names of standard
libraries. A command of a common program weighs as much as its targets.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from swecli.core.playbook.commands import signature
from swecli.lazy_pattern import lazy_pattern

HARD: Final = 3
"""A path, file or package of this project."""
NAME: Final = 2
"""A symbol, an environment variable, a port: of this project, or of an unknown library."""
MILD: Final = 1
"""A number, a version, an unusual word, or a textbook name (``create_user``, ``src/utils/format.ts``)."""

_TICKED: Final = lazy_pattern(r"`([^`]+)`")
_TOKEN: Final = lazy_pattern(r"(?<![\w`])[\w@~.$%{}*+/:=<>-]*[\w/}*>]")
_ENDS: Final = ".,;:!?)]}'\""
_SPLIT: Final = lazy_pattern(r"[\s=,()\[\]<>'\"|&;!?]+")
_PARTS: Final = lazy_pattern(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")
_ENDINGS: Final = (
    r"asm|avsc|bat|bin|cc?|cfg|conf|cpp|cs|css|csv|db|diff|dvc|ebnf|env|ex|exs|ftl|go|gradle|graphql|h|hcl|hpp|html|ini"
    r"|ipynb|java|jinja|json|jsonl|jsx?|kts?|less|lock|log|lua|md|mjs|mk|mli?|parquet|pdf|php|pl|png|po|proto|ps1|pyi?|rb|rs"
    r"|rst|sbt|scala|scss|sh|snap|sqlite3?|sql|svelte|svg|swift|tf|tfvars|tmpl|toml|tsx?|txt|vue|xlsx|xml|ya?ml|zig"
)
_FORMS: Final = (
    (HARD, lazy_pattern(r"(?:\.{0,2}/)?[\w@.{}*+-]+(?:/[\w@.{}*+-]+)+/?(?::[\w-]+)?|[\w.-]+/")),  # a path
    (HARD, lazy_pattern(rf"\.?[\w*-][\w.*-]*\.(?:{_ENDINGS})")),
    (NAME, lazy_pattern(r"[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)+")),
    (NAME, lazy_pattern(r"[A-Za-z]\w*_\w*|_\w+")),  # snake_case, a variable of the environment
    (NAME, lazy_pattern(r"[a-z]+\d*(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z0-9]+){2,}|[A-Z]{2,}[a-z]+\w*")),  # camelCase
    (NAME, lazy_pattern(r"[A-Z][a-z]*(?:-[A-Z][a-z\d]*)+")),  # a header
    (MILD, lazy_pattern(r"(?:https?://)?[\w.-]*:\d{2,5}\S*|[\w.-]+:[\w.:-]+|@[\w.]+|\.[a-z][\w-]+")),
    (NAME, lazy_pattern(r"v?\d+\.\d+\.\d+")),
    (NAME, lazy_pattern(r"\.[a-z]+rc\.[\w.-]+")),
    (MILD, lazy_pattern(r"v?\d+\.\d+(?:\.\d+)*|[<>=~^]=?\d[\w.]*|[A-Z]{1,4}\d{2,5}|[A-Z]{2,}-\d+|#\d+|0x[0-9a-fA-F]+")),
    (MILD, lazy_pattern(r"[a-z]+\d+[a-z\d]*|[a-z][a-z\d]*-(?:[a-z\d]*\d[a-z\d]*)(?:-[a-z0-9]+)*")),
)
_PACKAGE: Final = lazy_pattern(
    r"@(?!types/|babel/|angular/|testing-library/|vue/|aws-sdk/|nestjs/|mui/)[\w-]+/[\w-]+|//[\w./-]+(?::[\w-]+)?"
    r"|(?::[\w-]+){2,}|test_[a-z\d]+_\w+"
)
"""A package, a build target, a test: named by the project's authors, in any words."""
_PLACEHOLDER: Final = lazy_pattern(
    r"(?:.*/)?path/to/.*|\.github/.*|(?:your|my|some|new|old|the|foo|bar|baz|example|sample)[-_.]?\w*(?:\.\w+)?"
    r"|(?:file|input|output|in|out|a|b|x|temp|tmp|log|notes?|report|hello|script|module|package|container)\d?\.\w{1,5}"
    r"|-+[\w-]*|(?:\./)?\.{3}|\d{1,3}|\$?[A-Z]|localhost(?::\d+)?/?\w*"
)
_PORT: Final = lazy_pattern(
    r"(?i)\bports? `?(\d{2,5})\b|(?<=:)(\d{4,5})\b|\b(\d{4,5}) ?= ?[a-z]|\b(?:on|to|at) (\d{4,5})\b|PORT\w*=(\d{4,5})\b"
)
_QUANTITY: Final = lazy_pattern(
    r"(?i)\b\d+(?:\.\d+)? ?(?:s|ms|sec(?:onds?)?|min(?:utes?)?|h|[KMG]i?B|tokens|characters|columns|times)\b"
)
_VERSION: Final = lazy_pattern(r"` v?(\d+\.\d+(?:\.\d+)*)")
"""Version of the program named right before."""
_EXAMPLE: Final = lazy_pattern(
    r"\b(?:such as|for example|for instance|e\.g\.|like),? `[^`]+`(?:(?:,| or| and) `[^`]+`)*"
)
"""Names given as examples."""
_QUOTED: Final = lazy_pattern(r'"([^"`]+ [^"`]+)"')


@cache
def listed(name: str) -> frozenset[str]:
    """Lower-case lines of a list in this package."""
    text = Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8")
    lines = (line.strip().casefold() for line in text.splitlines() if not line.startswith("#"))
    return frozenset(filter(None, lines))


def weighed(content: str) -> dict[str, int]:
    """The project-specific parts of a sentence with their weights; common knowledge is left out."""
    weights: dict[str, int] = {}
    rest = content = _EXAMPLE.sub(" ", content)
    for match in _TICKED.finditer(content):
        code = match[1]
        weights[code] = weight_of_code(code)
        rest = rest.replace(match[0], " ◇ ", 1)
    for match in _TOKEN.finditer(rest):
        token = match[0].strip(_ENDS) if not match[0].endswith("/") else match[0]
        weights.setdefault(token, 0 if _CHOICE.fullmatch(token) else weight_of_piece(token))
    for match in _PORT.finditer(content):
        port = next(group for group in match.groups() if group)
        weights[port] = 0 if is_common(port) else HARD
    for match in _VERSION.finditer(content):
        weights[match[1]] = NAME
    for match in _QUANTITY.finditer(rest):
        weights.setdefault(match[0], MILD)
    for match in _QUOTED.finditer(rest):
        weights.setdefault(match[1], MILD)
    if error := signature(rest):
        weights.setdefault(error, MILD)
    return {token: weight for token, weight in weights.items() if weight}


def strip_ends(token: str) -> str:
    """A token without surrounding marks."""
    return token.strip(_ENDS)


def weight_of_code(code: str) -> int:
    """Weight of a text between code marks."""
    if is_common(code):
        return 0
    pieces = [stripped for piece in _SPLIT.split(code) if (stripped := piece.rstrip(".,:;"))]
    best = max(map(weight_of_piece, pieces), default=0)
    for form, weight in ((_TARGET, NAME), (_SET, NAME), (_ASSIGNED, HARD)):
        if (match := form.search(code)) and not (is_common(match[1]) or _stands_for_any(match[1])):
            best = max(best, weight)
    if best or (len(pieces) > 1 and is_common(pieces[0])):
        return best
    return MILD if any(len(word) > 2 and word[0].isalpha() and not word.isupper() for word in pieces) else 0


_TARGET: Final = lazy_pattern(
    r"^(?:(?:npm|pnpm|yarn|bun|hatch|pdm) run|make|just|task|mage|invoke|rake|mix|yarn|tox -e|nox -s"
    r"|cargo xtask) ([a-z][\w:.-]*)"
)
"""A task runner's target, named by the project's authors."""
_SET: Final = lazy_pattern(r"(?:^|\s)(?:--?[\w-]+=|--[\w-]+ )([A-Za-z][^\s=]+)(?:\s|$)")
_ASSIGNED: Final = lazy_pattern(r"^(?!NODE|DOCKER|DEBIAN|NPM)[A-Z][A-Z0-9_]+=(?=\S*[./:-]|\S+ \S)(\S*[A-Za-z]\S*)")
_CHOICE: Final = lazy_pattern(r"[A-Za-z]+/[A-Za-z]+")
"""Two alternatives outside code (and/or)."""


def weight_of_piece(piece: str) -> int:
    """Weight of one token."""
    if len(piece) < 2 or is_common(piece):
        return 0
    if _PACKAGE.fullmatch(piece):
        return HARD
    weight = next((weight for weight, form in _FORMS if form.fullmatch(piece)), 0)
    of_a_tool = piece.isupper() and is_common(piece.split("_")[0])
    return MILD if weight > MILD and (of_a_tool or _stands_for_any(piece.removeprefix("./"))) else weight


def _stands_for_any(name: str | None) -> bool:
    """Whether a name consists only of placeholder words."""
    folder, _, last = (name or "").rpartition("/")
    stem = folder if folder and last.casefold() in listed("usual_tokens") else _EXTENSION.sub("", name or "")
    parts = [part.casefold() for part in _PARTS.split(stem) if part and not part.isdigit()]
    return bool(parts) and all(
        len(part) < 2 or {part, part.removesuffix("s")} & listed("ordinary_names") for part in parts
    )


_EXTENSION: Final = lazy_pattern(rf"\.(?:{_ENDINGS})$")
_LIBRARIES: Final = lazy_pattern(
    r"(?:sys|os|json|re|logging|math|random|datetime|time|timezone|pathlib|path|subprocess|collections|typing|functools"
    r"|itertools|asyncio|threading|unittest|pytest|np|numpy|pd|pandas|react|array|object|string|promise|document|window"
    r"|number|console|process|fs|http|https|fmt|strings|errors|context|sync|std|self|this|cls|super"
    r"|git|python|node|java|system|vec|arc|rc|box|option|result|hashmap|map|list|dict|set|res|resp|req|request|response|ctx|err"
    r"|df|plt|user|core|github|db|session|requests|next|vue|net|[a-z])(?:\.|::)[\w.:]+|[\w.]*\.(?:com|org|io|net|js)"
)


def is_common(token: str) -> bool:
    """Whether a token is common knowledge or a placeholder."""
    bare = token.casefold().lstrip("([{'\"").rstrip(_ENDS).rstrip("/")
    common = listed("usual_tokens")
    if not bare or bare in common or bare.removeprefix("./") in common:
        return True
    return bool(_PLACEHOLDER.fullmatch(bare) or _LIBRARIES.fullmatch(bare))
