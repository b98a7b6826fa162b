"""The real program without a terminal, against a loopback provider: both protocols, all formats, faults, signals."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from swecli.core.llm.scripted import parse_script
from swecli.core.protocol.codec import to_text
from swecli.core.protocol.commands import ReplyPermission, Submit
from tests.support.event_lines import decode_event
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import ROOT, Ended, Program
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.e2e

FIX = """
[[step]]
reasoning = "Where is the discount?"
text = "Looking."
call = [{ tool = "search", arguments = { pattern = "quantity >" } }]
[[step]]
expect = { last_result = "basket/pricing.py" }
call = [{ tool = "read_file", arguments = { path = "basket/pricing.py" } }]
[[step]]
expect = { last_result = "quantity > pieces" }
[[step.call]]
tool = "edit_file"
arguments = { path = "basket/pricing.py", old_string = "quantity > pieces", new_string = "quantity >= pieces" }
[[step]]
expect = { last_result = "basket/pricing.py" }
call = [{ tool = "run_command", arguments = { command = "{python} test_basket.py" } }]
[[step]]
expect = { last_result = "5 passed, 0 failed" }
text = "Fixed; the tests pass. Größe: 5 → ok"
"""
ANSWER = "Fixed; the tests pass. Größe: 5 → ok"
HELLO = '[[step]]\ntext = "Hello there."'


def server(script: str, **manners: Any) -> LoopbackServer:
    told = {"window": 32_000, **manners}  # a busy server that names none is asked for seconds, and that is reported
    return LoopbackServer(parse_script(script, python=sys.executable), manners=Manners(**told))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "swecli" / "demo" / "project", tmp_path / "project"))


def program(project: Path, provider: LoopbackServer | None = None, *, fresh: bool = False, **variables: str) -> Program:
    environment = provider.environment() if provider else {}
    home = project.parent / "home"
    if fresh:  # where the start takes long, the server's answer may come too late
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text('[models.window]\n"openai/m" = 128_000\n"anthropic/m" = 128_000\n')
    return Program(project, home, {**environment, **variables}, fresh)


def fault(kind: str, **more: object) -> str:
    table = ", ".join(f"{name} = {value}" for name, value in more.items())
    return f'[[step]]\ntext = "one two three"\nfault = {{ kind = "{kind}"{", " + table if table else ""} }}\n'


def silent(ended: Ended) -> bool:
    return "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.parametrize("manners", [{}, {"chunk_bytes": 7, "keep_alives": True, "crlf": True}], ids=["kind", "unkind"])
def test_a_bug_is_found_fixed_and_proven(protocol: str, manners: dict[str, Any], project: Path) -> None:
    with server(FIX, **manners) as provider:
        ended = program(project, provider, fresh=True).run("-p", "Fix it", "-m", f"{protocol}/m", "--yolo")
        first = provider.asked[0]
    assert ended == Ended(0, f"{ANSWER}\n", "")
    assert "quantity >= pieces" in (project / "basket" / "pricing.py").read_text()
    assert first.body["model"] == "m"
    assert len(provider.asked) == 5


def test_json_is_one_object_with_figures(project: Path) -> None:
    with server(FIX) as provider:
        ended = program(project, provider).run("-p", "Fix it", "-m", "openai/m", "--yolo", "--output-format", "json")
    assert ended.code == 0
    assert len(ended.stdout.splitlines()) == 1
    result = ended.result
    assert (result["status"], result["text"], result["steps"], result["turns"]) == ("done", ANSWER, 5, 1)
    assert result["usage"]["input_total"] > result["usage"]["cache_read"] > 0
    assert result["denials"] == []
    assert result["kept"] == "all"
    assert result["session"]


def test_stream_json_lines_are_events_and_a_result(project: Path) -> None:
    with server(FIX) as provider:
        ended = program(project, provider).run(
            "-p", "x", "-m", "anthropic/m", "--yolo", "--output-format", "stream-json"
        )
    assert ended.code == 0
    *lines, last = ended.stdout.splitlines()
    published = json.loads((ROOT / "docs" / "protocol.schema.json").read_text(encoding="utf-8"))
    validator = Draft202012Validator(published)
    assert not [error.message for line in (*lines, last) for error in validator.iter_errors(json.loads(line))]
    assert not validator.is_valid({**json.loads(last), "status": "unknown"})
    events = [decode_event(line) for line in lines]
    assert [event.seq for event in events] == sorted({event.seq for event in events})
    assert ended.events[0]["type"] == "session_started"
    kinds = {body["type"] for body in ended.events}
    assert {"turn_started", "step_started", "item_delta", "item_completed", "file_changed", "turn_ended"} <= kinds
    assert json.loads(last)["exit_code"] == 0


def test_without_approval_nothing_is_changed_and_the_model_goes_on(project: Path) -> None:
    before = (project / "basket" / "pricing.py").read_bytes()
    script = """
    [[step]]
    [[step.call]]
    tool = "edit_file"
    arguments = { path = "basket/pricing.py", old_string = "quantity > pieces", new_string = "quantity >= pieces" }
    [[step]]
    expect = { last_result = "Not allowed; nothing was done. No user is present in this run" }
    text = "I may not edit."
    """
    with server(script) as provider:
        ended = program(project, provider).run("-p", "x", "-m", "openai/m", "--output-format", "json")
    assert ended.code == 62
    assert ended.result["text"] == "I may not edit."
    assert [(d["tool"], d["title"], d["approval_needed"]) for d in ended.result["denials"]] == [
        ("edit_file", "basket/pricing.py", True)
    ]
    assert (project / "basket" / "pricing.py").read_bytes() == before


def test_rules_on_the_command_line_allow_and_deny(project: Path) -> None:
    with server(FIX) as provider:
        ended = program(project, provider).run(
            "-p", "x", "-m", "openai/m", "--allowed-tools", "edit_file,run_command", "--output-format", "json"
        )
    assert (ended.code, ended.result["denials"]) == (0, [])


def test_an_approval_from_stdin_is_taken(project: Path) -> None:
    with server(FIX) as provider:
        process = program(project, provider).start(
            *("-p", "-m", "openai/m", "--input-format", "stream-json", "--output-format", "stream-json")
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(to_text(Submit("Fix it")).encode() + b"\n")
        process.stdin.flush()
        asked: list[str] = []
        result: dict[str, Any] = {}
        for line in process.stdout:
            data = json.loads(line)
            body = data.get("body", {})
            if body.get("type") == "permission_requested":
                asked.append(body["tool"])
                process.stdin.write(to_text(ReplyPermission(body["request"], "once")).encode() + b"\n")
                process.stdin.flush()
            if body.get("type") == "turn_ended":
                process.stdin.close()
            result = data
        assert process.wait(PATIENCE) == 0
    assert asked == ["edit_file", "run_command"]
    assert result["text"] == ANSWER


def test_what_is_piped_in_joins_the_message(project: Path) -> None:
    script = '[[step]]\ntext = "ok"\nexpect = { last_user = ["Review this", "+added line ü"] }'
    with server(script) as provider:
        ended = program(project, provider).run("-p", "Review this", "-m", "openai/m", stdin="+added line ü\n")
    assert ended == Ended(0, "ok\n", "")


def test_without_a_terminal_the_program_answers_as_with_p(project: Path) -> None:
    with server(HELLO) as provider:
        ended = program(project, provider).run("hi", "-m", "openai/m")
    assert (ended.code, ended.stdout) == (0, "Hello there.\n")
    assert "not a terminal" in ended.stderr


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("script", "code", "kind"),
    [
        (fault("auth"), 41, "auth"),
        (fault("not_found"), 52, "not_found"),
        (fault("overflow", tokens=210000, window=200000), 61, "context_overflow"),
        (fault("rate_limit", retry_after=7200), 75, "rate_limit"),
        (fault("garbage", message="'Welcome'"), 1, "protocol"),
        (fault("bad_request"), 1, "bad_request"),
        (fault("cut", after=6) * 4, 75, "network"),
        (fault("auth", after=6), 41, "auth"),
    ],
)
def test_each_fault_has_its_exit_code_and_no_traceback(
    protocol: str, script: str, code: int, kind: str, project: Path
) -> None:
    with server(script) as provider:
        ended = program(project, provider).run("-p", "x", "-m", f"{protocol}/m", "--output-format", "json")
    assert (ended.code, ended.result["exit_code"], ended.result["error"]["kind"]) == (code, code, kind)
    assert ended.result["error"]["message"]
    assert silent(ended)
    assert ended.result["text"] == ("one tw" * script.count("after = 6"))


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_a_stream_that_ends_without_its_end_is_gone_on_with(project: Path, protocol: str) -> None:
    script = fault("cut", after=6) + '[[step]]\ntext = "o three"\nexpect = { last_user = "cut off" }'
    with server(script, clean_cut=True) as provider:
        ended = program(project, provider).run("-p", "x", "-m", f"{protocol}/m", "--output-format", "json")
    assert (ended.code, ended.result["error"], ended.result["text"]) == (0, None, "one two three")
    assert "retry 1 of" in ended.stderr


def test_a_short_rate_limit_is_waited_for_and_told(project: Path) -> None:
    with server(fault("rate_limit", retry_after=0.1) + HELLO) as provider:
        ended = program(project, provider).run("-p", "x", "-m", "anthropic/m")
    assert (ended.code, ended.stdout) == (0, "Hello there.\n")
    assert "retry 1 in 0.1 s" in ended.stderr


def test_a_wrong_key_is_named_without_the_key(project: Path) -> None:
    with server(HELLO, key="right") as provider:
        wrong = program(project, provider, OPENAI_API_KEY="sk-wrong-and-secret")
        ended = wrong.run("-p", "x", "-m", "openai/m")
    assert ended.code == 41
    assert "sk-wrong-and-secret" not in ended.stderr
    assert silent(ended)


def test_no_provider_is_a_clear_line(project: Path) -> None:
    ended = program(project).run("-p", "x")
    assert ended.code == 52
    assert "OPENAI_API_KEY" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    for kind in ("json", "stream-json"):
        result = program(project).run("-p", "x", "--output-format", kind).result
        assert (result["type"], result["status"], result["exit_code"]) == ("result", "error", 52)
        assert "OPENAI_API_KEY" in result["error"]["message"]
    unknown = program(project).run("-p", "x", "-m", "nobody/m")
    assert unknown.code == 52
    assert "nobody" in unknown.stderr
    assert silent(unknown)


@pytest.mark.parametrize(("option", "code", "requests"), [("--max-turns", 53, 1), ("--max-tokens", 60, 0)])
def test_caps_end_the_run(option: str, code: int, requests: int, project: Path) -> None:
    with server(FIX) as provider:
        ended = program(project, provider).run("-p", "x", "-m", "openai/m", option, "1", "--output-format", "json")
    assert (ended.code, ended.result["status"]) == (code, "limit")
    assert len(provider.asked) == requests


def test_imperfect_calls_are_answered_not_executed(project: Path) -> None:
    script = """
    [[step]]
    call = [
      { tool = "read_file", arguments = '{"path": ', id = "same" },
      { tool = "no_such_tool", id = "same" },
      { tool = "read_file", arguments = { path = "nowhere.py" } },
    ]
    [[step]]
    expect = { last_result = ["JSON", "Unknown tool", "nowhere.py"] }
    text = "ok"
    """
    for protocol in ("openai", "anthropic"):
        with server(script) as provider:
            ended = program(project, provider).run("-p", "x", "-m", f"{protocol}/m", "--yolo")
        assert ended == Ended(0, "ok\n", "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_keeps_what_was_said_and_c_goes_on(number: signal.Signals, code: int, project: Path) -> None:
    script = fault("stall", after=7) + '[[step]]\nexpect = { request = ["first", "one two", "second"] }\ntext = "ok"'
    with server(script) as provider:
        run = program(project, provider, fresh=True)
        process = run.start("-p", "first", "-m", "openai/m", "--output-format", "stream-json", stdin=subprocess.DEVNULL)
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line.decode())
            if '"two"' in lines[-1] or '" two"' in lines[-1]:
                break
        process.send_signal(number)
        rest = process.stdout.read().decode()
        assert process.wait(PATIENCE) == code
        result = json.loads(rest.splitlines()[-1])
        assert (result["status"], result["exit_code"], result["text"]) == ("interrupted", code, "one two")
        again = run.run("-c", "-p", "second", "-m", "openai/m")
        assert again == Ended(0, "ok\n", "")


def test_a_signal_ends_a_command_that_waits_for_the_model(project: Path) -> None:
    with server(fault("stall")) as provider:
        run = program(project, provider, fresh=True)
        process = run.start("-p", "/btw what?", "-m", "openai/m", "--output-format", "json", stdin=subprocess.DEVNULL)
        provider.wait_for(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert json.loads(out)["status"] == "interrupted"
        assert err.decode() == "interrupted\n"


def test_a_killed_run_is_continued_with_everything_that_was_acknowledged(project: Path) -> None:
    script = FIX.split('[[step]]\nexpect = { last_result = "basket/pricing.py" }\ncall = [{ tool = "run')[0]
    script += fault("stall") + '[[step]]\nexpect = { request = ["first", "quantity > pieces"] }\ntext = "ok"'
    with server(script) as provider:
        run = program(project, provider)
        process = run.start("-p", "first", "-m", "anthropic/m", "--yolo", stdin=subprocess.DEVNULL)
        provider.wait_for(4)
        process.kill()
        process.wait(PATIENCE)
        again = run.run("-c", "-p", "go on", "-m", "anthropic/m")
    assert (again.code, again.stdout) == (0, "ok\n")


def test_a_session_is_listed_and_resumed_by_its_id(project: Path) -> None:
    script = HELLO + '\n[[step]]\ntext = "Again."\nexpect = { request = "Hello there." }'
    with server(script) as provider:
        run = program(project, provider)
        session = run.run("-p", "hi ü", "-m", "openai/m", "--output-format", "json").result["session"]
        listed = run.run("sessions")
        again = run.run("-r", session[:-1], "-p", "more", "-m", "openai/m", "--output-format", "json")
        lost = run.run("-r", "nothing", "-p", "more", "-m", "openai/m")
    assert session in listed.stdout
    assert "Hi ü" in listed.stdout
    assert (again.result["text"], again.result["session"], again.result["turns"]) == ("Again.", session, 1)
    assert (lost.code, silent(lost)) == (42, True)


def test_no_session_leaves_nothing_behind(project: Path) -> None:
    with server(HELLO) as provider:
        run = program(project, provider)
        assert run.run("-p", "hi", "-m", "openai/m", "--no-session").code == 0
    assert run.run("sessions").stdout == ""
    assert run.run("-c", "-p", "hi", "-m", "openai/m").code == 42


def test_a_reader_that_goes_away_is_no_traceback(project: Path) -> None:
    long = '[[step]]\nchunk = 1\ntext = "' + "x" * 20000 + '"'
    with server(long) as provider:
        process = program(project, provider, fresh=True).start(
            "-p", "x", "-m", "openai/m", "--output-format", "stream-json"
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.close()
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read().decode()
        assert process.wait(PATIENCE) == 1
    assert error == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line(project: Path) -> None:
    with server(HELLO) as provider, open("/dev/full", "wb") as full:
        process = program(project, provider, fresh=True).start(
            "-p", "x", "-m", "openai/m", stdin=subprocess.DEVNULL, stdout=full
        )
        assert process.stderr is not None
        error = process.stderr.read().decode()
        assert process.wait(PATIENCE) == 1
    assert "No space left" in error
    assert len(error.splitlines()) == 1


def test_an_ascii_locale_is_no_error(project: Path) -> None:
    with server(FIX) as provider:
        ascii_only = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        run = program(project, provider, fresh=True, **ascii_only)
        ended = run.run("-p", "größer", "-m", "openai/m", "--yolo")
    assert ended == Ended(0, "Fixed; the tests pass. Gr\\xf6\\xdfe: 5 \\u2192 ok\n", "")


def test_an_unwritable_data_directory_is_told_and_the_work_is_done(project: Path) -> None:
    blocked = project.parent / "blocked"
    blocked.write_text("a file where a folder should be")
    with server(HELLO) as provider:
        run = program(project, provider, SWECLI_HOME=str(blocked))
        ended = run.run("-p", "x", "-m", "openai/m", "--output-format", "json")
    assert (ended.code, ended.result["text"], ended.result["kept"]) == (0, "Hello there.", "nothing")
    assert "kept in memory only" in ended.stderr
    assert silent(ended)


def test_the_demonstration_shows_the_edit_and_the_passing_test(project: Path) -> None:
    ended = program(project, TMPDIR=str(project.parent)).run("demo")
    assert (ended.code, ended.stderr) == (0, "")
    for part in (
        "scripted",
        "-m openai/",
        "+        if quantity >= pieces:",
        "> yes",
        "5 passed, 0 failed",
        "exit 0",
        "[done",
    ):
        assert part in ended.stdout
    assert ended.stdout.index("+        if quantity >= pieces:") < ended.stdout.index("5 passed, 0 failed")


def test_config_shows_values_with_their_origin(project: Path) -> None:
    home = project.parent / "home"
    home.mkdir()
    (home / "config.toml").write_text('[model]\nname = "openai/mine"\nnonsense = 1\n')
    ended = program(project, SWECLI_MODEL="").run("config")
    assert ended.code == 0
    (row,) = [line for line in ended.stdout.splitlines() if line.startswith("model.name")]
    assert row.split() == ["model.name", "openai/mine", f"{home}/config.toml:2"]
    assert "nonsense" in ended.stderr
    (home / "config.toml").write_text("[model]\nname = 3\n")
    broken = program(project).run("config")
    assert (broken.code, "config.toml:2" in broken.stderr, silent(broken)) == (52, True, True)


def test_debug_batches_answer_every_line(project: Path) -> None:
    run = program(project)
    calls = [
        {"id": 1, "name": "read_file", "arguments": {"path": "README.md"}, "cwd": str(project), "mode": "default"},
        {"id": 2, "name": "write_file", "arguments": {"path": "new", "content": "x"}, "cwd": str(project)},
        {
            "id": 3,
            "name": "write_file",
            "arguments": {"path": "new", "content": "x"},
            "cwd": str(project),
            "approve": True,
        },
    ]
    ended = run.run("debug", "tool", "--batch", stdin="\n".join(map(json.dumps, calls)) + "\nnonsense\n")
    results = [json.loads(line) for line in ended.stdout.splitlines()]
    assert ended.code == 0
    assert [(r["id"], r["status"]) for r in results[:3]] == [(1, "ok"), (2, "rejected"), (3, "ok")]
    assert results[3]["id"] is None
    assert (project / "new").read_text() == "x"
    recorded = {
        "id": "a",
        "protocol": "openai-chat",
        "host": "h",
        "model": "m",
        "status": 401,
        "headers": {},
        "chunks": [],
    }
    decoded = run.run("debug", "decode", "--batch", stdin=json.dumps(recorded) + "\n")
    (line,) = decoded.stdout.splitlines()
    assert (json.loads(line)["id"], json.loads(line)["error"]["kind"]) == ("a", "auth")


@pytest.mark.parametrize(
    ("message", "code", "shown"),
    [
        ("/help", 0, "/context"),
        ("/context", 0, "32,000 tokens"),
        ("/mode", 0, "The mode is default"),
        ("/model", 0, "The model is openai/m"),
        ("/context instructions", 0, "item"),
        ("/help undo", 0, "/undo"),
        ("/clear", 0, "swecli -p starts a new conversation"),
        ("/quit", 0, ""),
        ("/status x", 1, "takes no words"),
        ("/cost x", 1, "/usage price sets a price"),
        ("/init x", 1, "takes only --dry-run"),
        ("/nonsense", 42, ""),
        ("/init", 62, "was not written. It needs an approval, and no user is present"),
    ],
)
def test_slash_commands_answer_as_text(message: str, code: int, shown: str, project: Path) -> None:
    with server("") as provider:
        ended = program(project, provider).run("-p", message, "-m", "openai/m", "--output-format", "json")
    assert (ended.code, ended.result["exit_code"]) == (code, code)
    assert shown in ended.result["text"]
    assert silent(ended)


def test_a_message_that_begins_with_a_path_is_a_message(project: Path) -> None:
    script = '[[step]]\ntext = "ok"\nexpect = { last_user = "/etc" }\n'
    with server(script) as provider:
        ended = program(project, provider).run("-p", "/etc/hosts is wrong", "-m", "openai/m")
    assert ended == Ended(0, "ok\n", "")


def test_init_writes_the_guide_where_it_may(project: Path) -> None:
    with server(HELLO) as provider:
        ended = program(project, provider).run("-p", "/init", "-m", "openai/m", "--yolo")
    assert ended.code == 0
    assert (project / "OPENCLI.md").is_file()


def test_yolo_as_root_outside_of_a_container_is_refused(project: Path) -> None:
    if os.geteuid() != 0 or Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        pytest.skip("needs root outside of a container")
    ended = program(project, IS_SANDBOX="0").run("-p", "x", "--yolo")
    assert (ended.code, len(ended.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/help", "/compact"),
        ("/doctor", "No model is configured"),
        ("/config", "approval.mode"),
        ("/config zzz", "No setting matches 'zzz'"),
        ("/find words", "swecli sessions search"),
        ("/permissions", "No rules yet"),
        ("/mode plan", "Mode plan"),
    ],
)
def test_a_slash_command_needs_no_provider(project: Path, command: str, shown: str) -> None:
    ended = program(project).run("-p", command)
    assert (ended.code, ended.stderr) == (0, "")
    assert shown in ended.stdout


def test_settings_are_searched_by_words(project: Path) -> None:
    shown = program(project).run("-p", "/config command process").stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["Setting", "tools.process_limit"]


def test_init_needs_no_provider(project: Path) -> None:
    ended = program(project).run("-p", "/init", "--permission-mode", "accept-edits")
    assert ended.code == 0, ended
    assert (project / "OPENCLI.md").is_file()
    again = program(project).run("-p", "hello")
    assert (again.code, again.stdout) == (52, "")


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_a_run_without_a_message_has_a_result_as_well(form: str, tmp_path: Path) -> None:
    program = Program(tmp_path, tmp_path / "home")
    ended = program.run("-p", " ", "--output-format", form)
    assert (ended.code, ended.result["exit_code"], ended.result["error"]["kind"]) == (42, 42, "bad_input")
    assert "Nothing to send: pass a message or pipe text." in ended.stderr
    assert program.run("-p", "").stdout == ""
