"""Random commands that are proven to only read, run for real and watched: none may write, connect or start what it
does not name.

Each command that the decision lets run is executed by bash under strace inside bubblewrap, in a scratch tree. What it
opens for writing, every call that changes the file system, connections, and programs that the command does not name
are findings. Needs Linux with bubblewrap and strace.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from swecli.core.permissions.decide import decide  # noqa: E402
from swecli.core.permissions.facts import OsFacts  # noqa: E402
from swecli.core.permissions.types import Call, Effects, Policy  # noqa: E402
from swecli.core.workspace.process import scrubbed_environment  # noqa: E402

CORPUS = ROOT / "tests" / "core" / "permissions" / "shell" / "corpus"
TABLES = ROOT / "swecli" / "core" / "permissions" / "shell" / "commands.toml"
CHANGES = (
    "creat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "fchown",
    "fchownat",
    "lchown",
    "truncate",
    "ftruncate",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "removexattr",
    "mknod",
    "mknodat",
    "utimensat",
    "utime",
    "utimes",
    "futimesat",
    "mount",
    "umount2",
    "connect",
    "bind",
    "ptrace",
    "io_uring_setup",
    "fallocate",
)
# With a question mark, a name that this strace does not know yet is not an error.
TRACED = ",".join(f"?{name}" for name in ("open", "openat", "openat2", "execve", "execveat", *CHANGES))
_WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE")
_HARMLESS_TARGET = re.compile(r'"(/dev/(null|tty|full|stdout|stderr|fd/\d+|pts/\d+)|/proc/self/[^"]*)"')
_LINE = re.compile(r"^(\d+)\s+(\w+)\((.*)$")
_FAILED = re.compile(r"= -1 (ENOENT|ENOTDIR|EEXIST|EISDIR)")
_OWN_SOCKET = re.compile(r"AF_NETLINK|sin6?_port=htons\(0\)")
_OWN_FILES = re.compile(r'/\.npm[/"]|/hsperfdata_|AT_FDCWD, "\d+"|/tmp/sort')
"""What npm, java and sort write for themselves: logs, the counters of a process, what does not fit in memory. npm also
deletes all of its logs but the last ten."""
_SECRET = re.compile(r'["/](\.env|server\.pem|secret)"')
_HELPERS = frozenset(
    ("bash", "env", "timeout", "nice", "stdbuf", "git", "node", "gzip", "getopt", "cut", "tr", "dpkg-query", "jq")
)
"""Started by programs that a command names: npm, zcat, lsb_release, dpkg, yq."""
_OPENS_ONLY = frozenset(("git", "df", "file", "wc"))
"""Open files that they do not show: git compares them with its index, df asks for their file system."""
WORDS = ROOT / "scripts" / "proof_fuzz_words.toml"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a command did that it must not do."""

    command: str
    what: str


def commands(random_: random.Random) -> Iterator[str]:
    """Without end: commands of the corpora changed, commands made from the tables, and scripts with variables."""
    known = [*_lines("everyday.txt"), *_lines("everyday.txt"), *_lines("asked.txt")]
    pool = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    tables = tomllib.loads(TABLES.read_text(encoding="utf-8"))
    entries = {name: entry for name, entry in tables["commands"].items() if "operands" in entry}
    while True:
        if random_.random() < 0.3:
            yield f"x=README.md; y=1; {_script(random_, pool, 0)}"
            continue
        text = (
            random_.choice(known)
            if random_.random() < 0.5
            else _made(random_, entries, tables["options"], pool["files"])
        )
        for _ in range(random_.choice((0, 1, 1, 2, 3))):
            text = _changed(random_, text, known, pool)
        yield text


def _lines(name: str) -> list[str]:
    return [line for line in (CORPUS / name).read_text(encoding="utf-8").splitlines() if line.strip()]


def _made(
    random_: random.Random,
    entries: dict[str, dict[str, object]],
    shared: dict[str, dict[str, object]],
    names: list[str],
) -> str:
    name = random_.choice(list(entries))
    sources = [entries[name], *(shared[use] for use in entries[name].get("use", ()))]  # type: ignore[attr-defined]
    words = [name]
    for _ in range(random_.randint(0, 3)):
        source = random_.choice(sources)
        kind = random_.choice(("flags", "values", "optional", "files", "long", "long_optional", "long_values"))
        given = str(source.get(kind, ""))
        if given and kind in ("flags", "optional"):
            words.append("-" + "".join(random_.choices(given, k=random_.randint(1, 3))))
        elif given and kind in ("values", "files"):
            value = random_.choice(("1", "x", *names))
            words += (
                [f"-{random_.choice(given)}{value}"] if random_.random() < 0.5 else [f"-{random_.choice(given)}", value]
            )
        elif given:
            option = "--" + random_.choice(given.split())
            words.append(option + (f"={random_.choice(('1', 'x', *names))}" if "_" in kind else ""))
    words += random_.choices(names, k=random_.randint(0, 3))
    return " ".join(words)


def _script(random_: random.Random, pool: dict[str, list[str]], depth: int) -> str:
    """A few statements that set two variables and read files by them, at every place where a shell may set one."""
    statements: list[str] = []
    for _ in range(random_.randint(1, 3) if depth else random_.randint(2, 4)):
        template = random_.choice(pool["uses"] if depth >= 2 or random_.random() < 0.4 else pool["statements"])
        while "BODY" in template:
            template = template.replace("BODY", _script(random_, pool, depth + 1), 1)
        for hole, choices in (("NAME", "xy"), ("VALUE", pool["values"])):
            while hole in template:
                template = template.replace(hole, random_.choice(choices), 1)
        statements.append(template)
    return random_.choice(("; ", "; ", "\n", " && ")).join(statements)


def _changed(random_: random.Random, text: str, known: list[str], pool: dict[str, list[str]]) -> str:
    words = text.split(" ")
    at = random_.randrange(len(words) + 1)
    match random_.randrange(8):
        case 0:
            words.insert(at, random_.choice(pool["dangerous"]))
        case 1:
            words.insert(at, random_.choice(pool["files"]))
        case 2:
            words.insert(at, random_.choice(pool["pieces"]))
        case 3:
            return text + random_.choice((" | ", " && ", "; ", " || ", "\n", " ")) + random_.choice(known)
        case 4 if len(words) > 1:
            words.pop(random_.randrange(len(words)))
        case 5:
            place = random_.randrange(len(text) + 1)
            return text[:place] + random_.choice("'\"\\$`(){}[]<>|&;\n\t #~*?!=-,.:/@%^0aox") + text[place:]
        case 6:
            return random_.choice(pool["wraps"]).replace("COMMAND", text, 1)
        case _:
            other = random_.choice(known).split(" ")
            words[at:at] = other[random_.randrange(len(other)) :]
    return " ".join(words)


class Scratch:
    """A tree with sources, secrets and a repository, and how a command is run in it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.tree, self.home, self.log = base / "home" / "work", base / "home", base / "log"
        for folder in ("src/a", "docs", "tests"):
            (self.tree / folder).mkdir(parents=True)
        (base / "outside").mkdir()
        self.log.mkdir()
        files = tomllib.loads(WORDS.read_text(encoding="utf-8"))["tree"]
        for name, text in files.items():
            (self.tree / name).write_text(text)
        (base / "outside" / "secret").write_text("secret\n")
        (self.tree / "link").symlink_to("src")
        self.environment = scrubbed_environment({"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home)})
        for arguments in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
        ):
            subprocess.run(["git", *arguments], cwd=self.tree, check=True, env=self.environment)

    def policy(self) -> Policy:
        """What a session in default mode starts with."""
        return Policy(home=str(self.home), facts=OsFacts(self.environment))

    def run(self, command: str) -> list[str]:
        """Run it; the traced calls.

        Raises:
            RuntimeError: it was not watched.
            subprocess.TimeoutExpired: it did not end in time.
        """
        log = self.log / "trace"
        log.unlink(missing_ok=True)
        contained = [
            "bwrap",
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--bind",
            str(self.base),
            str(self.base),
        ]
        traced = ["strace", "-f", "-qq", "-s", "200", "-e", f"trace={TRACED}", "-o", str(log)]
        shell = ["bash", "--norc", "--noprofile", "-c", command]
        ended = subprocess.run(
            [*contained, "--unshare-net", "--die-with-parent", "--chdir", str(self.tree), *traced, *shell],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self.environment,
            timeout=5, check=False,
        )  # fmt: skip
        if not log.exists() or not log.stat().st_size:
            raise RuntimeError(f"nothing was traced: {ended.stderr[:300]!r}")
        return log.read_text(encoding="utf-8", errors="replace").splitlines()


def findings(command: str, calls: list[str], scratch: Scratch) -> Iterator[Finding]:
    """What the calls show that a reading command must not do."""
    named = re.sub(r"""[\\'"]""", "", command)
    running: dict[str, str] = {}
    for line in calls:
        match = _LINE.match(line)
        if match is None or _FAILED.search(line):
            continue
        process, name, rest = match.groups()
        if name.startswith("open"):
            if _WRITING.search(rest) and not (_HARMLESS_TARGET.search(rest) or _OWN_FILES.search(rest)):
                yield Finding(command, f"opens for writing: {line[:200]}")
            elif not _SECRET.search(rest) or re.search("O_DIRECTORY|O_PATH", rest):
                continue
            elif running.get(process) not in _OPENS_ONLY:
                yield Finding(command, f"reads a secret: {line[:200]}")
        elif name.startswith("execve"):
            program = re.match(r'"([^"]*)"', rest)
            path = program.group(1) if program else "?"
            running[process] = plain = path.rpartition("/")[2]
            if path.startswith(str(scratch.base)) or not (plain in named or plain in _HELPERS):
                yield Finding(command, f"starts {path}: {line[:200]}")
        elif not (
            (name == "bind" and _OWN_SOCKET.search(rest))
            or (name == "connect" and "nscd" in rest)
            or (name in ("mkdir", "mkdirat") and _OWN_FILES.search(rest))
            or (name == "unlink" and "/.npm/_logs/" in rest)
        ):
            yield Finding(command, f"changes something: {line[:200]}")


def fuzz(minutes: float, seed: int) -> int:
    """Run for some minutes. Returns how many findings there were; each is printed."""
    random_, found, judged, ran = random.Random(seed), 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="proof-") as folder:
        scratch = Scratch(Path(os.path.realpath(folder)))
        policy, tree = scratch.policy(), str(scratch.tree)
        end, done = time.monotonic() + minutes * 60, set[str]()
        for command in commands(random_):
            if time.monotonic() > end:
                break
            judged += 1
            if command in done or "\0" in command:
                continue
            done.add(command)
            if decide(policy, Call("run_command", {}, Effects(command=command), tree, (tree,))).outcome != "allow":
                continue
            if re.search(r"\b(sleep|tail -[a-zA-Z]*[fF]|top|follow|retry)\b", command):
                continue
            ran += 1
            try:
                calls = scratch.run(command)
            except subprocess.TimeoutExpired:
                print(f"slow: {command!r}", flush=True)
                continue
            for finding in findings(command, calls, scratch):
                found += 1
                print(f"FOUND {finding.what}\n  {finding.command!r}", flush=True)
                break
    print(f"seed {seed}: {judged} commands, {ran} run, {found} findings")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    chosen = parser.parse_args()
    missing = [program for program in ("bwrap", "strace") if shutil.which(program) is None]
    if missing:
        print(f"needs {' and '.join(missing)} (apt install bubblewrap strace)", file=sys.stderr)
        return 2
    seed = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(1 << 32)
    return 1 if fuzz(chosen.minutes, seed) else 0


if __name__ == "__main__":
    raise SystemExit(main())
