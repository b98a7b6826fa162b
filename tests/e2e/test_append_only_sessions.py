"""Sessions of the real program against servers with the newest APIs' rules: in every kind of session without an edit by
the user each request begins with the bytes of the one before, so that no request is refused, no thought is lost, and
the provider's cache is read as far as it can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from swecli.core.config.trust import write_trust
from swecli.core.llm.scripted import Script
from tests.support.append_only import answered, beginnings, unread
from tests.support.conversations import FRONT_ENDS, FrontEnd
from tests.support.program import Program
from tests.support.session_kinds import KINDS, Kind
from tests.support.strict_anthropic import AnthropicRules
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
    if protocol == "responses":
        with (home / "config.toml").open("a") as settings:
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
