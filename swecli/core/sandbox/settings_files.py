"""Files of settings that tests need and that may hold a password: those with only placeholders stay readable."""

from __future__ import annotations

import re
from collections.abc import Iterator

from swecli.core.llm.key_shapes import secret_spans
from swecli.core.llm.secrets import SHORTEST
from swecli.core.secret_names import SecretNames
from swecli.lazy_pattern import lazy_pattern

MAX_SIZE = 256 * 1024
"""Bytes; a larger file counts as one with a secret."""

_KEY = lazy_pattern(
    r"""(?<![\w-])["']?[\w.-]*(?:passw(?:or)?d|pwd|secret|token|key|salt|credential)s?["']?[ \t]*(?:=>|[:=])[ \t]*"""
    r"""(?:"([^"\n]*)"|'([^'\n]*)'|([^\s,;#{\[][^\n,;#]*))""",
    re.IGNORECASE,
)
_EMBEDDED = lazy_pattern(r"<%=?(?:(?!%>).)*%>")
_DEFAULT = lazy_pattern(r"\$\{[\w.]+:-?([^}\n]*)\}")
"""A reference to the environment with a value for where there is none."""
_LITERAL = lazy_pattern(r""""([^"\n]*)"|'([^'\n]*)'""")
_PLACEHOLDER = lazy_pattern(
    r"""\s*(?:<.*>|\$\{[^}]*\}|\$\([^)]*\)|\$[A-Za-z_]\w*|\{\{.*\}\}|\{[\w:.-]*\}|\#\{.*\}\#?|%\w+%|__\w+__|@\w+@|!ENV\b.*"""
    r"""|ENV\b.*|[xX*.•_-]*|true|false|null|none|nil|~|\d{1,5})\s*"""
)
_DUMMIES = """admin app changeit changeme change-me change_me default demo dev development dummy example fake foo guest
  local localhost mysql none pass passw0rd password placeholder postgres postgresql root sa sample secret test testing
  todo user username your-key your-password yourpassword your_password your-secret yoursecret"""
_DUMMY = frozenset(_DUMMIES.split())
"""Passwords of databases that listen on a developer's own machine, and words that stand for one."""


def may_be_read(path: str, names: SecretNames) -> bool:
    """Whether a file whose name suggests secrets may be shown to sandboxed commands after all: it is a file of settings
    that holds none now."""
    if not names.judged_by_content(path):
        return False
    try:
        with open(path, "rb") as stream:
            content = stream.read(MAX_SIZE + 1)
    except OSError:
        return False
    if len(content) > MAX_SIZE or b"\0" in content:
        return False
    try:
        return not holds_secret(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return False


def holds_secret(text: str) -> bool:
    """Whether settings have a value that may be a secret, and not only placeholders, references to the environment and
    passwords such as ``postgres``."""
    return any(not _stands_for_nothing(value) for value in _values(text))


def _values(text: str) -> Iterator[str]:
    text = _DEFAULT.sub(r"\1", _EMBEDDED.sub(_of_ruby, text))
    for begin, end in secret_spans(text):
        yield text[begin:end]
    for match in _KEY.finditer(text):
        value = next(each for each in match.groups() if each is not None)
        if len(value) >= SHORTEST:
            yield value


def _of_ruby(code: re.Match[str]) -> str:
    """What embedded code may stand for: a text in it, unless it is the name of a variable."""
    texts = [found[1] or found[2] or "" for found in _LITERAL.finditer(code[0])]
    return texts[-1] if len(texts) > 1 or (texts and "ENV" not in code[0]) else "<>"


def _stands_for_nothing(value: str) -> bool:
    return _PLACEHOLDER.fullmatch(value) is not None or value.strip().strip("\"'").casefold() in _DUMMY
