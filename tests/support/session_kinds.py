"""Kinds of sessions, as a table for tests that look at their requests: what the model answers, what the user does."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swecli.core.llm.scripted import Arguments, Condition, Fault, ScriptedCall, Step, Texts
from tests.core.mcp.support import SERVER
from tests.support.conversations import FrontEnd, Pipes, Runs, Screen
from tests.support.pdf import pdf_of
from tests.support.pictures import png

EVERYWHERE: tuple[FrontEnd, ...] = ("runs", "pipes", "screen")


@dataclass(frozen=True)
class Kind:
    """A kind of session. ``begins`` is the number of conversations in it, or of beginnings with a named cause;
    ``rules`` are those of a server that differ from the usual ones."""

    steps: Sequence[Step]
    act: Callable[[Any], object]
    prepare: Callable[[Path, Path], object] = lambda project, home: None
    """Gets the folders of the project and of the user."""
    front_ends: Sequence[FrontEnd] = EVERYWHERE
    begins: int = 1
    rules: Mapping[str, Any] = field(default_factory=lambda: {})
    protocols: Sequence[str] = ("anthropic", "responses", "llama", "gemini")
    tells: Sequence[str] = ()
    """Texts that the last request has, each once."""


def call(tool: str, **arguments: Any) -> ScriptedCall:
    return ScriptedCall(tool, Arguments(json.dumps(arguments)))


def read(path: str) -> ScriptedCall:
    return call("read_file", path=path)


def do(*calls: ScriptedCall, **more: Any) -> Step:
    return Step(reasoning=f"I need {', '.join(one.tool for one in calls)}.", calls=calls, **more)


def end(word: str, **more: Any) -> Step:
    return Step(reasoning=f"That was {word}.", text=f"Finished {word}.", **more)


WORDS = ("one", "two", "three", "four")


def talk(*between: Callable[[Path, Path], object], turns: int = 0) -> Callable[[Any], None]:
    """A message for each turn, with what changes before the next one."""

    def act(it: Runs | Pipes | Screen) -> None:
        for at, word in enumerate(WORDS[: turns or len(between) + 1]):
            it.say(f"Go on with {word}.", f"Finished {word}.")
            if at < len(between):
                between[at](it.program.folder, it.program.home)

    return act


def _write(path: str, text: str | bytes) -> Callable[[Path, Path], object]:
    def write(project: Path, home: Path) -> None:
        file = project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


def _all(*changes: Callable[[Path, Path], object]) -> Callable[[Path, Path], object]:
    return lambda project, home: [change(project, home) for change in changes]


def _skill(name: str, text: str = "Do it.") -> Callable[[Path, Path], object]:
    """A skill of the user's own: those of a project wait for approval."""
    front = f"---\nname: {name}\ndescription: Does {name}\n---\n"
    return _write(f"{SKILLS}/{name}/SKILL.md", f"{front}{text}\n")


SKILLS = "../home/.claude/skills"
OLD_MEMORY = ".swecli/memory/old.md"


def _memory(name: str, text: str) -> Callable[[Path, Path], object]:
    return _write(f".swecli/memory/{name}.md", f"{text}\n")


def _own_instructions(text: str) -> Callable[[Path, Path], object]:
    def write(project: Path, home: Path) -> None:
        (home / "AGENTS.md").write_text(text)

    return write


def _remove(path: str) -> Callable[[Path, Path], object]:
    def remove(project: Path, home: Path) -> None:
        place = project / path
        shutil.rmtree(place) if place.is_dir() else place.unlink()

    return remove


def _server(*ways: str) -> Callable[[Path, Path], object]:
    servers = {"mcpServers": {"hub": {"command": sys.executable, "args": [str(SERVER), *ways]}}}
    return lambda project, home: (home / "mcp.json").write_text(json.dumps(servers))


def _search(project: Path, home: Path) -> None:
    (home / "config.toml").write_text("[web_search]\nenabled = true\n")


def _hooks(project: Path, home: Path) -> None:
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure")
    lines: list[str] = []
    for event in events:
        said = {"hookEventName": event, "additionalContext": f"Context of {event}, $RANDOM"}
        told = json.dumps({"hookSpecificOutput": said}).replace('"', '\\"')
        lines.append(f"[[hooks.{event}]]\ncommand = '''echo \"{told}\"'''\n")
    stop = "test -e stopped && exit 0; touch stopped; echo 'Look again.' >&2; exit 2"
    (home / "config.toml").write_text("".join(lines) + f"[[hooks.Stop]]\ncommand = '''{stop}'''\n")


def _todos(*states: str) -> ScriptedCall:
    return call("update_todos", todos=[{"text": f"step {at}", "status": state} for at, state in enumerate(states)])


def _again(*options: str, after: int = 1, turns: int = 3) -> Callable[[Any], None]:
    def act(it: Any) -> None:
        for at, word in enumerate(WORDS[:turns]):
            if at == after:
                it.again(*options)
            it.say(f"Go on with {word}.", f"Finished {word}.")

    return act


def _meanwhile(*changes: Callable[[Path, Path], object]) -> Callable[[Any], None]:
    """A message, and one after each of these changes, which happen while no program runs; then another one."""

    def act(it: Any) -> None:
        it.say("Go on with one.", "Finished one.")
        for word, change in zip(WORDS[1:], changes, strict=False):
            change(it.program.folder, it.program.home)
            it.again()
            it.say(f"Go on with {word}.", f"Finished {word}.")
        word = WORDS[len(changes) + 1]
        it.say(f"Go on with {word}.", f"Finished {word}.")

    return act


def _interrupting(seen: Callable[[Mapping[str, Any]], bool]) -> Callable[[Pipes], None]:
    def act(it: Pipes) -> None:
        it.send(type="submit", text="Go on.")
        it.until(seen)
        it.send(type="interrupt")
        it.until(lambda body: body["type"] == "turn_ended")
        talk(turns=2)(it)

    return act


def _delta(text: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda body: body["type"] == "item_delta" and text in body["text"]


def _steering(it: Pipes) -> None:
    it.send(type="submit", text="Go on.")
    it.until(lambda body: body["type"] == "item_checkpointed")
    it.send(type="steer", text="Also look at a.txt.")
    it.ended()
    talk(turns=1)(it)


def _commands(**commands: Mapping[str, Any]) -> Callable[[Pipes], None]:
    """A turn, then for each word a command and its turn."""

    def act(it: Pipes) -> None:
        it.say("Go on with one.", "Finished one.")
        for word, command in commands.items():
            it.send(**command)
            it.say(f"Go on with {word}.", f"Finished {word}.")

    return act


def _cut(it: Pipes) -> None:
    it.send(type="submit", text="Go on.")
    assert it.until(lambda body: body["type"] == "turn_ended")["outcome"] == "limit"
    talk(turns=2)(it)


def _background(it: Pipes) -> None:
    it.send(type="submit", text="Go on.")
    ended = 0
    while ended < 2:  # the turn and the agent, in any order
        ended += it.until(lambda body: body["type"] in ("turn_ended", "agent_ended"))["type"] != ""
    it.say("Go on with two.", "Finished two.")


def _memory_note(it: Screen) -> None:
    it.say("Go on with one.", "Finished one.")
    it.terminal.send("# Always use blanks")
    it.terminal.shows("# Always use blanks")
    it.terminal.send("\r")
    it.terminal.shows("Add it to AGENTS.md")
    it.terminal.takes_keys()
    it.terminal.send("1")
    it.terminal.hides("Add it to AGENTS.md")
    it.say("Go on with two.", "Finished two.")


def _shift_tab(it: Screen) -> None:
    it.say("Go on with one.", "Finished one.")
    for word in ("two", "three", "four"):
        it.terminal.send("\x1b[Z")
        it.say(f"Go on with {word}.", f"Finished {word}.")


SUBTASK = Condition(last_user=Texts(("SUBTASK",)))
ASKED = do(call("task", description="look at it now", prompt="SUBTASK: look", agent="explore"))
IN_BACKGROUND = do(call("task", description="look at it now", prompt="SUBTASK: look", agent="explore", background=True))
ENDS = (end("one"), end("two"), end("three"), end("four"))
TWO_READS = (do(read("a.txt")), end("one"), do(read("b.txt")), end("two"), end("three"))
CHANGED = call("edit_file", path="a.txt", old_string="alpha one", new_string="alpha 1")

KINDS: Mapping[str, Kind] = {
    "talk": Kind(TWO_READS, talk(turns=3)),
    "todos": Kind(
        (
            *(do(_todos("in_progress", "pending")), do(read("a.txt")), do(_todos("completed", "in_progress"))),
            *(end("one"), do(_todos("completed", "completed")), end("two"), end("three")),
        ),
        talk(turns=3),
    ),
    "scratchpad": Kind(
        (do(call("scratchpad", text="keep this")), end("one"), do(call("scratchpad", text="and that")), end("two")),
        talk(turns=2),
    ),
    "hooks": Kind(
        (do(read("a.txt")), end("zero"), do(read("missing.txt")), end("one"), do(read("b.txt")), end("two")),
        talk(turns=2),
        _hooks,
    ),
    "instruction files that change": Kind(
        (do(read("a.txt")), end("one"), do(read("sub/c.txt")), *ENDS[1:3]),
        talk(_write("AGENTS.md", "Use blanks.\n"), _write("sub/AGENTS.md", "Only there.\n")),
        _all(_write("AGENTS.md", "Use tabs.\n"), _write("sub/AGENTS.md", "Only here.\n"), _write("sub/c.txt", "c\n")),
        ("pipes", "screen"),
    ),
    "a note for the memory": Kind(ENDS[:2], _memory_note, _write("AGENTS.md", "Use tabs.\n"), ("screen",)),
    "memories": Kind(
        (do(call("memory", command="create", path="/memories/x.md", file_text="We use blanks.")), *ENDS[:3]),
        talk(turns=3),
    ),
    "skills and commands that appear": Kind(
        (do(call("skill", name="pdf")), end("one"), do(call("skill", name="new")), *ENDS[1:]),
        talk(
            _all(_skill("new"), _write(".claude/commands/hello.md", "Say hello.")),
            _skill("pdf", "Do it well."),
            _remove(f"{SKILLS}/new"),
        ),
        _skill("pdf"),
    ),
    "a tool goes and comes back changed": Kind(
        (
            *(do(call("mcp__hub__vanish")), end("one"), do(call("mcp__hub__come_back")), end("two")),
            *(do(call("mcp__hub__echo", text="hi")), end("three")),
        ),
        talk(turns=3),
        _server("odd"),
        ("pipes",),
    ),
    "a server changes its tools": Kind(
        (do(call("mcp__hub__change")), end("one"), do(call("mcp__hub__added")), end("two")),
        talk(turns=2),
        _server(),
        ("pipes", "screen"),
        protocols=("anthropic", "responses"),
    ),
    "a server that ends": Kind(
        (do(call("mcp__hub__crash")), end("one"), do(call("mcp__hub__echo", text="hi")), end("two")),
        talk(turns=2),
        _server(),
        ("pipes", "screen"),
    ),
    "a server that is away in one run": Kind(
        ENDS,
        talk(lambda project, home: (home / "mcp.json").unlink(), _server(), _server("other")),
        _server(),
        ("runs",),
    ),
    "a server that is new in a later run": Kind(
        (end("one"), do(call("mcp__hub__echo", text="hi")), end("two")),
        talk(_server()),
        front_ends=("runs",),
        protocols=("anthropic", "responses"),
    ),
    "a background job": Kind(
        (
            *(do(call("run_command", command="echo finished-job", background=True)), end("one")),
            *(do(call("run_command", command="sleep 0.5")), *ENDS[1:3]),
        ),
        talk(turns=3),
    ),
    "a subagent": Kind(
        (
            *(ASKED, do(read("a.txt"), when=SUBTASK), end("sub", when=Condition(last_result=Texts(("alpha",))))),
            *ENDS[:2],
        ),
        talk(turns=2),
        begins=2,
    ),
    "a subagent in the background": Kind(
        (IN_BACKGROUND, *ENDS[:3]),  # the order of the agent's answer and the turn's is open
        _background,
        begins=2,
        front_ends=("pipes",),
    ),
    "retrieval": Kind(
        (do(read("a.txt")), *ENDS[:2]),
        lambda it: [
            it.say("Why is price_of_apples wrong in shop.py?", "Finished one."),
            it.say("And price_of_pears?", "Finished two."),
        ],
        _all(
            _write("shop.py", "def price_of_apples(n):\n    return n\n"),
            _write("other.py", "def price_of_pears(n):\n    return n\n"),
        ),
    ),
    "lessons": Kind(
        (
            *(do(call("run_command", command="./run --fast")), do(call("run_command", command="sh check.sh all"))),
            *(end("one"), do(call("run_command", command="./run --fast")), end("two"), end("three")),
        ),
        talk(turns=3),
        _write("check.sh", "echo 3 passed"),
    ),
    "images": Kind(
        (do(read("x.png")), *ENDS[:1], do(read("y.png")), *ENDS[1:3]),
        lambda it: [
            it.say("Look.", "Finished one."),
            it.say("Look at @x.png", "Finished two."),
            it.say("Again.", "Finished three."),
        ],
        _all(_write("x.png", png(16, 16)), _write("y.png", png(20, 16))),
    ),
    "PDF files": Kind(
        (do(read("x.pdf")), *ENDS[:3]),
        lambda it: [
            it.say("Look.", "Finished one."),
            it.say("Look at @x.pdf:2", "Finished two."),
            it.say("Again.", "Finished three."),
        ],
        _write("x.pdf", pdf_of(["page one", "page two"])),
    ),
    "a fork": Kind((do(read("a.txt")), *ENDS[:3]), _again("-c", "--fork"), front_ends=("runs", "pipes", "screen")),
    "a resumption": Kind((do(read("a.txt")), *ENDS[:3]), _again("-c", after=2), front_ends=("pipes", "screen")),
    "instruction files that changed meanwhile": Kind(
        (do(read("a.txt")), *ENDS),
        _meanwhile(
            _all(_write("AGENTS.md", "Use blanks.\n"), _own_instructions("Speak briefly.")),
            _write("AGENTS.md", "None.\n"),
        ),
        _all(_write("AGENTS.md", "Use tabs.\n"), _own_instructions("Speak at length.")),
        tells=("Use tabs.", "Use blanks.", "None.", "Speak at length.", "Speak briefly."),
    ),
    "an instruction file that came and one that went meanwhile": Kind(
        (do(read("a.txt")), *ENDS[:3]),
        _meanwhile(_all(_remove("AGENTS.md"), _write("CLAUDE.md", "Use blanks.\n"))),
        _write("AGENTS.md", "Use tabs.\n"),
        tells=("Use tabs.", "Use blanks.", "AGENTS.md was removed"),
    ),
    "memories that changed meanwhile": Kind(
        (do(call("memory", command="create", path="/memories/own.md", file_text="We use tabs.")), *ENDS),
        _meanwhile(
            _all(_memory("new", "Ports begin at 8123."), _memory("old", "Releases are on Tuesdays.")),
            _remove(OLD_MEMORY),
        ),
        _memory("old", "Releases are on Mondays."),
        tells=(
            *("We use tabs.", "Ports begin at 8123.", "Releases are on Tuesdays.", "Releases are on Mondays."),
            "/memories/old.md no longer exists",
        ),
    ),
    "skills that changed meanwhile": Kind(
        (do(call("skill", name="pdf")), end("one"), do(call("skill", name="pdf")), *ENDS[1:]),
        _meanwhile(_skill("pdf", "Do it well."), _all(_skill("new"), _remove(f"{SKILLS}/pdf"))),
        _skill("pdf"),
        tells=("These skills have changed", "New skills, which", "These skills no longer exist: pdf"),
    ),
    "a first skill that came meanwhile": Kind(
        (end("one"), do(call("skill", name="pdf")), *ENDS[1:3]),
        _meanwhile(_skill("pdf", "Do it well.")),
        protocols=("anthropic", "responses"),
        tells=("New skills, which", "Do it well."),
    ),
    "a last skill that went meanwhile": Kind(
        (do(call("skill", name="pdf")), end("one"), do(call("skill", name="pdf")), *ENDS[1:3]),
        _meanwhile(_remove(f"{SKILLS}/pdf")),
        _skill("pdf"),
        tells=("These skills no longer exist: pdf",),
    ),
    "calls at the same time": Kind(
        (
            *(do(read("a.txt"), read("b.txt"), call("list_files")), end("one")),
            *(do(read("a.txt"), call("run_command", command="echo hi")), end("two")),
        ),
        talk(turns=2),
    ),
    "an answer that is cut and continued": Kind(
        (Step(reasoning="Long.", text="The first half", stop="length"), *ENDS[:2]), _cut, front_ends=("pipes",)
    ),
    "an answer that pauses": Kind(
        (Step(reasoning="Long.", text="The first half", stop="pause"), end("one"), do(read("a.txt")), end("two")),
        talk(turns=2),
        protocols=("anthropic",),
    ),
    "searches of the web": Kind(
        (
            *(end("one"), do(read("a.txt")), Step(reasoning="I look.", text="I look it up.", stop="pause")),
            *(do(read("b.txt")), end("two"), end("three")),
        ),
        talk(turns=3),
        _search,
        rules={"searches": {1: "all", 3: "call", 4: "result", 5: "all"}},
        protocols=("anthropic",),
        tells=("I look it up.",),
    ),
    "a search that pauses twice": Kind(
        (*(Step(reasoning="I look.", text=f"Look {word}.", stop="pause") for word in WORDS[:2]), *ENDS[:2]),
        talk(turns=2),
        _search,
        rules={"searches": {1: "call", 2: "result", 3: "all"}},
        protocols=("anthropic",),
    ),
    "a search that pauses and is interrupted": Kind(
        (
            Step(reasoning="I look.", text="I look it up.", stop="pause"),
            *(Step(reasoning="Thoughts without end. " * 5, fault=Fault("stall", after=50)), *ENDS[:2]),
        ),
        _interrupting(_delta("Thoughts")),
        _search,
        ("pipes",),
        2,  # a call without its result must not go back
        rules={"searches": {1: "call", 2: "result"}},
        protocols=("anthropic",),
    ),
    "an overloaded provider": Kind(
        (
            *(do(read("a.txt")), Step(text="x", fault=Fault("overloaded", retry_after=0.01)), end("one")),
            Step(reasoning="A thought that is cut", text="Half", fault=Fault("overloaded", after=23)),
            *(end("two"), end("three")),
        ),
        talk(turns=3),
    ),
    "redacted thoughts and empty texts": Kind(
        TWO_READS, talk(turns=3), rules={"redacted": (1, 4), "empty_text": (2, 3)}, protocols=("anthropic",)
    ),
    "modes": Kind(
        (do(read("a.txt")), *ENDS),
        _commands(
            two={"type": "set_mode", "mode": "plan"},
            three={"type": "set_mode", "mode": "auto"},
            four={"type": "set_mode", "mode": "default"},
        ),
        front_ends=("pipes",),
    ),
    "modes by key": Kind((do(read("a.txt")), *ENDS), _shift_tab, front_ends=("screen",)),
    "the effort changes": Kind(
        (do(read("a.txt")), *ENDS[:3]),
        _commands(two={"type": "set_effort", "effort": "high"}, three={"type": "set_effort", "effort": "low"}),
        front_ends=("pipes",),
        protocols=("anthropic", "responses"),
    ),
    "an interrupted thought": Kind(
        (do(read("a.txt")), Step(reasoning="Thoughts without end. " * 5, fault=Fault("stall", after=50)), *ENDS[:2]),
        _interrupting(_delta("Thoughts")),
        front_ends=("pipes",),
    ),
    "an interrupted text": Kind(
        (
            do(read("a.txt")),
            Step(reasoning="A.", text="Words. " * 10, fault=Fault("stall", after=50)),
            *ENDS[:2],
        ),
        _interrupting(_delta("Words")),
        front_ends=("pipes",),
    ),
    "an interrupted command": Kind(
        (do(call("run_command", command="sleep 60")), *ENDS[:2]),
        _interrupting(lambda body: body["type"] == "item_checkpointed"),
        front_ends=("pipes",),
    ),
    "steering": Kind(
        (do(call("run_command", command="sleep 1")), do(read("a.txt")), end("zero"), end("one")),
        _steering,
        front_ends=("pipes",),
    ),
    "files that change outside": Kind(
        (do(read("a.txt")), end("one"), do(CHANGED), end("two"), end("three")),
        talk(_write("a.txt", "alpha one\nnew\n"), _write("a.txt", "other\n")),
    ),
    "the user's own commands": Kind(
        (do(read("a.txt")), *ENDS[:2]),
        _commands(two={"type": "run_shell", "command": "echo hi"}),
        front_ends=("pipes",),
    ),
    "an empty answer": Kind((do(read("a.txt")), Step(reasoning="Nothing."), *ENDS[:2]), talk(turns=2)),
    "the same call again": Kind((*(do(read("a.txt")) for _ in range(4)), *ENDS[:2]), talk(turns=2)),
    "calls that can't run": Kind(
        (
            *(do(ScriptedCall("read_file", Arguments('{"path": "a.t'))), do(call("nonsense", x=1))),
            *(do(read("a.txt")), *ENDS[:2]),
        ),
        talk(turns=2),
    ),
    "large results": Kind(
        (do(read("big.txt")), end("one"), do(call("run_command", command="seq 1 100000")), *ENDS[1:3]),
        talk(turns=3),
        _write("big.txt", "\n".join(f"line {number}" for number in range(20_000))),
    ),
}
