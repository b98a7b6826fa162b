"""``swecli fleet run|check|report|apply|open``: arguments, and what they lead to."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from swecli.command_line.arguments import Parser, UsageError, count, price, working_directory
from swecli.command_line.standard_streams import complain, is_terminal, print_text
from swecli.exit_codes import ExitCode
from swecli.figures import plural
from swecli.fleet.tasks import TaskListError, TaskMode
from swecli.launch import StartError

if TYPE_CHECKING:
    from swecli.fleet.allowance import Allowance
    from swecli.fleet.board import Board
    from swecli.fleet.ledger import Ledger
    from swecli.fleet.local import Runner
    from swecli.fleet.run import Fleet, Ways
    from swecli.fleet.tasks import Task

MIB = 1 << 20
LEAST_MEMORY = 512
"""MiB that a process of swecli needs at least as address space."""
QUIET = 30.0
"""Seconds after which plain output repeats the counts."""


def fleet(arguments: Sequence[str]) -> int:
    """The subcommand. Returns the exit status."""
    kinds: Mapping[str, Callable[[Sequence[str]], int]] = {
        "run": run_fleet,
        "check": check_list,
        "report": write_report,
        "apply": apply_patch,
        "open": open_task,
    }
    if arguments[:1] and arguments[0] in kinds:
        try:
            return kinds[arguments[0]](arguments[1:])
        except UsageError as error:
            raise error.of(f"swecli fleet {arguments[0]}") from None
        except TaskListError as error:
            for problem in error.problems[:50]:
                complain(f"swecli: {problem}")
            if len(error.problems) > 50:
                complain(f"swecli: and {len(error.problems) - 50:,} more problems")
            return ExitCode.BAD_INPUT
    parser = Parser(
        prog="swecli fleet",
        description="Run many tasks, each in its own copy of a repository and each verified; see docs/fleet.md.",
    )
    parser.add_argument("what", choices=tuple(kinds), help="run a list, check it, report a run, apply or open a task")
    parser.parse_args(arguments)
    return ExitCode.OK


# --- the list of tasks ------------------------------------------------------------------------------------------


def _list_arguments(parser: Parser) -> None:
    group = parser.add_argument_group("tasks")
    group.add_argument("tasks", nargs="?", metavar="TASKS.jsonl", help="one task a line: id, repo, prompt, check, …")
    group.add_argument(
        "--each", action="append", metavar="PATTERN", help="a task for each tracked file; {file} in --prompt"
    )
    group.add_argument("--repos", metavar="FILE", help="a task for each repository that FILE lists; {repo} in --prompt")
    group.add_argument(
        "--tests", metavar="COMMAND", help="a task for each test that fails in COMMAND; {test} in --prompt"
    )
    group.add_argument("--prompt", metavar="TEXT", help="the task, where the list has none")
    group.add_argument("--ref", metavar="REF", help="the commit to begin at (default: HEAD)")
    group.add_argument("--setup", metavar="COMMAND", help="prepares each copy")
    group.add_argument("--check", metavar="COMMAND", help="verifies each task: it is solved if this succeeds")
    group.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="for each of setup, agent, check (1800)")
    group.add_argument("-m", "--model", metavar="PROVIDER/NAME")
    group.add_argument("--permission-mode", choices=get_args(TaskMode), help="default: auto")
    group.add_argument("--max-turns", type=count, metavar="N", help="model steps of a task")
    group.add_argument("--task-max-price", type=price, metavar="USD", help="of each task")
    group.add_argument("--task-max-tokens", type=count, metavar="N", help="of each task")
    group.add_argument("-C", "--cwd", metavar="DIR", help="the folder that paths are relative to")


def _tasks(chosen: Namespace) -> list[Task]:
    """The tasks that the arguments describe.

    Raises:
        TaskListError: something is wrong with them.
        UsageError: none or several lists are given.
    """
    from swecli.fleet import tasks

    folder = working_directory(chosen.cwd)
    defaults = tasks.defaults_of(
        {
            "prompt": chosen.prompt,
            "ref": chosen.ref,
            "setup": chosen.setup,
            "check": chosen.check,
            "timeout": chosen.timeout,
            "model": chosen.model,
            "mode": chosen.permission_mode,
            "max_turns": chosen.max_turns,
            "max_price": None if chosen.task_max_price is None else str(chosen.task_max_price),
            "max_tokens": chosen.task_max_tokens,
        }
    )
    given = [name for name in ("tasks", "each", "repos", "tests") if getattr(chosen, name)]
    if len(given) != 1:
        raise UsageError("Give one list: TASKS.jsonl, --each, --repos or --tests")
    if chosen.tasks:
        return tasks.read_tasks(Path(os.path.expanduser(chosen.tasks)).absolute(), defaults, folder)
    template = defaults.pop("prompt", "Make this failing test pass: {test}" if chosen.tests else "")
    if not template.strip():
        raise UsageError(f"--{given[0]} needs --prompt TEXT")
    if chosen.each:
        return tasks.each_file(chosen.each, folder, template, defaults)
    if chosen.repos:
        return tasks.each_repository(Path(os.path.expanduser(chosen.repos)).absolute(), template, defaults, folder)
    return tasks.each_test(chosen.tests, _test_output(chosen.tests, folder), folder, template, defaults)


def _test_output(command: str, folder: Path) -> str:
    """Run the user's own command, and show what it prints."""
    import subprocess

    complain(f"swecli: running {command}")
    ended = subprocess.run(
        command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return ended.stdout.decode("utf-8", "replace")


def check_list(arguments: Sequence[str]) -> int:
    """``swecli fleet check``."""
    from swecli.core.workspace.process import scrubbed_environment
    from swecli.fleet.tasks import missing, task_line

    parser = Parser(prog="swecli fleet check", description="Validate a list of tasks without running any.")
    _list_arguments(parser)
    parser.add_argument("--offline", action="store_true", help="do not ask the servers of remote repositories")
    parser.add_argument(
        "--print", action="store_true", help="print the tasks as JSON lines, with every default filled in"
    )
    chosen = parser.parse_args(arguments)
    tasks = _tasks(chosen)
    problems = list(missing(tasks, scrubbed_environment(os.environ), remote=not chosen.offline))
    if problems:
        raise TaskListError(problems)
    if chosen.print:
        return print_text("".join(f"{task_line(task)}\n" for task in tasks))
    unchecked = sum(not task.check for task in tasks)
    note = f"; {unchecked:,} without a check" if unchecked else ""
    repos = len({task.repo for task in tasks})
    return print_text(f"{plural(len(tasks), 'task')} in {plural(repos, 'repository')}{note}. Nothing is wrong.\n")


# --- the run ----------------------------------------------------------------------------------------------------


def _run_parser() -> Parser:
    parser = Parser(
        prog="swecli fleet run",
        description="Run a list of tasks, each in its own copy of its repository. Your checkouts are only read.",
    )
    _list_arguments(parser)
    group = parser.add_argument_group("run")
    group.add_argument("--out", metavar="FOLDER", required=True, help="gets results, patches and transcripts")
    group.add_argument(
        "--resume", action="store_true", help="continue the run in FOLDER; a changed list is merged by id"
    )
    group.add_argument("-j", "--workers", type=count, metavar="N", help="tasks at once (default: one a processor)")
    group.add_argument("--max-price", type=price, metavar="USD", help="of the whole run")
    group.add_argument("--max-tokens", type=count, metavar="N", help="of the whole run")
    group.add_argument("--requests-per-minute", type=count, metavar="N", help="to each provider, of all workers")
    group.add_argument("--tokens-per-minute", type=count, metavar="N", help="input tokens to each provider")
    group.add_argument("--retries", type=_natural, default=2, metavar="N", help="after failures of the machinery (2)")
    group.add_argument(
        "--retry-delay", type=_seconds, default=5.0, metavar="SECONDS", help="before the first retry (5)"
    )
    group.add_argument("--memory", type=count, metavar="MIB", help="address space of each process of a task")
    group.add_argument("--cpu", type=count, metavar="SECONDS", help="processor time of each process of a task")
    group.add_argument("--base-url", metavar="URL", help="address of the models' server")
    group.add_argument("--scratch", metavar="FOLDER", help="for the copies (default: in --out)")
    group.add_argument("--yolo", action="store_true", help="everything without approval and sandbox; for containers")
    group.add_argument("--plain", action="store_true", help="lines instead of the table")
    group.add_argument("--on", choices=("local", "ray"), default="local", help="where (default: this machine)")
    group.add_argument("--address", metavar="ADDRESS", help="of the Ray cluster (default: one on this machine)")
    return parser


def run_fleet(arguments: Sequence[str]) -> int:
    """``swecli fleet run``."""
    chosen = _run_parser().parse_args(arguments)
    if chosen.memory is not None and chosen.memory < LEAST_MEMORY:
        raise UsageError(f"--memory must be at least {LEAST_MEMORY} (MiB)")
    if chosen.address and chosen.on != "ray":
        raise UsageError("--address needs --on ray")
    if chosen.yolo:
        _require_container()
    if chosen.on == "ray":
        from swecli.fleet.on_ray import require_ray

        require_ray()
    from swecli.fleet.ledger import Ledger, LedgerError

    folder = Path(os.path.expanduser(chosen.out)).absolute()
    tasks = None if chosen.resume and not _has_list(chosen) else _tasks(chosen)
    if tasks is None and not folder.is_dir():
        raise StartError(f"{folder} has no run to resume", ExitCode.BAD_INPUT)
    ledger = Ledger(folder, resume=chosen.resume)
    try:
        if tasks is None:
            ledger.begin()
        else:
            merged = ledger.merge(tasks)
            if chosen.resume:
                complain(
                    f"swecli: {plural(merged.left, 'task')} to run: {merged.new:,} new, {merged.changed:,} changed; "
                    f"{merged.gone:,} no longer listed"
                )
        return asyncio.run(_run(chosen, ledger))
    except LedgerError as error:
        raise _unwritable(error, folder) from error
    finally:
        ledger.close()


def _has_list(chosen: Namespace) -> bool:
    return bool(chosen.tasks or chosen.each or chosen.repos or chosen.tests)


def _unwritable(error: Exception, folder: Path) -> StartError:
    return StartError(f"{error}. What was finished is kept; continue with: swecli fleet run --out {folder} --resume")


def _require_container() -> None:
    from swecli.command_line.arguments import in_container, is_root

    if is_root() and not in_container(os.environ):
        raise UsageError("--yolo as root would let the models change the whole machine; use a container")


async def _run(chosen: Namespace, ledger: Ledger) -> int:
    from swecli.fleet.allowance import Allowance, Caps
    from swecli.fleet.board import Board
    from swecli.fleet.run import Fleet

    counts = ledger.counts()
    caps = Caps(chosen.max_tokens, chosen.max_price, chosen.requests_per_minute, chosen.tokens_per_minute)
    allowance = Allowance(caps, *ledger.spent())
    runner = await _runner(chosen, ledger, allowance)
    board = Board(sum(counts.values()), counts, runner.size)
    board.tokens, board.price = allowance.tokens, allowance.price
    running = Fleet(ledger, runner, allowance, board, _ways(chosen))
    viewed = not chosen.plain and is_terminal(sys.stdin) and is_terminal(sys.stdout)
    if viewed and os.environ.get("TERM", "").lower() != "dumb":
        from swecli.fleet.table import watch

        stopped = await watch(running, board)
    else:
        stopped = await _lines(running, board)
    if running.failure is not None:
        raise _unwritable(running.failure, ledger.folder)
    _say_end(running, board, ledger)
    if stopped:
        return ExitCode.INTERRUPTED
    if running.stopped:
        return ExitCode.BUDGET if "budget" in running.stopped else ExitCode.FAILURE
    return ExitCode.FAILURE if board.counts["failed"] or board.counts["broken"] else ExitCode.OK


async def _runner(chosen: Namespace, ledger: Ledger, allowance: Allowance) -> Runner:
    if chosen.on == "ray":
        from swecli.fleet.on_ray import RayRunner

        spent = (allowance.caps, allowance.tokens, allowance.price)
        return await asyncio.to_thread(RayRunner, chosen.address, chosen.workers, *spent)
    from swecli.fleet.local import LOG, LocalRunner

    return LocalRunner(chosen.workers or os.cpu_count() or 1, ledger.folder / LOG)


def _ways(chosen: Namespace) -> Ways:
    from swecli.fleet.run import Ways

    return Ways(
        retries=chosen.retries,
        delay=chosen.retry_delay,
        memory=None if chosen.memory is None else chosen.memory * MIB,
        processor=chosen.cpu,
        yolo=chosen.yolo,
        base_url=chosen.base_url,
        scratch=None if chosen.scratch is None else os.path.abspath(os.path.expanduser(chosen.scratch)),
    )


async def _lines(running: Fleet, board: Board) -> bool:
    """Run with plain lines. Returns whether the user stopped it."""
    board.say = lambda line: complain(f"swecli: {line}")
    loop = asyncio.get_running_loop()
    signals: list[signal.Signals] = []

    def signalled(number: signal.Signals) -> None:
        signals.append(number)
        if len(signals) == 1 and number == signal.SIGINT:
            running.stop("stopped by the user")
            board.say(
                f"no further task begins; {plural(len(board.running), 'running task')} end first. Again: end at once"
            )
        else:
            running.stop_now("stopped by the user")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, signalled, number)
    telling = asyncio.ensure_future(_tell(board))
    try:
        await running.run()
    finally:
        telling.cancel()
    return bool(signals)


async def _tell(board: Board) -> None:
    """Repeat the counts now and then, while nothing else is said."""
    while True:
        done = board.done
        await asyncio.sleep(QUIET)
        if board.done == done:
            board.say(board.summary)


def _say_end(running: Fleet, board: Board, ledger: Ledger) -> None:
    left = board.total - board.done + board.counts["stopped"] + board.counts["broken"]
    complain(f"swecli: {board.summary}")
    if running.stopped:
        complain(f"swecli: stopped: {running.stopped}")
    if left:
        complain(
            f"swecli: {plural(left, 'task')} unfinished; continue with: swecli fleet run --out {ledger.folder} --resume"
        )
    complain(f"swecli: results are in {ledger.folder}; swecli fleet report {ledger.folder} shows them")


# --- after the run ----------------------------------------------------------------------------------------------


def write_report(arguments: Sequence[str]) -> int:
    """``swecli fleet report``."""
    from swecli.fleet.report import report_page, report_text

    parser = Parser(
        prog="swecli fleet report", description="Write a page about a run, or about how a second one differs from it."
    )
    parser.add_argument("folder", metavar="FOLDER", help="of the run")
    parser.add_argument("other", nargs="?", metavar="OTHER", help="a second run, to compare with the first")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: report.html in the (second) folder")
    parser.add_argument("--text", action="store_true", help="print the figures instead")
    chosen = parser.parse_args(arguments)
    folders = [Path(os.path.expanduser(each)).absolute() for each in (chosen.folder, chosen.other) if each]
    if chosen.text:
        return print_text(report_text(folders))
    target = Path(os.path.expanduser(chosen.output)).absolute() if chosen.output else folders[-1] / "report.html"
    try:
        target.write_text(report_page(folders), encoding="utf-8", errors="replace")
    except OSError as error:
        raise StartError(f"{target} cannot be written: {error.strerror or error}", ExitCode.BAD_INPUT) from error
    return print_text(f"{report_text(folders)}The report is in {target}\n")


def _task_parser(prog: str, description: str) -> Parser:
    parser = Parser(prog=prog, description=description)
    parser.add_argument("id", help="the task's id")
    parser.add_argument("--out", metavar="FOLDER", help="the run's folder (default: the only one here)")
    return parser


def run_folder(named: str | None, here: Path) -> Path:
    """The folder of a run: the named one, else the only one in the folder ``here``, or that itself.

    Raises:
        StartError: none is named, and there is no run here, or more than one.
    """
    from swecli.fleet.ledger import DATABASE

    if named:
        return Path(os.path.expanduser(named)).absolute()
    if (here / DATABASE).is_file():
        return here
    runs = sorted(path.parent.name for path in here.glob(f"*/{DATABASE}"))
    if len(runs) == 1:
        return here / runs[0]
    problem = f"There are several runs in {here} ({', '.join(runs)})" if runs else f"There is no run in {here}"
    raise StartError(f"{problem}; name one with --out FOLDER", ExitCode.BAD_INPUT)


def apply_patch(arguments: Sequence[str]) -> int:
    """``swecli fleet apply``."""
    from swecli.fleet.results import apply

    parser = _task_parser("swecli fleet apply", "Apply a task's patch to a checkout, after showing it.")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="the checkout (default: here)")
    parser.add_argument("-y", "--yes", action="store_true", help="without asking")
    chosen = parser.parse_args(arguments)
    return apply(run_folder(chosen.out, Path.cwd()), chosen.id, working_directory(chosen.cwd), chosen.yes)


def open_task(arguments: Sequence[str]) -> int:
    """``swecli fleet open``."""
    from swecli.fleet.results import reopened

    parser = _task_parser(
        "swecli fleet open", "Continue a task's session in the interface, in a copy with its changes."
    )
    parser.add_argument("message", nargs="?", default="", help="what to say first")
    chosen = parser.parse_args(arguments)
    folder, session = reopened(run_folder(chosen.out, Path.cwd()), chosen.id)
    complain(f"swecli: {folder} has the task's copy with its changes")
    from swecli.command_line.dispatch import dispatch

    words = ["-C", str(folder), "-r", session]
    return dispatch([*words, chosen.message] if chosen.message else words)


# --- values of arguments ----------------------------------------------------------------------------------------


def _natural(text: str) -> int:
    try:
        value = int(text.replace("_", ""))
    except ValueError:
        value = -1
    if value < 0:
        raise ArgumentTypeError(f"{text!r} is not a whole number")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (0 < value < 1e7):
        raise ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value
