"""What contained commands can't read: files that may hold secrets, in the workspace at any depth and below home, and
files that rules keep from being read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from swecli.core.permissions.rules import ReadRules
from swecli.core.permissions.types import Rule
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.sandbox.survey import Surveyor
from swecli.core.secret_names import secret_names
from tests.core.sandbox.support import SECRET, Grounds, contained, laid_out

IN_WORKSPACE = """id_rsa server.pem config/.env deep/down/below/.env.production secrets/db_password
  conf/.aws/credentials src/wp-config.php terraform.tfvars
  .env~ sub/.ssh/known_hosts app/oauth_creds.json"""
BELOW_HOME = """.local/share/fish/fish_history .config/rclone/rclone.conf projects/other/.env work/a/prod.kubeconfig
  .m2/settings.xml .gradle/gradle.properties passwords.txt .config/gh/hosts.yml .docker/config.json"""
OPEN = """src/secrets.py .env.example tests/data/server.pem notes.txt design-tokens.json"""


@pytest.fixture
def grounds() -> Iterator[Grounds]:
    with laid_out() as made:
        for folder, names in (
            (made.work, f"{IN_WORKSPACE} {OPEN} private/plan.txt own.vault"),
            (made.home, BELOW_HOME),
        ):
            for name in names.split():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{SECRET} of {name}\n")
        yield made


def working(grounds: Grounds, path: str | None) -> Sandbox:
    sandbox = grounds.sandbox(path=path)
    if not sandbox.check().contains:
        pytest.skip(f"nothing contains commands here: {sandbox.state.text}")
    return sandbox


@pytest.mark.parametrize("path", [None, "/nowhere"], ids=["bubblewrap", "landlock"])
def test_a_contained_command_reads_no_secret_of_workspace_and_home(grounds: Grounds, path: str | None) -> None:
    sandbox = working(grounds, path)
    result = contained(
        sandbox, f"cat {grounds.work}/.env; grep -r {SECRET} {grounds.work} {grounds.home}", grounds.work
    )
    shown = {line.partition(":")[0] for line in result.output.splitlines() if line.endswith(tuple(OPEN.split()))}
    assert shown == {f"{grounds.work}/{name}" for name in OPEN.split()}
    for name in (*IN_WORKSPACE.split(), *BELOW_HOME.split()):
        assert f"of {name}\n" not in result.output
    masked = {str(path) for path in sandbox.masked}
    assert {f"{grounds.work}/config/.env", f"{grounds.home}/.ssh", f"{grounds.home}/projects/other/.env"} <= masked


def test_what_rules_keep_from_being_read_is_masked(grounds: Grounds) -> None:
    sandbox = working(grounds, None)
    rules = ReadRules(
        (Rule("deny", "Read(private/**)", "user"), Rule("ask", "Read(notes.txt)", "user")), (str(grounds.work),), ""
    )
    launch = sandbox.begin(grounds.work, full=True, rules=rules)
    denied = launch.plan.paths("denied", "hidden")
    launch.end()
    assert f"{grounds.work}/notes.txt" in denied
    assert any(path.startswith(f"{grounds.work}/private") for path in denied)
    plain = sandbox.begin(grounds.work, full=True)
    assert f"{grounds.work}/notes.txt" not in plain.plan.paths("denied")
    plain.end()
    sandbox.close()


def test_the_users_own_names_count(grounds: Grounds) -> None:
    names = secret_names(("*.vault", "!server.pem"))
    found = Surveyor((str(grounds.work),), "", lambda: names).survey().secrets
    assert f"{grounds.work}/own.vault" in found
    assert f"{grounds.work}/server.pem" not in found
    assert f"{grounds.work}/id_rsa" in found


def test_a_link_to_a_secret_masks_what_it_leads_to(grounds: Grounds) -> None:
    (grounds.work / "real.txt").write_text(SECRET)
    (grounds.work / "app" / ".env").symlink_to("../real.txt")
    assert SECRET not in contained(working(grounds, None), "cat app/.env real.txt", grounds.work).output
