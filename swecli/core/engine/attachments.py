"""Files and other things that a message of the user attaches with ``@``."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.prompts import ATTACHED_NOTE
from swecli.core.engine.consent import NOT_ALLOWED
from swecli.core.engine.model_call import Call
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Mentionable
from swecli.core.engine.tool_calls import Scheduler
from swecli.core.images import image_type, too_large
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.events import (
    ItemCheckpointed,
    ItemStarted,
    Notice,
)
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart
from swecli.core.tools.base import readable_size
from swecli.core.tools.read_file import ALL_PAGES, ReadFile, binary_kind, is_binary
from swecli.core.tools.search import ListFiles
from swecli.core.workspace.mentions import MOST, Mention, resolve
from swecli.core.workspace.pdf import MAGIC
from swecli.core.workspace.text_file import open_regular
from swecli.safe_text import printable_name

_HEAD = 8_192
"""Bytes read to detect the type of a file."""
_ENDS = ".,;:!?)]}"
"""Punctuation that may follow a word in a sentence."""


async def attach(
    recorder: Recorder,
    scheduler: Scheduler,
    words: Sequence[str],
    cwd: Path,
    model: ModelInfo,
    mentionables: Sequence[Mentionable] = (),
) -> None:
    """Attach the mentions of messages as items behind them: files through ``read_file``, ``mentionables`` through their
    tools, under the same permissions. Naming a mentionable is consent to the program that reads it. Returns when all
    are attached; notices report failures."""
    if not words:
        return

    def tell(word: str, problem: str, hint: str = "") -> None:
        recorder.emit(Notice(f"@{word} was not attached: {problem}", "warning", "attachments", hint))

    known = {one.word: one for one in mentionables}
    named = {word: one for word in words if (one := known.get(word) or known.get(word.rstrip(_ENDS))) is not None}
    calls = {
        one.word: _begin_call(recorder, one.tool, one.arguments, _by_the_user(one.word), typed=True)
        for one in {one.word: one for one in named.values()}.values()
    }
    found = await asyncio.to_thread(resolved_mentions, [word for word in words if word not in named], cwd, model)
    for mention in found:
        if mention.problem:
            tell(mention.word, mention.problem)
        elif len(calls) == MOST:
            tell(mention.word, f"a message can attach at most {MOST} files")
        else:
            calls[mention.word] = _begin(recorder, mention, cwd)
    await scheduler.run(tuple(calls.values()))
    for word, call in calls.items():
        record = recorder.ledger.items[call.item]
        result = next((part for part in record.parts if isinstance(part, ToolResultPart)), None)
        if record.status == "ok" or result is None:
            continue
        said = result.text.partition("\n")[2] or result.text
        if record.status != "rejected":
            tell(word, said)
        elif said.startswith(NOT_ALLOWED):
            planning = call.typed and recorder.state.mode == "plan"
            hint = "Shift+Tab leaves plan mode; then mention it again." if planning else ""
            tell(word, _clause(said.removeprefix(NOT_ALLOWED)), hint)
        else:
            tell(word, "reading it was not allowed")


def _clause(sentence: str) -> str:
    """A sentence turned into a clause for use after a colon; a leading name keeps its case."""
    first = sentence.partition(" ")[0]
    return sentence if "/" in first or not first[1:].islower() else sentence[:1].lower() + sentence[1:]


class Passage(Struct, frozen=True):
    """Lines ``first`` to ``last`` (0: all) of a file that a message names with ``word``."""

    path: str
    word: str
    first: int = 1
    last: int = 0


async def attach_passages(recorder: Recorder, scheduler: Scheduler, passages: Sequence[Passage]) -> frozenset[str]:
    """Attach files that a message names without ``@``, in the same way. Returns the paths of those that were read;
    failures are silent because the user did not ask for these files."""
    calls: dict[str, Call] = {}
    for one in passages:
        arguments: dict[str, object] = {"path": one.path}
        if one.last:
            arguments |= {"offset": one.first, "limit": one.last - one.first + 1}
        note = f"{ATTACHED_NOTE}swecli: the message names {printable_name(one.word)}]"
        calls[one.path] = _begin_call(recorder, ReadFile.name, arguments, note)
    if calls:
        await scheduler.run(tuple(calls.values()))
    return frozenset(path for path, call in calls.items() if recorder.ledger.items[call.item].status == "ok")


def _begin(recorder: Recorder, mention: Mention, cwd: Path) -> Call:
    arguments: dict[str, object] = {"path": str(mention.path)}
    if mention.path.is_relative_to(cwd):
        arguments["path"] = str(mention.path.relative_to(cwd))
    arguments |= chosen_part(mention)
    tool = ListFiles.name if mention.is_folder else ReadFile.name
    return _begin_call(recorder, tool, arguments, _by_the_user(mention.word))


def chosen_part(mention: Mention) -> dict[str, object]:
    """The arguments with which ``read_file`` reads the mentioned lines or pages, of a PDF as many as it takes."""
    if mention.is_pdf:
        return {"pages": f"{mention.first}-{mention.last}" if mention.last else ALL_PAGES}
    return {"offset": mention.first, "limit": mention.last - mention.first + 1} if mention.last else {}


def _by_the_user(word: str) -> str:
    return f"{ATTACHED_NOTE}the user: @{printable_name(word)}]"


def _begin_call(
    recorder: Recorder, tool: str, arguments: Mapping[str, object], note: str, *, typed: bool = False
) -> Call:
    item = recorder.new_item("t")
    part = ToolCallPart(item, tool, json.dumps(arguments))
    recorder.emit(ItemStarted(item, "attachment", tool))
    recorder.emit(ItemCheckpointed(item, part))
    return Call(item, part, note=note, typed=typed)


def resolved_mentions(words: Sequence[str], cwd: Path, model: ModelInfo | None) -> list[Mention]:
    """The mentioned files, each once, with the result of a quick check."""
    mentions = (resolve(word, cwd) for word in words)
    found = {(one.path, one.first, one.last): one for one in mentions if one is not None}
    return [one if one.problem or one.is_folder else _examined(one, model) for one in found.values()]


def _examined(mention: Mention, model: ModelInfo | None) -> Mention:
    """The mention, with a problem set if the model can't be shown its file."""
    try:
        with open_regular(mention.path) as (descriptor, status):
            head = os.read(descriptor, _HEAD)
    except OSError:
        return mention  # reading it reports the reason
    problem = ""
    if head.startswith(MAGIC):
        return replace(mention, is_pdf=True)
    if image_type(head) is None:
        if is_binary(head):
            problem = f"it is a binary file ({binary_kind(head)}, {readable_size(status.st_size)})"
    elif model is not None and model.images is False:
        problem = f"{model.ref} does not support images"
    elif limit := too_large(status.st_size):
        problem = f"the image is {readable_size(status.st_size)}; {limit}"
    return Mention(mention.word, mention.path, problem=problem) if problem else mention
