"""Recall in a running session: facts of the first turns after three compactions, by the model and by the user."""

from __future__ import annotations

import random
from pathlib import Path

from swecli.commands.registry import CommandCall, parse
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import Compact
from swecli.core.protocol.events import CompactionCompleted, PermissionRequested
from swecli.core.tools.read_result import Recall
from tests.core.engine.support import Bench, bench, call, until

SUMMARY = "## Goal\\nKeep the services running.\\n" + "Much was read and nothing of it matters now. " * 8


def facts() -> dict[str, tuple[str, str]]:
    """Fifty facts: target of a read -> (sentence in the file, question)."""
    rand = random.Random(7)
    services = ["billing", "search", "mail", "login", "report", "import", "export", "audit", "chat", "map"]
    kinds = ["port", "timeout", "region", "owner", "error code"]
    made: dict[str, tuple[str, str]] = {}
    for service in services:
        for kind in kinds:
            value = f"{kind[:2]}{rand.randrange(10_000, 99_999)}"
            sentence = f"The {kind} of the {service} service is {value}."
            made[f"{service}_{kind.replace(' ', '_')}.md"] = (sentence, f"{service} service {kind}")
    return made


async def compact(b: Bench, number: int) -> None:
    b.send(Compact())
    await until(lambda: len(b.bodies(CompactionCompleted)) >= number and not b.session.view.busy, "compaction")


async def test_facts_of_before_three_compactions_are_recalled(tmp_path: Path) -> None:
    planted = facts()
    rand = random.Random(3)
    words = ["service", "server", "value", "table", "config", "test", "code", "the", "of", "is", "report", "mail"]
    names = list(planted)
    parts = [names[:17], names[17:34], names[34:]]
    script = "window = 200000\nmax_output = 2000\n"
    for part in parts:
        for at in range(0, len(part), 6):
            script += f"[[step]]\ncall = [{', '.join(call('read_file', name) for name in part[at : at + 6])}]\n"
        script += f'[[step]]\ntext = "Read."\n[[step]]\ntext = "{SUMMARY}"\n'
    async with bench(script, tmp_path, tools=[Recall()]) as b:
        for name, (sentence, _) in planted.items():
            noise = ["\n".join(" ".join(rand.choices(words, k=9)) for _ in range(30)) for _ in range(2)]
            b.gates.outputs[name] = f"{noise[0]}\n{sentence}\n{noise[1]}"
        for number, _ in enumerate(parts, 1):
            assert (await b.say(f"Read part {number}.")).outcome == "done"
            await compact(b, number)
        seen = "\n".join(part.text for message in b.session.view.messages for part in message.tool_results)
        gone = {name: fact for name, fact in planted.items() if fact[0] not in seen}
        assert len(gone) >= 40
        hit = resolved = 0
        for sentence, question in gone.values():
            run = await b.session.command_tools.run("recall", {"query": f"what is the {question}?"})
            assert not run.is_error
            assert len(run.text) <= 8_000
            first = run.text.split("\n\n[")[:3]
            hit += any(sentence in entry for entry in first)
            item = run.text[1 : run.text.index("]")]
            resolved += not (await b.session.command_tools.run("recall", {"id": item})).is_error
        assert hit >= 0.95 * len(gone)
        assert resolved == len(gone)
        for entry in b.bodies(CompactionCompleted)[-1].view:
            for source in entry.sources:
                assert not (await b.session.command_tools.run("recall", {"id": source})).is_error
        assert not b.bodies(PermissionRequested)
        invocation = parse("/recall billing service port")
        assert isinstance(invocation, CommandCall)
        shown = await invocation.command.run(b.session, invocation.arguments)
        (block,) = shown.blocks
        assert isinstance(block, TextBlock)
        assert planted["billing_port.md"][0] in block.text
