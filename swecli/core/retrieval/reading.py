"""What of a text says what it is about. Reports come with forms to fill in, versions, output and code: their words are
many, and few of them tell where to look."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

Part = Literal["title", "words", "code", "output"]

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DETAILS = re.compile(r"</?(?:details|summary|br|p|kbd|sub|sup|img|pre|code|b|i|hr)\b[^>\n]{0,300}/?>", re.IGNORECASE)
_FENCE = re.compile(r"^\s{0,12}(?:>\s?)?(`{3,}|~{3,})\s*([\w+#-]*)")
_BOX = re.compile(r"^\s*[-*+] \[[ xX]?\]")
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s+(.{1,90}?)[\s#:]*|\*\*([^*\n]{1,60}?):?\*\*:?|(?=\S)([^\n]{1,40}):)\s*$")
_SURROUNDINGS = re.compile(
    r"(?:(?:your|my|the|system|test|runtime|relevant|software) |output of `?)*"
    r"(?:environment|versions?|system(?: info(?:rmation)?| details)?|platform|setup info|os|dependencies|hardware"
    r"|browser|pip (?:list|freeze)|installed (?:packages|versions)|\w{0,10}\.?show_versions\(\)|system_info\(\)|doctor"
    r"|additional environment|[\w./-]+ versions?|check ?list|code of conduct|before submitting.{0,30})`?"
    r"(?: (?:info(?:rmation)?|details|versions?|used|installed|data))*(?: and .{1,40})?(?: ?\(.{1,60}\))?",
    re.IGNORECASE,
)
"""Headings above what holds for the machine and not for the project."""
_FORM_WORDS = """
    bug issue issues problem feature short brief detailed current actual expected observed desired minimal full complete
    code possible proposed suggested additional other step steps how to the of a an and for or any what is it you i did
    do does happen happens happened happening went wrong here please your describe description reproduce reproduction
    reproducing reproducer reproducible behavior behaviour result results outcome output input example examples sample
    snippet context information info details summary report request solution alternative alternatives considered
    motivation rationale screenshot screenshots log logs traceback stack trace error message messages configuration
    config command used relevant related background introduction tl dr tldr note notes expectation version would like
    want should instead have link links see anything else we know about this console"""
_FORM = frozenset(_FORM_WORDS.split())
"""Words of headings that any report could have."""
_OF_MACHINE = re.compile(
    r"[-*+>|]*\s*[*_`]*(?:os|operating system|platform|(?:[\w.+-]+ ){0,2}versions?|python(?:-bits|_\w+)?|node(?:js)?"
    r"|npm|yarn|pnpm|go|java|jdk|rustc?|cargo|ruby|php|browser|shell|terminal|locale|lc_all|lang|byteorder|machine|processor"
    r"|kernel|arch(?:itecture)?|distro|cpu|gpu|ram|memory|commit|installation|installed (?:via|with|from)|os-release"
    r"|libhdf5|libnetcdf|ide|editor)[*_`]*\s*(?:[:=|]|==).{0,120}",
    re.IGNORECASE,
)
_PINNED = re.compile(
    r"(?:[-*+|]\s{0,4})?[\w.\[\]-]{2,40}(?: {0,20}(?:==|[:|]) {0,4}| {2,40}| (?=v?\d+\.\d+[\w.+-]*$))"
    r"v?\d+\.\d+[\w.+-]{0,40}(?:[ |].{0,40})?"
)
"""A package with its version, as lists of what is installed have it."""
_SOURCE_TRACE = re.compile(r"""^\W*(?:INTERNALERROR>\s*)?File ["'][^"'\n]+["'], line \d+|^\s+at \S+.*[:(]\d+""")
_ERROR = re.compile(
    r"^\s*(?:E\s+)?(?:[\w.]*(?:Error|Exception|Warning|Panic)\b|error(?:\[\w+\])?:|fatal:|panic:|thread '.*' panicked)"
)
_SESSION = re.compile(r"^\s*(?:>>>|\.\.\.|In \[\d+\]:|Out\[\d+\]:)\s?")
_OUTPUT = frozenset(("text", "txt", "log", "console", "output", "pytb", "plain", "plaintext", "stacktrace", "trace"))
_LONG: Final = 25
"""Lines from which on a block is taken for output."""
_WIDEST: Final = 200
"""Characters of a line of a form, at most."""


def parts_of(text: str) -> Iterator[tuple[Part, str]]:
    """The lines that say something, each with what it is."""
    text = _DETAILS.sub(" ", _COMMENT.sub("\n", text)).strip()
    title, _, rest = text.partition("\n")
    yield "title", title
    if not rest.strip():
        return
    section, fence, language, block = _Section(), "", "", list[str]()
    for line in rest.splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2]:
                yield from () if section.aside else _block(block, language)
                fence, block = "", []
            else:
                block.append(line)
        elif mark:
            fence, language = mark[1], mark[2].lower()
        elif not section.leaves_out(line) and not _is_of_machine(line):
            yield _kind_of(line), line
    if fence and not section.aside:
        yield from _block(block, language)


class _Section:
    """What the headings so far say of the lines below them."""

    def __init__(self) -> None:
        self.aside = False
        self._until_blank = self._begun = False

    def leaves_out(self, line: str) -> bool:
        """Whether a line says nothing: a heading of a form, a box to tick, or what stands below such a heading."""
        if _BOX.match(line):
            return True
        heading = _HEADING.match(line) if len(line) <= _WIDEST else None
        if heading is not None:
            words = next(group for group in heading.groups() if group is not None).strip()
            self.aside = _SURROUNDINGS.fullmatch(words) is not None
            self._until_blank, self._begun = heading[3] is not None, False
            return self.aside or _FORM.issuperset(re.findall(r"\w+", words.lower()))
        if self.aside and self._until_blank and self._begun and not line.strip():
            self.aside = False  # a line with a colon heads one paragraph
        self._begun = self._begun or bool(line.strip())
        return self.aside


def _is_of_machine(line: str) -> bool:
    bare = line.strip()
    return len(bare) <= _WIDEST and bool(_OF_MACHINE.fullmatch(bare) or _PINNED.fullmatch(bare))


def _kind_of(line: str) -> Part:
    """Of a line that is not fenced."""
    if _ERROR.match(line):
        return "words"
    if _SOURCE_TRACE.match(line):
        return "output"
    return "code" if _SESSION.match(line) or line.startswith(("    ", "\t")) else "words"


def _block(lines: list[str], language: str) -> Iterator[tuple[Part, str]]:
    """What is fenced: an example, or what a program wrote."""
    traced = any(_SOURCE_TRACE.match(line) for line in lines)
    kind: Part = "output" if traced or language in _OUTPUT or len(lines) > _LONG else "code"
    last = max((at for at, line in enumerate(lines) if _ERROR.match(line)), default=-1)
    for at, line in enumerate(lines):
        if not _is_of_machine(line):
            yield ("words" if at == last else kind), line
