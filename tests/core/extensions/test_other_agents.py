"""Commands, agents and skills in the folders and plugins of other agents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swecli.core.config.trust import covered_by_trust
from swecli.core.extensions.markdown_commands import Invocation, InvocationError, invocation
from swecli.core.extensions.watch import ExtensionFiles
from tests.core.extensions.support import Places


def called(files: ExtensionFiles, name: str, arguments: str = "") -> Invocation:
    found = files.now.invocable(name)
    assert found is not None
    return invocation(found, arguments, files.now.invocable)


def toml(prompt: str) -> str:
    return f"description = \"It's for tests\"\nprompt = '''{prompt}'''\n"


def test_folders_of_other_agents_are_read_after_ours(places: Places) -> None:
    for name in (".opencode/command/a.md", ".opencode/commands/b.md", ".cursor/commands/c.md", "~/.codex/prompts/d.md"):
        places.write(name, "Do it")
    places.write("~/.config/opencode/command/e.md", "Do it")
    places.write(".gemini/commands/git/f.toml", toml("Do it"))
    places.write(".gemini/commands/notes.md", "no command")
    places.write(".opencode/agent/critic.md", "---\ndescription: Reviews\nmode: subagent\n---\nReview.")
    places.write(".claude/commands/c.md", "Ours")
    now = places.open().now
    assert sorted(now.commands) == ["a", "b", "c", "d", "e", "git:f"]
    assert now.commands["c"].body == "Ours"
    assert now.profiles["critic"].mode is None
    assert [text for _, text in now.problems] == [
        ".cursor/commands/c.md: c is also in .claude/commands/c.md, which takes precedence"
    ]
    assert ".opencode/command/ (1)" in covered_by_trust(places.project)
    assert places.open(trusted=False).now.commands.keys() == {"d", "e"}


@pytest.mark.parametrize(
    ("prompt", "arguments", "text", "commands"),
    [
        ("Look at {{args}}.", "the tests", "Look at the tests.", ()),
        ("Costs $1 and $ARGUMENTS: {{args}}", "a b", "Costs $1 and $ARGUMENTS: a b", ()),
        ("See @{docs/a.md} first.", "", "See @docs/a.md first.", ()),
        ("Log: !{git log -- {{args}}}", "it's; rm x", "", ("git log -- 'it'\"'\"'s; rm x'",)),
        ("!{awk '{ print $1 }' a}", "x", "", ("awk '{ print $1 }' a",)),
        ("!{echo `date`}", "", "", ("echo `date`",)),
        ("Open !{ brace", "", "Open !{ brace", ()),
        ("No place for them", "a b", "No place for them\n\nARGUMENTS: a b", ()),
    ],
)
def test_a_command_of_gemini_means_the_same(
    places: Places, prompt: str, arguments: str, text: str, commands: tuple[str, ...]
) -> None:
    places.write(".gemini/commands/x.toml", toml(prompt))
    files = places.open()
    assert files.now.commands["x"].description == "It's for tests"
    made = called(files, "x", arguments)
    assert made.commands == commands
    assert text in "".join(piece for piece in made.pieces if isinstance(piece, str))


@pytest.mark.parametrize("text", ["prompt = ", "description = 'x'", "prompt = 1"])
def test_a_damaged_command_of_gemini_is_reported(places: Places, text: str) -> None:
    places.write(".gemini/commands/x.toml", text)
    files = places.open()
    (problem,) = [problem for _, problem in files.now.problems]
    assert problem.startswith(".gemini/commands/x.toml: ")
    with pytest.raises(InvocationError, match=r"^/x was not sent: \.gemini/commands/x\.toml (is not|has no) "):
        called(files, "x", "only arguments")


def test_a_text_without_front_matter_is_no_agent(places: Places) -> None:
    places.write(".claude/agents/notes.md", "# Our agents\n\nThey review.")
    places.write(".claude/agents/critic.md", "---\ndescription: Reviews\n---\nReview.")
    now = places.open().now
    assert list(now.profiles) == ["critic"]
    assert [text for _, text in now.problems] == [
        ".claude/agents/notes.md: is not an agent: it has no front matter with its description"
    ]


def install(places: Places, entry: Any, *, enabled: object = True, name: str = "tools@market") -> None:
    places.write("~/.claude/plugins/installed_plugins.json", json.dumps({"version": 2, "plugins": {name: entry}}))
    places.write("~/.claude/settings.json", json.dumps({"enabledPlugins": {name: enabled}}))


def test_enabled_plugins_give_their_texts_under_their_name(places: Places) -> None:
    places.write("~/p/commands/go.md", "Run !`${CLAUDE_PLUGIN_ROOT}/go.sh` now")
    places.write("~/p/more/also.md", "Also")
    places.write("~/p/agents/critic.md", "---\nname: critic\ndescription: Reviews\n---\nReview.")
    places.write("~/p/skills/count/SKILL.md", "---\nname: count\ndescription: Counts\n---\nCount.")
    places.write("~/p/.mcp.json", "{}")
    places.write("~/p/hooks/hooks.json", "{}")
    places.write("~/p/.claude-plugin/plugin.json", json.dumps({"name": "tools", "commands": ["./more", "./../out"]}))
    root = places.home / "p"
    install(places, [{"scope": "user", "installPath": str(root)}])
    files = places.open()
    assert sorted(files.now.commands) == ["tools:also", "tools:go"]
    assert list(files.now.profiles) == ["tools:critic"]
    assert list(files.now.skills) == ["tools:count"]
    assert called(files, "tools:go").commands == (f"{root}/go.sh",)
    assert [text for _, text in files.now.problems] == [
        f"plugin tools: its hooks and MCP servers do not run yet; `swecli plugin add {root}` shows and allows them"
    ]
    assert files.problems == (
        f"{root}/.claude-plugin/plugin.json: commands: './../out' is not a place inside the plugin; ignored.",
    )


@pytest.mark.parametrize("enabled", [False, None, "yes"])
def test_a_plugin_that_is_not_enabled_is_not_read(places: Places, enabled: object) -> None:
    places.write("~/p/commands/go.md", "Go")
    install(places, [{"installPath": str(places.home / "p")}], enabled=enabled)
    assert places.open().now.commands == {}


def test_a_plugin_for_another_project_is_not_read(places: Places) -> None:
    places.write("~/p/commands/go.md", "Go")
    entry = {"installPath": str(places.home / "p"), "projectPath": str(places.home / "elsewhere")}
    install(places, [entry])
    assert places.open().now.commands == {}
    install(places, [{**entry, "projectPath": str(places.project)}])
    assert list(places.open().now.commands) == ["tools:go"]


@pytest.mark.parametrize("entry", [[], {}, "x", [{"installPath": 1}], [{"installPath": "relative"}], [[]]])
def test_a_damaged_list_of_plugins_counts_as_empty(places: Places, entry: Any) -> None:
    install(places, entry)
    assert places.open().now.commands == {}
    places.write("~/.claude/plugins/installed_plugins.json", "{")
    assert places.open().now.commands == {}
