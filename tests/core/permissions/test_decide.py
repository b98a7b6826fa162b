"""The order of the decision, mode by mode."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.permissions.decide import decide
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Call, Effects, Policy, Rule
from swecli.core.protocol.events import Mode

ROOT = "/w"
HOME = "/home/u"
MODES: tuple[Mode, ...] = ("default", "accept-edits", "plan", "auto")


def call(tool: str = "read_file", *, given: str = "", **effects: object) -> Call:
    return Call(tool, {"path": given} if given else {}, Effects(**effects), ROOT, (ROOT,))  # type: ignore[arg-type]


def policy(mode: Mode = "default", *rules: Rule, **more: object) -> Policy:
    return Policy(mode, rules, home=HOME, own_dirs=("/home/u/.config/swecli",), **more)  # type: ignore[arg-type]


def rule(effect: str, text: str, scope: str = "user") -> Rule:
    return Rule(effect, text, scope, "test")  # type: ignore[arg-type]


READ = call(reads=("/w/a.py",))
WRITE = call("edit_file", writes=("/w/a.py",))
RUN = call("run_command", command="make install")


def outcome(policy: Policy, call: Call) -> str:
    decision = decide(policy, call)
    assert decision.reason.endswith((".", ")"))
    return decision.outcome


@pytest.mark.parametrize(
    ("what", "default", "accept", "plan", "auto"),
    [
        (READ, "allow", "allow", "allow", "allow"),
        (WRITE, "ask", "allow", "deny", "allow"),
        (RUN, "ask", "ask", "deny", "ask"),
        (call(reads=("/etc/hosts",)), "ask", "ask", "ask", "ask"),
        (call(reads=("/w/.env",)), "ask", "ask", "ask", "ask"),
        (call(reads=("/w/deploy/server.pem",)), "ask", "ask", "ask", "ask"),
        (call("edit_file", writes=("/tmp/x",)), "ask", "ask", "deny", "ask"),
        (call("edit_file", writes=("/w/.git/config",)), "ask", "ask", "deny", "ask"),
        (call("write_file", writes=("/w/.env",)), "ask", "ask", "deny", "ask"),
        (call("write_file", writes=("/w/a\u202eyp.b",)), "ask", "ask", "deny", "ask"),
        (call("write_file", writes=("/w/a.py\n.txt",)), "ask", "ask", "deny", "ask"),
        (call("write_file", writes=("/w/a\t.py",)), "ask", "ask", "deny", "ask"),
        (call("write_file", writes=("/w/../etc/passwd",)), "ask", "ask", "deny", "ask"),
        (call(reads=("/w/../etc/passwd",)), "ask", "ask", "ask", "ask"),
        (call("edit_file", writes=("/w/.vscode/tasks.json",)), "ask", "ask", "deny", "ask"),
        (call("edit_file", writes=("/w/sub/.envrc",)), "ask", "ask", "deny", "ask"),
        (call("edit_file", writes=("/home/u/.bashrc",)), "ask", "ask", "deny", "ask"),
        (call("edit_file", writes=("/w/.swecli/memory/notes.md",)), "ask", "allow", "deny", "allow"),
        (call("edit_file", writes=("/w/OPENCLI.md",)), "ask", "allow", "deny", "allow"),
        (call("write_file", writes=("/w/a.py",), unread=("/w/a.py",)), "ask", "ask", "deny", "ask"),
        *(
            (call("write_file", writes=(f"/w/{name}",)), "ask", "ask", "deny", "ask")
            for name in (
                *(".cursor/rules/x.mdc", ".gemini/settings.json", ".codex/config.toml", ".zed/tasks.json", ".vimrc"),
                *(".exrc", ".nvim.lua", ".gdbinit", ".tmux.conf", ".bazelrc", ".mvn/jvm.config", "lefthook.yml"),
                *(".github/workflows/ci.yml", ".gitattributes", "web/.gitattributes", ".venv/bin/python"),
                *("node_modules/.bin/tsc", "packages/a/node_modules/.bin/tsc", "sub/.vscode/tasks.json"),
            )
        ),
        (call("web_fetch", network="example.org"), "ask", "ask", "ask", "ask"),
        (call("web_search", network="localhost"), "ask", "ask", "ask", "ask"),
        (call("update_todos", internal=True), "allow", "allow", "allow", "allow"),
        (call("ask_user", interactive=True), "allow", "allow", "allow", "allow"),
        (call("mystery"), "ask", "ask", "deny", "ask"),
        (call("sneaky", internal=True, writes=("/w/a",)), "ask", "allow", "deny", "allow"),
        (call("edit_file", writes=("/w2/a.py",)), "ask", "ask", "deny", "ask"),
    ],
)
def test_modes(what: Call, default: str, accept: str, plan: str, auto: str) -> None:
    assert tuple(outcome(policy(mode), what) for mode in MODES) == (default, accept, plan, auto)


@pytest.mark.parametrize("yolo", [False, True])
@pytest.mark.parametrize(
    "what",
    [
        call(given="a\0b", reads=("/w/a",)),
        call(given="a\udcff", reads=("/w/a",)),
        Call("edit_file", {"edits": [{"new": "x\0"}]}, Effects(writes=("/w/a",)), ROOT, (ROOT,)),
        call("run_command", command="ls\0"),
        call("write_file", writes=("/w/.swecli/config.toml",)),
        call("write_file", writes=("/w/.SWECLI/Config.Local.toml",)),
        call("write_file", writes=("/w/.swecli/hooks/stop.sh",)),
        call("write_file", writes=("/home/u/.config/swecli/config.toml",)),
    ],
)
def test_nothing_lifts_the_hard_refusals(what: Call, yolo: bool) -> None:
    lifted = policy("auto", rule("allow", what.tool), rule("allow", "Edit(**)"), yolo=yolo, trust="trusted")
    assert outcome(lifted, what) == "deny"


def test_auto_runs_commands_only_in_a_full_sandbox_and_says_so() -> None:
    assert outcome(policy("auto", sandbox="full"), RUN) == "allow"
    assert outcome(policy("auto", sandbox="partial"), RUN) == "ask"
    assert "sandbox" in decide(policy("auto"), RUN).reason
    held = decide(policy("auto", sandbox="partial", holds=True), RUN)
    assert (held.outcome, held.contained) == ("allow", True)
    assert held.reason == "The sandbox holds this command's writes and connections."
    assert outcome(policy("default", sandbox="full"), RUN) == "ask"


def test_rules_go_deny_ask_allow_whatever_their_order_and_detail() -> None:
    allow, ask, deny = rule("allow", "Edit(/a.py)"), rule("ask", "Edit(*.py)"), rule("deny", "Edit(**)")
    assert outcome(policy("default", allow), WRITE) == "allow"
    assert outcome(policy("default", allow, ask), WRITE) == "ask"
    assert outcome(policy("default", allow, ask, deny), WRITE) == "deny"
    assert decide(policy("auto", allow, ask, deny), WRITE).rule == deny


def test_yolo_lifts_questions_but_not_denials() -> None:
    assert outcome(policy("auto", yolo=True), RUN) == "allow"
    assert outcome(policy("default", rule("ask", "run_command"), yolo=True), RUN) == "allow"
    assert outcome(policy("default", rule("deny", "Bash"), yolo=True), RUN) == "deny"


def test_plan_mode_chosen_in_a_session_without_questions_still_changes_nothing() -> None:
    assert outcome(policy("plan", yolo=True), RUN) == "deny"
    assert outcome(policy("plan", yolo=True), WRITE) == "deny"
    assert outcome(policy("plan", rule("ask", "read_file"), yolo=True), READ) == "allow"


def test_allow_rules_lift_neither_plan_mode_nor_protected_places() -> None:
    everything = rule("allow", "Edit(**)")
    assert outcome(policy("plan", everything), WRITE) == "deny"
    assert outcome(policy("auto", everything), call("edit_file", writes=("/w/.git/hooks/pre-commit",))) == "ask"


def test_a_project_may_only_tighten_until_it_is_trusted() -> None:
    allow, deny = rule("allow", "Edit(**)", "project"), rule("deny", "Edit(**)", "project")
    assert outcome(policy("default", allow), WRITE) == "ask"
    assert outcome(policy("default", allow, trust="trusted"), WRITE) == "allow"
    assert outcome(policy("default", deny), WRITE) == "deny"


def test_a_declined_workspace_gets_no_automatic_mode() -> None:
    assert outcome(policy("auto", trust="declined", sandbox="full"), RUN) == "ask"
    assert outcome(policy("accept-edits", trust="declined"), WRITE) == "ask"


@pytest.mark.parametrize("effect", ["deny", "ask"])
def test_a_deny_or_ask_rule_that_cannot_be_read_stops_the_automatic_modes(effect: str) -> None:
    broken = rule(effect, "Bash(rm")
    assert outcome(policy("auto", broken, sandbox="full"), RUN) == "ask"
    assert outcome(policy("accept-edits", broken), WRITE) == "ask"
    assert outcome(policy("accept-edits", rule("allow", "Bash(rm")), WRITE) == "allow"


def test_a_deny_rule_holds_for_the_path_as_given_and_as_resolved() -> None:
    deny = rule("deny", "Read(/link/**)")
    through_link = Call("read_file", {"path": "link/x"}, Effects(reads=("/w/real/x",)), ROOT, (ROOT,))
    assert outcome(policy("default", deny), through_link) == "deny"
    assert outcome(policy("default", rule("deny", "Read(/real/**)")), through_link) == "deny"
    assert outcome(policy("default", rule("deny", "Read(/REAL/**)")), through_link) == "deny"


@pytest.mark.parametrize(
    ("what", "offer"),
    [
        (WRITE, "Edit(/a.py)"),
        (call("edit_file", writes=("/w/a [1]!.py",), reads=("/w/a [1]!.py",)), "Edit(/a \\[1\\]\\!.py)"),
        (call("edit_file", writes=("/w/a.py", "/w/b.py")), None),
        (call("edit_file", writes=("/tmp/x",)), None),
        (call("edit_file", writes=("/w/.git/config",)), None),
        (call(reads=("/etc/hosts",)), "Read(//etc/hosts)"),
        (call("run_command", command="make test"), "Bash(make test)"),
        (call("web_fetch", network="example.org"), "WebFetch(domain:example.org)"),
        (call("web_search", network="localhost"), "WebSearch"),
        (call("mcp__db__query"), "mcp__db__query"),
    ],
)
def test_always_offers_a_rule_that_allows_this_call_next_time(what: Call, offer: str | None) -> None:
    decision = decide(policy(), what)
    assert (decision.outcome, decision.offer) == ("ask", offer)
    if offer is not None:
        granted = policy("default", rule("allow", offer, "session"))
        assert outcome(granted, what) == "allow"
        if "(" in offer:
            assert outcome(granted, replace(what, effects=Effects(writes=("/w/other.py",)))) == "ask"


def test_hosts_are_allowed_exactly_or_below_a_dot() -> None:
    allowed = policy("default", rule("allow", "WebFetch(domain:example.org)"))
    for host, expected in [("example.org", "allow"), ("docs.EXAMPLE.org", "allow"), ("badexample.org", "ask")]:
        assert outcome(allowed, call("web_fetch", network=host)) == expected


def test_a_question_about_files_says_what_a_rule_would_also_allow_or_why_there_is_none() -> None:
    default = policy("default")
    one = decide(default, call("edit_file", writes=("/w/a.py",)))
    assert (one.offers, one.offer_note) == (("Edit(/a.py)",), "Covers all further edits to this file.")
    two = decide(default, call("apply_patch", writes=("/w/a.py", "/w/b.py")))
    assert (two.offers, two.offer_note) == ((), "Can't be allowed in general: this changes several files.")
    hook = decide(default, call("edit_file", writes=("/w/.git/hooks/x",)))
    assert (hook.offers, hook.offer_note) == ((), "Can't be allowed in general: swecli always asks about this.")
    page = decide(default, call("web_fetch", network="example.org"))
    assert page.offer_note == "Covers all pages of example.org and its subdomains."


@pytest.mark.parametrize("command", ["cat link", "cat <link", "cat < link"])
def test_a_reason_does_not_capitalise_a_file_name(tmp_path: Path, command: str) -> None:
    (tmp_path / "link").symlink_to("/etc/hosts")
    known = policy(facts=OsFacts({"PATH": "/usr/bin:/bin"}))
    effects = Effects(command=command)
    asked = decide(known, Call("run_command", {"command": command}, effects, str(tmp_path), (str(tmp_path),)))
    assert asked.reason == "link is outside the workspace, so it needs your approval."


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (call("run_command", command="echo " + "a" * 11_000_000), "The command is longer than 131,071 bytes"),
        (call("run_command", command="\n" * 11_000_000), "The command is longer than 131,071 bytes"),
        (call("run_command", command="rm " + "é" * 66_000), "The command is longer than 131,071 bytes"),
        (call("write_file", writes=("/w/" + "x" * 11_000_000,)), "A path has more than 4,095 bytes"),
        (call(reads=("/w/" + "a/" * 5_500_000,)), "A path has more than 4,095 bytes"),
        (call(reads=("/w/a",), given="é" * 3_000), "A path has more than 4,095 bytes"),
    ],
    ids=range(6),
)
def test_what_no_system_takes_is_refused_before_it_is_examined(what: Call, expected: str) -> None:
    for mode in MODES:
        decision = decide(policy(mode, rule("allow", "Bash"), yolo=True), what)
        assert decision.outcome == "deny"
        assert decision.reason.startswith(expected)


def test_a_long_text_among_the_arguments_is_no_objection() -> None:
    what = Call("write_file", {"path": "a", "content": "x" * 11_000_000}, Effects(writes=("/w/a",)), ROOT, (ROOT,))
    assert decide(policy("accept-edits"), what).outcome == "allow"
