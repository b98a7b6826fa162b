"""What "don't ask again" offers for everyday runners, what it says, and what such a rule never lets through."""

from __future__ import annotations

import pytest

from swecli.core.permissions.types import Decision, Rule
from tests.support.shell_workspace import ShellWorkspace


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    workspace = ShellWorkspace(tmp_path_factory.mktemp("runners"), secrets=False)
    for name in ("gen.py", "tools/check", "build.sh"):
        (workspace.root / name).parent.mkdir(exist_ok=True)
        (workspace.root / name).write_text("x")
    return workspace


def under(work: ShellWorkspace, command: str, *rules: str, mode: str = "default", sandbox: str = "off") -> Decision:
    allowed = tuple(Rule("allow", text, "session") for text in rules)
    return work.decide(command, work.policy(rules=allowed, mode=mode, sandbox=sandbox))


@pytest.mark.parametrize(
    ("command", "offers"),
    [
        ("python3 -m pytest -q tests", ["Bash(python3 -m pytest *)"]),
        ("python3 -X dev -m pytest", ["Bash(python3 -X dev -m pytest *)"]),
        ("python3 -m pip install x", ["Bash(python3 -m pip install x)"]),
        (".venv/bin/python -m pytest -x", ["Bash(.venv/bin/python -m pytest *)"]),
        ("python3 gen.py --fast", ["Bash(python3 gen.py --fast)"]),
        ("uv run pytest -x", ["Bash(uv run pytest *)"]),
        ("uv run --extra dev -- pytest", ["Bash(uv run --extra dev -- pytest *)"]),
        ("uv run python -m pytest", ["Bash(uv run python -m pytest *)"]),
        ("poetry run mypy src", ["Bash(poetry run mypy *)"]),
        ("make test", ["Bash(make test)"]),
        ("make -C docs html", ["Bash(make -C docs html)"]),
        ("node gen.js", ["Bash(node gen.js)"]),
        ("node --test", ["Bash(node --test *)"]),
        ("npm run lint -- --fix", ["Bash(npm run lint *)"]),
        ("npm --prefix web test", ["Bash(npm --prefix web test *)"]),
        ("pnpm --filter api test", ["Bash(pnpm --filter api test *)"]),
        ("npx -y vitest run", ["Bash(npx -y vitest *)"]),
        ("npx create-thing app", ["Bash(npx create-thing app)"]),
        ("cargo +nightly test -q", ["Bash(cargo +nightly test *)"]),
        ("go test ./...", ["Bash(go test *)"]),
        ("./gradlew test --info", ["Bash(./gradlew test *)"]),
        ("docker compose -f dev.yml up -d", ["Bash(docker compose -f dev.yml up *)"]),
        ("docker compose exec -T web pytest -q", ["Bash(docker compose exec -T web pytest *)"]),
        ("bash build.sh", ["Bash(bash build.sh)"]),
        ("python3 tools/check", ["Bash(python3 tools/check)"]),
        ("cd src && CI=1 npm test 2>&1 | tail -5", ["Bash(npm test *)"]),
        ("PYTHONPATH=src pytest", ["Bash(pytest *)"]),
        ("git add -A && git commit -m x && git status", ["Bash(git add *)", "Bash(git commit *)"]),
        ("pytest > report.txt 2>&1", ["Bash(pytest *)", "Edit(/report.txt)"]),
        ("uv run pytest tests/", ["Bash(uv run pytest *)"]),
        ("gh pr view 12 --json title,body", ["Bash(gh pr view *)"]),
        ("gh run view 123 --log-failed | tail -50", ["Bash(gh run view *)"]),
        ("gh -R o/r release list", ["Bash(gh -R o/r release list *)"]),
        ("gh api repos/o/r/pulls", ["Bash(gh api repos/o/r/pulls)"]),
        ("gh pr create --fill", ["Bash(gh pr create --fill)"]),
        ("npx eslint src/ tests/**/*.ts", ["Bash(npx eslint *)"]),
        ("timeout 60 pytest tests/*.py", ["Bash(timeout 60 pytest *)"]),
        ("source build.sh && pytest -q", ["Bash(source build.sh)", "Bash(pytest *)"]),
    ],
)
def test_a_narrow_rule_is_offered_and_holds(work: ShellWorkspace, command: str, offers: list[str]) -> None:
    decision = work.decide(command)
    assert (decision.outcome, list(decision.offers)) == ("ask", offers)
    assert decision.offer_note.startswith("Covers ")
    assert under(work, command, *offers).outcome == "allow"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("python3 -c 'print(1)'", "`python3 -c` can run any code"),
        ("python3 /tmp/x.py", "`python3` can run any code"),
        ("bash -c 'make test'", "`bash -c` can run any code"),
        ("uv run bash -c 'make'", "`bash -c` can run any code"),
        ("python3 -m timeit x", "`timeit` can run any code"),
        ("env pytest", "`env` can run any code"),
        ("find . -name x -exec python3 {} +", "`find` can run any code"),
        ("docker run x", "always asks about this"),
        ("docker compose exec web sh -c 'x y'", "always asks about this"),
        ("docker compose down -v", "always asks about this"),
        ("go test -exec sudo ./...", "always asks about this"),
        ("git fetch --upload-pack=x origin", "always asks about this"),
        ("sudo pytest", "always asks about this"),
        ("pytest && rm x", "`rm` removes or overwrites files"),
        ("curl example.org", "`curl` exchanges data with other machines"),
        ("pytest $X", "an argument is computed when it runs"),
        ("pytest $(ls)", "an argument is computed when it runs"),
        ("PYTHONPATH=/tmp pytest", "setting PYTHONPATH"),
        ("LD_PRELOAD=./x.so pytest", "setting LD_PRELOAD"),
        ("cat ../x && pytest", "../x is outside the workspace"),
    ],
)
def test_where_no_rule_can_be_offered_it_says_why(work: ShellWorkspace, command: str, why: str) -> None:
    decision = work.decide(command)
    assert (decision.outcome, decision.offers) == ("ask", ())
    assert decision.offer_note.startswith("Can't be allowed in general: ")
    assert why in decision.offer_note


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("Bash(pytest *)", "sudo pytest"),
        ("Bash(pytest *)", "env X=1 pytest"),
        ("Bash(pytest *)", "timeout 5 pytest"),
        ("Bash(pytest *)", "pytest $(cat x)"),
        ("Bash(pytest *)", "pytest > /tmp/out"),
        ("Bash(pytest *)", "pytest > report.txt"),
        ("Bash(pytest *)", "pytest && python3 gen.py"),
        ("Bash(pytest *)", "PATH=. pytest"),
        ("Bash(pytest *)", "PYTHONPATH=/tmp pytest"),
        ("Bash(pytest *)", "python3 -m pytest"),
        ("Bash(python3 -m pytest *)", "python3 -c pytest"),
        ("Bash(python3 gen.py)", "python3 gen.py --more"),
        ("Bash(python3 gen.py)", "python3 other.py"),
        ("Bash(make test)", "make test install"),
        ("Bash(make test)", "make"),
        ("Bash(uv run pytest *)", "uv run python3 -c x"),
        ("Bash(docker compose up *)", "docker compose exec web sh"),
        ("Bash(docker compose up *)", "docker run x"),
        ("Bash(docker compose down *)", "docker compose down -v"),
        ("Bash(docker *)", "docker compose up"),
        ("Bash(*)", "docker compose up"),
        ("Bash", "docker compose up"),
        ("Bash(go test *)", "go test -exec ./x ./..."),
        ("Bash(git fetch *)", "git fetch --upload-pack=./x origin"),
        ("Bash(git commit *)", "git commit -m x && git push --force"),
    ],
)
def test_a_rule_covers_no_more_than_its_text(work: ShellWorkspace, rule: str, command: str) -> None:
    assert under(work, command, rule).outcome == "ask"


def test_only_a_rule_lets_containers_start_and_no_sandbox_does(work: ShellWorkspace) -> None:
    assert under(work, "docker compose up", mode="auto", sandbox="full").outcome == "ask"
    assert (
        under(work, "docker compose up -d", "Bash(docker compose up *)", mode="auto", sandbox="full").rule is not None
    )


def test_the_note_says_what_else_a_rule_allows(work: ShellWorkspace) -> None:
    assert work.decide("npm test -- a").offer_note == "Covers npm test with any arguments."
    assert work.decide("python3 gen.py").offer_note == "Covers gen.py even after it changes."
    assert work.decide("make test").offer_note == "Covers exactly this command."
    assert work.decide("npm test").reason == "npm test may change files, so it needs your approval."
    assert work.decide("git ls-remote").reason == (
        "git ls-remote exchanges data with other machines, so it needs your approval."
    )
    assert work.decide("xz -td x").reason == (
        "xz replaces files unless it prints, lists or tests them, so it needs your approval."
    )
    assert work.decide("gzip -k x").reason == (
        "gzip without -c or -l or -t may do more than read, so it needs your approval."
    )


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("make test", "allow"),
        ("python3 gen.py", "allow"),
        ("chmod +x build.sh", "allow"),
        ("chmod 600 ~/.profile", "ask"),
        ("chown me /tmp/x", "ask"),
        ("kill 12", "ask"),
        ("git commit -m x", "ask"),
        ("docker compose up", "ask"),
        ("cat ../x && make", "ask"),
        ("cp .env x && make", "ask"),
        ("rm -rf src", "ask"),
    ],
)
def test_auto_runs_in_landlock_what_it_holds(work: ShellWorkspace, command: str, outcome: str) -> None:
    policy = work.policy(mode="auto", sandbox="partial", holds=True)
    decision = work.decide(command, policy)
    assert (decision.outcome, decision.contained) == (outcome, outcome == "allow")
    assert work.decide(command, work.policy(mode="auto", sandbox="partial")).outcome == "ask"


@pytest.mark.parametrize("program", ["sh", "bash", "python3", "node"])
def test_the_script_of_a_skill_is_run_like_any_other(work: ShellWorkspace, program: str) -> None:
    script = ".claude/skills/greet/scripts/ahoy"
    (work.root / script).parent.mkdir(parents=True, exist_ok=True)
    (work.root / script).write_text("echo ahoy")
    assert work.decide(f"{program} {script} Bob").offers
    for command in (
        f"{program} .claude/hooks/ahoy",
        f"{program} .claude/skills/../hooks/ahoy",
        f"{program} src/a.py {script}",
        f"{program} -x {script}",
    ):
        decision = work.decide(command)
        assert (decision.outcome, decision.offers) == ("ask", ()), command
        assert "which controls other programs" in decision.reason, command
