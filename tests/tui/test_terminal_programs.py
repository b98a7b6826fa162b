"""Which of the user's own commands get the whole terminal."""

from __future__ import annotations

import pytest

from swecli.tui.terminal_programs import missed_a_terminal, needs_terminal

ENVIRONMENT = {"EDITOR": "/opt/bin/MyEd --wait", "VISUAL": "'unclosed"}

TAKE_IT = (
    *("vim x", "less a", "cd src && htop", "FOO=1 nvim", "/usr/bin/man ls", "git diff | less", "bash -c 'vim a'"),
    *("myed notes", "sudo ls", "sudo apt install x", "ssh host uptime", "echo a; passwd", "find . -exec vim {} +"),
    *("git commit", "git commit --amend", "git -C sub commit", "git rebase -i HEAD~2", "git add -p", "git -C a add -p"),
    *("python3", "python3 -i a.py", "python3 -q", "python -m pdb a.py", "bash", "sqlite3 a.db", "psql shop", "node"),
    *("docker run --rm -it x sh", "docker exec -ti a b", "docker compose exec web sh", "kubectl exec -it p -- sh"),
    *("read x", "rm -i a", "npm init", "terraform apply", "crontab -e", "watch date", "xargs vi < files"),
)
RUN_INSIDE = (
    *("ls -l", "git status", "git log", "git push", "git show commit", "git commit -m x", "git commit -am 'a b'"),
    *("git commit --amend --no-edit", "git stash", "git rebase main", "python3 a.py", "python3 -c 'print(1)'"),
    *("python3 -V", "python3 --version", "vim --version", "ssh --help", "bash x.sh", "node -e 1", "cat a | python3"),
    *(
        "python3 < a.py",
        "bash <<< 'ls'",
        "yes | rm -i a",
        "docker run --rm x",
        "docker ps",
        "docker compose exec -T web ls",
    ),
    *("sqlite3 a.db 'select 1'", "psql -c 'select 1' shop", "top -b -n1", "sudo -n true", "npm test", "npm init -y"),
    *("npm run create", "echo vim", "grep less a", "tail -f log", "make", "cargo run", "while true; do date; done"),
    *("terraform apply -auto-approve", "crontab -l", "ssh-keygen -N '' -f k", "echo 'unclosed", ""),
)


@pytest.mark.parametrize("command", TAKE_IT)
def test_what_edits_pages_or_asks_gets_the_terminal(command: str) -> None:
    assert needs_terminal(command, ENVIRONMENT)


@pytest.mark.parametrize("command", RUN_INSIDE)
def test_everything_else_runs_inside(command: str) -> None:
    assert not needs_terminal(command, ENVIRONMENT)


@pytest.mark.parametrize(
    ("output", "missed"),
    [
        ("the input device is not a TTY", True),
        ("sudo: a terminal is required to read the password", True),
        ("fatal: could not read Username for 'https://x': terminal prompts disabled", True),
        ("tests/test_tty.py passed", False),
        ("error: no such file", False),
    ],
)
def test_a_command_that_missed_its_terminal_is_known_by_what_it_says(output: str, missed: bool) -> None:
    assert missed_a_terminal(output) is missed
