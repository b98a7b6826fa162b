"""Instruction files of other agents: which of them count, when, and at what cost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.core.context_management.instructions import MOST_RULE_BYTES, applies_below, load_instructions
from swecli.core.context_management.rule_files import MOST_OFFERED, MOST_RULES, When, read_rule, rule_paths


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    return root


def rule(folder: str, front: str, name: str = "a.md") -> tuple[When, tuple[str, ...]]:
    base = Path("/p")
    text = f"---\n{front}\n---\nBody" if front else "Body"
    found, body, _ = read_rule(text, base / folder / name, f"{folder}/{name}", base, folder)
    assert body.strip() == "Body"
    return found.when, found.globs


@pytest.mark.parametrize(
    ("folder", "front", "when", "globs"),
    [
        (".claude/rules", "", "always", ()),
        (".claude/rules", "description: Tests", "always", ()),
        (".claude/rules", "paths:\n  - src/**/*.ts\n  - 'lib/**'", "matching", ("src/**/*.ts", "lib/**")),
        (".claude/rules", "paths: src/**/*.{ts,tsx}, lib/**", "matching", ("src/**/*.{ts,tsx}", "lib/**")),
        (".github/instructions", 'applyTo: "**/*.ts,**/*.tsx"', "matching", ("**/*.ts", "**/*.tsx")),
        (".github/instructions", "applyTo: '**'", "always", ()),
        (".github/instructions", "applyTo: '**'\nexcludeAgent: coding-agent", "mentioned", ()),
        (".github/instructions", "applyTo: '**'\nexcludeAgent: code-review", "always", ()),
        (".github/instructions", "description: Comments", "described", ()),
        (".cursor/rules", "description: x\nglobs: \nalwaysApply: true", "always", ()),
        (".cursor/rules", "description: \nglobs: *.py\nalwaysApply: false", "matching", ("*.py",)),
        (".cursor/rules", 'globs: ["**/*.py", "**/*.c"]\nalwaysApply: false', "matching", ("**/*.py", "**/*.c")),
        (".cursor/rules", "description: x\nglobs: \nalwaysApply: false", "described", ()),
        (".cursor/rules", "description: \nglobs: \nalwaysApply: false", "mentioned", ()),
        (".cursor/rules", "", "mentioned", ()),
        (".windsurf/rules", "trigger: always_on", "always", ()),
        (".windsurf/rules", "trigger: model_decision\ndescription: x", "described", ()),
        (".windsurf/rules", "trigger: manual\ndescription: x", "mentioned", ()),
        (".windsurf/rules", "trigger: glob\nglobs: **/*.go", "matching", ("**/*.go",)),
        (".clinerules", "", "always", ()),
        (".clinerules", "paths:\n  - src/**", "matching", ("src/**",)),
    ],
)
def test_the_front_matter_says_when_a_rule_applies(folder: str, front: str, when: When, globs: tuple[str, ...]) -> None:
    assert rule(folder, front) == (when, globs)


@pytest.mark.parametrize(
    ("globs", "path", "matches"),
    [
        ("*.py", "/p/a/b.py", True),
        ("src/*.py", "/p/src/b.py", True),
        ("src/*.py", "/p/src/a/b.py", False),
        ("./src/**", "/p/src/a/b.py", True),
        ("**/*.{ts,tsx}", "/p/a.tsx", True),
        ("*.py", "/q/b.py", False),
        ("[", "/p/b.py", False),
    ],
)
def test_globs_are_relative_to_the_folder_of_the_rules(globs: str, path: str, matches: bool) -> None:
    found, _, _ = read_rule(
        f"---\nglobs: '{globs}'\n---\nx", Path("/p/.cursor/rules/a.mdc"), "a", Path("/p"), ".cursor/rules"
    )
    assert found.matches(Path(path)) is matches


SLOW = "*a" * 12 + "*b"
MANY = "{a,b,c,d,e,f,g,h,i,j}" * 6


@pytest.mark.parametrize("glob", [SLOW, f"**/{{{SLOW},x}}", MANY, "a" * 300, "{" + "," * 50_000], ids=len)
def test_a_glob_that_would_take_for_ever_matches_nothing(glob: str) -> None:
    found, _, _ = read_rule(f"---\nglobs: ['{glob}']\n---\nBody", Path("/p/r"), "r", Path("/p"), ".cursor/rules")
    assert not found.matches(Path("/p") / ("a" * 300))


def test_globs_with_several_endings_are_not_too_many_wildcards() -> None:
    text = "---\nglobs: '{*.ts,*.tsx,*.js,*.jsx}'\n---\nBody"
    found, _, _ = read_rule(text, Path("/p/r"), "r", Path("/p"), ".cursor/rules")
    assert found.matches(Path("/p/src/a.jsx"))
    assert not found.matches(Path("/p/src/a.py"))


def test_no_more_folders_are_looked_at_than_may_have_rules(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(MOST_RULES + 50):
        write(project, **{f".claude/rules/{number:04}/a.md": "Rule"})
    looked: list[str] = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: (looked.append(str(folder)), scan(folder))[1])
    assert [len(paths) for _, paths in rule_paths(project)] == [MOST_RULES + 1]
    assert len(looked) == MOST_RULES + 2


def test_files_of_other_agents_count_if_the_folder_has_no_usual_one(project: Path) -> None:
    write(project, **{".cursorrules": "cursor", ".github/copilot-instructions.md": "copilot"})
    assert [file.text for file in load_instructions(project).files] == ["copilot"]
    write(project, **{".claude/CLAUDE.md": "claude"})
    assert [file.text for file in load_instructions(project).files] == ["claude"]
    write(project, **{"AGENTS.md": "agents"})
    assert [file.text for file in load_instructions(project).files] == ["agents"]


def test_rules_and_the_local_file_count_beside_the_instruction_file(project: Path) -> None:
    write(
        project,
        **{
            "CLAUDE.local.md": "mine @notes.md",
            "notes.md": "noted",
            "CLAUDE.md": "shared",
            ".claude/rules/b.md": "---\ndescription: x\n---\nrule b",
            ".claude/rules/a/one.md": "rule one",
            ".claude/rules/only.md": "---\npaths: src/**\n---\nonly src",
            ".cursor/rules/copy.mdc": "---\nalwaysApply: true\n---\nrule b",
            ".clinerules/workflows/w.md": "no rule",
        },
    )
    found = load_instructions(project)
    texts = [file.text.strip() for file in found.files]
    assert texts == ["shared", "rule one", "rule b", "mine @notes.md", "noted"]
    assert [(one.name, one.when) for one in found.rules] == [(".claude/rules/only.md", "matching")]
    assert "only src" not in found.render()
    assert load_instructions(project, merge="none").files == ()
    without = load_instructions(project, rules=False)
    assert ([file.text for file in without.files], without.rules) == (["shared", "mine @notes.md", "noted"], ())
    quoted = load_instructions(project, project="quoted")
    assert all(file.quoted for file in quoted.files)
    assert load_instructions(project, project="none").rules == ()


def test_described_rules_are_named_for_the_model_only_in_a_trusted_folder(project: Path) -> None:
    rules = {
        f".cursor/rules/{n:02}.mdc": f"---\ndescription: About </x> {n} {'w' * 300}\n---\nText {n}" for n in range(50)
    }
    write(project, **rules)
    text = load_instructions(project).render_project()
    assert "- .cursor/rules/00.mdc: About" in text
    assert text.count("- .cursor/rules/") == MOST_OFFERED
    assert "and 10 more in the same folders" in text
    assert len(text) < 12_000
    assert load_instructions(project, project="quoted").render_project() == ""


def test_rules_have_a_limit_together_and_one_notice(project: Path) -> None:
    write(project, **{f".claude/rules/{n}.md": f"{n} " + "word " * 2_000 for n in range(6)})
    found = load_instructions(project)
    assert sum(len(file.text) for file in found.files) <= MOST_RULE_BYTES
    (notice,) = found.notices
    assert notice.startswith(".claude/rules/3.md and 2 more are in the prompt by name only")
    assert "- .claude/rules/5.md: 5" in found.render_project()
    write(project, **{f".cursor/rules/{n:03}.mdc": "x" for n in range(MOST_RULES + 3)})
    assert any(f"more than {MOST_RULES} files" in text for text in load_instructions(project).notices)


def test_the_limit_of_rules_counts_bytes(project: Path) -> None:
    write(project, **{f".claude/rules/{name}.md": f"{name} " + "語" * (MOST_RULE_BYTES // 5) for name in "ab"})
    assert [file.name for file in load_instructions(project).files] == [".claude/rules/a.md"]


def test_rules_that_a_link_brings_from_outside_are_not_read(project: Path, tmp_path: Path) -> None:
    write(tmp_path, **{"outside/a.md": "stranger"})
    (project / ".claude").mkdir()
    (project / ".claude" / "rules").symlink_to(tmp_path / "outside")
    found = load_instructions(project)
    assert found.files == ()
    assert "outside the project" in found.notices[0]


def test_a_folder_of_rules_is_no_unreadable_file(project: Path) -> None:
    write(project, **{".clinerules/01.md": "cline"})
    found = load_instructions(project)
    assert [file.text for file in found.files] == ["cline"]
    assert found.notices == ()


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("AGENTS.md", "."),
        ("api/AGENTS.md", "api"),
        ("api/.claude/rules/x/y.md", "api"),
        (".cursor/rules/y.mdc", "."),
        ("api/.github/copilot-instructions.md", "api"),
        ("api/.swecli/OPENCLI.md", "api"),
    ],
)
def test_rules_apply_below_the_folder_that_has_their_folder(name: str, folder: str) -> None:
    assert applies_below(name) == folder


@pytest.mark.parametrize(
    "read", ["read: CONVENTIONS.md", "read: [CONVENTIONS.md, main.py]", "read:\n  - CONVENTIONS.md"]
)
def test_conventions_count_if_the_settings_of_aider_name_them(project: Path, read: str) -> None:
    write(project, **{"CONVENTIONS.md": "tabs", "AGENTS.md": "agents", "main.py": "x = 1"})
    assert [file.text for file in load_instructions(project).files] == ["agents"]
    write(project, **{".aider.conf.yml": f"# settings\nmodel: x\n{read}\n"})
    found = load_instructions(project)
    assert [file.text for file in found.files] == ["agents", "tabs"]
    assert found.files[1].importer == ".aider.conf.yml"
    assert [file.text for file in load_instructions(project, project="quoted").files] == ["agents"]


def test_a_path_of_an_import_may_have_blanks(project: Path) -> None:
    write(project, **{"CLAUDE.md": "See @docs/my\\ style.md.", "docs/my style.md": "tabs"})
    assert load_instructions(project).files[1].text == "tabs"
