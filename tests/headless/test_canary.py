"""No key is in any file that swecli writes, nor in anything it prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.keys import BODY, SHOWN
from tests.support.loopback import LoopbackServer
from tests.support.program import Ended, Program

pytestmark = pytest.mark.e2e

USED = "canary-used-0123456789"
STORED = "canary-stored-0123456789"
OTHER = "canary-other-0123456789"
HEADER = "canary-header-0123456789"
NAMED = "canary-named-0123456789"
"""In a variable that only the settings call a key."""
SHAPED = "sk-proj-0123456789abcdefghijklmn"
"""Looks like a key; the model may see it, the disk may not."""
PRIVATE = "MIIEcanary0123456789abcdefghijklmnopqrstuvwxyz"
BLOCK = f"-----BEGIN RSA PRIVATE KEY-----\n{PRIVATE}\n{PRIVATE}\n-----END RSA PRIVATE KEY-----"
PASSWORD = "canary-word-7"
"""The same of a private key, and of a value that is called a password."""
SHAPES = "".join(f"{text}\n" for text, _ in SHOWN)
KINDS = sorted({key for _, key in SHOWN})
ALL = (USED, STORED, OTHER, HEADER, NAMED)

WORK = """
[[step]]
text = "I look at the environment."
call = [{ tool = "run_command", arguments = { command = "env; echo done" } }]
[[step]]
text = "I read a file with keys in it, such as MY_API_TOKEN=%s."
call = [
  { tool = "run_command", arguments = { command = "cat keys.txt; seq 3000" } },
  { tool = "read_file", arguments = { path = "keys.txt" } },
  { tool = "run_command", arguments = { command = "cat keys.txt; sleep 60", background = true } },
]
[[step]]
text = "Half an ans"
fault = { kind = "cut", after = 6 }
[[step]]
text = "wer."
""".replace("%s", BODY)
REFUSED = f"""
[[step]]
fault = {{ kind = "auth", message = "Incorrect API key provided: {USED}. Check {HEADER} too." }}
"""
IN_STREAM = f"""
[[step]]
text = "Some text"
fault = {{ kind = "bad_request", after = 4, message = "bad key {USED} and {HEADER}" }}
"""


def files_with(secret: str, *folders: Path) -> list[str]:
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in paths if secret.encode() in path.read_bytes()]


def clean(ended: Ended) -> bool:
    return not any(secret in ended.stdout + ended.stderr for secret in ALL)


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_planted_keys_appear_nowhere(tmp_path: Path, protocol: str) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    settings = f'[providers.{protocol}]\nheaders = {{ X-Extra = "{HEADER}" }}\n'
    office = '[providers.office]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9"\napi_key_env = "OFFICE"\n'
    (tmp_path / "settings.toml").write_text(settings + office)
    (project / "keys.txt").write_text(f"{SHAPED}\n{USED}\n{BLOCK}\nDB_PASSWORD={PASSWORD}\n" + SHAPES)
    variables = {
        "SWECLI_CONFIG": str(tmp_path / "settings.toml"),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        "SOME_SERVICE_TOKEN": OTHER,
        "OFFICE": NAMED,
    }
    for script in (WORK, REFUSED, IN_STREAM):
        with LoopbackServer(parse_script(script, python=sys.executable)) as server:
            keys = {**server.environment(), "OPENAI_API_KEY": USED, "ANTHROPIC_API_KEY": USED}
            program = Program(project, home, {**variables, **keys})
            assert program.run("login", "groq", stdin=STORED).code == 0
            ended = program.run(
                "-p", "go", "-m", f"{protocol}/m", "--yolo", "--trust", "--debug", "--output-format", "stream-json"
            )
            assert server.asked[0].headers["x-extra"] == HEADER
            bodies = [json.dumps(asked.body) for asked in server.asked]
            assert script is not WORK or any(
                all(secret in body for secret in (SHAPED, USED, PRIVATE, PASSWORD)) for body in bodies
            )
        if script is WORK:
            assert "done" in ended.stdout
            # What the file shows is the user's to see on the screen; what nothing showed is not.
            assert not any(secret in ended.stdout + ended.stderr for secret in (STORED, OTHER, HEADER, NAMED))
            assert not any(secret in ended.stderr for secret in (USED, SHAPED))
            (session,) = [path.stem for path in (project / ".swecli" / "logs").glob("*.log")]
            shown = program.run("sessions", "show", session)
            assert "I look at the environment." in shown.stdout
            assert not any(secret in shown.stdout for secret in KINDS)
            for wanted in ("json", "html", "markdown"):
                exported = program.run("sessions", "export", session, "--format", wanted)
                assert "I look at the environment." in exported.stdout
                assert clean(exported)
                assert not any(secret in exported.stdout for secret in (SHAPED, PRIVATE, PASSWORD, *KINDS))
            (project / "keys.txt").unlink()
        else:
            assert clean(ended), ended.stdout + ended.stderr
        assert clean(program.run("doctor", "-m", f"{protocol}/m"))
        assert clean(program.run("config"))
        assert clean(program.run("sessions"))
        assert clean(program.run("logout"))
    assert files_with(STORED, home, project) == [str(home / "keys.json")]
    for secret in (USED, OTHER, HEADER, NAMED, SHAPED, PRIVATE, PASSWORD, *KINDS):
        assert files_with(secret, home, project) == []
    folders = [home, *(path for path in home.rglob("*") if path.is_dir())]
    assert {str(path): oct(path.stat().st_mode & 0o777) for path in folders} == dict.fromkeys(
        map(str, folders), "0o700"
    )
    dumps = list((home / "state" / "debug").rglob("*-response.txt"))
    assert len(dumps) >= 5
    assert any("Incorrect API key provided: ***" in dump.read_text() for dump in dumps)
    requests = [json.loads(path.read_text()) for path in (home / "state" / "debug").rglob("*-request.json")]
    assert all(request["headers"]["x-extra"] == "***" for request in requests)
