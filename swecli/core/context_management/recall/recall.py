"""Search over what left the context, and the way from an id to its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from swecli.core.context_management.compaction.stubs import target_of
from swecli.core.context_management.ledger import RESULT, Entry, Ledger
from swecli.core.context_management.recall.ranking import Document, excerpt, rank
from swecli.core.context_management.recall.states import gone
from swecli.core.ports import BlobError, BlobStore, TranscriptHit
from swecli.core.protocol.messages import ImagePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

_RANGE = re.compile(r"\s*(\S+?)\s*[-–—]\s*(\S+)\s*")
_MOST_STORED = 4_000_000
"""Characters of one stored result that are searched; read_result searches all of it."""
NAMED = 5
"""Results that could not be searched are named, up to so many."""
SHORT_CALL = 240
"""Characters up to which a call is found by its result only, which names what the call was about."""


class Recall:
    """Reads the ledger and the stored results of one session; implements ``TranscriptSearch``.

    Nothing is copied or indexed: what is found is what the record holds. Safe to call from a thread while the
    ledger grows.
    """

    def __init__(self, ledger: Ledger, blobs: BlobStore | None = None) -> None:
        self._ledger = ledger
        self._blobs = blobs

    def search(self, query: str, limit: int) -> list[TranscriptHit]:
        """Entries that are no longer in the context and match the words best, best first. Where stored results could
        not be searched, the last hit says which and why."""
        unread: dict[str, str] = {}
        hits = [
            TranscriptHit(
                found.document.id, excerpt(found.document.text, found.at, query), found.score, found.document.about
            )
            for found in rank(list(self._documents(unread)), query, limit)
        ]
        return [*hits, _not_searched(unread)] if unread else hits

    def text(self, reference: str) -> str | None:
        """What is behind an id: of an entry, an item, a message, a summary, a stored result; several ids with
        commas, or a range, give one after the other.

        Raises:
            BlobError: a stored result is damaged or can't be read.
        """
        wanted = reference.strip().strip("[]")
        single = self._single(wanted)
        if single is not None:
            return single
        texts: list[str] = []
        for part in wanted.split(","):
            entries = self._range(part)
            if entries is not None:
                texts += [f"[{entry.id}] {self._about(entry)}\n{self._entry_text(entry)}" for entry in entries]
            else:
                text = self._single(part.strip())
                if text is None:
                    return None
                texts.append(f"[{part.strip()}]\n{text}")
        return "\n\n".join(texts)

    # --- documents --------------------------------------------------------------------------------------------

    def _documents(self, unread: dict[str, str]) -> Iterable[Document]:
        """All that can be found; ``unread`` takes the stored results that can't be read, and why."""
        ledger = self._ledger
        states = gone(ledger, ledger.view)
        stored = dict(ledger.stored)
        for entry in list(ledger.entries.values()):
            state = states.get(entry.id)
            ref = stored.get(entry.item) if entry.kind in ("result", "user") else None
            whole = self._stored_text(ref, unread)
            if ref is not None and whole is not None:
                about = f"{self._about(entry)}, stored{f', {state}' if state else ''} ({entry.id})"
                yield Document(ref, about, whole[:_MOST_STORED])
            elif state is not None:
                text = _text_of(entry.parts)
                if text.strip() and not (entry.kind == "call" and len(text) <= SHORT_CALL):
                    yield Document(entry.id, f"{self._about(entry)}, {state}", text)

    def _stored_text(self, ref: str | None, unread: dict[str, str]) -> str | None:
        """The stored text, None where there is none or it can't be read: a search goes on without it."""
        if ref is None or self._blobs is None:
            return None
        try:
            raw = self._blobs.get(ref)
        except BlobError as error:
            unread[ref] = str(error)
            return None
        return raw.decode("utf-8", "replace") if raw is not None else None

    def _about(self, entry: Entry) -> str:
        call = self._ledger.items[entry.item].call if entry.item in self._ledger.items else None
        target = f" {target_of(call) or call.arguments[:120]}" if call is not None else ""
        match entry.kind:
            case "user":
                name = "the user's command" if entry.source == "shell" else "user"
            case "text":
                name = "assistant"
            case "result":
                name = f"result of {entry.source}{target}"
            case "call":
                name = f"call of {entry.source}{target}"
            case _:
                name = entry.kind
        return f"{name}, turn {entry.turn}"

    # --- ids --------------------------------------------------------------------------------------------------

    def _single(self, reference: str) -> str | None:
        ledger = self._ledger
        entry = ledger.entries.get(reference)
        if entry is not None:
            result = ledger.entries.get(reference + RESULT) if entry.kind == "call" else None
            text = self._entry_text(entry)
            return f"{text}\n\n[{result.id}]\n{self._entry_text(result)}" if result is not None else text
        of_message = [one for one in list(ledger.entries.values()) if one.message == reference]
        if of_message:
            return "\n\n".join(f"[{one.id}] {self._about(one)}\n{self._entry_text(one)}" for one in of_message)
        summary = next((one for one in ledger.view if one.id == reference and one.text), None)
        if summary is not None:
            return summary.text
        raw = self._blobs.get(reference) if self._blobs is not None and reference.startswith("r") else None
        return raw.decode("utf-8", "replace") if raw is not None else None

    def _range(self, text: str) -> list[Entry] | None:
        """The entries from one id to another, in the order in which they were said."""
        match = _RANGE.fullmatch(text)
        if match is None:
            return None
        entries = list(self._ledger.entries.values())
        first = next((n for n, entry in enumerate(entries) if match[1] in (entry.id, entry.item, entry.message)), None)
        last = [n for n, entry in enumerate(entries) if match[2] in (entry.id, entry.item, entry.message)]
        return entries[first : last[-1] + 1] if first is not None and last else None

    def _entry_text(self, entry: Entry) -> str:
        """What was said, whole: a stored result in place of its reference.

        Raises:
            BlobError: it was stored and is damaged or can't be read.
        """
        ref = self._ledger.stored.get(entry.item) if entry.kind in ("result", "user") else None
        raw = self._blobs.get(ref) if ref is not None and self._blobs is not None else None
        return raw.decode("utf-8", "replace") if raw is not None else _text_of(entry.parts)


def _not_searched(unread: Mapping[str, str]) -> TranscriptHit:
    refs = list(unread)
    names = ", ".join(refs[:NAMED]) + (f" and {len(refs) - NAMED:,} more" if len(refs) > NAMED else "")
    what = "A stored result" if len(refs) == 1 else f"{len(refs):,} stored results"
    return TranscriptHit(refs[0], unread[refs[0]], 0.0, f"{what} could not be searched: {names}")


def _text_of(parts: Sequence[Part]) -> str:
    texts: list[str] = []
    for part in parts:
        match part:
            case TextPart(text=text) | ReasoningPart(text=text):
                texts.append(text)
            case ToolResultPart(text=text, images=images):
                texts.append(text + "".join(f"\n[image {image.name or image.media_type}]" for image in images))
            case ToolCallPart(name=name, arguments=arguments):
                texts.append(f"{name} {arguments}")
            case ImagePart(name=name, media_type=media):
                texts.append(f"[image {name or media}]")
            case _:
                pass
    return "\n".join(texts)
