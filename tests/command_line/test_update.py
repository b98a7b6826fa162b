"""``swecli update`` names the command of whoever installed it."""

from __future__ import annotations

import sys

import pytest

from swecli.command_line.update import Installation, update, upgrade

VENV = Installation("/home/me/venv", "/home/me/venv/bin/python", installer="pip")


@pytest.mark.parametrize(
    ("where", "how", "command"),
    [
        (VENV, "in /home/me/venv with pip", "/home/me/venv/bin/python -m pip install --upgrade swecli"),
        (
            Installation("/home/me/a venv", "/home/me/a venv/bin/python", installer="uv"),
            "in /home/me/a venv with uv",
            "uv pip install --python '/home/me/a venv/bin/python' --upgrade swecli",
        ),
        (
            Installation("/p", "/p/bin/python", frozenset({"uv-receipt.toml"}), "uv"),
            "with uv tool",
            "uv tool upgrade swecli",
        ),
        (
            Installation("/p", "/p/bin/python", frozenset({"pipx_metadata.json"}), "pip"),
            "with pipx",
            "pipx upgrade swecli",
        ),
        (
            Installation("/home/me/.cache/uv/archive-v0/aBc", "/x/python", installer="uv"),
            "for one run with uvx",
            "uvx swecli@latest",
        ),
        (
            Installation("/opt/homebrew/Cellar/swecli/0.1.0/libexec", "/x/python", installer="pip"),
            "with Homebrew",
            "brew upgrade swecli",
        ),
        (Installation("/nix/store/abc-python3", "/nix/store/abc-python3/bin/python3"), "with nix", "nix profile"),
        (
            Installation(
                "/v",
                "/v/bin/python",
                installer="pip",
                source={"url": "file:///srv/my%20clone", "dir_info": {"editable": True}},
            ),
            "from the clone /srv/my clone",
            "git -C '/srv/my clone' pull && /v/bin/python -m pip install --editable '/srv/my clone'",
        ),
        (
            Installation(
                "/v",
                "/v/bin/python",
                installer="pip",
                source={"url": "https://host/swecli.git", "vcs_info": {"vcs": "git", "requested_revision": "main"}},
            ),
            "from https://host/swecli.git",
            "/v/bin/python -m pip install --upgrade 'swecli @ git+https://host/swecli.git@main'",
        ),
        (  # a tool of uv's that an editable clone is in: the clone counts
            Installation(
                "/p",
                "/p/bin/python",
                frozenset({"uv-receipt.toml"}),
                "uv",
                {"url": "file:///c", "dir_info": {"editable": True}},
            ),
            "from the clone /c",
            "git -C /c pull && uv pip install --python /p/bin/python --editable /c",
        ),
        (  # a damaged record
            Installation("/v", "/v/bin/python", source={"url": 1, "dir_info": 2, "vcs_info": []}),
            "in /v with pip",
            "/v/bin/python -m pip install --upgrade swecli",
        ),
    ],
)
def test_the_command_fits_the_installation(where: Installation, how: str, command: str) -> None:
    found = upgrade(where)
    assert found.how == how
    assert found.command.startswith(command)


def test_this_environment_is_an_editable_clone(capsys: pytest.CaptureFixture[str]) -> None:
    assert update([]) == 0
    shown = capsys.readouterr().out
    assert "from the clone" in shown
    assert f"{sys.executable} -m pip install --editable" in shown
