"""Uses of dangerous programs that do no harm get no line of danger, and nothing else passes for one."""

from __future__ import annotations

import pytest

from swecli.core.permissions.types import Rule
from tests.support.shell_workspace import ShellWorkspace

CONTAINED = (
    *(
        "git rm --dry-run README.md",
        "git rm -rn src",
        "git push --force --dry-run",
        "npm publish --dry-run",
    ),
    *("git restore --staged README.md", "cargo clean -n", "rsync -avn --delete src/ docs/"),
    *("git -c color.ui=never rm --dry-run README.md", "brew cleanup -n", "fly status", "gcloud config list"),
    *("ansible-playbook --syntax-check site.yml", "terraform state list", "ln -sf src new", "mv -f README.md new.md"),
    *("npm init -y", "uv init", "poetry init", "bun init", "conda init bash", "nix flake init", "bundle init"),
    *("gcloud auth list", "nomad job status", "aws s3 rm --dryrun s3://b/x", "jj op log", "cargo owner --list x"),
    *("fd -e py -x wc -l", "fd . src --exec-batch wc", "tar xpf x.tar", "zip -r x.zip src", "curl -sHKey:K localhost"),
    *("git -c core.pager=cat log", "git -c core.editor=true -c user.name=x rebase --continue"),
    *("az vm list -o table", "glab release list", "gh codespace list", "doctl apps list", "npm access get status x"),
)
PROVEN = ("rm --help", "git restore --help", "code --version", "docker --help", "docker run --help", "kubectl help")
ELSEWHERE = (
    *("docker ps -a", "docker compose logs --tail=5 web", "docker system prune --help", "docker inspect web"),
    *(
        "kubectl get pods -n x",
        "kubectl delete pod x --dry-run=client",
        "helm list",
        "tmux ls",
        "crontab -l",
        "sudo -l",
    ),
    *("pkill -0 node", "podman images"),
    *("docker service ls", "docker node inspect x", "podman pod ps", "kubectl apply view-last-applied -f x.yml"),
    *("kubectl label pod x --list", "zpool status", "btrfs filesystem usage src", "code --list-extensions"),
    *("killall -l", "at -l", "passwd -S", "losetup -a", "nmcli device", "virsh pool-list --all", "sysctl --all"),
    *("lxc list", "toolbox list"),
)
DANGEROUS = (
    *("init 0", "init 6", "sudo init 6", "losetup -a x", "nmcli connection delete x", "nmcli device disconnect x"),
    *("docker node rm x", "kubectl annotate pod x a=b", "code --status x.py", "zpool destroy x", "jj op restore x"),
    *(
        "cargo owner --list --add x",
        "virsh 'list; destroy x'",
        "virsh list '; destroy x'",
        "at -l now",
        "gcloud auth login",
    ),
    *("btrfs subvolume delete src", "aws s3 rm s3://b/x", "kubectl drain x --dry-run=none"),
    *("rm -r src --help", "trash src --help", "git rm README.md", "git rm -r -- -n", "git rm README.md -- --dry-run"),
    *(
        "git push -f --dry-run --receive-pack='sh -c id' .",
        "git push --force",
        "git restore --staged --worktree README.md",
    ),
    *(
        "git restore -SW README.md",
        "rsync -avn --delete src/ host:x",
        "rsync -aen --delete src/ docs/",
        "rsync -a --delete a b",
    ),
    *(
        "cargo publish -n --config x",
        "npm publish -- --dry-run",
        "crontab -r",
        "crontab -l -r",
        "crontab -l | crontab -",
    ),
    *(
        "docker run alpine --help",
        "docker exec web rm --help",
        "docker compose down",
        "docker compose config -o x",
        "docker $x",
    ),
    *("kubectl delete pod x --dry-run=none", "kubectl delete pod x", "kubectl delete pod x -- --dry-run=client"),
    *("helm template x . --post-renderer ./x", "tmux ls \\; kill-server", "tmux 'ls;' kill-server", "sudo rm --help"),
    *(
        "ssh host rm --help",
        "pkill -0 -9 node",
        "mount /dev/sda1 /mnt",
        "trash-empty",
        "terraform state rm x",
        "docker * ps",
    ),
)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("harmless"))


@pytest.mark.parametrize("command", CONTAINED)
def test_what_does_no_harm_is_not_dangerous(work: ShellWorkspace, command: str) -> None:
    decision = work.decide(command)
    assert (decision.outcome, decision.danger, decision.loss) == ("ask", "", None)
    assert work.decide(command, work.policy(mode="auto", sandbox="full")).outcome == "allow"
    assert work.decide(command, work.policy(mode="plan")).outcome == "deny"


@pytest.mark.parametrize("command", PROVEN)
def test_what_only_tells_about_a_dangerous_program_runs(work: ShellWorkspace, command: str) -> None:
    for policy in (work.policy(), work.policy(mode="plan"), *work.loosest()):
        decision = work.decide(command, policy)
        assert (decision.outcome, decision.danger, decision.loss) == ("allow", "", None)


@pytest.mark.parametrize("command", ELSEWHERE)
def test_what_no_sandbox_runs_asks_without_a_warning(work: ShellWorkspace, command: str) -> None:
    for policy in (work.policy(), work.policy(mode="auto", sandbox="full"), *work.loosest()[1:]):
        decision = work.decide(command, policy)
        assert (decision.outcome, decision.danger, decision.loss) == ("ask", "", None)


@pytest.mark.parametrize("command", DANGEROUS)
def test_what_does_harm_is_as_dangerous_as_before(work: ShellWorkspace, command: str) -> None:
    for policy in (work.policy(), *work.loosest()):
        decision = work.decide(command, policy)
        assert decision.outcome != "allow"
        assert decision.danger or decision.outcome == "deny"


def test_a_rule_has_to_spell_out_the_use(work: ShellWorkspace) -> None:
    def outcome(rule: str) -> str:
        return work.decide("docker inspect web", work.policy(rules=(Rule("allow", rule, "user"),))).outcome

    assert [outcome(rule) for rule in ("Bash(docker *)", "Bash", "Bash(docker inspect *)")] == ["ask", "ask", "allow"]


def test_the_reason_says_what_the_program_does(work: ShellWorkspace) -> None:
    words = "docker acts through another process, which no sandbox contains, so it needs your approval."
    assert work.decide("docker ps").reason == words
    auto = work.decide("crontab -l", work.policy(mode="auto", sandbox="full"))
    assert auto.reason == "crontab cannot work in a sandbox, so it needs your approval."
    for command in ("trash README.md", "gio trash README.md"):
        assert work.decide(command).reason == f"{command} moves files to the trash."
    assert work.decide("pulumi up").reason == "pulumi up may change something on other machines."
    for command, does in (
        ("kill -l", "kill acts on other processes"),
        ("export A=1", "export changes the shell itself"),
        ("source README.md", "source runs a script in this shell"),
    ):
        assert work.decide(command).reason == f"{does}, so it needs your approval."
