"""A settings file for one run, and a run without what may be in its way."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.config.load import SAFE, ConfigError, Loaded, load
from swecli.core.config.paths import user_paths
from swecli.core.config.settings import Settings


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "work" / ".swecli").mkdir(parents=True)
    return tmp_path / "work"


def loaded(work: Path, more: Path | None = None, *, safe: bool = False, **flags: object) -> Loaded:
    variables = {"SWECLI_HOME": str(work.parent / "home"), "SWECLI_MODEL": "a/environment"}
    dotted = {key.replace("__", "."): value for key, value in flags.items()}
    paths = user_paths(variables)
    return load(paths, work, environment=variables, trusted=True, flags=dotted, more=more, safe=safe)


def test_the_file_counts_above_all_others_and_below_flags(work: Path) -> None:
    (work / ".swecli" / "config.local.toml").write_text("[agent]\nmax_steps = 1\n")
    more = work.parent / "more.toml"
    more.write_text(
        '[agent]\nmax_steps = 2\n[model]\nname = "a/more"\n[approval]\nmode = "auto"\nallow = ["Bash(ls)"]\n'
    )
    found = loaded(work, more)
    assert found.settings.agent.max_steps == 2
    assert found.settings.model.name == "a/more"
    assert found.settings.approval.mode == "auto"
    assert [(rule.scope, rule.origin) for rule in found.rules] == [("flag", f"{more}:7")]
    assert str(found.origins[("agent", "max_steps")]) == f"{more}:2"
    assert found.pending == ()
    assert loaded(work, more, agent__max_steps=3).settings.agent.max_steps == 3


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[agent]\nmax_steps = 'x'\n", 2, "max_steps"),
        ("[agent]\n\nmax_steps = \n", 3, "TOML"),
        ("[ui]\ntheme = 1", 2, "theme"),
    ],
)
def test_what_is_wrong_in_it_has_its_line(work: Path, text: str, line: int, said: str) -> None:
    more = work.parent / "more.toml"
    more.write_text(text)
    with pytest.raises(ConfigError) as caught:
        loaded(work, more)
    assert str(caught.value).startswith(f"{more}:{line}: ")
    assert said in str(caught.value)


def test_it_has_to_be_there(work: Path) -> None:
    for name in ("nothing.toml", "home", "nothing/at.toml"):
        with pytest.raises(ConfigError) as caught:
            loaded(work, work.parent / name)
        assert name in str(caught.value)
    with pytest.raises(ConfigError, match="--settings names it"):
        loaded(work, work.parent / "nothing.toml")


def test_safe_mode_leaves_out_the_project_keys_and_the_status_line_and_says_so(work: Path) -> None:
    (work / ".swecli" / "config.toml").write_text("no [ TOML")
    (work.parent / "home" / "config.toml").write_text(
        '[keys]\nfind = ["ctrl+t"]\n[ui]\nstatus_line = "date"\ndensity = "full"\n'
    )
    found = loaded(work, safe=True)
    assert found.settings.keys == Settings().keys
    assert found.settings.ui.status_line is None
    assert found.settings.ui.density == "full"
    assert found.notices == (SAFE,)
    with pytest.raises(ConfigError):
        loaded(work)
