"""The PDF files of a conversation that a server gets as files; it gets the text of the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from msgspec import structs
from msgspec.structs import replace

from swecli.core.llm.errors import WireError
from swecli.core.llm.per_message import ListPerMessage
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import DocumentPart, Message, Part, TextPart, ToolResultPart
from swecli.lazy_pattern import lazy_pattern

UNREAD: Final = "this model does not read PDF files"
REFUSED: Final = "the server refused the file"
CROWDED: Final = "the server accepts no more files, so only the newest are sent"
NOTICE: Final = "The model does not read PDF files; swecli sends their text."
_MOST_PAGES: Final = 100
"""Pages of all files of a request that Anthropic accepts for windows of 200,000 tokens
(https://platform.claude.com/docs/en/build-with-claude/pdf-support)."""
_MOST_CHARACTERS: Final = 18_000_000
"""Base64 characters of all files of a request: Gemini accepts 20 MB a request with inline data, the others more."""
_KEPT: Final = (3, 4)
"""Share of the limits that the newest files keep once older ones must go, so that the next files change nothing before
them."""
_ABOUT_DOCUMENTS: Final = lazy_pattern(r"pdf|document|input_file|file_data|\bfiles?\b|\bpages?\b|inline_?data")
_STATUSES: Final = (200, 400, 413, 415, 422)
_KINDS: Final = ("bad_request", "too_large", "server", "unknown")


def documents_in(message: Message) -> tuple[DocumentPart, ...]:
    """All PDF files of a message in order, those of results included."""
    return tuple(part for part in message.attached if isinstance(part, DocumentPart))


Reason = Callable[[int, DocumentPart], str]
"""Why the file with this place among all is sent as text; empty if it is sent as a file."""


def with_texts(request: ModelRequest, reason: Reason = lambda index, document: UNREAD) -> ModelRequest:
    """The request with the text of each file that has a reason; the request itself without such files."""
    messages: list[Message] = []
    offset, changed = 0, False
    for message in request.messages:
        documents = documents_in(message)
        reasons = [reason(offset + at, document) for at, document in enumerate(documents)]
        changed = changed or any(reasons)
        messages.append(_message(message, reasons) if any(reasons) else message)
        offset += len(documents)
    return replace(request, messages=tuple(messages)) if changed else request


def _message(message: Message, reasons: Sequence[str]) -> Message:
    left = iter(reasons)
    return structs.replace(message, parts=tuple(_part(part, left) for part in message.parts))


def _part(part: Part, reasons: Iterator[str]) -> Part:
    if isinstance(part, DocumentPart):
        return TextPart(f"\n\n{_text(part, reason)}") if (reason := next(reasons)) else part
    if isinstance(part, ToolResultPart) and part.documents:
        given = [(document, next(reasons)) for document in part.documents]
        texts = [_text(document, reason) for document, reason in given if reason]
        documents = tuple(document for document, reason in given if not reason)
        return structs.replace(part, text="\n\n".join(filter(None, (part.text, *texts))), documents=documents)
    return part


def _text(document: DocumentPart, reason: str) -> str:
    name = document.name or "the PDF file"
    if not any(line and not line.startswith("--- page ") for line in document.text.split("\n")):
        return f"[{name} was left out, because {reason}, and its pages have no text.]"
    return f"[{name} as text, because {reason}:]\n{document.text}"


def named(documents: Collection[DocumentPart]) -> str:
    """The files in a sentence."""
    names = list(dict.fromkeys(document.name for document in documents if document.name))
    listed = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return listed or f"{len(documents)} PDF files"


class SentDocuments:
    """Decides which files of a conversation one server gets. ``reads`` is False if its model reads none."""

    def __init__(self, *, reads: bool) -> None:
        self.reads = reads
        self._refused: set[str] = set()
        """Data of files that the server refused."""
        self._accepted: set[str] = set()
        """Data of files that the server has answered."""
        self._told: set[str] = set()
        self._documents = ListPerMessage(documents_in)

    def apply(self, request: ModelRequest) -> ModelRequest:
        """The request with texts in place of the files that the server does not get."""
        if not self.reads:
            return with_texts(request)
        documents = self._documents.all_of(request.messages)
        dropped = _dropped([document for document in documents if document.data not in self._refused])
        dropped_ids = {id(document) for document in dropped}

        def reason(index: int, document: DocumentPart) -> str:
            if document.data in self._refused:
                return REFUSED
            return CROWDED if id(documents[index]) in dropped_ids else ""

        return with_texts(request, reason)

    def news(self, request: ModelRequest) -> list[str]:
        """A sentence about each reason for which files are sent as text, once for each file."""
        new = [document for document in self._documents.all_of(request.messages) if document.data not in self._told]
        if not new:
            return []
        if not self.reads:
            self._told.update(document.data for document in new)
            return [NOTICE]
        fitting = [
            document for document in self._documents.all_of(request.messages) if document.data not in self._refused
        ]
        dropped = [document for document in _dropped(fitting) if document.data not in self._told]
        self._told.update(document.data for document in dropped)
        return [f"Sent as text: {named(dropped)}: {CROWDED}."] if dropped else []

    def take(self, error: WireError, request: ModelRequest) -> str:
        """Send files as text after a complaint about files or the size of the request: those that the server has never
        accepted, otherwise all. ``request`` is as sent. Returns a sentence for the user; empty if the complaint is
        about something else."""
        if error.kind != "server" and (error.kind not in _KINDS or error.status not in _STATUSES):
            return ""
        if error.kind != "too_large" and not _ABOUT_DOCUMENTS.search(f"{error.parameter} {error.words}".lower()):
            return ""
        sent = self._documents.all_of(request.messages)
        return self._refuse([document for document in sent if document.data not in self._accepted] or sent, error)

    def suspect(self, error: WireError, request: ModelRequest) -> str:
        """The same for a complaint that does not name its cause, with files that the server has never accepted."""
        if error.kind != "bad_request" or error.status not in _STATUSES:
            return ""
        return self._refuse(
            [document for document in self._documents.all_of(request.messages) if document.data not in self._accepted],
            error,
        )

    def _refuse(self, documents: Sequence[DocumentPart], error: WireError) -> str:
        if not documents:
            return ""
        self._refused.update(document.data for document in documents)
        return f"The server rejected {named(documents)}; swecli sends the text instead: {error.message[:200]}"

    def settle(self, request: ModelRequest) -> None:
        """Note the files of an answered request, as sent."""
        self._accepted.update(document.data for document in self._documents.all_of(request.messages))


def _dropped(documents: Sequence[DocumentPart]) -> Sequence[DocumentPart]:
    """The oldest files, if all together are too many or too large. They go in groups, and the later ones never take
    them back: each change costs the provider's cache."""
    first = pages = characters = 0
    for index, document in enumerate(documents):
        pages, characters = pages + document.pages, characters + len(document.data)
        if pages > _MOST_PAGES or characters > _MOST_CHARACTERS:
            part, whole = _KEPT
            while first < index and (
                pages * whole > _MOST_PAGES * part or characters * whole > _MOST_CHARACTERS * part
            ):
                pages, characters = pages - documents[first].pages, characters - len(documents[first].data)
                first += 1
    return documents[:first]
