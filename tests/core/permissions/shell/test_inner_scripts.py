"""A danger in a text that a program gives to a shell asks in auto mode, too, where a sandbox holds the rest."""

from __future__ import annotations

import shlex

import pytest

from swecli.core.permissions.shell.started import started
from tests.support.shell_workspace import ShellWorkspace

DANGER = "rm -rf src"
GIVEN = (
    "PAGER=@@ git log",
    "export PAGER=@@; man ls",
    "env GIT_EXTERNAL_DIFF=@@ git diff",
    "EDITOR=@@ git commit",
    "VISUAL=@@ crontab",
    "GIT_SEQUENCE_EDITOR=@@ git rebase -i HEAD~2",
    "GIT_SSH_COMMAND=@@ git fetch",
    "LESSOPEN='|'@@ less README.md",
    "SHELL=@@ make",
    "make SHELL=@@",
    "RUSTC_WRAPPER=@@ cargo build",
    "PROMPT_COMMAND=@@ bash -i",
    "git grep -O@@ x",
    "npm exec -c @@",
    "man -P @@ ls",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0=!@@ git x",
    "git grep --open-files-in-pager=@@ x",
    "man --pager=@@ ls",
    "mapfile -C @@ -c 1 lines",
    "readarray -c1 -C@@ lines",
    "compgen -C @@",
    "zip -T -TT @@ x.zip README.md",
    "vim -c '!'@@ -c q",
    "ex -sc '!'@@ -c q",
    "nvim +'!'@@",
    "less '+!'@@ README.md",
    "gdb -batch -ex '!'@@",
    "gdb -ex 'shell '@@",
    "dc -e '!'@@",
    "ed <<< '!'@@",
    "make -f - <<< $'all:\\n\\t@'@@",
    "make --eval=$'all:\\n\\t'@@",
    "make --eval='$(shell '@@')'",
    "awk 'BEGIN { print \"x\" | \"'@@'\" }'",
    "awk '{ \"'@@'\" | getline x }'",
    "tar -cf a.tar -I @@ src",
)
FUNCTION_SUBSTITUTIONS = (
    *("echo ${ DANGER; }", 'echo "${ DANGER; }"', "x=${| DANGER; }", "ls ${\tDANGER; }", "ls ${\nDANGER\n}"),
    *("echo ${ echo }; DANGER; }", 'echo "a ${ ls; } b ${ DANGER; }"', "echo ${ ls ${ DANGER; }; }", "DANGER ${ ls; }"),
    "echo ${ ls; }; DANGER",
)
EXPANDED = ("BASH_ENV=@@ bash -c :", "PS4=@@ bash -xc :", "ENV=@@ sh -i", "export PS4=@@; set -x; ls", "x=@@; : ${x@P}")
COMPUTED = (
    *("PAGER=$X git log", "export EDITOR=$(cat x); git commit", ": ${X@P}", "hash -p /bin/rm ls; ls -rf src"),
    *("awk '{ print | $1 }' x", "awk '{ c = $0; c | getline }' x", "awk '{ print | \"sh\" }' x", "printf '!x' | ed a"),
    *("/lib64/ld-linux-x86-64.so.2 /bin/rm -rf src", "IFS=,; x=rm,-rf,src; $x", "IFS=-; x=rm-r; $x src"),
    *(
        "read y < f; declare -a x=$y",
        'local -a "x=$y"',
        "declare -A x=$(cat f)",
        "typeset -i n=$(cat f)",
        "read $y < f",
    ),
    *('f=("$c" -rf src); "${f[@]}"', 'f=("$c" $(rm -rf src))', "f=(rm -rf src); ${f[@]}", "declare f=([0]=rm); $f x"),
    *(
        'declare "$y=1"',
        "f() { local -n x=$1; }; f a",
        'printf -v "$y" 1',
        "test -v $y",
        "[[ -v $y ]]",
        "readonly -a x=$y",
    ),
    *("emacs --batch --eval '(delete-directory \"src\" t)'", 'vim -es -c \'call delete("src", "rf")\' -c q'),
)
HARMLESS = (
    *("EDITOR=vim git commit", "GIT_EDITOR=: git rebase --continue", "GIT_PAGER= git log", "BROWSER=none npm start"),
    *("PAGER='less -R' git diff", "export EDITOR=nano", "make SHELL=/bin/bash test", "hash -r; ls", "dc -e '2 3 + p'"),
    *(
        "vim -c '%s/http/https/g' -c wq README.md",
        "ex -sc 'g!/foo/d' -cx README.md",
        "gdb -batch -ex run -ex bt ./a.out",
    ),
    *("awk '{ print $1 | \"sort -n\" }' README.md", "awk '/a|b/ { print $1 }' README.md", "mapfile -t a < README.md"),
    *("IFS=, read -r a b <<< x,y; ls $a", "PS4='+ ' bash -x run.sh", "perl -Mstrict -e 'print 1'", "tar -xf a.tar"),
    *("declare -r x=$y", "local x=$1 y=$(ls)", "declare -A m=([a]=1 [b]=$x)", "declare -a x=($y)", "readonly D=$(pwd)"),
    *("m=([a]=1 [b]=$x); ls", 'f=("$x" b\n c); ls', "declare -a f=($(ls) $x)", 'f+=("$x")'),
    *('read -r -p "$q" x', "printf '%s' $y", "[ $x = 1 ]", "[[ -n $x ]]", "export PATH=$PATH:bin"),
    "make -f - <<< $'all: a.c\\n\\t@$(CC) -o $@ $<'",
)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("inner"))


def outcome(work: ShellWorkspace, command: str) -> str:
    return work.decide(command, work.policy(mode="auto", sandbox="full", holds=True)).outcome


@pytest.mark.parametrize("command", GIVEN)
def test_what_a_program_runs_is_searched(work: ShellWorkspace, command: str) -> None:
    whole = command.replace("'@@'", DANGER).replace("@@", shlex.quote(DANGER))
    assert (outcome(work, whole), work.decide(whole).outcome) == ("ask", "ask")


@pytest.mark.parametrize("command", EXPANDED)
def test_what_a_shell_expands_later_is_searched(work: ShellWorkspace, command: str) -> None:
    assert outcome(work, command.replace("@@", shlex.quote(f"$({DANGER})"))) == "ask"
    assert outcome(work, command.replace("@@", "ls")) == "allow"


@pytest.mark.parametrize("command", FUNCTION_SUBSTITUTIONS)
def test_substitutions_of_bash_5_3_are_searched(work: ShellWorkspace, command: str) -> None:
    assert outcome(work, command.replace("DANGER", DANGER)) == "ask"
    assert outcome(work, command.replace("DANGER", "make")) == "allow"
    assert work.decide(command.replace("DANGER", "ls")).outcome == "ask"


@pytest.mark.parametrize("command", COMPUTED)
def test_a_text_that_is_not_known_asks(work: ShellWorkspace, command: str) -> None:
    assert outcome(work, command) == "ask"


@pytest.mark.parametrize("command", HARMLESS)
def test_the_usual_uses_do_not_ask(work: ShellWorkspace, command: str) -> None:
    assert outcome(work, command) == "allow"


def test_a_makefile_from_the_input_is_read_as_recipes() -> None:
    items = started("make -f - <<'E'\nall:\n\t@-$(CC) -c a.c\n\techo $$HOME $(shell date)\nE")
    assert {"make", "cc", "echo", "date"} <= {item.name for item in items}


@pytest.mark.parametrize("odd", ['"\\', "print ", '"a ', "! ", "| ", "a | "])
def test_a_long_text_is_read_once(odd: str) -> None:
    names = [item.name for item in started(f"awk '{odd * 30_000}'; ls")]
    assert (names[0], names[-1]) == ("awk", "ls")


@pytest.mark.parametrize("odd", ["xargs ", "find . -exec ", "env A=1 ", 'python -c "a" ', "rm " + "[" * 3_000])
def test_what_takes_too_long_to_search_does_not_run(work: ShellWorkspace, odd: str) -> None:
    assert outcome(work, odd * min(8_000, 400_000 // len(odd))) != "allow"
