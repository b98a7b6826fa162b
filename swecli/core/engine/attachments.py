"""Files that the user attaches with ``@``: read as ``read_file`` reads them, under the same permissions. Each is an
item of its own that joins the conversation behind the message."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from swecli.core.engine.model_call import Call
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Mentionable
from swecli.core.engine.tool_calls import Scheduler
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.commands import Steer, Submit
from swecli.core.protocol.events import ItemCheckpointed, ItemStarted, Notice, Queued
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart
from swecli.core.tools.base import readable_size
from swecli.core.tools.read_file import MAX_IMAGE, ReadFile, binary_kind, image_type, is_binary
from swecli.core.tools.search import ListFiles
from swecli.core.workspace.mentions import MOST, Mention, mentioned, resolve
from swecli.core.workspace.text_file import open_regular

_HEAD = 8_192
_ENDS = ".,;:!?)]}"
"""What may follow a word in a sentence."""


def words_of(message: Submit | Steer | Queued) -> tuple[str, ...]:
    """What a message mentions: as it says itself, or else what stands in its text."""
    return mentioned(message.text) if message.mentions is None else message.mentions


class Attachments:
    """Attaches what messages of one session mention."""

    def __init__(
        self,
        recorder: Recorder,
        scheduler: Scheduler,
        cwd: Path,
        mentionables: Callable[[], Sequence[Mentionable]] = tuple,
    ) -> None:
        self._recorder = recorder
        self._scheduler = scheduler
        self._cwd = cwd
        self._mentionables = mentionables

    async def attach(self, words: Sequence[str], model: ModelInfo) -> None:
        """Attach what the words name. Returns when all of it is part of the conversation; the user is told of what is
        not."""
        if not words:
            return
        known = {one.word: one for one in self._mentionables()}
        named = {word: one for word in words if (one := known.get(word) or known.get(word.rstrip(_ENDS))) is not None}
        files = [word for word in words if word not in named]
        found = await asyncio.to_thread(_look, files, self._cwd, model)
        calls = {word: self._begin_call(one.tool, one.arguments, one.word) for word, one in named.items()}
        for mention in found:
            if mention.problem:
                self._tell(mention.word, mention.problem)
            elif len(calls) == MOST:
                self._tell(mention.word, f"a message can attach at most {MOST} files")
            else:
                calls[mention.word] = self._begin(mention)
        await self._scheduler.run(tuple(calls.values()))
        for word, call in calls.items():
            record = self._recorder.ledger.items[call.item]
            result = next((part for part in record.parts if isinstance(part, ToolResultPart)), None)
            if record.status == "rejected":
                self._tell(word, "reading it was not allowed")
            elif record.status != "ok" and result is not None:
                self._tell(word, result.text.partition("\n")[2] or result.text)

    def _begin(self, mention: Mention) -> Call:
        arguments: dict[str, object] = {"path": str(mention.path)}
        if mention.path.is_relative_to(self._cwd):
            arguments["path"] = str(mention.path.relative_to(self._cwd))
        if mention.last:
            arguments |= {"offset": mention.first, "limit": mention.last - mention.first + 1}
        tool = ListFiles.name if mention.is_folder else ReadFile.name
        return self._begin_call(tool, arguments, mention.word)

    def _begin_call(self, tool: str, arguments: Mapping[str, object], word: str) -> Call:
        item = self._recorder.new_item("t")
        part = ToolCallPart(item, tool, json.dumps(arguments))
        self._recorder.emit(ItemStarted(item, "attachment", tool))
        self._recorder.emit(ItemCheckpointed(item, part))
        return Call(item, part, note=f"[Attached by the user: @{word}]")

    def _tell(self, word: str, problem: str) -> None:
        self._recorder.emit(Notice(f"@{word} was not attached: {problem}", "warning", "attachments"))


def _look(words: Sequence[str], cwd: Path, model: ModelInfo) -> list[Mention]:
    """What the words name, each file once, with what a look at it tells."""
    mentions = (resolve(word, cwd) for word in words)
    found = {(one.path, one.first, one.last): one for one in mentions if one is not None}
    return [one if one.problem or one.is_folder else _examined(one, model) for one in found.values()]


def _examined(mention: Mention, model: ModelInfo) -> Mention:
    """The mention, with the problem that its file is nothing that the model can be shown."""
    try:
        with open_regular(mention.path) as (descriptor, status):
            head = os.read(descriptor, _HEAD)
    except OSError:
        return mention  # reading it tells why not
    problem = ""
    if image_type(head) is None:
        if is_binary(head):
            problem = f"it is a binary file ({binary_kind(head)}, {readable_size(status.st_size)})"
    elif model.images is False:
        problem = f"{model.ref} can't see images"
    elif status.st_size > MAX_IMAGE:
        problem = f"the image has {readable_size(status.st_size)}, more than {readable_size(MAX_IMAGE)}"
    return Mention(mention.word, mention.path, problem=problem) if problem else mention
