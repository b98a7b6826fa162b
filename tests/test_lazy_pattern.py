"""Regular expressions compiled at first use."""

from __future__ import annotations

import copy
import pkgutil
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

import swecli
from swecli.lazy_pattern import lazy_pattern

LOADED = """
import gc, importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
from swecli import lazy_pattern
every = [one for one in gc.get_objects() if isinstance(one, lazy_pattern.LazyPattern)]
for pattern in every:
    pattern.compile()
print(len(every))
"""


def test_every_pattern_of_the_program_compiles() -> None:
    """In a process of its own, so that no test has used any of them before."""
    missing = ["swecli.acp."] if find_spec("acp") is None else []
    missing += ["swecli.fleet.harbor"] if find_spec("harbor") is None else []
    names = [
        module.name
        for module in pkgutil.walk_packages(swecli.__path__, "swecli.")
        if not any(part in module.name for part in (".demo.project", *missing)) and not module.name.endswith("__main__")
    ]
    ran = subprocess.run([sys.executable, "-c", LOADED, *names], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 300


def test_a_pattern_does_what_a_compiled_one_does() -> None:
    lazy, compiled = lazy_pattern(r"(?P<word>b+)(c)?", re.IGNORECASE), re.compile(r"(?P<word>b+)(c)?", re.IGNORECASE)
    text = "abBca b"
    for name in ("search", "match", "fullmatch"):
        ours, theirs = getattr(lazy, name)(text, 1, 4), getattr(compiled, name)(text, 1, 4)
        assert (ours.span(), ours.groupdict()) == (theirs.span(), theirs.groupdict())
    assert [one.group() for one in lazy.finditer(text)] == ["bBc", "b"]
    assert lazy.findall(text) == compiled.findall(text)
    assert lazy.split(text) == compiled.split(text)
    assert (lazy.sub("-", text), lazy.subn("-", text)) == (compiled.sub("-", text), compiled.subn("-", text))
    assert (lazy.pattern, lazy.flags, lazy.groups) == (compiled.pattern, compiled.flags, compiled.groups)
    assert lazy.groupindex == compiled.groupindex
    assert lazy_pattern(b"b+").findall(b"abb") == [b"bb"]


def test_it_is_compiled_at_the_first_use_only(monkeypatch: pytest.MonkeyPatch) -> None:
    sources: list[str] = []
    compile_it = re.compile

    def counted(source: str, flags: int = 0) -> re.Pattern[str]:
        sources.append(source)
        return compile_it(source, flags)

    monkeypatch.setattr(re, "compile", counted)
    pattern = lazy_pattern("b+")
    assert sources == []
    assert [one.group() for one in pattern.finditer("abb b")] == ["bb", "b"]
    assert pattern.match("b")
    assert sources == ["b+"]


def test_a_wrong_pattern_fails_at_its_first_use() -> None:
    pattern = lazy_pattern("(")
    with pytest.raises(re.error):
        pattern.search("")


def test_what_a_pattern_does_not_have_it_does_not_have_either() -> None:
    with pytest.raises(AttributeError):
        getattr(lazy_pattern("b"), "no_such_method")  # noqa: B009
    assert copy.deepcopy(lazy_pattern("b")).search("abc")
