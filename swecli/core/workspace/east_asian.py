"""Conservative detection of East Asian encodings without a mark: Shift-JIS, EUC-JP, EUC-KR, GBK, Big5.

Almost any bytes are valid in one of them, so validity proves little. A text counts only if it also looks like its
language: letters of the expected script from the common part of the encoding, next to each other; or if its beginning
names the encoding, as a Python file, a page or XML may. Anything else remains a single-byte encoding, in which the
bytes are kept all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from swecli.lazy_pattern import lazy_pattern

LEAST: Final = 4
"""Letters beyond ASCII below which no language is recognised."""
_SAMPLE: Final = 200_000
"""Bytes, in whole lines, from which the language is recognised."""

_KANA = lazy_pattern("[\u3041-\u3096\u30a1-\u30fa\u30fc]")
_HANGUL = lazy_pattern("[\uac00-\ud7a3]")
_SIGNS = "\u3000-\u303f\uff01-\uff5e\u2010-\u2026\u25a0-\u25cf\u00b7"
_JAPANESE = lazy_pattern(f"[\u3041-\u3096\u30a1-\u30fc\u4e00-\u9fff{_SIGNS}]")
_KOREAN = lazy_pattern(f"[\uac00-\ud7a3{_SIGNS}]")
_CHINESE = lazy_pattern(f"[\u4e00-\u9fff{_SIGNS}]")
_RUNS = lazy_pattern("[^\x00-\x7f]+")
_GB_COMMON = lazy_pattern(rb"[\xb0-\xd7][\xa1-\xfe]")
_GB_PAIR = lazy_pattern(rb"[\x81-\xfe][\x40-\xfe]")
_BIG5_COMMON = lazy_pattern(rb"[\xa4-\xc6][\x40-\x7e\xa1-\xfe]")
_BIG5_PAIR = lazy_pattern(rb"[\x81-\xfe][\x40-\x7e\xa1-\xfe]")


_HEAD: Final = 1024
"""Bytes at the beginning in which a text names its encoding."""
_NAMED = lazy_pattern(rb"\b(?:file)?(?:en)?(?:coding|charset)\s*[:=]\s*[\"']?([-\w]+)", re.IGNORECASE)
_NAMES: Final = {
    **dict.fromkeys(("shift_jis", "sjis", "x_sjis", "windows_31j", "cp932", "ms932"), "Shift-JIS"),
    **dict.fromkeys(("euc_jp", "eucjp"), "EUC-JP"),
    **dict.fromkeys(("euc_kr", "euckr", "cp949", "ks_c_5601_1987"), "EUC-KR"),
    **dict.fromkeys(("gbk", "gb2312", "cp936"), "GBK"),
    **dict.fromkeys(("big5", "cp950"), "Big5"),
}


class Encoding(Struct, frozen=True):
    """``codec`` is Python's name; ``label`` is for people."""

    codec: str
    label: str


def _is_japanese(text: str, raw: bytes) -> bool:
    """Japanese always has kana; half-width ones are not counted, since they are single bytes."""
    return _share(_JAPANESE, text) >= 0.9 and _share(_KANA, text) >= 0.15


def _is_korean(text: str, raw: bytes) -> bool:
    return _share(_KOREAN, text) >= 0.95 and _share(_HANGUL, text) >= 0.6


def _is_simplified(text: str, raw: bytes) -> bool:
    return _share(_CHINESE, text) >= 0.9 and _common(raw, _GB_PAIR, _GB_COMMON) >= 0.6


def _is_traditional(text: str, raw: bytes) -> bool:
    return _share(_CHINESE, text) >= 0.9 and _common(raw, _BIG5_PAIR, _BIG5_COMMON) >= 0.8


_CANDIDATES: Final[tuple[tuple[Encoding, Callable[[str, bytes], bool]], ...]] = (
    (Encoding("cp932", "Shift-JIS"), _is_japanese),
    (Encoding("euc_jp", "EUC-JP"), _is_japanese),
    (Encoding("cp949", "EUC-KR"), _is_korean),
    (Encoding("gbk", "GBK"), _is_simplified),
    (Encoding("big5", "Big5"), _is_traditional),
    (Encoding("cp950", "Big5"), _is_traditional),
)


def east_asian(raw: bytes) -> tuple[Encoding, str] | None:
    """The encoding of a text and the text, if all of it is valid, reversible, and looks like the language or names the
    encoding; None for anything else."""
    named = _NAMED.search(raw[:_HEAD])
    label = _NAMES.get(named[1].decode("ascii", "replace").lower().replace("-", "_")) if named else None
    sample = raw if len(raw) <= _SAMPLE else raw[: raw.rfind(b"\n", 0, _SAMPLE) + 1]
    sample = b"\n".join(line for line in sample.split(b"\n") if not line.isascii())
    for encoding, fits in sorted(_CANDIDATES, key=lambda candidate: candidate[0].label != label):
        try:
            beginning = sample.decode(encoding.codec)
            if encoding.label != label and not (_stands_together(beginning) and fits(beginning, sample)):
                continue
            text = raw.decode(encoding.codec)
            if text.encode(encoding.codec) == raw:
                return encoding, text
        except UnicodeError:
            continue
    return None


def _stands_together(text: str) -> bool:
    """Whether there are enough letters beyond ASCII, most of them in words. A letter with an accent, read as half of a
    pair, would stand between ASCII letters."""
    runs = [len(run) for run in _RUNS.findall(text)]
    return sum(runs) >= LEAST and 4 * sum(run for run in runs if run > 1) >= 3 * sum(runs)


def _share(wanted: re.Pattern[str], text: str) -> float:
    """Share of the letters beyond ASCII that are ``wanted``."""
    beyond = sum(map(len, _RUNS.findall(text)))
    return len(wanted.findall(text)) / beyond if beyond else 0.0


def _common(raw: bytes, pair: re.Pattern[bytes], common: re.Pattern[bytes]) -> float:
    """Share of the pairs of bytes that are among the encoding's common letters."""
    pairs = pair.findall(raw)
    return sum(common.fullmatch(code) is not None for code in pairs) / len(pairs) if pairs else 0.0
