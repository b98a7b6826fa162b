"""The user's rules are applied when a pass pays for its cache rewrite, or when the cache is cold anyway."""

from pathlib import Path

from swecli.core.config.settings import RetentionSettings
from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.protocol.commands import SetModel, UndoCompaction
from swecli.core.protocol.events import CompactionCompleted
from tests.core.engine.support import Bench, bench, call

LINES = "\n".join(f"line {number} of a file with some words in it" for number in range(400))
RULES = CompactionOptions(retention=(RetentionSettings(tool="read_file", keep_turns=1),))
OFF = CompactionOptions(auto=False, retention=RULES.retention)


def script(reads: int) -> str:
    steps = [f"[[step]]\ncall = [{call('read_file', f'f{number}')}]" for number in range(reads)]
    return "window = 200000\nmax_output = 2000\n" + "\n".join([*steps, *['[[step]]\ntext = "Well."'] * 5])


async def read(b: Bench, count: int) -> None:
    for number in range(count):
        b.gates.outputs[f"f{number}"] = f"file {number}\n{LINES}"
    assert (await b.say("Read the files.")).outcome == "done"


def stubs(b: Bench) -> list[str]:
    done = b.bodies(CompactionCompleted)
    return [entry.rule for entry in done[-1].view if entry.kind == "stub"] if done else []


async def test_a_small_gain_waits_until_the_cache_is_cold(tmp_path: Path) -> None:
    now = [0.0]
    async with bench(script(3), tmp_path, compaction=RULES, clock=lambda: now[0]) as b:
        await read(b, 3)
        now[0] += 60
        await b.say("And now?")
        assert not b.bodies(CompactionCompleted)
        now[0] += 301
        before = len(b.session.view.messages)
        await b.say("And now?")
        assert stubs(b) == ["read_file: keep_turns 1"] * 3
        assert len(b.session.view.messages) == before + 2
        await b.say("And now?")
        assert len(b.bodies(CompactionCompleted)) == 1
        b.send(UndoCompaction())
        assert "line 399" in "".join(b.tool_texts().values())


async def test_a_switch_of_the_model_waits_like_everything_else(tmp_path: Path) -> None:
    now = [0.0]
    other = ScriptedModel(
        parse_script('window = 200000\nmax_output = 2000\nname = "other"\n' + '[[step]]\ntext = "Hm."\n' * 2)
    )
    first = ScriptedModel(parse_script(script(3)))
    models = {"scripted/first": first, "scripted/other": other}

    def make(name: str) -> ScriptedModel:
        return models[name]

    assert other.info.ref != first.info.ref
    async with bench(
        script(3), tmp_path, name="scripted/first", compaction=RULES, clock=lambda: now[0], make_client=make
    ) as b:
        await read(b, 3)
        b.send(SetModel("scripted/other"))
        now[0] += 60
        await b.say("And now?")
        assert not b.bodies(CompactionCompleted)
        now[0] += 301
        await b.say("And now?")
        assert len(stubs(b)) == 3


async def test_a_large_gain_is_taken_at_once_and_with_automatic_compaction_off_too(tmp_path: Path) -> None:
    async with bench(script(12), tmp_path, compaction=OFF, clock=lambda: 0.0) as b:
        await read(b, 12)
        await b.say("And now?")
        assert stubs(b) == ["read_file: keep_turns 1"] * 12
        assert b.bodies(CompactionCompleted)[0].tokens_after < 0.3 * b.bodies(CompactionCompleted)[0].tokens_before


async def test_without_rules_and_with_automatic_compaction_off_nothing_goes(tmp_path: Path) -> None:
    now = [0.0]
    off = CompactionOptions(auto=False)
    async with bench(script(12), tmp_path, compaction=off, clock=lambda: now[0]) as b:
        await read(b, 12)
        now[0] += 10_000
        await b.say("And now?")
        assert not b.bodies(CompactionCompleted)
