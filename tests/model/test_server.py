"""The real program at a real llama.cpp server: what reaches the model, what is measured, and every kind of end. What
the model says does not matter here. Run by ``make test-model``."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.model.llama import NEEDS_MODEL, llama, program_at, rendered, tokens_in
from tests.support.conversations import Screen
from tests.support.program import Ended

pytestmark = NEEDS_MODEL

LIMIT = "max_output_tokens = 64"
SECONDS = 300.0


def budgets(ended: Ended) -> list[int]:
    return [body["budget"]["used"] for body in ended.events if body["type"] == "step_started"]


def prompts(ended: Ended) -> list[int]:
    """What the server counted in each prompt."""
    usages = [body["usage"] for body in ended.events if body["type"] == "step_ended" and body["usage"]]
    return [usage["input_total"] for usage in usages]


@pytest.mark.parametrize("window", [2_048, 4_096, 8_192, 32_768])
def test_tools_reach_the_prompt_of_a_template_without_a_place_for_them(tmp_path: Path, window: int) -> None:
    with llama(window) as url:
        program = program_at(url, tmp_path)
        dry = json.loads(program.run("-p", "hi", "--dry-run").stdout)
        prompt = rendered(url, dry["body"])
        fixed = tokens_in(url, dry["body"]["messages"][0]["content"])
        status = program.run("-p", "/status").stdout
    assert "tools" not in dry["body"]
    assert all(name in prompt for name in ("edit_file", "read_file", "run_command", "write_file"))
    assert "tools as text" in status
    if window <= 4_096:
        assert fixed <= 600


DROPS_TOOLS = """
{%- for tool in tools or [] %}{% set read = tool.function.name ~ tool.function.description %}{% endfor -%}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content or '' }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""A template that reads the tools, so that llama.cpp reports a place for them, and writes none."""


def test_tools_that_a_template_drops_are_described_and_it_is_said_once(tmp_path: Path) -> None:
    template = tmp_path / "drops.jinja"
    template.write_text(DROPS_TOOLS, encoding="utf-8")
    with llama(8_192, template=str(template)) as url:
        assert httpx.get(f"{url}/props").json()["chat_template_caps"]["supports_tools"] is True
        program = program_at(url, tmp_path, context=LIMIT)
        screen = Screen(program)
        screen.terminal.shows("left the tools out of the prompt")
        screen.terminal.until(lambda: "~" not in screen.terminal.text.splitlines()[-1], "the server's count")
        screen.close()
        dry = json.loads(program.run("-p", "hi", "--dry-run").stdout)
        prompt = rendered(url, dry["body"])
        again = program.run("-p", "hi", "--output-format", "stream-json", timeout=SECONDS)
    assert "tools" not in dry["body"]
    assert "edit_file" in prompt
    assert prompts(again)[0] == pytest.approx(budgets(again)[0], rel=0.2)
    assert "left the tools out" not in again.stdout + again.stderr


def test_the_second_request_is_predicted(tmp_path: Path) -> None:
    with llama(8_192) as url:
        program = program_at(url, tmp_path, context=LIMIT)
        (tmp_path / "project" / "a.txt").write_text("a line of a file\n" * 30)
        runs = [program.run("-p", "say hi", "--output-format", "stream-json", timeout=SECONDS)]
        for text in ("go on with @a.txt", "and once more", "and now?"):
            runs.append(program.run("-c", "-p", text, "--output-format", "stream-json", timeout=SECONDS))
    expected = [tokens for ended in runs for tokens in budgets(ended)]
    real = [tokens for ended in runs for tokens in prompts(ended)]
    assert len(expected) == len(real) >= 4
    misses = [abs(one - other) / other for one, other in zip(expected, real, strict=True)]
    assert all(miss <= 0.03 for miss in misses[1:]), (expected, real)


def test_a_setting_that_the_server_refutes_costs_one_request(tmp_path: Path) -> None:
    with llama(4_096) as url:
        name = httpx.get(f"{url}/v1/models").json()["data"][0]["id"]
        program = program_at(url, tmp_path, context=LIMIT, models_window=f'"llamacpp/{name}" = 32_768')
        (tmp_path / "project" / "a.txt").write_text("a line of a file that is long\n" * 400)
        ended = program.run("-p", "Read @a.txt", "--output-format", "stream-json", timeout=SECONDS)
        again = program.run("-c", "-p", "hi", "--output-format", "json", timeout=SECONDS)
    assert ended.code in (0, 64), ended.stderr
    assert "models.window" in ended.stderr + ended.stdout
    assert again.code in (0, 64), again.stderr


def test_an_answer_up_to_the_window_leaves_a_session_that_goes_on(tmp_path: Path) -> None:
    with llama(2_048) as url:
        program = program_at(url, tmp_path)
        first = program.run("-p", "Count to ten thousand.", "--output-format", "json", timeout=SECONDS)
        second = program.run("-c", "-p", "hi", "--output-format", "json", timeout=SECONDS)
    assert first.code in (0, 64), first.stderr
    assert second.code in (0, 64), second.stderr


def test_a_conversation_is_compacted_and_goes_on(tmp_path: Path) -> None:
    with llama(4_096) as url:
        program = program_at(url, tmp_path, context=LIMIT)
        ends: list[Ended] = []
        for number in range(12):
            again = ("-c",) if ends else ()
            (tmp_path / "project" / f"{number}.txt").write_text(f"line of the file {number} that is long\n" * 60)
            text = f"Read @{number}.txt"
            ends.append(program.run(*again, "-p", text, "--output-format", "stream-json", timeout=SECONDS))
    assert {ended.code for ended in ends} <= {0, 64}, [ended.stderr for ended in ends]
    completed = [body for ended in ends for body in ended.events if body["type"] == "compaction_completed"]
    assert completed


def test_two_sessions_share_one_slot(tmp_path: Path) -> None:
    with llama(8_192) as url, ThreadPoolExecutor(2) as pool:
        programs = [program_at(url, tmp_path, context=LIMIT) for _ in range(2)]
        ends = list(pool.map(lambda program: program.run("-p", "hi", "--output-format", "json"), programs))
    assert {ended.code for ended in ends} <= {0, 64}, [ended.stderr for ended in ends]
    assert len({ended.result["session"] for ended in ends}) == 2


def test_a_server_killed_in_mid_answer_and_started_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with llama(8_192, port=port) as url:
        screen = Screen(program_at(url, tmp_path))
        screen.terminal.shows("Ask for")
        screen.terminal.send("Count to ten thousand.\r")
        screen.terminal.shows("Writing")
    screen.terminal.shows("next try in")
    with llama(8_192, port=port):
        screen.terminal.hides("next try")
        screen.terminal.shows("Writing")
        screen.terminal.send("\x1b")
        screen.terminal.shows("interrupted")
        screen.terminal.send("And then?\r")
        screen.terminal.shows("› And then?")
        screen.close()


def test_the_prompt_is_evaluated_before_the_message(tmp_path: Path) -> None:
    with llama(8_192) as url:
        program = program_at(url, tmp_path, context=LIMIT)
        screen = Screen(program)
        screen.terminal.shows("Ask for")
        screen.terminal.until(lambda: "~" not in screen.terminal.text.splitlines()[-1], "the server's count")
        screen.terminal.send("hi\r")
        screen.terminal.shows("› hi")
        screen.terminal.until(lambda: not httpx.get(f"{url}/slots").json()[0]["is_processing"], "the answer")
        screen.close()
        message = tokens_in(url, "hi<|im_end|>\n<|im_start|>assistant\n")
    exported = tmp_path / "session.json"
    session = json.loads(program.run("sessions", "list", "--json").stdout)["id"]
    program.run("sessions", "export", session, "--format", "json", "--output", str(exported))
    events = json.loads(exported.read_text(encoding="utf-8"))["events"]
    [usage] = [event["body"]["usage"] for event in events if event["body"]["type"] == "step_ended"]
    assert usage["input_total"] - usage["cache_read"] <= message + 2, "only the message itself is new"
