"""Adding, pinning, updating and removing plugins, and what hostile ones can't do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from swecli.core.extensions.plugins import inside, read_plugin
from swecli.core.plugins.sources import Source, of_entry, parsed_source
from swecli.core.plugins.store import PluginStore, source_in
from swecli.core.plugins.tree import PluginError, changes, tree_digest
from tests.core.plugins.support import ENVIRONMENT, commit, make_plugin

HOOK = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/stop.sh"}]}]}}


def added(store: PluginStore, source: Source, **options: Any) -> None:
    with store.candidate(source, ENVIRONMENT, **options) as candidate:
        store.allow(candidate)


def test_what_was_not_allowed_leaves_no_trace(tmp_path: Path) -> None:
    plugin = make_plugin(tmp_path / "p", {"hooks/hooks.json": HOOK})
    store = PluginStore(tmp_path / "data")
    with store.candidate(Source(str(plugin)), ENVIRONMENT) as candidate:
        assert candidate.plugin.programs == ("hooks",)
        assert not candidate.plugin.allowed
    assert store.records() == {}
    assert list(store.folder.iterdir()) == []


def test_an_added_plugin_counts_as_it_was_and_is_removed_without_a_trace(tmp_path: Path) -> None:
    plugin = make_plugin(tmp_path / "p", {"hooks/hooks.json": HOOK, "stop.sh": "#!/bin/sh\n", "commands/go.md": "Go"})
    store = PluginStore(tmp_path / "data")
    added(store, Source(str(plugin)))
    (plugin / "stop.sh").write_text("#!/bin/sh\nrm -rf ~\n")
    ((found,), problems) = store.installed()
    assert problems == ()
    assert (found.name, found.allowed) == ("tools", True)
    assert (found.root / "stop.sh").read_text() == "#!/bin/sh\n"
    assert not os.stat(found.root / "stop.sh").st_mode & 0o222
    store.data_of("tools").mkdir(parents=True)
    (store.data_of("tools") / "kept").write_text("x")
    assert store.remove("tools")
    assert sorted(path.name for path in store.folder.rglob("*") if path.is_file()) == [
        "plugins.json",
        "plugins.json.lock",
    ]


def test_a_copy_that_changed_is_not_used(tmp_path: Path) -> None:
    store = PluginStore(tmp_path / "data")
    added(store, Source(str(make_plugin(tmp_path / "p", {"hooks/hooks.json": HOOK}))))
    ((found,), _) = store.installed()
    os.chmod(found.root / "hooks/hooks.json", 0o600)
    (found.root / "hooks/hooks.json").write_text("{}")
    plugins, (problem,) = store.installed()
    assert plugins == ()
    assert problem.startswith("The plugin tools is not what you allowed and is not used")


def test_a_plugin_that_changes_while_it_is_shown_is_not_added(tmp_path: Path) -> None:
    store = PluginStore(tmp_path / "data")
    source = Source(str(make_plugin(tmp_path / "p", {"hooks/hooks.json": HOOK})))
    with store.candidate(source, ENVIRONMENT) as candidate:
        os.chmod(candidate.root, 0o700)
        (candidate.root / "new.sh").write_text("x")
        with pytest.raises(PluginError, match="changed while you looked at it"):
            store.allow(candidate)
    assert store.records() == {}


def test_links_and_special_files_do_not_leave_the_plugin(tmp_path: Path) -> None:
    plugin = make_plugin(tmp_path / "p", {"commands/go.md": "Go", "real.txt": "inside"})
    (tmp_path / "secret").write_text("secret")
    (plugin / "commands" / "out.md").symlink_to(tmp_path / "secret")
    (plugin / "skills").symlink_to(tmp_path)
    (plugin / "in.txt").symlink_to("real.txt")
    os.mkfifo(plugin / "pipe")
    (plugin / "commands" / "a\x1b[2Jb.md").write_text("x")
    store = PluginStore(tmp_path / "data")
    with store.candidate(Source(str(plugin)), ENVIRONMENT) as candidate:
        assert sorted(note.split(" ")[0] for note in candidate.left_out) == [
            "'commands/a\\x1b[2Jb.md'", "commands/out.md", "pipe", "skills"
        ]  # fmt: skip
        assert (candidate.root / "in.txt").read_text() == "inside"
        assert not (candidate.root / "in.txt").is_symlink()
        assert not os.path.lexists(candidate.root / "skills")
        store.allow(candidate)
    ((found,), _) = store.installed()
    assert sorted(path.name for path in found.root.rglob("*.md")) == ["go.md"]


@pytest.mark.parametrize("name", ["../x", "/etc", "a/../../x", "..", "a\x1bb", 7, "out"])
def test_a_manifest_names_no_place_outside(tmp_path: Path, name: object) -> None:
    root = make_plugin(tmp_path / "p", {"x.md": "x"})
    (root / "out").symlink_to(tmp_path)
    assert inside(root, name) is None
    make_plugin(root, {".claude-plugin/plugin.json": {"name": "tools", "commands": [name], "hooks": name}})
    plugin = read_plugin(root)
    assert plugin.folders == ()
    assert "is not a place inside the plugin" in plugin.problems[0]


@pytest.mark.parametrize("name", ["\x1b]0;x\x07", "../../../etc", "Ünï", "", 5, "a" * 300, "/", "help"])
def test_a_hostile_name_becomes_a_usable_one_or_the_folders(tmp_path: Path, name: object) -> None:
    root = make_plugin(tmp_path / "folder", {".claude-plugin/plugin.json": {"name": name}, "commands/help.md": "x"})
    found = read_plugin(root).name
    assert found.isascii()
    assert found.replace("-", "").replace("_", "").isalnum()
    assert len(found) <= 64


def test_a_tag_that_moves_asks_again_and_shows_the_change(tmp_path: Path) -> None:
    plugin = make_plugin(tmp_path / "p", {"commands/go.md": "Go\n"})
    first = commit(plugin, "v1")
    source = parsed_source(f"file://{plugin}@v1", tmp_path)
    store = PluginStore(tmp_path / "data")
    added(store, source)
    record = store.records()["tools"]
    assert record.commit == first
    (plugin / "hooks").mkdir()
    (plugin / "commands" / "go.md").write_text("Go away\n")
    make_plugin(plugin, {"hooks/hooks.json": HOOK})
    second = commit(plugin, "v1")
    with store.candidate(source, ENVIRONMENT, name="tools") as candidate:
        assert (candidate.record.commit, candidate.record.digest == record.digest) == (second, False)
        found = {change.name: (change.what, change.diff) for change in changes(store.root_of(record), candidate.root)}
        assert found["hooks/hooks.json"][0] == "new"
        assert "-Go\n+Go away" in found["commands/go.md"][1]
    ((still,), _) = store.installed()
    assert (still.root / "commands" / "go.md").read_text() == "Go\n"


@pytest.mark.parametrize(
    "text",
    ["ext::sh -c id", "--upload-pack=x", "https://h/x@--x", "http://example.org/x.git", "file:///a@..", "git@-h:x",
     "https://h/x#../y", "https://h/x#/y", "fd::7", "\x1b", "ssh://-oProxyCommand=x/y", "nothing"],
)  # fmt: skip
def test_an_address_that_git_could_misread_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(PluginError):
        parsed_source(text, tmp_path)


def test_sources_as_people_write_them(tmp_path: Path) -> None:
    assert parsed_source("o/n@v1", tmp_path) == Source("", "https://github.com/o/n.git", "v1")
    assert parsed_source("https://h/x.git@v1#a/b", tmp_path) == Source("a/b", "https://h/x.git", "v1")
    assert parsed_source("git@h:o/n.git@main", tmp_path) == Source("", "git@h:o/n.git", "main")
    (tmp_path / "here").mkdir()
    assert parsed_source("here", tmp_path) == Source(os.path.realpath(tmp_path / "here"))


def test_a_marketplace_is_a_list_and_its_entry_may_hold_the_parts(tmp_path: Path) -> None:
    entry = {"name": "go-lsp", "source": "./plugins/go", "lspServers": {"go": {"command": "mygo"}}, "strict": False}
    listed = [entry, {"name": "../evil", "source": "./x"}, {"name": "far", "source": {"source": "npm", "package": "x"}}]
    market = tmp_path / "market"
    make_plugin(market, {".claude-plugin/marketplace.json": {"name": "m", "plugins": listed}})
    (market / "plugins" / "go").mkdir(parents=True)
    (market / "plugins" / "go" / "README.md").write_text("x")
    commit(market, "v1")
    store = PluginStore(tmp_path / "data")
    found, entries, problems = store.read_market(parsed_source(f"file://{market}@v1", tmp_path), ENVIRONMENT)
    store.add_market(found)
    assert [one["name"] for one in entries] == ["go-lsp", "far"]
    assert "'../evil' is not usable" in problems[0]
    source, chosen = source_in(store.markets()["m"], entries, "go-lsp")
    added(store, source, name="go-lsp", market="m", entry=chosen)
    ((plugin,), _) = store.installed()
    assert (plugin.name, plugin.programs) == ("go-lsp", ("language servers",))
    with pytest.raises(PluginError, match="can't fetch sources of the kind 'npm'"):
        source_in(found, entries, "far")
    assert store.remove_market("m")
    assert not store.remove_market("m")
    assert list(store.records()) == ["go-lsp"]


@pytest.mark.parametrize("given", ["../x", "/x", 5, None, {"source": "url", "url": "ext::sh"}, {"source": "github"}])
def test_an_entry_names_no_hostile_source(given: object) -> None:
    with pytest.raises(PluginError):
        of_entry({"name": "x", "source": given}, Source("", "https://h/x.git"))


def test_what_a_marketplace_adds_is_part_of_the_content(tmp_path: Path) -> None:
    root = make_plugin(tmp_path / "p", {})
    assert tree_digest(root, {}) != tree_digest(root, {"hooks": HOOK})


def test_a_damaged_list_uses_nothing_and_is_kept(tmp_path: Path) -> None:
    store = PluginStore(tmp_path / "data")
    store.folder.mkdir(parents=True)
    (store.folder / "plugins.json").write_text("{")
    plugins, (problem,) = store.installed()
    assert plugins == ()
    assert "it was kept as plugins.json.corrupt-" in problem
