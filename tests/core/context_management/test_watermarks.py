"""A cache breakpoint stands where the next clearing begins, so that what comes before it is read from the cache."""

from __future__ import annotations

from msgspec import structs

from swecli.core.context_management.compaction.clearing import clear
from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.projection import project, watermarks
from swecli.core.context_management.prompt import message_breakpoints
from swecli.core.llm.types import ModelInfo, ModelRequest, SystemBlock
from swecli.core.protocol.events import CompactionCompleted
from swecli.core.protocol.messages import Message, TextPart
from swecli.features.lab.prefix_cache import Framed, PrefixCache
from tests.support.said import Said

LINES = "\n".join(f"line {number} of some output" for number in range(200))
SIZES = EntrySizes(TokenMonitor(), ModelInfo("p", "m", 200_000))


def tokens(block: object) -> int:
    return len(str(block.part)) // 4 if isinstance(block, Framed) else 2_000


def read(said: Said, count: int) -> None:
    for _ in range(count):
        said.call("read_file", {"path": f"f{said.next_id()}"}, f"{said.next_id()}\n{LINES}")


def clear_old(said: Said) -> None:
    ledger = said.ledger
    found = clear(ledger, ledger.view, SIZES, 4_000)
    said.tell(CompactionCompleted(f"k{said.next_id()}", found.view, 2, 1, 1, 1, ("clearing",)))


def request(said: Said, *, changed: bool = False, marked: bool = True) -> ModelRequest:
    messages = project(said.ledger)
    marks = watermarks(said.ledger, messages, changed=changed) if marked else ()
    return ModelRequest((SystemBlock("x", breakpoint=True),), (), messages, message_breakpoints(messages, *marks))


def test_without_clearing_there_is_none() -> None:
    said = Said()
    said.user("Read.")
    read(said, 3)
    assert watermarks(said.ledger, project(said.ledger), changed=True) == ()


def test_the_mark_is_the_last_message_that_was_cleared() -> None:
    said = Said()
    said.user("Read.")
    read(said, 8)
    clear_old(said)
    messages = project(said.ledger)
    (mark,) = watermarks(said.ledger, messages, changed=False)
    assert "cleared" in str(messages[mark].parts)
    assert "cleared" not in str(messages[mark + 1 :])
    assert mark in message_breakpoints(messages, mark)


def test_the_second_clearing_leaves_the_cache_of_the_first() -> None:
    shares: list[int] = []
    for marked in (False, True):
        said = Said()
        cache = PrefixCache(tokens)
        said.user("Read.")
        read(said, 30)
        cache.charge(request(said, marked=marked))
        clear_old(said)
        cache.charge(request(said, changed=True, marked=marked))
        for _ in range(15):
            read(said, 2)
            cache.charge(request(said, marked=marked))
        clear_old(said)
        shares.append(cache.charge(request(said, changed=True, marked=marked)).read)
    without, with_mark = shares
    assert with_mark > without + 1_000


def test_an_answer_with_more_blocks_than_a_provider_looks_back_keeps_its_mark() -> None:
    messages = [Message("user", (TextPart("go"),), "u1"), Message("assistant", (TextPart("x"),), "a1")]
    many = structs.replace(messages[1], parts=tuple(TextPart(str(number)) for number in range(25)), id="a2")
    said = (*messages, Message("user", (TextPart("more"),), "u2"), many, Message("tool", (), "a2.results"))
    assert message_breakpoints(said, 0, 1) == (0, 2, 4)
    assert message_breakpoints((*said[:3], structs.replace(many, parts=many.parts[:3]), said[4]), 0, 1) == (0, 1, 4)
