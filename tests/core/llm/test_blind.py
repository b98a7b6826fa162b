"""Images for models that can't see."""

from __future__ import annotations

import json

import pytest

from swecli.core.llm.sent_images import NOTICE, without_images
from swecli.core.llm.types import ModelInfo, ModelRequest, StreamNotice
from swecli.core.protocol.messages import ImagePart
from tests.core.llm.histories import IMAGE, assistant, call, request, result, user
from tests.core.llm.raw_server import serve
from tests.core.llm.test_text_tools_client import ask, chat, client_of, refusal

SEEN: ModelRequest = request(user("what is this?", IMAGE), assistant(call("c")), result("c", "a picture", IMAGE))


def test_a_sentence_takes_the_place_of_each_image() -> None:
    blind = without_images(SEEN)
    assert blind.messages[0].text.startswith("what is this?[The image (image/png) was left out")
    said = blind.messages[2].tool_results[0]
    assert said.text.startswith("a picture\n[The image")
    assert not said.images
    assert blind.messages[1] is SEEN.messages[1]
    assert without_images(blind) is blind


async def test_a_model_that_is_known_to_be_blind_gets_none_and_the_user_is_told_once() -> None:
    async with serve(chat("ok")) as server:
        client = client_of(server)
        client.compatibility.know(ModelInfo("mine", "m", 4096, images=False))
        first, second = await ask(client, SEEN), await ask(client, SEEN)
        assert first[0] == StreamNotice(NOTICE)
        assert not any(isinstance(event, StreamNotice) for event in second)
        assert "image_url" not in json.dumps([received.body for received in server.requests])
        await client.close()


async def test_a_model_of_which_nothing_is_known_gets_them() -> None:
    async with serve(chat("ok")) as server:
        client = client_of(server)
        await ask(client, SEEN)
        assert json.dumps(server.requests[0].body).count("image_url") > 1
        await client.close()


@pytest.mark.parametrize(
    "message",
    [
        "this model does not support image input",
        "At most 0 image(s) may be provided in one prompt.",
        "this model is missing data required for image input",
        "No endpoints found that support image input",
        "Failed to deserialize: messages[1]: unknown variant `image_url`, expected `text`",
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "Model 'meta-llama/llama-3-3-70b-instruct' does not support function 'function_image_chat'",
        "Model does not support image modality",
    ],
)
async def test_a_server_that_refuses_images_gets_none_from_then_on(message: str) -> None:
    async with serve(refusal(message), chat("ok"), chat("ok")) as server:
        client = client_of(server)
        events = await ask(client, SEEN)
        assert StreamNotice(NOTICE) in events
        await ask(client, SEEN)
        assert ["image_url" in json.dumps(received.body) for received in server.requests] == [True, False, False]
        await client.close()


async def test_other_complaints_leave_the_older_images_in() -> None:
    other = ImagePart("image/png", "b3RoZXI=", "new.png")
    seen = request(user("what is this?", IMAGE), assistant("a dog"), user("and this?", other))
    async with serve(refusal("the image format is not supported"), chat("ok")) as server:
        client = client_of(server)
        notices = [event.text for event in await ask(client, seen) if isinstance(event, StreamNotice)]
        assert len(notices) == 1
        assert notices[0].startswith("The server rejected the image new.png of this conversation")
        assert [json.dumps(received.body).count("data:image") for received in server.requests] == [2, 1]
        await client.close()
