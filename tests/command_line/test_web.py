"""Arguments of `swecli web`, and what it says without its extra."""

from __future__ import annotations

import sys

import pytest

from swecli.command_line import web as command
from swecli.command_line.web import MISSING, web
from swecli.launch import StartError


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--port", "70000"], "--port must be"),
        (["--public-url", "ftp://x"], "no http or https address"),
        (["--public-url", "https://user@x"], "no http or https address"),
        (["-p", "hi"], "leave out the options of a run without it"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_bad_arguments_are_refused_before_anything_listens(arguments: list[str], told: str) -> None:
    with pytest.raises(StartError, match=told):
        web(arguments)


def test_without_its_extra_it_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    with pytest.raises(StartError) as refused:
        web([])
    assert str(refused.value) == MISSING
    monkeypatch.setattr(command, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "swecli.web.server", None)
    with pytest.raises(StartError, match="needs the extra web"):
        web([])
