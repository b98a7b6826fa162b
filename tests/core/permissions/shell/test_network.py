"""Which commands need the network by their words."""

from __future__ import annotations

import shlex

import pytest

from swecli.core.permissions.shell.network import needs_network


@pytest.mark.parametrize(
    "command",
    [
        "curl https://example.org",
        "pip install x",
        "pip3.12 --quiet install x",
        "python3 -m pip install -r requirements.txt",
        "/usr/bin/python3.11 -m pip download x",
        "npm ci",
        "npm --silent install",
        "yarn",
        "git fetch",
        "git -C sub push origin main",
        "git clone https://example.org/x",
        "cargo add serde",
        "go get example.org/x",
        "uv sync",
        "docker pull alpine",
        "gh pr list",
    ],
)
def test_it_needs_the_network(command: str) -> None:
    assert needs_network(shlex.split(command))


@pytest.mark.parametrize(
    "command",
    [
        "python3 -c 'import x'",
        "python3 -m pytest",
        "npm test",
        "npm run build",
        "yarn test",
        "git commit -m x",
        "git status",
        "cargo test",
        "go test ./...",
        "make install",
        "docker ps",
        "pip list",
        "uv run pytest",
        "./show",
    ],
)
def test_it_does_not(command: str) -> None:
    assert not needs_network(shlex.split(command))


def test_computed_words_say_nothing() -> None:
    assert not needs_network((None, "install"))
    assert not needs_network(("pip", None))
    assert not needs_network(())
