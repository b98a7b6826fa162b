"""PDF files in requests: as files where the server takes them, as text elsewhere and after a refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import Overrides, ProviderConfig, resolve
from swecli.core.llm.sent_documents import SentDocuments, documents_in, with_texts
from swecli.core.llm.types import Failed, Finished, ModelRequest, StreamNotice
from swecli.core.protocol.messages import DocumentPart, Message, TextPart, ToolResultPart
from tests.core.llm.histories import assistant, build, call, request, target, user
from tests.core.llm.raw_server import RawServer, serve
from tests.core.llm.test_text_tools_client import ask, chat, refusal

ADDRESS = "data:application/pdf;base64,UERG"
SOUP = DocumentPart("UERG", "soup.pdf", "--- page 1 ---\nSalt", 1)
HISTORY = request(
    user("read", SOUP),
    assistant(call("c1", '{"path": "soup.pdf"}')),
    Message("tool", (ToolResultPart("c1", "read", "soup.pdf: PDF", documents=(SOUP,)),)),
)


def test_anthropic_gets_document_blocks() -> None:
    block = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "UERG"},
        "title": "soup.pdf",
    }
    sent = build(HISTORY, target("anthropic-messages", "api.anthropic.com", "claude-opus-5-5"))["messages"]
    assert block in sent[0]["content"]
    assert sent[2]["content"][0]["content"] == [{"type": "text", "text": "soup.pdf: PDF"}, block]


def test_responses_get_input_files() -> None:
    file = {"type": "input_file", "filename": "soup.pdf", "file_data": ADDRESS}
    sent = build(HISTORY, target("openai-responses", "api.openai.com", "gpt-6"))["input"]
    assert file in sent[0]["content"]
    assert sent[-1]["output"] == [{"type": "input_text", "text": "soup.pdf: PDF"}, file]


def test_chat_gets_files_in_the_users_messages() -> None:
    file = {"type": "file", "file": {"filename": "soup.pdf", "file_data": ADDRESS}}
    sent = build(HISTORY, target("openai-chat", "api.openai.com", "gpt-6"))["messages"]
    assert sent[0]["content"] == [{"type": "text", "text": "read"}, file]
    assert sent[2]["content"] == "soup.pdf: PDF"
    assert sent[3]["content"] == [{"type": "text", "text": "Files returned by read (c1):"}, file]


def test_gemini_gets_inline_data() -> None:
    data = {"inlineData": {"mimeType": "application/pdf", "data": "UERG"}}
    sent = build(HISTORY, target("gemini-generate", "generativelanguage.googleapis.com", "gemini-3"))["contents"]
    assert data in sent[0]["parts"]
    assert sent[-1]["parts"][-1] == data


def client_of(server: RawServer, *, reads: bool = True) -> HttpModelClient:
    mine = ProviderConfig("mine", "openai-chat", server.url, local=True)
    return HttpModelClient(resolve("mine/m", {}, [mine], Overrides(capabilities={"documents": reads})))


def document(number: int, pages: int = 1, characters: int = 8) -> DocumentPart:
    return DocumentPart(f"{number:0{characters}}", f"{number}.pdf", f"--- page 1 ---\nText {number}", pages)


def talk(*documents: DocumentPart) -> ModelRequest:
    return request(*(message for part in documents for message in (user("look", part), assistant("seen"))))


def files(body: Any) -> int:
    return json.dumps(body).count('"type": "file"')


async def test_a_model_that_reads_no_pdf_gets_the_text_and_the_user_is_told_once() -> None:
    async with serve(chat("ok")) as server:
        client = client_of(server, reads=False)
        first, second = await ask(client, HISTORY), await ask(client, HISTORY)
        assert [event.text for event in first if isinstance(event, StreamNotice)] == [
            "The model does not read PDF files; swecli sends their text."
        ]
        assert not any(isinstance(event, StreamNotice) for event in second)
        sent = json.dumps(server.requests[0].body)
        assert "UERG" not in sent
        assert sent.count("--- page 1 ---\\nSalt") == 2
        await client.close()


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "messages.0.content.1.document.source.base64.data: The PDF specified was not valid."),
        (400, "A maximum of 100 PDF pages may be provided."),
        (400, "Invalid file data: 'file_data'"),
        (400, "The document has no pages."),
        (413, "Request Entity Too Large"),
        (415, "application/pdf is not supported"),
        (422, "Unexpected content part of type file"),
        (500, "failed to parse document"),
        (400, "Request contains an invalid argument."),
    ],
)
async def test_a_refused_file_never_blocks_the_session(status: int, message: str) -> None:
    async with serve(chat("ok"), refusal(message, status), chat("ok")) as server:
        client = client_of(server)
        await ask(client, talk(document(1)))
        events = await ask(client, talk(document(1), document(2)))
        assert isinstance(events[-1], Finished)
        notices = [event.text for event in events if isinstance(event, StreamNotice)]
        assert len(notices) == 1
        assert notices[0].startswith("The server rejected 2.pdf; swecli sends the text instead: ")
        await ask(client, talk(document(1), document(2), document(3)))
        assert [files(received.body) for received in server.requests] == [1, 2, 1, 2]
        assert "Text 2" in json.dumps(server.requests[-1].body)
        await client.close()


async def test_files_that_were_accepted_before_go_if_the_request_became_too_large() -> None:
    async with serve(chat("ok"), refusal("Request Entity Too Large", 413), chat("ok")) as server:
        client = client_of(server)
        await ask(client, talk(document(1)))
        events = await ask(client, request(*talk(document(1)).messages, user("more")))
        assert isinstance(events[-1], Finished)
        assert [files(received.body) for received in server.requests] == [1, 1, 0]
        await client.close()


async def test_another_complaint_ends_as_one() -> None:
    async with serve(refusal("no such model", 404), chat("ok")) as server:
        client = client_of(server)
        assert isinstance((await ask(client, talk(document(1))))[-1], Failed)
        assert isinstance((await ask(client, talk(document(1))))[-1], Finished)
        assert [files(received.body) for received in server.requests] == [1, 1]
        await client.close()


def named_in(sent: ModelRequest) -> list[str]:
    return [one.name for message in sent.messages for one in documents_in(message)]


@pytest.mark.parametrize("each", [document(0, pages=10), document(0, characters=2_000_000)])
def test_the_oldest_files_go_in_groups(each: DocumentPart) -> None:
    sent, first_kept = SentDocuments(reads=True), list[int]()
    documents = [document(number, each.pages, len(each.data)) for number in range(30)]
    for count in range(1, len(documents) + 1):
        kept = [int(name.removesuffix(".pdf")) for name in named_in(sent.apply(talk(*documents[:count])))]
        assert kept == list(range(count - len(kept), count))
        first_kept.append(count - len(kept))
    assert first_kept == sorted(first_kept)
    assert 1 < len(set(first_kept)) < len(documents) // 2


def test_a_single_file_is_never_too_many() -> None:
    talked = talk(document(1, pages=100), document(2, pages=100))
    assert named_in(SentDocuments(reads=True).apply(talked)) == ["2.pdf"]


def test_a_scanned_file_is_named_where_it_cannot_be_sent() -> None:
    scan = DocumentPart("UERG", "scan.pdf", "--- page 1 ---\n\n--- page 2 ---", 2)
    part = with_texts(request(user("look", scan))).messages[0].parts[1]
    assert isinstance(part, TextPart)
    assert part.text.strip() == (
        "[scan.pdf was left out, because this model does not read PDF files, and its pages have no text.]"
    )
