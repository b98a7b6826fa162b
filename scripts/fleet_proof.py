"""Proves the fleet at a size that the tests do not have. The models are scripted: no key, nothing leaves this machine.

    make test-fleet                          # everything
    make test-fleet ARGS="ray kills"         # some of it: ray, kills, bugs, speed, compare, scale

Installs swecli with Ray and pytest into build/fleet, and ten source packages into build/fleet-bugs, from the package
index. ``ray``: 60 tasks on a cluster of three nodes of one processor, one of which is killed in the middle, and a
budget. ``kills``: a run that is killed at 20 random moments and resumed. ``bugs``: ten bugs put into real packages,
with the packages' own tests as checks and scripted models that fix seven. ``speed``: 200 tasks of 5 steps (``TASKS``).
``compare``: these here and on a cluster of two nodes. ``scale``: 1,000 and 5,000 tasks without processes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "fleet"
WANTED = ("ray>=2.50,<3", "pytest>=8,<10", "freezegun", "hypothesis")
SEED = int(os.environ.get("SEED", "1"))
TASKS = int(os.environ.get("TASKS", "200"))
"""Of ``speed``."""
_CHECK = "python3 -c \"import sys; sys.exit(open('a.txt').read() != 'two\\n')\""


def main() -> int:
    """Install what is needed, and run the proofs in that interpreter."""
    wanted = sys.argv[1:] or ["scale", "bugs", "ray", "kills", "speed", "compare"]
    python = PLACE / "bin" / "python"
    if Path(sys.prefix) != PLACE:
        if not (PLACE / "bin" / "ray").exists():
            print(f"Installing swecli, {', '.join(WANTED)} into {PLACE.relative_to(ROOT)} ...", flush=True)
            venv.create(PLACE, with_pip=True, clear=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "-e", str(ROOT), *WANTED], check=True)
        os.execv(python, [str(python), "-m", "scripts.fleet_proof", *wanted])
    proofs: Mapping[str, Callable[[Path], None]] = {
        "scale": scale,
        "bugs": bugs,
        "ray": ray_proof,
        "kills": kills,
        "speed": speed,
        "compare": compare,
    }
    for name in wanted:
        print(f"--- {name} (load {os.getloadavg()[0]:.1f})", flush=True)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="swecli-fleet-proof-") as folder:
            proofs[name](Path(folder))
        print(f"{name}: as promised, {time.monotonic() - began:.0f} s (load {os.getloadavg()[0]:.1f})", flush=True)
    return 0


# --- tasks with scripted models ---------------------------------------------------------------------------------


def call(tool: str, **arguments: object) -> Any:
    from swecli.core.llm.scripted import Arguments, ScriptedCall, Step

    return Step(calls=(ScriptedCall(tool, Arguments(json.dumps(arguments))),))


def five_steps(name: str) -> Sequence[Any]:
    """Read, edit, run, read, answer. Every fifth task gets it wrong."""
    from swecli.core.llm.scripted import Step

    new = "two" if int(name) % 5 else "three"
    return (
        call("read_file", path="a.txt"),
        call("edit_file", path="a.txt", old_string="one", new_string=new),
        call("run_command", command="cat a.txt"),
        call("read_file", path="a.txt"),
        Step(text="Done."),
    )


def repository(folder: Path, files: Mapping[str, str] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in ({"a.txt": "one\n"} if files is None else files).items():
        (folder / name).write_text(text)
    for arguments in (("init", "-q", "-b", "main"), ("add", "-A", "-f"), ("commit", "-q", "-m", "begin")):
        identity = ("-c", "user.name=proof", "-c", "user.email=proof@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder


def task_list(folder: Path, count: int) -> Path:
    repository(folder / "repo")
    path = folder / "tasks.jsonl"
    entries = (
        {"id": f"t{number}", "repo": "repo", "prompt": f"TASK={number} change a.txt", "check": _CHECK}
        for number in range(count)
    )
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return path


@contextmanager
def served(steps: Callable[[str], Sequence[Any]], folder: Path) -> Iterator[tuple[Any, dict[str, str]]]:
    """A scripted provider, and the environment that leads to it."""
    from tests.support.fleet_server import FleetServer

    with FleetServer(steps) as server:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "ANTHROPIC", "RAY"))
        }
        own = {
            "SWECLI_HOME": str(folder / "home"),
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "OPENAI_API_KEY": "test-key",
            "NO_PROXY": "127.0.0.1",
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        yield server, {name: value for name, value in (kept | own).items() if name != "PYTHONDONTWRITEBYTECODE"}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "swecli.cli", "fleet", *arguments]


def fleet(folder: Path, environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    words = command("run", *arguments, "--plain", "-m", "openai/fleet-model")
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text("utf-8").splitlines()]


def outcomes(folder: Path) -> dict[str, tuple[str, str]]:
    """Status and hash of the patch of each task; every task once."""
    lines = results(folder)
    assert len({line["id"] for line in lines}) == len(lines), "a task is there twice"
    found: dict[str, tuple[str, str]] = {}
    for line in lines:
        patch = (folder / line["patch"]).read_bytes() if line["patch"] else b""
        found[line["id"]] = (line["status"], hashlib.sha256(patch).hexdigest()[:12])
    predictions = [json.loads(line)["instance_id"] for line in (folder / "predictions.jsonl").read_text().splitlines()]
    assert sorted(predictions) == sorted(found), "predictions differ from results"
    return found


def expect_right(found: Mapping[str, tuple[str, str]], count: int) -> None:
    assert len(found) == count, f"{len(found)} of {count} tasks ended"
    for name, (status, _) in found.items():
        assert status == ("passed" if int(name[1:]) % 5 else "failed"), (name, status)
    assert len({patch for status, patch in found.values() if status == "passed"}) == 1
    assert len({patch for status, patch in found.values() if status == "failed"}) == 1


# --- the proofs -------------------------------------------------------------------------------------------------


def ray_proof(folder: Path) -> None:
    """A node dies in the middle: every task ends once and right. Then the budget."""
    count = 60
    path = task_list(folder, count)
    with served(five_steps, folder) as (server, environment):
        os.environ.update(environment)
        from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

        began = time.monotonic()
        cluster = patient(lambda: Cluster(initialize_head=True, head_node_args={"num_cpus": 1}))
        nodes = [patient(lambda: cluster.add_node(num_cpus=1)) for _ in range(2)]
        cluster.wait_for_nodes()
        print(f"three nodes started in {time.monotonic() - began:.0f} s", flush=True)
        try:
            on_ray = ("--on", "ray", "--address", cluster.address, "-j", "3", "--plain", "-m", "openai/fleet-model")
            words = command("run", str(path), "--out", "out", *on_ray)
            with open(folder / "log", "w") as log:
                running = subprocess.Popen(words, cwd=folder, env=environment, stderr=log)
                wait_for(lambda: ended_count(folder / "out") >= count // 3 or running.poll() is not None)
                cluster.remove_node(nodes[0], allow_graceful=False)
                print(f"a node killed after {ended_count(folder / 'out')} tasks", flush=True)
                code = running.wait()
            log = (folder / "log").read_text()[-2_000:]
            assert code == 1, log
            assert ended_count(folder / "out") == count, log
            expect_right(outcomes(folder / "out"), count)
            wall = time.monotonic() - began
            print(
                f"{count} tasks ended once each with the right patch, {wall:.0f} s, {len(server.player.asked)} requests"
            )
            _budget(folder, path, environment, on_ray)
        finally:
            cluster.shutdown()


def patient(start: Callable[[], Any]) -> Any:
    """What ``start`` returns: Ray gives a node 30 seconds to start, which a busy machine may need longer for."""
    for _ in range(4):
        try:
            return start()
        except Exception as error:  # noqa: BLE001 - Ray raises just that
            print(f"again: {str(error)[:100]}", flush=True)
    return start()


def _budget(folder: Path, path: Path, environment: Mapping[str, str], on_ray: Sequence[str]) -> None:
    most = 200_000
    words = command("run", str(path), "--out", "budget", "--max-tokens", str(most), *on_ray)
    ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 60, ended.stderr[-2_000:]
    from swecli.fleet.ledger import read_ledger

    used, _ = read_ledger(folder / "budget").spent()
    largest = max(line["tokens_in"] // max(1, line["steps"]) for line in results(folder / "budget")) + 1_000
    assert used <= most + 3 * largest, (used, most, largest)
    print(f"a budget of {most:,} tokens ended at {used:,}; a request has about {largest:,}")


def ended_count(folder: Path) -> int:
    try:
        return len((folder / "results.jsonl").read_text().splitlines())
    except OSError:
        return 0


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.05)


def kills(folder: Path) -> None:
    """A run that is killed at 20 random moments and resumed has the results of one that is not."""
    import psutil

    count, rounds, chance = 40, 20, random.Random(SEED)
    path = task_list(folder, count)
    with served(five_steps, folder) as (_, environment):
        words = ("--plain", "-m", "openai/fleet-model", "-j", "2", "--retry-delay", "0.1")
        killed = folders = 0
        out = folder / "out0"
        while killed < rounds:
            resumed = ("--resume",) if out.exists() else ()
            running = subprocess.Popen(
                command("run", str(path), "--out", str(out), *resumed, *words),
                cwd=folder,
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )
            try:
                _, errors = running.communicate(timeout=chance.uniform(0.3, 35.0))
                assert running.returncode == 1, errors
                expect_right(outcomes(out), count)
                folders += 1
                out = folder / f"out{folders}"
            except subprocess.TimeoutExpired:
                with suppress(psutil.Error):
                    tree = [psutil.Process(running.pid), *psutil.Process(running.pid).children(recursive=True)]
                    for process in tree:
                        with suppress(psutil.Error):
                            process.kill()
                running.wait()
                killed += 1
                print(f"killed {killed} times, {ended_count(out)} tasks done", flush=True)
        ended = fleet(folder, environment, str(path), "--out", str(out), "--resume", "-j", "2")
        assert ended.returncode == 1, ended.stderr
        expect_right(outcomes(out), count)
        assert not list((folder / "home" / "data" / "workspaces").iterdir())[3 * rounds :], "stores are left behind"


BUGS: Sequence[tuple[str, str, str, str, str, bool]] = (
    # package, file, right text, wrong text, arguments of pytest, whether the scripted model fixes it
    ("inflection", "inflection/__init__.py", "m.group(1).upper(), string)", "m.group(1).lower(), string)", "", True),
    ("inflection", "inflection/__init__.py", "word.replace('_', '-')", "word.replace('_', '+')", "", True),
    ("shortuuid", "shortuuid/main.py", "output[::-1]", "output[::1]", "shortuuid/test_shortuuid.py", True),
    ("shortuuid", "shortuuid/main.py", "max(padding - len(output), 0)", "max(padding, 0)", "shortuuid", True),
    ("xmltodict", "xmltodict.py", "self.data.append(data)", "self.data.insert(0, data)", "tests", True),
    ("xmltodict", "xmltodict.py", "zip(attrs[0::2], attrs[1::2])", "zip(attrs[1::2], attrs[0::2])", "tests", False),
    ("iniconfig", "src/iniconfig/_parse.py", "sources[section, name] = lineno", "sources[section, name] = 0", "", True),
    ("iniconfig", "src/iniconfig/_parse.py", "section_name = line[1:-1]", "section_name = line[1:]", "testing", False),
    ("tabulate", "tabulate/__init__.py", '"{0:>%ds}" % width', '"{0:>%ds}" % (width + 1)', "test/test_output.py", True),
    ("boltons", "boltons/strutils.py", "max(range_limits)+1", "max(range_limits)", "tests/test_strutils.py", False),
)


def bugs(folder: Path) -> None:
    """Ten bugs in real packages; scripted models fix seven."""
    sources = ROOT / "build" / "fleet-bugs"
    sources.mkdir(parents=True, exist_ok=True)
    from swecli.core.llm.scripted import Step

    scripts: dict[str, Sequence[Any]] = {}
    entries: list[dict[str, Any]] = []
    for number, (package, file, right, wrong, tests, fixed) in enumerate(BUGS, 1):
        name = f"{package}-{number}"
        place = unpacked(sources, package, folder / name)
        text = (place / file).read_text("utf-8")
        assert text.count(right) == 1, f"{package}: {file} has {right!r} {text.count(right)} times"
        (place / file).write_text(text.replace(right, wrong), "utf-8")
        repository(place, {})
        new = right if fixed else f"{wrong}  # looked at"
        scripts[name] = (
            call("read_file", path=file),
            call("edit_file", path=file, old_string=wrong, new_string=new),
            Step(text="Fixed."),
        )
        check = f"{sys.executable} -m pytest -q -p no:cacheprovider {tests}"
        entry = {"id": name, "repo": str(place), "prompt": f"TASK={name} fix it", "check": check}
        entries.append({**entry, "env": {"PYTHONPATH": "src:."}})
    path = folder / "bugs.jsonl"
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    with served(scripts.__getitem__, folder) as (_, environment):
        ended = fleet(folder, environment, str(path), "--out", "out", "-j", "2")
        print(ended.stderr, end="")
        report = subprocess.run(
            command("report", "out"), cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
    print(report.stdout, end="")
    shutil.copy(folder / "out" / "report.html", ROOT / "build" / "fleet-report.html")
    right = sum(bug[-1] for bug in BUGS)
    assert f"{right} of {len(BUGS)} passed" in report.stdout, "the report says something else"


def unpacked(sources: Path, package: str, place: Path) -> Path:
    """The newest source distribution of a package, downloaded once, in a folder."""
    import tarfile

    pattern = f"{package.replace('-', '[-_]')}-*.tar.gz"
    if not list(sources.glob(pattern)):
        pip = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            ":all:",
            "-d",
            str(sources),
        ]
        subprocess.run([*pip, package], check=True)
    with tarfile.open(next(iter(sources.glob(pattern)))) as archive:
        members = archive.getmembers()
        for member in members:  # filter="data", which Python has from 3.11.4 on, leaves out the owner as well
            member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
        archive.extractall(place.with_suffix(".unpacked"), members)
    next(place.with_suffix(".unpacked").iterdir()).rename(place)
    return place


def speed(folder: Path) -> None:
    """What the fleet adds to the agents, and whether it keeps the processors busy."""
    import psutil

    count, workers = TASKS, 2
    path = task_list(folder, count)
    with served(five_steps, folder) as (_, environment):
        began = time.monotonic()
        words = command("run", str(path), "--out", "out", "-j", str(workers), "--plain", "-m", "openai/fleet-model")
        running = psutil.Popen(words, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
        driver_seconds, memory, own = 0.0, 0, []
        while running.poll() is None:
            with suppress(psutil.Error):
                used = running.cpu_times()
                driver_seconds = used.user + used.system
                own.append(running.memory_info().rss)
                for worker in running.children():
                    memory = max(memory, sum(one.memory_full_info().pss for one in (worker, *worker.children()[:1])))
            time.sleep(0.5)
        wall = time.monotonic() - began
    lines = results(folder / "out")
    expect_right(outcomes(folder / "out"), count)
    busy = sum(sum(line["seconds"].values()) for line in lines)
    inside = sum(line["processor"] for line in lines)
    print(f"{count} tasks of 5 steps with {workers} workers: {wall:.0f} s, {busy / wall / workers:.0%} of it in tasks")
    print(f"processor seconds a task beside the agent: {(inside + driver_seconds) / count:.3f}")
    print(f"memory of a worker with its attempt: {memory / 1e6:.0f} MB; of the driver: {max(own) / 1e6:.0f} MB")


def compare(folder: Path) -> None:
    """The same list here with two workers, and on a Ray cluster of two nodes of one processor."""
    count = TASKS
    path = task_list(folder, count)
    with served(five_steps, folder) as (_, environment):
        began = time.monotonic()
        assert fleet(folder, environment, str(path), "--out", "local", "-j", "2").returncode == 1
        local = time.monotonic() - began
        os.environ.update(environment)
        from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

        cluster = patient(lambda: Cluster(initialize_head=True, head_node_args={"num_cpus": 1}))
        patient(lambda: cluster.add_node(num_cpus=1))
        cluster.wait_for_nodes()
        try:
            began = time.monotonic()
            on_ray = ("--on", "ray", "--address", cluster.address, "-j", "2")
            ended = fleet(folder, environment, str(path), "--out", "ray", *on_ray)
            assert ended.returncode == 1, ended.stderr[-2_000:]
            wall = time.monotonic() - began
        finally:
            cluster.shutdown()
    assert outcomes(folder / "local") == outcomes(folder / "ray")
    print(f"{count} tasks: {local:.0f} s here, {wall:.0f} s on Ray, {wall / local:.2f} times")


def scale(folder: Path) -> None:
    """Cost and memory of the driver for 1,000 and 5,000 tasks, with a runner that ends them at once."""
    for count in (1_000, 5_000):
        code = f"from scripts.fleet_proof import simulated; simulated({str(folder / str(count))!r}, {count})"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def simulated(folder: str, count: int) -> None:
    """Run so many tasks whose attempts are an answer of five steps each."""
    from swecli.fleet.allowance import Allowance, Caps
    from swecli.fleet.board import Board
    from swecli.fleet.ledger import Ledger
    from swecli.fleet.link import Ask, Ended, Order, Said, Spent
    from swecli.fleet.local import Heard, Permission, Returned
    from swecli.fleet.run import Fleet, Ways
    from swecli.fleet.tasks import Task

    class Simulated:
        size = 8

        async def attempt(self, order: Order, heard: Heard, permission: Permission) -> Returned:
            for step in range(5):
                assert not await permission(Ask("p", 4_000))
                await asyncio.sleep(0)
                heard(Spent("p", 4_000, "0.001"))
                heard(Said(f"step {step}", step))
            return Returned(Ended("passed", "", "", patch=b"x" * 2_000, answer="y" * 500), b"z" * 50_000)

        def halt(self) -> None:
            raise AssertionError("nothing stops it")

        async def close(self) -> None:
            return

    ledger = Ledger(Path(folder), resume=False)
    ledger.merge([Task(f"t{number}", "/r", "p" * 1_000) for number in range(count)])
    before = resource.getrusage(resource.RUSAGE_SELF)
    running = Fleet(ledger, Simulated(), Allowance(Caps()), Board(count, {}, 8), Ways())
    asyncio.run(running.run())
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    grown = (after.ru_maxrss - before.ru_maxrss) / 1024
    assert ledger.counts() == {"passed": count}
    print(
        f"{count:,} tasks: {used / count * 1000:.2f} ms of the driver each, its memory grew by {grown:.0f} MiB",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
