"""Size of a message in the context window, including the files that it mentions, known before it is sent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.budget import fixed_tokens
from swecli.core.context_management.counter import IMAGE_TOKENS, PieceEstimator, document_tokens, sampled
from swecli.core.engine.attachments import chosen_part, resolved_mentions
from swecli.core.engine.results import display_name
from swecli.core.engine.services import Mentionable
from swecli.core.images import image_type, too_large
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.budget import Budget
from swecli.core.tools.base import ToolError
from swecli.core.tools.read_file import MAX_CHARACTERS, ReadFileParams, read_page, whole_pdf
from swecli.core.tools.search import listing_text
from swecli.core.validation import validated
from swecli.core.workspace.mentions import MOST, Mention
from swecli.core.workspace.pdf import PdfError, page_ranges, read_pdf
from swecli.core.workspace.text_file import open_regular
from swecli.figures import portion, tokens

BYTES = 4
"""Bytes of a token if only a size is known."""
_AFTER = ".,;:!?)]}"
"""Punctuation after a word that is not part of it."""
SAMPLE = 30_000
"""Characters of each of three samples of a long text, so that a paste of any size takes no time."""


class Weight(Struct, frozen=True):
    """Weight of a message. ``window`` is the token limit of a request, 0 if unknown; ``used`` is the part already
    taken, ``fixed`` that of it which no compaction frees. ``ratio`` is the number of the model's tokens per estimated
    token."""

    tokens: int
    window: int
    used: int = 0
    ratio: float = 1.0
    fixed: int = 0

    @property
    def share(self) -> float:
        return self.tokens / self.window if self.window > 0 else 0.0

    @property
    def fits(self) -> bool:
        """Whether it can be sent, if need be after a compaction."""
        return self.window <= 0 or self.fixed + self.tokens <= self.window

    @property
    def needs_room(self) -> bool:
        """Whether it can be sent only after a compaction."""
        return self.window > 0 and self.used + self.tokens > self.window

    @property
    def shown(self) -> str:
        count = f"~{tokens(self.tokens)} tokens"
        if self.window <= 0:
            return count
        if self.share > 1:
            return f"{count}, more than the window"
        return f"{count}, {portion(self.share)} of the window"


def weigh(text: str, images: int, budget: Budget | None, ratio: float = 1.0) -> Weight:
    """Weight of a text and a number of images. ``budget`` measures the conversation before them; ``ratio`` is the
    number of the model's tokens per estimated token, as in the forecast of the next request."""
    counted = round(ratio * (sampled(text, PieceEstimator().count, SAMPLE, 3) + images * IMAGE_TOKENS))
    if budget is None or budget.source == "unknown":
        return Weight(counted, 0, ratio=ratio)
    return Weight(counted, budget.effective, budget.used, ratio, fixed_tokens(budget))


class WeighedMention(Struct, frozen=True):
    """Content that one mention attaches, as the reading tool would show it, or the reason why it attaches nothing.
    ``tokens`` is an estimate; ``known`` is False if only reading would tell."""

    word: str
    tokens: int = 0
    problem: str = ""
    known: bool = True


async def weigh_mentions(
    words: Sequence[str],
    cwd: Path,
    roots: Sequence[Path],
    model: ModelInfo | None,
    others: Sequence[Mentionable] = (),
) -> tuple[WeighedMention, ...]:
    """Weigh the words after ``@``, each file once; words that name nothing are left out. ``others`` are mentionables
    besides files."""
    besides = {one.word: one for one in others}
    named = {word: besides.get(word) or besides.get(word.rstrip(_AFTER)) for word in words}
    files = [word for word, other in named.items() if other is None]
    found = await asyncio.to_thread(resolved_mentions, files, cwd, model)
    weighed = [
        WeighedMention(one.word, (one.size or 0) // BYTES, known=one.size is not None)
        for one in others
        if one in named.values()
    ]
    attached = 0
    for mention in found:
        if mention.problem:
            weighed.append(WeighedMention(mention.word, problem=mention.problem))
        elif attached == MOST:
            weighed.append(WeighedMention(mention.word, problem=f"a message can attach at most {MOST} files"))
        else:
            attached += 1
            weighed.append(await _weighed(mention, cwd, roots, model))
    return tuple(weighed)


def all_of(weight: Weight, mentions: Sequence[WeighedMention]) -> Weight:
    """Weight of a message together with its mentions."""
    return replace(weight, tokens=weight.tokens + round(weight.ratio * sum(mention.tokens for mention in mentions)))


def mentions_line(mentions: Sequence[WeighedMention], empty: Weight) -> str:
    """One line for the user: the sum with its share of the window, mentions that can't be attached, then each of
    several. ``empty`` is the weight of an empty message in the current window."""
    attached = [one for one in mentions if not one.problem]
    problems = [f"@{one.word}: {one.problem}" for one in mentions if one.problem]
    if len(attached) == 1:
        shown = all_of(empty, attached).shown if attached[0].known else _UNKNOWN
        return " · ".join([f"@{attached[0].word}: {shown}", *problems])
    total = [f"{len(attached)} mentions: {all_of(empty, attached).shown}"] if attached else []
    sizes = (f"~{tokens(round(empty.ratio * one.tokens))}" if one.known else _UNKNOWN for one in attached)
    each = (f"@{one.word} {size}" for one, size in zip(attached, sizes, strict=True))
    return " · ".join([*total, *problems, *each])


_UNKNOWN = "size unknown until it is read"


async def _weighed(mention: Mention, cwd: Path, roots: Sequence[Path], model: ModelInfo | None) -> WeighedMention:
    try:
        if mention.is_folder:
            text, images = await listing_text(mention.path, tuple(roots), lambda path: display_name(str(path), cwd)), 0
        elif mention.is_pdf:
            return await _weighed_pdf(mention, model)
        else:
            text, images = await asyncio.to_thread(_page, mention)
    except (ToolError, OSError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        return WeighedMention(mention.word, problem=reason.partition("\n")[0])
    return WeighedMention(mention.word, weigh(text, images, None).tokens)


async def _weighed_pdf(mention: Mention, model: ModelInfo | None) -> WeighedMention:
    """The size of the pages, by the text of some of them."""
    try:
        raw = await asyncio.to_thread(whole_pdf, mention.path)
        pdf = await read_pdf(raw, page_ranges(_params(mention).pages), environment={}, sample=True)
    except PdfError as error:
        return WeighedMention(mention.word, problem=str(error))
    counted = sum(map(PieceEstimator().count, pdf.texts.values())) * len(pdf.numbers) // max(1, len(pdf.texts))
    if model is not None and model.capabilities.documents:
        return WeighedMention(mention.word, document_tokens(counted, len(pdf.numbers)))
    if not counted:
        return WeighedMention(mention.word, problem="its pages have no text: they are scanned or empty")
    return WeighedMention(mention.word, min(counted, MAX_CHARACTERS // BYTES))


def _page(mention: Mention) -> tuple[str, int]:
    with open_regular(mention.path) as (descriptor, status):
        if image_type(os.read(descriptor, 64)) is not None and not too_large(status.st_size):
            return mention.path.name, 1  # without scaling it down at each key
    outcome = read_page(mention.path, _params(mention))
    return outcome.text, len(outcome.images)


def _params(mention: Mention) -> ReadFileParams:
    return validated(ReadFileParams, {"path": str(mention.path), **chosen_part(mention)})
