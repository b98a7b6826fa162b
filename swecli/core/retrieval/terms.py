"""Terms of code and of sentences: identifiers, their parts, and a common form for different spellings."""

from __future__ import annotations

from functools import lru_cache

from swecli.lazy_pattern import lazy_pattern

UNSPACED = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Characters of languages that write words, or words and particles, without blanks between them, for a pattern."""
_WORD = lazy_pattern(r"[A-Za-z_]\w+")
_WORD_OR_RUN = lazy_pattern(rf"[{UNSPACED}]{{2,}}|[^\W\d{UNSPACED}][^\W{UNSPACED}]+")
_LONGEST = 60
"""Longer names are data, such as keys and hashes."""
_RUN = lazy_pattern(rf"[{UNSPACED}]+")
_PART = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_VOWEL = lazy_pattern(r"[aeiouy]")

_STOP = """
    a about above after again all also although always am an and any are as at be because been before being below
    between both but by can cannot could did do does doing done down due during each either else etc even ever every few
    for from further get gets getting given go goes going good got had has have having he hello help her here hey hi him
    his how however i if in instead into is it its itself just keep let lets like likely look make makes making many may
    maybe me might more most much must my myself need needed needs neither new no nor not now of off ok okay on once one
    only onto or other our out over own per please possible properly put rather really same see shall she should show
    since so some still such sure take tell than thank thanks that the their them then there these they thing things
    this those though through thus to too try trying two under until up upon us use used uses using very via want wants
    was way we well were what when where whether which while who why will with within without work working works would
    yes yet you your"""
_TASK_WORDS = """
    commit pr pull request issue issues bug bugs closes close fixes fixed fix resolve resolves added adds adding add
    change changed changes update updated updates updating remove removed removes removing improve improved improves
    implement implements implemented support supports supported ensure allow allows feat chore refactor refactored
    bump merge merged release changelog
    co authored signed reviewed summary description note notes todo review following previously currently
    code file files function functions method methods project repo repository
    修复 修改 添加 增加 删除 更新 实现 支持 问题 错误 代码 文件 函数 方法 项目 修正 追加 削除 変更 対応 実装 関数 問題
    수정 추가 삭제 변경 구현 지원 함수 파일 오류 문제"""
_EMPTY = lazy_pattern(
    "[\u3041-\u309f]{2}|.?[的了吗呢吧请這这那么我你您他她们們把是让給给].?"
    "|습니|니다|합니|입니|하는|하고|하게|해서|해줘|해주|주세|세요|에서|으로|있습|없습"
)
"""A pair of characters from words without information about places in a project, such as particles."""
STOP_WORDS = frozenset(_STOP.split())
"""Words without information about places in a project."""
TASK_WORDS = frozenset(_TASK_WORDS.split())
"""Words about the work itself. They carry little information, except in a project on that subject."""


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Common form of a word in lower case with its usual endings: ``indexes``, ``indexed`` and ``indexing`` are one."""
    if len(word) < 4 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed", "er", "ion", "or"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and _VOWEL.search(word[: -len(ending)]):
            word = word[: -len(ending)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


@lru_cache(maxsize=262_144)
def terms_of(identifier: str) -> tuple[str, ...]:
    """Search terms of an identifier: its parts and, if it has several, also the whole, the same for ``parse_file`` and
    ``parseFile``. Those of a run without blanks are the pairs of its characters."""
    if is_run(identifier):
        pairs = dict.fromkeys(identifier[at : at + 2] for at in range(len(identifier) - 1))
        return tuple(pair for pair in pairs if not _EMPTY.fullmatch(pair))
    parts = [part.lower() for part in _parts(identifier)]
    stems = [stem(part) for part in parts if len(part) > 1 and not part.isdigit()]
    if len(parts) < 2:
        return tuple(stems)
    return (*dict.fromkeys(stems), "".join(parts))


def is_run(word: str) -> bool:
    """Whether a word is a run of characters without blanks between its words."""
    return not word.isascii() and _RUN.fullmatch(word) is not None


def is_data(word: str) -> bool:
    """Whether a word is too long for a name."""
    return len(word) > _LONGEST and not is_run(word)


def is_compound(identifier: str) -> bool:
    """Whether a word of a sentence is written like a name in code."""
    return "_" in identifier.strip("_") or len(_parts(identifier)) > 1


def _parts(identifier: str) -> list[str]:
    if identifier.isascii():
        return _PART.findall(identifier)
    shape = "".join(map(_shape, identifier))
    return [identifier[match.start() : match.end()] for match in _PART.finditer(shape)]


def _shape(letter: str) -> str:
    """An ASCII letter of the same kind, so that é does not end a word, and É begins one."""
    if letter.isascii():
        return letter
    return "A" if letter.isupper() else "0" if letter.isdecimal() else "a"


def identifiers(text: str) -> list[str]:
    """The names and words of at least two letters, and runs of characters without blanks between words, in order."""
    return (_WORD if text.isascii() else _WORD_OR_RUN).findall(text)
