"""Directories of the user and the key of a workspace."""

from __future__ import annotations

from pathlib import Path

from swecli.core.config.paths import user_paths, workspace_key


def test_one_variable_moves_everything(tmp_path: Path) -> None:
    paths = user_paths({"SWECLI_HOME": str(tmp_path / "home")})
    assert all(path.is_relative_to(tmp_path / "home") for path in paths.all)
    assert not (tmp_path / "home").exists()


def test_without_it_the_platform_decides() -> None:
    paths = user_paths({})
    assert all(path.is_absolute() and path.name == "swecli" for path in paths.all)


def test_a_workspace_has_one_key_through_links(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    assert workspace_key(real) == workspace_key(link) != workspace_key(tmp_path)
    assert user_paths({"SWECLI_HOME": "/h"}).workspace_data(real).parent == Path("/h/data/workspaces")
