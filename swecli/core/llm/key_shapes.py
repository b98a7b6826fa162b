"""Where a text has keys and passwords, by the shapes of services' keys and by the names before values. Pure.

The shapes are the rules of gitleaks (``key_shapes.tsv``). All work is linear in the text: an expression is tried only
around the words that its rule names, and every expression is bounded.
"""

from __future__ import annotations

import base64
import binascii
import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from swecli.lazy_pattern import lazy_pattern

Span = tuple[int, int]

_RULES = Path(__file__).with_name("key_shapes.tsv")
_BEFORE, _AFTER = 80, 600
"""Characters around a rule's word in which its expression is tried."""
_REST = lazy_pattern(r"[A-Za-z0-9_.~+/=%-]*")
"""What may continue a key that is longer than this."""


def secret_spans(text: str) -> list[Span]:
    """Places of keys and passwords, in order, without overlaps."""
    lowered = text.lower()
    if len(lowered) != len(text):  # some letters have two in lower case
        lowered = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    spans = [*_shapes(text, lowered), *_named(text, lowered), *_said(text, lowered), *_in_places(text, lowered)]
    if "-----BEGIN " in text:
        spans += (match.span() for match in _KEY_BLOCK.finditer(text))
    return _merged(spans)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif begin < end:
            merged.append((begin, end))
    return merged


# --- private keys --------------------------------------------------------------------------------------------------

_KEY_BLOCK = lazy_pattern(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:(?!-----BEGIN )[\s\S]){0,20000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\\[nrt]|[\s\d|+:])*[A-Za-z0-9+/=]{16,})*)"
)
"""A private key with its end; without it, including the lines that look like its text."""


# --- shapes --------------------------------------------------------------------------------------------------------

_PREFIXES = """sk- sk_ pk_ rk_ rk- gsk_ gsk- xai- fw_ fw- hf_ hf- r8_ r8- pplx- csk- csk_ nvapi- ghp_ gho_ ghu_ ghs_
  ghr_ github_pat_ glpat- gldt- glrt- glcbt- glsoat- glagent- xoxa- xoxb- xoxp- xoxo- xoxr- xoxs- xoxe- xapp- npm_ pypi-
  hvs. hvb. hvr. sg. dop_v1_ doo_v1_ dor_v1_ dp.pt. shpat_ shpca_ shppa_ shpss_ lin_api_ ntn_ rubygems_ glsa_ glc_ sgp_
  nrak- pul- pnu_ rdme_ sntrys_ sntryu_ xkeysib- pmak- tfp_ dckr_pat_ figd_ gocspx- ya29. atatt3 whsec_ sq0atp- sq0csp-
  eaaa age-secret-key- dapi aio_ phc_ phx_ sbp_ re_ sl. v1.0- tskey- ops_ pat- lsv2_ fo1_ fm2_ clojars_ pscale_tkn_
  pscale_pw_ pscale_oauth_ cfut_ vercel_ netlify_ nfp_ rnd_ bkua_ gha_ jfrog_ akcp ltai apikey- key- tok_ sess- ssws"""
_PREFIXED = lazy_pattern(r"[A-Za-z0-9_.=-]{16,}")
"""What follows a service's prefix, longer or shorter than its rule says."""
_LOOSE = lazy_pattern(
    r"(?:\b|(?<=\\[nrt]))(?:AIza[A-Za-z0-9_-]{30,}|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}\b"
    r"|ey[A-Za-z0-9_-]{10,}\.ey[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]{4,})?|\d{6,12}:AA[A-Za-z0-9_-]{30,}"
    r"|\d{7,12}:[A-Za-z0-9_-]{35}\b|(?i:bearer) +[A-Za-z0-9._~+/=-]{16,})"
    r"|\$(?:apr1|[1256y]|2[abxy])\$[./A-Za-z0-9$=,]{20,}|hooks\.slack\.com/(?:services|workflows)/[\w/+-]{20,}"
    r"|discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}|[?&](?:sig|X-Amz-Signature)=[A-Za-z0-9%+/=]{20,}"
)
"""Shapes without a prefix of letters, and addresses that are keys. Also after an escaped line end in JSON text."""
_LOOSE_WORDS = (
    *("aiza", "akia", "asia", "abia", "acca", "ey", ":aa", "bearer", "$", "hooks.slack", "/api/webhooks/", "sig"),
    ":",
)


class _Rule(NamedTuple):
    words: tuple[str, ...]
    entropy: float
    expression: str


@functools.cache
def _rules() -> tuple[_Rule, ...]:
    rows = (line.split("\t") for line in _RULES.read_text("utf-8").splitlines() if not line.startswith("#"))
    return tuple(_Rule(tuple(words.split()), float(entropy), expression) for _, words, entropy, expression in rows)


@functools.cache
def _words() -> frozenset[str]:
    return frozenset(word for rule in _rules() for word in rule.words)


@functools.cache
def _prefixes() -> tuple[str, ...]:
    return tuple(_PREFIXES.split())


@functools.cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def _shapes(text: str, lowered: str) -> Iterator[Span]:
    for prefix in _prefixes():
        if prefix in lowered:
            yield from _with_prefix(text, lowered, prefix)
    present = {word for word in _words() if word in lowered}
    for rule in _rules() if present else ():
        if present.isdisjoint(rule.words):
            continue
        for begin, end in _windows(lowered, rule.words):
            for match in _compiled(rule.expression).finditer(text, begin, end):
                span = _key_of(match)
                if _entropy(text[span[0] : span[1]]) >= rule.entropy:
                    yield span[0], _REST.match(text, span[1]).end()  # pyright: ignore[reportOptionalMemberAccess]
    if any(word in lowered for word in _LOOSE_WORDS):
        yield from (match.span() for match in _LOOSE.finditer(text))


def _with_prefix(text: str, lowered: str, prefix: str) -> Iterator[Span]:
    at = lowered.find(prefix)
    while at >= 0:
        end = at + len(prefix)
        before = text[at - 1] if at else " "
        begins = not (before.isalnum() or before in "_-.") or text[max(0, at - 2) : at] in ("\\n", "\\r", "\\t")
        rest = _PREFIXED.match(text, end) if begins else None
        if rest is not None and (_is_random(rest[0]) or prefix in ("sk-", "ghp_", "sk_", "hf_")):
            end = rest.end()
            yield at, end
        at = lowered.find(prefix, end)


def _windows(lowered: str, words: Iterable[str]) -> list[Span]:
    windows: list[Span] = []
    for word in words:
        at = lowered.find(word)
        while at >= 0:
            begin, end = max(0, at - _BEFORE), at + len(word) + _AFTER
            if windows and windows[-1][0] <= begin <= windows[-1][1]:
                windows[-1] = (windows[-1][0], end)
            else:
                windows.append((begin, end))
            at = lowered.find(word, at + len(word))
    return _merged(windows)


def _key_of(match: re.Match[str]) -> Span:
    """The first group with text, else the whole match, as gitleaks takes it."""
    return next((match.span(at) for at in range(1, (match.lastindex or 0) + 1) if match[at]), match.span())


def _entropy(text: str) -> float:
    """Bits a character, by how often each occurs."""
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values()) if text else 0.0


# --- values by their names -----------------------------------------------------------------------------------------

_NAMED_BY = ("pass", "pwd", "secret", "token", "key", "cred", "auth", "session", "dsn")
_NAME = lazy_pattern(
    r"(?i)(?P<word>pass(?:word|wort|wd|phrase)?s?|pwd|secrets?|tokens?|keys?|credentials?|creds?|auth(?:orization|token)?"
    r"|session(?:_?id|_?key|_?token)?|dsn)(?P<tail>[A-Za-z0-9_.-]{0,40})"
    r"(?P<quote>\\{0,7}[\"'])?\]?(?P<sep>[ \t]{0,20}(?::=|=>|[:=])[ \t]{0,20}|>|[ \t]{1,8}value=|[ \t]{1,8}"
    r"|(?<=[\"']),[ \t]{0,8}(?=\\{0,7}[\"']))"
    r"(?:[rbfu]{1,2}(?=[\"']))?(?P<open>\\{0,7}(?:\"\"\"|'''|[\"'`]))?"
)
_QUOTED = lazy_pattern(r"(?![$%{<*])[^\"'`\n\\]{3,400}(?=\\{0,7}[\"'`])")
_BARE = lazy_pattern(r"(?![$%{<*])[^\s\"'`\\,;()<>{}\[\]|&=]{3,400}={0,2}")
_PLAIN_PASSWORD = lazy_pattern(r"(?![$%{<*])[^\s\"'`\\&;,()\[\]{}<>|*=]{3,80}={0,2}(?=[\s&;\"'\\<,}]|\Z)")
_LINE_END = lazy_pattern(r"[ \t]{0,20}(?:#[^\n]*)?(?:\r?\n|\\{1,7}[nr]|\\{0,7}[\"']|\Z)")
_QUALIFIED = lazy_pattern(
    r"(?i)(?:api|secret|access|private|encrypt(?:ion)?|decryption|sign(?:ing)?|auth|account|master|shared|deploy|license"
    r"|service|ssh|ssl|tls|jwt|hmac|aes|rsa|webhook|admin|app(?:lication)?|client|consumer|crypto|storage|rails|django"
    r"|flask|session|cookie|server|host|write|read|project|user|bot|publishable|subscription|functions?)[ _.-]?$"
)
_NOT_SECRET_TAIL = lazy_pattern(
    r"(?i)(?:.*[_.-])?(?:id|ids|name|names|path|file|files|filename|url|uri|endpoint|count|type|types|length|len|size|"
    r"limit|limits|max|min|expiry|expires?(?:_?in|_?at)?|ttl|age|policy|hint|field|header|prefix|suffix|format|class|"
    r"provider|manager|store|service|usage|budget|window|index|required|enabled|valid|rotation|alias|version|scheme|"
    r"algorithm|method|mode|level|status|label|input|form|reset|regex|pattern|validator|hash_?algo|s_?used|ref|arn)"
)
_IDENTIFIER = lazy_pattern(
    r"(?i)(?:none|null|nil|true|false|str|string|undefined|bytes|int|integer|number|any|object|bool|boolean|self|this|"
    r"optional|required|secretstr|text|redacted|masked|hidden|changeit|example|\w*pass(?:word|wd|phrase)\w*"
    r"|[a-z_]\w*(?:\.[a-z_]\w*)+|x{3,}|\.{3,}|-+|\*+)"
)
"""Non-secrets in a value's place: names of variables and types, and placeholders."""
_PLACE = lazy_pattern(r"(?i)(?:\.{0,2}/|~/|[a-z]:\\|[a-z][a-z0-9+.-]*://|\$|%[({]|\{\{|@)")
_SNAKE = lazy_pattern(r"[A-Za-z]+(?:[_.-][A-Za-z]+)*\d{0,2}")


def _named(text: str, lowered: str) -> Iterator[Span]:
    for word in _NAMED_BY:
        at = lowered.find(word)
        while at >= 0:
            match = _NAME.match(text, at)
            next_from = at + len(word)
            if match is not None and (span := _value(text, match)) is not None:
                yield span
                next_from = max(next_from, span[0])
            at = lowered.find(word, next_from)


def _value(text: str, match: re.Match[str]) -> Span | None:
    """The value after a name, if it is a secret."""
    word, tail, separator, opening = match["word"].lower(), match["tail"], match["sep"], match["open"]
    begin = max(0, match.start() - 40)
    before = text[begin : match.start()]
    blank = not separator.strip()
    if blank and not _takes_blank(before, word):
        return None
    if separator == ">" and "<" not in before[-30:]:
        return None
    if tail and _NOT_SECRET_TAIL.fullmatch(tail.lstrip("_.-")):
        return None
    joined = match["word"][0].islower() and before[-1:].islower() and before[-2:] not in ("\\n", "\\r", "\\t")
    named = _strength(word, before, tail, joined=joined, constant=match["word"].isupper())
    if not named:
        return None
    value_match = (_QUOTED if opening else _PLAIN_PASSWORD if named == "password" else _BARE).match(text, match.end())
    if value_match is None:
        return None
    value = value_match[0].rstrip(".") if not opening else value_match[0]
    end = value_match.start() + len(value)
    if not opening and text[end : end + 1] in ("(", "["):
        return None
    colon = separator.strip() == ":"
    if colon and not opening and not _LINE_END.match(text, end):
        return None
    if separator[:1] == ",":  # the next argument: of a constant, and no further name
        is_name = re.fullmatch(r"[A-Z0-9_]+", value) or _IDENTIFIER.fullmatch(value)
        is_secret = match["word"].isupper() and not is_name and (named == "password" or _is_random(value))
        return (value_match.start(), end) if is_secret else None
    constant = match["word"].isupper() and separator == "="
    if named == "password" and not opening and separator.strip() == "=" != separator and re.fullmatch(r"\w+", value):
        return (value_match.start(), end) if _is_random(value) else None  # an assignment in program text
    return (
        (value_match.start(), end)
        if _is_value(value, named, quoted=bool(opening), constant=constant, colon=colon)
        else None
    )


def _takes_blank(before: str, word: str) -> bool:
    """Whether a value may follow after a blank: of an option, or in a ``.netrc``."""
    if re.search(r"(?:^|[\s\"'(,\[]|\\[nrt])--[\w-]{0,30}$|(?:^|\n|\\n)\s*(?:ENV|ARG)\s+[A-Z0-9_]{0,40}$", before):
        return True
    return word == "password" and re.search(r"(?:login|machine|user)\s+\S+\s+$", before) is not None


def _strength(word: str, before: str, tail: str, *, joined: bool, constant: bool) -> str:
    """``password``: nearly any value; ``secret``: what is no name; ``random``: what looks random; empty: none.
    ``joined``: the name is the end of a longer word; ``constant``: it is in capitals."""
    if word in ("pass", "pwd"):
        return "password" if not tail.strip("_0123456789") and not joined else ""
    if word.startswith("pass"):
        return "password" if not joined else ""
    if word.startswith("key"):
        if _QUALIFIED.search(before):
            return "secret" if not tail[:1].isalpha() else ""
        return "random" if constant and before[-1:] == "_" else ""
    if word.startswith("secret"):
        return "secret" if not tail[:1].islower() else ""
    if word == "auth":
        return "random" if not tail and not before[-1:].isalnum() else ""
    if word == "session":
        return "random" if not tail and not before[-1:].isalnum() else ""
    return "random" if not tail[:1].islower() else ""


def _is_value(value: str, named: str, *, quoted: bool, constant: bool, colon: bool) -> bool:
    generated = any(len(part) >= 20 and _is_random(part) for part in value.split("."))
    if (_IDENTIFIER.fullmatch(value) and not generated) or _PLACE.match(value):
        return False
    if named == "password":
        typed = value[:1].isupper() and value.isalpha() and not quoted
        return not (colon and (typed or " " in value))
    if " " in value.strip() or len(value) < 6 or value.replace(".", "").isdigit():
        return False
    if constant and named == "secret":
        return True
    if named == "secret" and quoted and len(value) >= 8 and not re.fullmatch(r"[A-Za-z_]+|[A-Z0-9_]+", value):
        return True
    return _is_random(value) if not constant else _is_random(value) or len(value) >= 16


def _is_random(value: str) -> bool:
    """Whether a value looks generated: it mixes digits and letters, or is long and uneven."""
    bare = value.rstrip("=")
    if len(bare) >= 16 and bare.isalnum() and 0.25 <= sum(map(str.isupper, bare)) / len(bare) <= 0.75:
        return _entropy(bare) >= 3.5
    if len(value) < 8 or _SNAKE.fullmatch(value):
        return False
    digits, letters = sum(map(str.isdigit, value)), sum(map(str.isalpha, value))
    return digits >= 1 and letters >= 2 and _entropy(value) >= 2.5


# --- values by their place -----------------------------------------------------------------------------------------

_ADDRESS = lazy_pattern(r"(?i)[a-z][a-z0-9+.-]{1,20}://([^\s/:@\"'<>]{0,200}):([^\s/@\"'<>]{1,200})@")
_TOKEN_ADDRESS = lazy_pattern(r"(?i)https?://([^\s/:@\"'<>]{12,300})@")
_BASIC = lazy_pattern(r"(?i)basic[ \t]+([A-Za-z0-9+/_-]{6,4000}={0,2})")
_COOKIE = lazy_pattern(
    r"(?i)(?:(?<![a-z-])|(?<=\\[nrt]))(?:set-)?cookie\\{0,7}[\"']?[ \t]*[:=][ \t]*(?:\\{0,7}[\"'])?([^\n\\\"']{4,8000})"
)
_COOKIE_VALUE = lazy_pattern(r"(?<![\w-])([\w.~!#$%&*+^|-]{1,100})=([^;,\s]{4,4000})")
_COOKIE_ATTRIBUTES = frozenset(("path", "domain", "expires", "max-age", "samesite", "priority", "version"))
_USER = lazy_pattern(r"(?:\s|^)(?:-u|--user|--proxy-user)[ =]?[\"']?([^\s:\"'$]{1,100}):([^\s\"'$]{3,200})")
_LOGIN = lazy_pattern(
    r"(?:sshpass|mysql\w*|mariadb[\w-]*|docker login|podman login|redis-cli|mongosh?|mongodump|ldap\w+)\b"
    r"[^\n|;&]{0,300}?\s(?:-p|-a|-w)[ \t]?[\"']?([^\s\"'$-][^\s\"'$]{3,200})"
)
_LOGIN_PROGRAMS = ("sshpass", "mysql", "mariadb", "docker login", "podman login", "redis-cli", "mongo", "ldap")


_SAID_BY = ("passw", "passphrase", "passcode", "token", "secret", "key")
_SAID = lazy_pattern(
    r"(?i)(?P<word>pass(?:word|wort|phrase|code)|token|secret|key)(?:s|[ \t]?\(s\))?"
    r"(?P<whose>[ \t]+(?:for|of|on|to|in|at|from|f(?:ü|\\{1,3}u00fc)r|von)[ \t]+"
    r"(?:[^\n:=.!?;\"'`\\]|\.(?=\w)|\\{1,3}u[0-9a-f]{4}){1,60}?)?"
    r"(?P<sep>[ \t]+(?:is|was|ist|war|lautet|(?:is|was|has been)[ \t]+(?:now|set to|changed to))[ \t]*:?|[ \t]*:)"
    r"[ \t]{1,4}(?P<open>\\{0,7}[\"'`“])?(?P<value>(?![$%{<*/~])[^\s\"'`“”\\]{4,200})(?P<close>\\{0,7}[\"'`”])?"
)
_METHOD = lazy_pattern(
    r"(?i)(?:sha|md|base|utf|argon|bcrypt|scrypt|pbkdf|aes|rsa|hs|rs|es|x|v|step|rfc|http|oauth)-?\d.*"
)
_NO_CALL = frozenset("([|")
_SYMBOLS = frozenset("!@#$%^&*+=?~")


def _said(text: str, lowered: str) -> Iterator[Span]:
    """What a sentence says is a password or a key."""
    for word in _SAID_BY:
        at = lowered.find(word)
        while at >= 0:
            before = text[at - 1] if at else " "
            begins = not (before.isalnum() or before in "_.-") or text[max(0, at - 2) : at] in ("\\n", "\\r", "\\t")
            match = _SAID.match(text, at) if begins else None
            if match is not None and (span := _told(match)) is not None:
                yield span
            at = lowered.find(word, at + len(word))


def _told(match: re.Match[str]) -> Span | None:
    value = match["value"].rstrip(".,;:!?)]}…")
    span = match.start("value"), match.start("value") + len(value)
    if _IDENTIFIER.fullmatch(value) or _PLACE.match(value) or _METHOD.fullmatch(value):
        return None
    if not match["word"].lower().startswith("pass"):
        assigned = match["whose"] is None and match["sep"].strip() == ":"  # as in program text
        return span if _is_random(value) and not assigned and _NO_CALL.isdisjoint(value) else None
    if match["open"] and match["close"] and match["word"].lower() != "passcode":
        return span if match["whose"] or _is_odd(value) else None
    return span if len(value) >= 6 and _is_odd(value) else None


def _is_odd(value: str) -> bool:
    """Whether a value is no word: letters with digits or other signs among them."""
    letters = any(map(str.isalpha, value))
    return letters and (any(map(str.isdigit, value)) or not _SYMBOLS.isdisjoint(value)) and _NO_CALL.isdisjoint(value)


_PASSWORD_LINE = lazy_pattern(
    r"(?:(?<![\w.:/-])|(?<=\\[nrt]))(?:[\w.-]{1,100}|\*):(?P<port>\d{4,5}|\*):[\w*.-]{1,64}:[\w*.@-]{1,64}"
    r":(?P<value>[^\s\"'\\:]{3,200})(?=[\s\"']|\\{1,7}[nrt\"]|\Z)"
)
"""A line of ``.pgpass``."""
_POSTGRES = lazy_pattern(r"543\d|6432|\*")
_SETTING = lazy_pattern(
    r"(?:(?<=[\n\"])|(?<=\\[nrt])|(?<![\s\S]))[ \t]{0,20}(?:\d{1,7}(?:\\{1,7}t|[\t :|│→]{1,4}))?[ \t]{0,20}"
    r"(?:requirepass|masterauth|bindpw|rootpw|(?:wpa_)?psk[ \t]{0,4}=)[ \t]{0,8}"
    r"(?:\\{0,7}\"(?P<quoted>[^\n\"\\]{4,200})|(?P<value>(?![$%{<*])[^\s\"'\\]{4,200}))"
)
"""Passwords of servers in settings whose names do not say so."""
_SETTINGS_OF = ("requirepass", "masterauth", "bindpw", "rootpw", "psk")


def _in_places(text: str, lowered: str) -> Iterator[Span]:
    if ":" in text:
        for match in _PASSWORD_LINE.finditer(text):
            if _POSTGRES.fullmatch(match["port"]) or _is_random(match["value"]):
                yield match.span("value")
    if any(name in lowered for name in _SETTINGS_OF):
        yield from (match.span(match.lastgroup or "value") for match in _SETTING.finditer(text))
    if "://" in text:
        for match in _ADDRESS.finditer(text):
            if not _IDENTIFIER.fullmatch(match[2]) and not _PLACE.match(match[2]) and match[2].lower() != "pass":
                yield match.span(2)
        yield from (match.span(1) for match in _TOKEN_ADDRESS.finditer(text) if _is_random(match[1]))
    if "basic" in lowered:
        yield from (match.span(1) for match in _BASIC.finditer(text) if _is_user_and_password(match[1]))
    if "cookie" in lowered:
        for match in _COOKIE.finditer(text):
            for pair in _COOKIE_VALUE.finditer(text, *match.span(1)):
                if pair[1].lower() not in _COOKIE_ATTRIBUTES and not _PLACE.match(pair[2]):
                    yield pair.span(2)
    if "-u" in lowered:
        yield from (match.span(2) for match in _USER.finditer(text) if not match[2].isdigit())
    if any(name in lowered for name in _LOGIN_PROGRAMS):
        yield from (match.span(1) for match in _LOGIN.finditer(text))


def _is_user_and_password(encoded: str) -> bool:
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4))
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded and all(byte >= 0x20 for byte in decoded)
