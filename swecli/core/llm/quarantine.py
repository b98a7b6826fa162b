"""The parts of a conversation that a server refuses, which its later requests leave out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from hashlib import sha256

import msgspec
from msgspec import structs
from msgspec.structs import replace

from swecli.core.llm.bound_thoughts import refused_from
from swecli.core.llm.errors import COMPLAINTS, WireError
from swecli.core.llm.per_message import ListPerMessage
from swecli.core.llm.refused_fields import IMAGE_REFUSAL
from swecli.core.llm.refused_parts import (
    ARGUMENTS,
    Build,
    Place,
    has_thoughts,
    name_of,
    parts_at,
    place_of,
    replacement,
    unread_calls,
    without_thoughts,
)
from swecli.core.llm.sent_images import (
    REJECTED,
    images_in,
    images_of,
    is_about_images,
    named,
    newest_images,
    refusal_name,
    without_images,
)
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import ImagePart, Message, Part, ProviderReport

PART = "part:"
"""Beginning of the name of a refused part that is no image."""


class Quarantine:
    """Parts of one conversation that one server refuses."""

    def __init__(self, refused: Collection[str] = (), host: str = "") -> None:
        """``refused`` has the ``refusal_name`` of images that the server refused in earlier sessions."""
        self._earlier = frozenset(name for name in refused if name.startswith(IMAGE_REFUSAL))
        self._names: dict[str, str] = {}
        self._news: list[ImagePart] = []
        """Images that the server refused one by one, to be remembered once it has answered without them."""
        self._parts: list[Part] = []
        self._images: set[str] = set()
        """Data of the images that the server refused."""
        self._suspects: list[ImagePart] = []
        """Images that may be the cause of a complaint that does not name them."""
        self._accepted: set[str] = set()
        """Data of the images that the server has answered."""
        self._is_repeated = False
        """Whether the request is already a repetition without some of its images."""
        self._thoughtless: set[str] = set()
        """Ids of messages whose thoughts the server refused in this run."""
        self._read_arguments = False
        """Whether the server has already complained about arguments."""
        self._images_of = ListPerMessage(images_in)
        self._reported = ListPerMessage(partial(_refused_before, host=host))

    def take(self, error: WireError, request: ModelRequest, build: Build) -> str:
        """Quarantine the parts of a server's complaint. ``request`` is as sent. Returns a sentence for the user; empty
        if no part can be left out."""
        if error.kind in ("bad_request", "server", "unknown") and ARGUMENTS.search(error.words):
            calls = unread_calls(request, everything=self._read_arguments)
            if calls:
                self._read_arguments = True
                self._parts += calls
                sentence = error.message[:200]
                return f"The server cannot read the arguments of earlier calls; swecli no longer sends them: {sentence}"
            return ""
        text = f"{error.parameter} {error.words}"
        if (first := refused_from(error, request, build)) is not None:
            return self._strip(request, first)
        place = place_of(text)
        if is_about_images(error) and (images := self._refused_images(place, request, build)):
            self._images.update(image.data for image in images)
            self._news += images if len(images) == 1 and error.kind == "bad_request" else []
            self._is_repeated = True
            unsent = f"no longer sends {'it' if len(images) == 1 else 'them'}"
            return f"The server rejected {named(images)} of this conversation; swecli {unsent}: {error.message[:200]}"
        if error.kind != "bad_request" or error.status not in COMPLAINTS:
            return ""
        refused = parts_at(place, request, build) if place is not None else []
        if not refused:
            return ""
        self._parts += refused
        what = " and ".join(dict.fromkeys(name_of(part) for part in refused))
        return f"The server rejected {what} of this conversation; swecli no longer sends it: {error.message[:200]}"

    def _strip(self, request: ModelRequest, first: int) -> str:
        """Send no thoughts of these messages, from an invalid one to the end: a gap would make those behind it invalid,
        too."""
        whole = [message.id for message in request.messages if has_thoughts(message)]
        invalid = [message.id for message in request.messages[first:] if has_thoughts(message)]
        self._thoughtless.update(invalid)
        what = "it" if len(invalid) == len(whole) else f"that of the newest {len(invalid)} of {len(whole)} answers"
        return f"The server rejected the model's earlier reasoning; swecli no longer sends {what}."

    def _refused_images(self, place: Place | None, request: ModelRequest, build: Build) -> list[ImagePart]:
        """The images that a complaint about images means: the ones at the place that it names, else the newest; on a
        second complaint of that kind all, so that images never keep a session from going on."""
        there = images_of(parts_at(place, request, build)) if place is not None else []
        if there:
            return there
        if self._is_repeated:
            return images_of(part for message in request.messages for part in message.parts)
        return newest_images(request)

    def suspect(self, error: WireError, request: ModelRequest) -> str:
        """Leave out the images that the server has never accepted, if it refuses a request without naming the cause:
        some servers say no more of an image. ``request`` is as sent. Returns a sentence for the user; empty without
        such images."""
        if error.kind != "bad_request" or error.status not in COMPLAINTS or self._suspects:
            return ""
        self._suspects = [image for image in newest_images(request) if image.data not in self._accepted]
        if not self._suspects:
            return ""
        return (
            f"The server rejected the request; swecli repeats it without {named(self._suspects)}: {error.message[:200]}"
        )

    def settle(self, sent: ModelRequest, *, answered: bool) -> list[str]:
        """Note the end of a request, as sent: suspects were the cause if it was answered without them. Returns the
        names of newly refused images."""
        news, self._news = self._news, []
        if answered:
            news += self._suspects if len(self._suspects) == 1 else []
            self._images.update(image.data for image in self._suspects)
            self._accepted.update(image.data for image in self._images_of.all_of(sent.messages))
        self._suspects, self._is_repeated = [], False
        return list(map(refusal_name, news)) if answered else []

    def refused_earlier(self, image: ImagePart, names: Collection[str] = ()) -> bool:
        """Whether the server refused this image in an earlier session, or in this one as ``names`` record."""
        if not self._earlier and not names:
            return False
        if image.data not in self._names:
            self._names[image.data] = refusal_name(image)
        return self._names[image.data] in self._earlier or self._names[image.data] in names

    def apply(self, request: ModelRequest) -> ModelRequest:
        refused = self._images.union(image.data for image in self._suspects)
        recorded = set(self._reported.all_of(request.messages))
        names = {name for name in recorded if name.startswith(IMAGE_REFUSAL)}
        if refused or self._earlier or names:
            request = without_images(
                request, lambda image: REJECTED if image.data in refused or self.refused_earlier(image, names) else ""
            )
        thoughtless, parts = self._thoughtless | recorded, {name for name in recorded if name.startswith(PART)}
        if not self._parts and not thoughtless:
            return request
        return replace(
            request, messages=tuple(self._cleared(message, thoughtless, parts) for message in request.messages)
        )

    def to_record(self, request: ModelRequest, sent: ModelRequest) -> ProviderReport:
        """What the server refused as far as no answer in the request says so, and what ``sent`` lacks that it has
        accepted before."""
        recorded = set(self._reported.all_of(request.messages))
        new = self._thoughtless - recorded
        given = self._images_of.all_of(request.messages)
        there = {image.data for image in self._images_of.all_of(sent.messages)}
        refused = [refusal_name(image) for image in given if image.data in self._images]
        refused += [f"{PART}{_digest(part)}" for part in self._parts]
        dropped = [image for image in given if image.data in self._accepted and image.data not in there]
        self._accepted.difference_update(image.data for image in dropped)
        return ProviderReport(
            thoughtless=tuple(message.id for message in request.messages if message.id in new) if new else (),
            refused=tuple(dict.fromkeys(name for name in refused if name not in recorded)),
            reduced=f"swecli no longer sends {named(dropped)}" if dropped else "",
        )

    def _cleared(self, message: Message, thoughtless: Collection[str], refused: Collection[str]) -> Message:
        parts: Sequence[Part] = message.parts
        if message.id in thoughtless:
            parts = [bare for part in parts if (bare := without_thoughts(part)) is not None]
        made = (
            replacement(part) if part in self._parts or (refused and f"{PART}{_digest(part)}" in refused) else part
            for part in parts
        )
        remaining = tuple(part for part in made if part is not None)
        return structs.replace(message, parts=remaining) if remaining != message.parts else message


def _digest(part: Part) -> str:
    return sha256(msgspec.json.encode(part)).hexdigest()[:32]


def _refused_before(message: Message, host: str) -> tuple[str, ...]:
    """Ids of earlier messages whose thoughts were refused, and names of parts that this host refused, by the report of
    this answer."""
    response = message.response
    if response is None or response.report is None:
        return ()
    return (*response.report.thoughtless, *(response.report.refused if response.origin.host == host else ()))
