"""Commands get the user's environment without secrets and without start-up hooks."""

from __future__ import annotations

import pytest

from swecli.core.workspace.process import is_withheld, scrubbed_environment


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "aws_secret_access_key",
        "AWS_SESSION_TOKEN",
        "CLIENT_SECRET",
        "PGPASSWORD",
        "DB_PASSWORD_FILE",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "AWS_ACCESS_KEY_ID",
        "GITHUB_PAT",
        "SSH_PASSPHRASE",
        "OPENAI_API_KEY_PATH",
        "MY_APIKEY",
        "MYSQL_PWD",
        "VISUAL",
        "JAVA_TOOL_OPTIONS",
        "BASH_ENV",
        "ENV",
        "LD_PRELOAD",
        "DYLD_INSERT_LIBRARIES",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "PERL5OPT",
        "RUBYOPT",
        "GIT_SSH_COMMAND",
        "RIPGREP_CONFIG_PATH",
        "LESSOPEN",
        "PS4",
        "BASH_FUNC_ls%%",
    ],
)
def test_withheld(name: str) -> None:
    assert is_withheld(name)
    assert scrubbed_environment({name: "x"}).get(name) != "x"


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "VIRTUAL_ENV", "LANG", "TERM", "CI", "SSH_AUTH_SOCK", "KEYBOARD", "TOKENIZERS_PARALLELISM"]
)
def test_kept(name: str) -> None:
    assert scrubbed_environment({name: "x"})[name] == "x"


def test_children_know_where_they_run_and_never_page() -> None:
    made = scrubbed_environment({"PAGER": "less", "GIT_PAGER": "delta"})
    assert made["SWECLI"] == "1"
    assert made["AGENT"] == "swecli"
    assert made["GIT_TERMINAL_PROMPT"] == "0"
    assert made["GIT_EDITOR"] == made["GIT_SEQUENCE_EDITOR"] == "true"
    assert made["PAGER"] == made["GIT_PAGER"] == "cat"


def test_no_color_stays() -> None:
    assert "NO_COLOR" not in scrubbed_environment({})
    assert scrubbed_environment({"NO_COLOR": "1"})["NO_COLOR"] == "1"
