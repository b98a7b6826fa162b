"""Ways to write a command so that it still does the same but looks different, or is hidden in another one."""

from __future__ import annotations

import shlex
from collections.abc import Callable

Wrap = Callable[[str], str]

_AROUND = """env @@|env -i A=1 @@|env -u PATH @@|timeout 5 @@|timeout -s KILL 5s @@|nice -n 19 @@|nohup @@
stdbuf -oL @@
time @@|time -p @@|command @@|command -- @@|builtin @@|exec @@|exec -a ls @@|sudo @@|sudo -n -u root @@|doas @@
setsid @@|ionice -c3 @@|chrt 1 @@|taskset 1 @@|unshare @@|strace @@|watch @@|flock /tmp/l @@|busybox @@|xargs @@
echo x ## xargs -I{} @@|ls ## xargs -n1 @@|find . -maxdepth 0 -exec @@ \\;|find . -maxdepth 0 -execdir @@ +
( @@ )|{ @@; }|! @@|@@ &|ls & @@|ls ## @@|ls ##& @@|@@ ## cat|@@ 2>/dev/null|@@ >/dev/null 2>&1|@@ || true
true && @@|false || @@|ls; @@|ls;@@|cd src && @@|cd src; cd ..; @@|cd . && ls && @@
if true; then @@; fi|if @@; then ls; fi|while @@; do ls; done|until ls; do @@; done|for i in a; do @@; done
case a in a) @@;; esac|select i in a; do @@; done|f() { @@; }; f|f() ( @@ ); f|function f { @@; }; f|coproc @@
echo $(@@)|echo "$(@@)"|echo `@@`|x=$(@@)|FILE=`@@`|x=$(@@) ls|ls $(@@)|cat <(@@)|ls >(@@)|diff <(ls) <(@@)
wc -l $(@@)|cat "$(@@)"|[ -n "$(@@)" ]|[[ -n $(@@) ]]|[ -f x -o "$(@@)" ]|echo ${x:-$(@@)}|echo $((1+$(@@)))
echo ${x[$(@@)]}|echo ${ @@; }|echo "${ @@; }"|x=${## @@; }
for i in $(@@); do ls; done|while read -r l; do @@; done|ls ## while read -r l; do @@; done|LC_ALL=C @@|A=1 B=2 @@
IFS=: ; @@|PATH=/tmp:$PATH @@|LD_PRELOAD=./x @@|GIT_PAGER=cat @@|# harmless⏎@@|ls # harmless⏎@@|ls⏎@@|ls \\⏎; @@|\\⏎@@
cat <<EOF⏎$(@@)⏎EOF|cat <<EOF⏎`@@`⏎EOF|cat <<'EOF'⏎x⏎EOF⏎@@|cat <<-EOF⏎$(@@)⏎EOF|sh <<'EOF'⏎@@⏎EOF
bash -s <<EOF⏎@@⏎EOF
cat <<'EOF' ## sh⏎@@⏎EOF|cat <<'EOF' ## bash -s⏎@@⏎EOF|cat << 'A' << 'B'⏎x⏎A⏎y⏎B⏎@@|ls‎; @@|ls​ && @@|ls\r⏎@@|\t@@"""
"""Around the text as it is; ## is a pipe."""
_QUOTED = """sh -c @@|bash -c @@|bash -lc @@|/bin/sh -ec @@|zsh -c @@|dash -c @@|env sh -c @@|timeout 3 bash -c @@
eval @@
eval -- @@|su -c @@|su root -c @@|ssh host @@|ssh -o ProxyCommand=@@ host|trap @@ EXIT|trap -- @@ DEBUG; ls
alias ls=@@; ls
bash <<< @@|sh -s <<< @@|echo @@ ## sh|printf %s @@ ## bash|printf '%s\\n' @@ ## sh -s|find . -exec sh -c @@ \\;
ls ## xargs -I{} sh -c @@|xargs -0 sh -c @@|git -c alias.x=!@@ x|git -c core.pager=@@ log
git -c core.fsmonitor=@@ status
GIT_EXTERNAL_DIFF=@@ git diff|GIT_SSH_COMMAND=@@ git fetch|PAGER=@@ git log|LESSOPEN=@@ less README.md|rg --pre @@ foo
tar tf a.tar --to-command=@@|tar tf a.tar --checkpoint-action=exec=@@|tar tf a.tar -I @@
sort --compress-program=@@ README.md
watch @@|parallel @@|script -c @@|env -S @@|fd -x sh -c @@|git bisect run sh -c @@|git submodule foreach @@
git rebase -x @@ HEAD|split --filter=@@ README.md|bash --rcfile <(echo @@)|. <(echo @@)|source /dev/stdin <<< @@
PS4=@@ bash -x
BASH_ENV=@@ bash -c ls|PROMPT_COMMAND=@@ ls|x=@@; eval "$x"|x=@@; $x|x=@@; sh -c "$x"|x=@@ bash -c '$x'
declare x=@@; eval $x|set -- @@; "$@"|read x <<< @@; $x|mapfile -t x <<< @@; ${x[0]}|echo $(eval @@)
coproc sh -c @@"""
"""The text as one quoted word."""


def _template(text: str, *, quoted: bool) -> Wrap:
    text = text.replace("##", "|").replace("⏎", "\n").replace("\\r", "\r").replace("\\t", "\t")
    return lambda command: text.replace("@@", shlex.quote(command) if quoted else command)


def _first(change: Callable[[str], str]) -> Wrap:
    def wrap(command: str) -> str:
        word, space, rest = command.partition(" ")
        return change(word) + space + rest

    return wrap


def _inner_code(program: str) -> Wrap:
    def wrap(command: str) -> str:
        text = command.replace("\\", "\\\\").replace('"', '\\"')
        return program.replace("@@", shlex.quote(f'system("{text}")'))

    return wrap


def wraps() -> list[Wrap]:
    """All of them, always in the same order."""
    lines = _AROUND.replace("||", "\0").replace("\n", "|").split("|")
    found = [_template(text.replace("\0", "||"), quoted=False) for text in lines]
    quoted = _QUOTED.replace("\n", "|").split("|")
    found += [_template(text, quoted=True) for text in quoted]
    found += [
        _first(lambda word: f"'{word}'"),
        _first(lambda word: f'"{word}"'),
        _first(lambda word: "\\" + word),
        _first(lambda word: word[:1] + '""' + word[1:]),
        _first(lambda word: word[:1] + "''" + word[1:]),
        _first(lambda word: word[:1] + "\\\n" + word[1:]),
        _first(lambda word: "".join("\\" + char for char in word)),
        _first(lambda word: "$'" + "".join(f"\\x{ord(char):02x}" for char in word if ord(char) < 128) + "'"),
        _first(lambda word: "$'" + "".join(f"\\{ord(char):03o}" for char in word if ord(char) < 128) + "'"),
        _first(lambda word: f'$"{word}"'),
        _first(lambda word: f"c={word}; $c"),
        _first(lambda word: f"c={word}\n$c"),
        _first(lambda word: f"c={word}; ${{c}}"),
        _first(lambda word: f"C={word}; $C"),
        _first(lambda word: f"$(echo {word})"),
        _first(lambda word: f"`echo {word}`"),
        _first(lambda word: f"${{x:-{word}}}"),
        _first(lambda word: "/usr/bin/" + word),
        _first(lambda word: "../../../../bin/" + word),
        _first(lambda word: "/bin/" + word[:-1] + "?"),
        _first(lambda word: "/bin/" + word[:1] + "*"),
        _first(lambda word: "{" + word + ",}"),
        _first(lambda word: word[:1] + "\u200b" + word[1:]),
        _first(lambda word: word[:1] + "\u00ad" + word[1:]),
        _first(lambda word: word + "\u00a0"),
        _first(lambda word: "\u202e" + word),
        _first(lambda word: word + "\t"),
        _inner_code("awk BEGIN{@@}"),
        _inner_code("gawk 'BEGIN{x=1}'@@"),
        lambda command: "sed -n " + shlex.quote("1e " + command) + " README.md",
        lambda command: "sed " + shlex.quote("s/a/b/e;" + command) + " README.md",
        lambda command: "python3 -c " + shlex.quote(f"import os; os.system({command!r})"),
        lambda command: "perl -e " + shlex.quote(f"system({command!r})"),
        lambda command: "ruby -e " + shlex.quote(f"system({command!r})"),
        lambda command: "node -e " + shlex.quote(f"require('child_process').execSync({command!r})"),
        lambda command: "bash -c " + shlex.quote("bash -c " + shlex.quote(command)),
        lambda command: "eval " + shlex.quote("eval " + shlex.quote(command)),
        lambda command: "$(printf %s " + shlex.quote(command) + ")",
        lambda command: "ls -la " + " " * 30 + "&& " + command,
        lambda command: "ls" + "\n" * 10 + command,
        lambda command: "ls -la && cat README.md && wc -l README.md && " + command + " && git status",
    ]
    return found
