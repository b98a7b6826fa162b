"""One line for each of the more important source files: what it says of itself, and what it defines."""

from __future__ import annotations

import re

from swecli.core.context_management.project_facts.scan import Scan

MAX_FILES = 40
_SOURCE = (".py", ".js", ".ts", ".tsx", ".go", ".rs", ".java", ".kt", ".rb", ".php", ".cs", ".ex", ".c", ".cpp", ".h")
_DEFINES = re.compile(
    r"^(?:export\s+)?(?:default\s+)?(?:pub(?:\([^)]*\))?\s+)?(?:public\s+)?(?:abstract\s+|final\s+|async\s+)*"
    r"(?:class|def|func|fn|function|interface|struct|enum|trait|object|module|defmodule)\s+(?:\([^)]*\)\s*)?(\w[\w.]*)",
    re.MULTILINE,
)
_FIRST_TEXT = re.compile(r"\A(?:#!.*\n)?\s*(?:[rRuU]?\"\"\"|'''|/\*\*?|//[/!]?|#)\s*(?:\*\s*)?([^\n\"]{3,160})")


def outline(scan: Scan) -> tuple[str, ...]:
    """At most ``MAX_FILES`` lines ``path: first line of its documentation [names it defines]``."""
    sources = [path for path in scan.files if path.endswith(_SOURCE) and not _is_test(path)]
    lines: list[str] = []
    for path in sources[:MAX_FILES]:
        content = scan.text(path)
        if not content.strip():
            continue
        said = _FIRST_TEXT.match(content)
        names = [name for name in dict.fromkeys(_DEFINES.findall(content)) if not name.startswith("_")]
        about = said.group(1).strip().rstrip("*/").strip() if said else ""
        defines = f" [{', '.join(names[:8])}]" if names else ""
        lines.append(f"{path}: {about}{defines}".rstrip(": "))
    return tuple(lines)


def _is_test(path: str) -> bool:
    return bool(
        re.search(r"(?:^|/)(?:tests?|spec|__tests__|examples?|docs?)/|(?:^|/)test_|[._]test\.|[._]spec\.", path)
    )
