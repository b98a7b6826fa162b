"""Images that fit a provider's limits, and what a server gets in place of the others."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Sequence

import pytest

from swecli.core.images import ImageLimits
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.dialects import find_dialect
from swecli.core.llm.per_message import ListPerMessage
from swecli.core.llm.providers import Overrides, ProviderConfig, resolve
from swecli.core.llm.sent_images import ImageFit, images_in, without_images
from swecli.core.llm.types import Failed, Finished, ModelRequest, StreamNotice
from swecli.core.protocol.messages import ImagePart, ToolResultPart
from tests.core.llm.histories import assistant, call, request, result, user
from tests.core.llm.raw_server import RawServer, serve
from tests.core.llm.test_text_tools_client import ask, chat, refusal


def image(number: int, edge: int = 10, characters: int = 0) -> ImagePart:
    head = b"\x89PNG\r\n\x1a\n" + bytes(8) + struct.pack(">II", edge, 5) + str(number).encode()
    data = base64.b64encode(head).decode().rstrip("=")
    return ImagePart("image/png", data + "A" * (max(characters, len(data) + 4) - len(data)), f"{number}.png")


def kept(conversation: ModelRequest, limits: ImageLimits) -> list[str]:
    reasons = ImageFit(limits).reasons(ListPerMessage(images_in).all_of(conversation.messages))
    images = [part for message in conversation.messages for part in message.parts if isinstance(part, ImagePart)]
    return [part.name.removesuffix(".png") for part in images if part.data not in reasons]


def talk(*images: ImagePart) -> ModelRequest:
    return request(*(message for part in images for message in (user(part), assistant("seen"))))


def client_of(
    server: RawServer, learn: Callable[[str], str] = lambda name: "", refused: Sequence[str] = ()
) -> HttpModelClient:
    mine = ProviderConfig("mine", "openai-chat", server.url, local=True)
    return HttpModelClient(resolve("mine/m", {}, [mine], overrides=Overrides(refused=lambda _: refused)), learn=learn)


def test_a_single_image_over_a_limit_is_left_out_with_the_figures() -> None:
    limits = ImageLimits(characters=1_000_000, edge=500)
    conversation = talk(image(1, characters=1_200_000), image(2, edge=700), image(3))
    reasons = ImageFit(limits).reasons(ListPerMessage(images_in).all_of(conversation.messages))
    assert kept(conversation, limits) == ["3"]
    sent = without_images(conversation, lambda part: reasons.get(part.data, ""))
    assert sent.messages[0].text == (
        "[The image 1.png (image/png) was left out: it is 1.2 MB as base64, and the server accepts 1.0 MB.]"
    )
    assert "its longer edge has 700 pixels, and the server accepts 500" in sent.messages[2].text
    assert sent.messages[4] is conversation.messages[4]


def test_an_image_counts_as_base64_and_not_as_a_file() -> None:
    """4.1 MB as a file are 5.46 million characters, more than the 5,242,880 that Anthropic accepts."""
    conversation = talk(image(1, characters=5_463_152), image(2, characters=5_242_880))
    assert kept(conversation, find_dialect("anthropic-messages", "api.anthropic.com", "claude-opus-5-5").images) == [
        "2"
    ]
    assert kept(conversation, find_dialect("openai-chat", "localhost", "m").images) == ["2"]
    assert kept(conversation, find_dialect("openai-chat", "api.openai.com", "gpt-6").images) == ["1", "2"]


def test_one_image_of_a_result_is_left_out_alone() -> None:
    limits = ImageLimits(edge=500)
    conversation = request(assistant(call("c")), result("c", "two pictures", image(1, edge=700), image(2)))
    reasons = ImageFit(limits).reasons(ListPerMessage(images_in).all_of(conversation.messages))
    part = without_images(conversation, lambda part: reasons.get(part.data, "")).messages[1].parts[0]
    assert isinstance(part, ToolResultPart)
    assert part.images == (image(2),)
    assert part.text.startswith("two pictures\n[The image 1.png")


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (ImageLimits(count=8), 8),
        (ImageLimits(many=8, many_edge=9), 8),
        (ImageLimits(total=8 * 100), 8),
    ],
)
def test_the_oldest_images_go_in_groups(limits: ImageLimits, most: int) -> None:
    images = [image(number, characters=100) for number in range(40)]
    first_kept: list[int] = []
    for count in range(1, len(images) + 1):
        names = kept(talk(*images[:count]), limits)
        assert names == [str(number) for number in range(count - len(names), count)]
        assert len(names) <= most
        assert len(names) > most // 2 or count <= most // 2
        first_kept.append(count - len(names))
    assert first_kept == sorted(first_kept)
    assert len(set(first_kept)) < len(images) // 2


def test_large_images_among_many_are_fine_while_they_are_few() -> None:
    limits = ImageLimits()
    assert len(kept(talk(*(image(number, edge=3000) for number in range(20))), limits)) == 20
    assert len(kept(talk(*(image(number, edge=2000) for number in range(90))), limits)) == 90


async def test_an_image_over_the_limit_is_never_sent_and_the_user_is_told_once() -> None:
    large = image(1, characters=5_463_152)
    async with serve(chat("ok")) as server:
        client = client_of(server)
        first, second = await ask(client, talk(large)), await ask(client, talk(large, image(2)))
        notices = [event.text for event in first if isinstance(event, StreamNotice)]
        assert len(notices) == 1
        assert notices[0].startswith("Not sent: the image 1.png: it is 5.5 MB as base64")
        assert not any(isinstance(event, StreamNotice) for event in second)
        assert [json.dumps(received.body).count("data:image") for received in server.requests] == [0, 1]
        await client.close()


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "messages.6.content.0.tool_result.content.1.image.source.base64: image exceeds 5 MB maximum"),
        (400, "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"),
        (400, "Too many images in request: 101 > 100"),
        (400, "Image does not match the provided media type image/png"),
        (400, "At most 1 image(s) may be provided in one prompt."),
        (413, "Request Entity Too Large"),
        (413, "request_too_large: Request exceeds the maximum size"),
        (422, "inlineData of part 2 is not valid"),
        (500, "failed to decode image bytes"),
    ],
)
async def test_complaints_about_images_take_the_newest_then_all(status: int, message: str) -> None:
    refused = refusal(message, status)
    async with serve(refused, refused, chat("ok")) as server:
        client = client_of(server)
        events = await ask(client, talk(image(1), image(2)))
        assert isinstance(events[-1], Finished)
        sent = [json.dumps(received.body).count("data:image") for received in server.requests]
        assert sent == [2, 1, 0]
        await ask(client, talk(image(1), image(2), image(3)))
        assert json.dumps(server.requests[-1].body).count("data:image") == 1
        await client.close()


async def test_a_complaint_without_a_cause_is_tried_without_the_new_images() -> None:
    async with serve(chat("ok"), refusal("Request contains an invalid argument."), chat("ok")) as server:
        client = client_of(server)
        await ask(client, talk(image(1)))
        events = await ask(client, talk(image(1), image(2)))
        assert isinstance(events[-1], Finished)
        assert any(
            "repeats it without the image 2.png" in event.text for event in events if isinstance(event, StreamNotice)
        )
        await ask(client, talk(image(1), image(2), image(3)))
        sent = [json.dumps(received.body).count("data:image") for received in server.requests]
        assert sent == [1, 2, 1, 2]
        await client.close()


async def test_images_that_were_not_the_cause_come_back() -> None:
    refused = refusal("Request contains an invalid argument.")
    async with serve(refused, refused, chat("ok")) as server:
        client = client_of(server)
        assert isinstance((await ask(client, talk(image(1))))[-1], Failed)
        assert isinstance((await ask(client, talk(image(1))))[-1], Finished)
        sent = [json.dumps(received.body).count("data:image") for received in server.requests]
        assert sent == [1, 0, 1]
        await client.close()


async def test_a_refused_image_is_remembered_for_later_sessions() -> None:
    """Thoughts after it are bound to the sentence in its place, so that it must not return with a resume."""
    stored: list[str] = []
    message = "messages.0.content.0.image.source.base64: Could not process image"
    async with serve(refusal(message), chat("ok")) as server:
        first = client_of(server, learn=lambda name: stored.append(name) or "")
        await ask(first, talk(image(1)))
        await first.close()
        later = client_of(server, refused=stored)
        events = await ask(later, talk(image(1), image(2)))
        await later.close()
        sent = [json.dumps(received.body) for received in server.requests]
    assert len(stored) == 1
    assert stored[0].startswith("image:")
    assert [body.count("data:image") for body in sent] == [1, 0, 1]
    assert StreamNotice("Not sent: the image 1.png: the server rejected it in an earlier request.") in events
    replaced = "[The image 1.png (image/png) was left out: the server rejected it.]"
    assert all(replaced in body for body in sent[1:])


@pytest.mark.parametrize(
    ("status", "message"), [(413, "Request Entity Too Large"), (500, "failed to decode image bytes")]
)
async def test_what_may_be_no_fault_of_the_image_is_not_remembered(status: int, message: str) -> None:
    stored: list[str] = []
    async with serve(refusal(message, status), chat("ok")) as server:
        client = client_of(server, learn=lambda name: stored.append(name) or "")
        assert isinstance((await ask(client, talk(image(1))))[-1], Finished)
        await client.close()
    assert stored == []


async def test_what_a_server_refused_stays_out_of_the_conversation_when_it_is_resumed() -> None:
    refused = refusal("Request Entity Too Large", 413)
    asked = talk(image(1), image(2))
    async with serve(refused, refused, chat("ok"), chat("ok")) as server:
        first = client_of(server)
        finished = (await ask(first, asked))[-1]
        await first.close()
        assert isinstance(finished, Finished)
        later = client_of(server)
        await ask(later, request(*asked.messages, finished.message, user("and now?"), user(image(3))))
        await later.close()
        before, now = (received.body["messages"] for received in server.requests[2:])
    assert now[: len(before)] == before
    assert json.dumps(now).count("data:image") == 1


async def test_an_answer_says_what_its_request_left_out_for_the_first_time() -> None:
    images = [image(number) for number in range(102)]
    async with serve(chat("ok"), chat("ok"), chat("ok")) as server:
        client = client_of(server)
        reduced: list[str] = []
        for count in (100, 101, 102):
            finished = (await ask(client, talk(*images[:count])))[-1]
            assert isinstance(finished, Finished)
            assert finished.message.response is not None
            report = finished.message.response.report
            reduced.append(report.reduced if report is not None else "")
        await client.close()
    assert reduced[0] == reduced[2] == ""
    assert reduced[1].startswith("swecli no longer sends 26 images (0.png, 1.png, 2.png, …)")
