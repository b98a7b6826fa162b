"""Writes ``swecli/core/llm/key_shapes.tsv`` from the rules of gitleaks (https://github.com/gitleaks/gitleaks, MIT).

Use: ``python -m scripts.key_shapes PATH/TO/gitleaks.toml REVISION``. Each line has the rule's name, its keywords, the
least entropy of a key in bits a character, and the expression in Python's dialect.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "swecli" / "core" / "llm" / "key_shapes.tsv"
_OWN = frozenset(
    ("generic-api-key", "curl-auth-header", "curl-auth-user", "private-key", "hashicorp-tf-password", "pkcs12-file")
)
"""Rules that ``key_shapes.py`` replaces by its own, which read any text instead of files of source code."""
_BEFORE = r"[\w.-]{0,50}?"
_AFTER = r"""(?:[\x60'"\s;]|\\[nr]|$)"""


def python_expression(pattern: str) -> str:
    """The expression in Python's dialect: flags enclose what follows them in their group, and the key may be followed
    by anything that does not continue it."""
    pattern = pattern.replace("[:alnum:]", "0-9A-Za-z").replace("[[", r"[\[").replace(_BEFORE, "")
    pattern = pattern.replace(_AFTER, r"(?![A-Za-z0-9_])").replace(r"\z", r"\Z")
    pattern = re.sub(r"^(\(\?i\))?\\b", lambda match: f"{match[1] or ''}(?:\\b|(?<=\\\\[nrt]))", pattern)
    if pattern.startswith("(?i)"):
        pattern = f"(?i:{pattern[4:]})"
    while (at := pattern.find("(?i)")) >= 0:
        end = _end_of_group(pattern, at + 4)
        pattern = f"{pattern[:at]}(?i:{pattern[at + 4 : end]}){pattern[end:]}"
    if "[:" in pattern:
        raise ValueError(f"Python has no such class of characters: {pattern}")
    re.compile(pattern)
    return pattern


def _end_of_group(pattern: str, at: int) -> int:
    """Where the group that ``at`` is in ends."""
    depth, in_class = 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char == "(":
            depth += 1
        elif char == ")":
            if not depth:
                return at
            depth -= 1
        at += 1
    return at


def lines(rules: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    for rule in rules:
        if rule["id"] not in _OWN and "regex" in rule and "path" not in rule:
            expression = python_expression(rule["regex"])
            found.append("\t".join((rule["id"], " ".join(rule["keywords"]), str(rule.get("entropy", 0)), expression)))
    return found


def main() -> None:
    source, revision = sys.argv[1:]
    with open(source, "rb") as stream:
        rules = tomllib.load(stream)["rules"]
    head = f"# Rules of gitleaks at {revision} (key_shapes.LICENSE is their licence), by scripts/key_shapes.py.\n"
    TARGET.write_text(head + "\n".join(lines(rules)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
