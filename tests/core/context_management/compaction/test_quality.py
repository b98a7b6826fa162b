"""The quality gate: what has to be kept is found, and what a summary drops stands in the record."""

import random
import re

from swecli.core.context_management.compaction.options import Allowances, EntrySizes
from swecli.core.context_management.compaction.package import SessionFacts, build_package
from swecli.core.context_management.compaction.quality import anchors_of, cited, graded, sources_of_lines
from swecli.core.context_management.counter import CharCounter
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import ItemCompleted, ItemStarted
from swecli.core.protocol.messages import ImagePart, TextPart
from tests.support.said import Said


def facts() -> SessionFacts:
    return SessionFacts(todos=(Todo("write the changelog"), Todo("done", "completed")))


def session(seed: int) -> Said:
    said = Said()
    for number in range(6):
        said.user(f"You must not touch port {7000 + seed}.{number}. Look at `module_{seed}_{number}`.")
        said.call("edit_file", {"path": f"src/part{seed}_{number}.py"}, "edited")
        said.call("run_command", {"command": f"make test{number}"}, f"error: E{number} failed", number % 2)
        said.answer(f"Changed src/part{seed}_{number}.py because of rule R{seed}{number}.")
    return said


def test_thirty_sessions_keep_every_demand_and_every_changed_path() -> None:
    sizes = EntrySizes(TokenMonitor(CharCounter()), ModelInfo("p", "m", 200_000))
    for seed in range(30):
        chance = random.Random(seed)
        ledger = session(seed).ledger
        removed = tuple(ledger.entries)
        anchors = anchors_of(ledger, removed, facts())
        demands = [anchor for anchor in anchors if "must not" in anchor]
        paths = [anchor for anchor in anchors if anchor.startswith("src/part")]
        assert len(demands) == 6
        assert len(paths) >= 6
        assert "write the changelog" in anchors
        assert "done" not in anchors
        assert f"module_{seed}_3" in anchors
        summary = "\n".join(anchor for anchor in anchors if chance.random() > 0.4)
        text = build_package(ledger, removed, summary, facts(), sizes, Allowances.of(196_000)).text
        quality = graded(anchors, text, summary)
        assert quality.kept == quality.anchors == len(anchors)
        assert quality.missing == ()
        assert 0 < quality.written < quality.kept
        whole = "\n".join(anchors)
        besides = [
            sizes.text(build_package(ledger, removed, said, facts(), sizes, Allowances.of(196_000)).text)
            - sizes.text(said)
            for said in (summary, whole)
        ]
        assert besides[0] - besides[1] <= 300, besides  # what is added where a summary does not say it


def test_what_is_missing_is_named() -> None:
    quality = graded(("Never do it", "src/a.py"), "never  DO it", "")
    assert (quality.anchors, quality.kept, quality.written, quality.missing) == (2, 1, 0, ("src/a.py",))


def test_ids_at_the_end_of_a_line_stay_and_lead_to_their_items() -> None:
    ledger = session(1).ledger
    summary = "## Done\nChanged src/part1_3.py because of rule R13.\nSo says the user. [u1]\nSee [u9999]"
    first, again = cited(summary, ledger, ledger.entries), ""
    assert re.fullmatch(r"Changed src/part1_3.py because of rule R13. \[\w+(, \w+)?\]", first.splitlines()[1])
    assert first.splitlines()[2] == "So says the user. [u1]"
    assert "[u9999]" in first.splitlines()[3]
    again = cited(first, ledger, ledger.entries)
    assert again == first
    lines = sources_of_lines(first, ledger, ())
    assert lines[2] == ("So says the user.", ("u1",))
    assert all(name in ledger.entries for _, ids in lines for name in ids)


def test_each_line_leads_to_where_it_comes_from() -> None:
    ledger = session(1).ledger
    summary = "## Done\nChanged src/part1_3.py because of rule R13.\n\nNothing that anybody said."
    lines = dict(sources_of_lines(summary, ledger, ledger.entries))
    [found, *_] = lines["Changed src/part1_3.py because of rule R13."]
    assert "part1_3" in str(ledger.entries[found].parts)
    assert lines["## Done"] == lines[""] == ()
    assert all(name in ledger.entries for ids in lines.values() for name in ids)


def test_an_image_of_a_removed_message_is_named() -> None:
    said = Said()
    images = (ImagePart("image/png", "AAAA", "login.png"), ImagePart("image/jpeg", "AAAA"))
    for item, parts in (("u1", (TextPart("Why is it red?"), *images)), ("u2", images[:1])):
        said.tell(ItemStarted(item, "user"), ItemCompleted(item, "ok", parts))
    sizes = EntrySizes(TokenMonitor(CharCounter()), ModelInfo("p", "m", 200_000))
    text = build_package(said.ledger, ("u1", "u2"), "", SessionFacts(), sizes, Allowances.of(196_000)).text
    assert "[u1] Why is it red? [image login.png, no longer shown] [image image/jpeg, no longer shown]\n" in text
    assert "[u2] [image login.png, no longer shown]" in text
