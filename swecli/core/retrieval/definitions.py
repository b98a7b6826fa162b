"""Definitions in a source file and their lines, found by patterns for each language.

A grammar would add little to names and places, which are all that ranking needs, and the package with grammars for all
of these languages downloads them at first use.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Final

from swecli.lazy_pattern import lazy_pattern

MOST: Final = 400
"""Definitions to keep of one file, the first ones."""
_LONGEST_LINE: Final = 2_000
"""Longer lines are taken for generated; the search ends at the first such line."""

Definition = tuple[str, int]
"""Name and line, counted from 1."""

_PYTHON = r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|^([A-Z][A-Z0-9_]{2,})[ \t]*(?::[^=\n]+)?="
_SCRIPT = (
    r"^[ \t]*(?:export[ \t]+)?(?:default[ \t]+)?(?:declare[ \t]+)?(?:abstract[ \t]+)?(?:async[ \t]+)?"
    r"(?:function[ \t]*\*?|class|interface|enum|namespace|type)[ \t]+([A-Za-z_$][\w$]*)"
    r"|^(?:export[ \t]+)?(?:declare[ \t]+)?(?:const|let|var)[ \t]+([A-Za-z_$][\w$]*)"
    r"|^[ \t]{2,8}(?:(?:public|private|protected|static|readonly|async|override|get|set|abstract)[ \t]+)*"
    r"#?(?!if|for|while|switch|catch|return|function|await|new|throw|super|else|do|typeof\b)([A-Za-z_$][\w$]*)"
    r"[ \t]*(?:<[^>\n]{0,80}>)?\([^)\n]{0,300}\)[ \t]*(?::[^{;=\n]{1,120})?\{"
    r"|^[ \t]{2,8}(?:(?:public|private|protected|static|readonly)[ \t]+)+([A-Za-z_$][\w$]*)[ \t]*(?:=|:|\()"
)
_GO = (
    r"^func[ \t]+(?:\([^)\n]{0,120}\)[ \t]*)?(\w+)|^type[ \t]+(\w+)|^(?:var|const)[ \t]+(\w+)"
    r"|^\t(\w+)[ \t]+(?:struct|interface)[ \t]*\{"
)
_RUST = (
    r"^[ \t]*(?:pub(?:\([^)\n]{0,40}\))?[ \t]+)?(?:default[ \t]+)?(?:const[ \t]+)?(?:async[ \t]+)?(?:unsafe[ \t]+)?"
    r"(?:extern[ \t]+\"[^\"\n]{0,20}\"[ \t]+)?(?:fn|struct|enum|trait|union|mod|type|const|static|macro_rules!)[ \t]+"
    r"(?:mut[ \t]+)?(\w+)"
)
_MODIFIERS = (
    r"(?:@[\w.:]+(?:\([^)\n]{0,80}\))?|public|protected|private|fileprivate|internal|open|static|final|abstract|sealed"
    r"|non-sealed|data|partial|readonly|ref|override|virtual|async|suspend|inline|noinline|tailrec|operator|infix|external"
    r"|expect|actual|const|lateinit|lazy|weak|unowned|mutating|nonmutating|required|convenience|indirect|nonisolated"
    r"|enum|annotation|value|inner|companion|record|case|implicit|class|fun)"
)
"""Some of these are also what is defined: ``enum class Color``, ``fun interface Action``, ``class func make``."""
_JAVA = (
    rf"^[ \t]*(?:{_MODIFIERS}[ \t]+)*(?:class|interface|enum|record|@interface|object|fun|func|struct|namespace|trait"
    r"|def|protocol|extension|actor|typealias)[ \t]+(?:<[^>\n]{0,80}>[ \t]*)?"
    r"(?:[\w.]+(?:<[^>\n]{0,80}>)?\??\.)?(\w+)"
    rf"|^(?:[ \t]+(?={_MODIFIERS}[ \t]))?(?:{_MODIFIERS}[ \t]+)*(?:val|var|let)[ \t]+"
    r"(?:<[^>\n]{0,80}>[ \t]*)?(?:[\w.]+(?:<[^>\n]{0,80}>)?\??\.)?(\w+)"
    r"|^[ \t]+(?:(?:public|protected|private|static|final|abstract|synchronized|native|default|override|virtual|async"
    r"|internal)[ \t]+)+(?:<[^>\n]{0,80}>[ \t]*)?[\w.<>\[\],? ]{1,100}?[ \t](\w+)[ \t]*\("
)
_C = (
    r"^[ \t]*(?:typedef[ \t]+)?(?:class|struct|union|enum(?:[ \t]+class)?|namespace)[ \t]+(?:\w+[ \t]+)?(\w+)"
    r"[^;\n]*\{?$"
    r"|^[ \t]*#[ \t]*define[ \t]+(\w+)"
    r"|^(?!return|else|typedef|if|while|switch|for|using|case)[A-Za-z_][\w \t*&:<>,~]{0,120}?[ \t*&:~](\w+)"
    r"[ \t]*\([^;{}\n]*(?:\n[^;{}\n]*){0,4}\)[ \t\w]*\n?[ \t]*\{"
)
_RUBY = (
    r"^[ \t]*(?:class|module)[ \t]+(?:\w+::)*(\w+)|^[ \t]*(?:(?:private|protected|public|private_class_method"
    r"|module_function)[ \t]+)?def[ \t]+(?:self\.)?(\w+[?!]?)"
    r"|^[ \t]*([A-Z][A-Z0-9_]{2,})[ \t]*="
)
_PHP = (
    r"^[ \t]*(?:(?:abstract|final|readonly)[ \t]+)*(?:class|interface|trait|enum)[ \t]+(\w+)"
    r"|^[ \t]*(?:(?:public|protected|private|static|abstract|final)[ \t]+)*function[ \t]+&?(\w+)"
    r"|^[ \t]*(?:(?:public|protected|private|final)[ \t]+)*const[ \t]+(?:\w+[ \t]+)?(\w+)[ \t]*="
)
_SHELL = r"^[ \t]*(?:function[ \t]+)?([A-Za-z_][\w-]*)[ \t]*\(\)"
_HEADING = r"^#{1,4}[ \t]+([^\n#]{2,80})"
_OTHER = (
    r"^[ \t]*(?:(?:public|private|local|static)[ \t]+)*(?:function|def|fn|func|class|struct|defmodule|defp?)[ \t]+"
    r"([\w.:]+)"
)

_SCRIPTS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte")
_C_FILES = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".m", ".mm")
_LIKE_JAVA = (".java", ".kt", ".kts", ".cs", ".scala", ".groovy", ".swift", ".dart")
_SOURCES: Final[Mapping[str, str]] = {
    **dict.fromkeys((".py", ".pyi", ".pyx"), _PYTHON),
    **dict.fromkeys(_SCRIPTS, _SCRIPT),
    ".go": _GO,
    ".rs": _RUST,
    **dict.fromkeys(_LIKE_JAVA, _JAVA),
    **dict.fromkeys(_C_FILES, _C),
    **dict.fromkeys((".rb", ".rake", ".gemspec"), _RUBY),
    **dict.fromkeys((".php", ".phtml"), _PHP),
    **dict.fromkeys((".sh", ".bash", ".zsh"), _SHELL),
    **dict.fromkeys((".lua", ".ex", ".exs", ".erl", ".pl", ".pm", ".jl", ".nim", ".zig", ".hs", ".ml", ".clj"), _OTHER),
}
_PATTERNS: Final = {
    ending: lazy_pattern(pattern, re.MULTILINE) for ending, pattern in (*_SOURCES.items(), (".md", _HEADING))
}
SOURCE_ENDINGS: Final = frozenset((*_SOURCES, ".css", ".scss", ".sass", ".less", ".tcss", ".sql", ".proto", ".graphql"))
"""Endings of source files; files with other endings are documents or data."""


def ending_of(path: str) -> str:
    """The ending of the name with its dot, in lower case; empty without one."""
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return name[dot:].lower() if dot > 0 else ""


def definitions(path: str, text: str) -> list[Definition]:
    """Names that the file defines, each with its first definition, by line. Empty for other languages."""
    pattern = _PATTERNS.get(ending_of(path))
    if pattern is None:
        return []
    ends = list(accumulate(len(line) + 1 for line in text.split("\n")))
    starts = zip((0, *ends), ends, strict=False)
    stop = next((start for start, end in starts if end - start > _LONGEST_LINE), len(text))
    lines: dict[str, int] = {}
    for match in pattern.finditer(text, 0, stop):
        name = match[match.lastindex or 0].strip()
        if name not in lines and len(lines) < MOST:
            lines[name] = bisect_right(ends, match.start(match.lastindex or 0)) + 1
    return list(lines.items())
