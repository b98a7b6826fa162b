"""Sessions of the real program against servers with the newest APIs' rules: in every kind of session without an edit by
the user each request begins with the bytes of the one before, so that no request is refused, no thought is lost, and
the provider's cache is read as far as it can be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from swecli.core.config.trust import write_trust
from swecli.core.llm.scripted import Script
from tests.support.append_only import answered, beginnings, unread
from tests.support.conversations import FRONT_ENDS, FrontEnd
from tests.support.program import Program
from tests.support.session_kinds import KINDS, Kind, call, do, end, read, talk
from tests.support.strict_anthropic import PREFIX, AnthropicRules
from tests.support.strict_gemini import GeminiRules
from tests.support.strict_llama import LlamaRules
from tests.support.strict_responses import ResponsesRules
from tests.support.strict_server import StrictServer
from tests.support.thorough import THOROUGH

pytestmark = pytest.mark.e2e

RULES: Mapping[str, tuple[Callable[..., Any], str]] = {
    "anthropic": (AnthropicRules, "anthropic/claude-opus-5-5"),
    "responses": (ResponsesRules, "openai/gpt-6-sol"),
    "llama": (LlamaRules, "openai/m"),
    "gemini": (GeminiRules, "gemini/gemini-3.8-flash"),
}


def run(kind: Kind, front_end: FrontEnd, protocol: str, folder: Path, *options: str) -> StrictServer[Any]:
    """One session; fails unless it is append-only."""
    make_rules, model = RULES[protocol]
    project, home = folder / "project", folder / "home"
    project.mkdir()
    home.mkdir()
    for name in ("alpha", "beta"):
        (project / f"{name[0]}.txt").write_text("".join(f"{name} {number}\n" for number in ("one", "two")))
    write_trust(home / "data", project, "trusted")
    kind.prepare(project, home)
    with (home / "config.toml").open("a") as settings:
        settings.write('[models]\nwarm = "off"\n')  # a request ahead of time would take a step of the script
        if protocol == "responses":
            settings.write('[providers.openai]\nprotocol = "openai-responses"\n')
    script = Script(tuple(kind.steps), name=model.partition("/")[2])
    rules = make_rules(**(kind.rules if protocol == "anthropic" else {}))
    with StrictServer(script, rules) as server:
        program = Program(project, home, {**server.environment(), "SWECLI_MODEL": model, "HOME": str(folder)})
        it = FRONT_ENDS[front_end](program, *options)
        try:
            kind.act(it)
        except BaseException:
            it.kill()
            raise
        it.close()
        assert server.over, "the session ended before its script"
        assert server.refused == []
        requests = answered(server.asked)
        begun = beginnings(requests)
        assert len(begun) == kind.begins, begun
        assert getattr(rules, "lost", []) == []
        newest = json.dumps(server.asked[-1].body)
        assert {text: newest.count(text) for text in kind.tells} == dict.fromkeys(kind.tells, 1)
        if protocol != "gemini":
            assert unread(requests, rules.cache) == []
    return server


def tried() -> Sequence[Any]:
    """Each kind once; all combinations in the soak."""
    rows: list[Any] = []
    for at, (name, kind) in enumerate(KINDS.items()):
        pairs = [(front_end, protocol) for protocol in kind.protocols for front_end in kind.front_ends]
        rows += [(name, *pair) for pair in (pairs if THOROUGH else pairs[at % len(pairs) :][:1])]
    return rows


@pytest.mark.parametrize(("name", "front_end", "protocol"), tried())
def test_a_session_is_append_only(name: str, front_end: FrontEnd, protocol: str, tmp_path: Path) -> None:
    run(KINDS[name], front_end, protocol, tmp_path, "--yolo")


MODES = ("default", "accept-edits", "plan", "auto")
EDIT = call("edit_file", path="a.txt", old_string="alpha one", new_string="alpha 1")
PLAIN = (do(read("a.txt"), call("run_command", command="ls")), do(call("update_todos", todos=[{"text": "look"}])))


@pytest.mark.parametrize("mode", MODES)
def test_a_session_is_append_only_in_each_mode(mode: str, tmp_path: Path) -> None:
    """The front end is another one for each mode; the soak tries all."""
    edits = (do(EDIT),) if mode in ("accept-edits", "auto") else ()
    kind = Kind((*PLAIN, *edits, end("one"), do(read("b.txt")), end("two")), talk(turns=2))
    front_ends: tuple[FrontEnd, ...] = ("screen", "runs", "screen", "runs")
    for front_end in ("screen", "runs", "pipes") if THOROUGH else (front_ends[MODES.index(mode)],):
        (folder := tmp_path / front_end).mkdir()
        run(kind, front_end, "anthropic", folder, "--permission-mode", mode)
        assert ("alpha 1" in (folder / "project" / "a.txt").read_text()) == bool(edits)


def test_an_older_account_keeps_its_thoughts(tmp_path: Path) -> None:
    for number, name in enumerate(("todos", "instruction files that change", "redacted thoughts and empty texts")):
        kind = replace(KINDS[name], rules={**KINDS[name].rules, "enforced": False})
        (folder := tmp_path / str(number)).mkdir()
        server = run(kind, "pipes", "anthropic", folder, "--yolo")
        assert server.rules.dropping == []


def test_a_proxy_that_rewrites_messages_is_named_once_and_in_no_later_run(tmp_path: Path) -> None:
    stamps = count()

    def stamped(body: dict[str, Any]) -> dict[str, Any]:
        first = body["messages"][0]["content"]
        first[0] = {**first[0], "text": f"{first[0]['text']} ({next(stamps)})"}
        return body

    rules = AnthropicRules(rewrite=stamped)
    said = sessions_against(rules, tmp_path, "-c", "-c")
    assert [text.count("127.0.0.1 changes messages on their way") for text in said] == [1, 0, 0]
    assert rules.dropping == list(range(3, 3 + len(rules.dropping)))
    assert {lost.reason for lost in rules.lost} == {PREFIX}


def test_a_server_that_knows_no_field_costs_one_refusal_each_and_no_thought(tmp_path: Path) -> None:
    rules = AnthropicRules(fields=(), omits=False)
    said = sessions_against(rules, tmp_path, "-c", "--fork")
    told = [line for text in said for line in text.splitlines() if "does not know" in line]
    assert len(told) == len({line.partition("does not know")[2] for line in told})
    assert all("does not know" not in text for text in said[1:])
    assert rules.lost == []


def sessions_against(rules: AnthropicRules, folder: Path, *again: str) -> list[str]:
    """What a run over pipes said, and those that continued it; each has two turns with a call."""
    project = folder / "project"
    project.mkdir()
    (project / "a.txt").write_text("alpha\n")
    said: list[str] = []
    steps = [step for number in range(2 * (1 + len(again))) for step in (do(read("a.txt")), end(str(number)))]
    with StrictServer(Script(tuple(steps), name="claude-opus-5-5"), rules) as server:
        variables = {**server.environment(), "SWECLI_MODEL": "anthropic/claude-opus-5-5"}
        it = FRONT_ENDS["pipes"](Program(project, folder / "home", variables), "--yolo")
        for option in ("", *again):
            if option:
                it.again(*dict.fromkeys(("-c", option)))
            it.events.clear()
            it.say("Go on.")
            it.say("And on.")
            said.append("\n".join(body["text"] for body in it.events if body["type"] == "notice"))
        it.close()
        assert all(not word.startswith("messages.") or "bound to" in word for word in server.refused), server.refused
    return said


def test_thoughts_of_a_model_that_another_cannot_read_come_back_with_it(tmp_path: Path) -> None:
    """The other model gets none of them, and the first one all of its own again."""
    first, other = "anthropic/claude-opus-5-5", "anthropic/claude-sonnet-5-5"

    def act(it: Any) -> None:
        it.say("Go on with one.")
        it.send(type="set_model", model=other)
        it.say("Go on with two.")
        it.again()
        it.send(type="set_model", model=first)
        it.say("Go on with three.")
        it.say("Go on with four.")

    # Each model begins a conversation of its own for the provider, as does the way back.
    steps = (do(read("a.txt")), end("one"), do(read("b.txt")), end("two"), end("three"), end("four"))
    server = run(Kind(steps, act, begins=2), "pipes", "anthropic", tmp_path, "--yolo")
    back = json.dumps(server.asked[-1].body)
    assert back.count('"signature"') >= 3
