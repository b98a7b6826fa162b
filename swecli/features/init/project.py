"""Facts from a project's own files, and checks that a statement names only existing things. Runs nothing."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from msgspec import Struct

from swecli.core.git import git_facts, head_commit
from swecli.core.llm.json_values import JsonObject, as_list, as_object, as_text
from swecli.core.retrieval.terms import UNSPACED
from swecli.features.init.ecosystems import Language, Purpose, ecosystems
from swecli.features.init.scan import Scan
from swecli.figures import plural
from swecli.lazy_pattern import lazy_pattern

_MAX_KEY_FILES = 14
_MAX_CI = 6
_MAX_CI_CHARS = 160
"""A longer command is of use only in its own place."""
_README_CHARS = 3_000
_NODE = ("npm", "yarn", "pnpm", "bun")
_AGENT_FILES = (
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".github/copilot-instructions.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
)
_AGENT_FOLDERS = (".cursor/rules", ".windsurf/rules", ".clinerules")

_OPERATORS = lazy_pattern(r"[;|<>`$\\{}]|(?<!&)&(?!&)")
_SPAN = lazy_pattern(r"`([^`\n]+)`")
_PATH = lazy_pattern(r"(?<![\w/.:@-])((?:\.{0,2}/)?(?:[\w.@-]+/)+[\w.@-]*|[\w-]+\.[A-Za-z]\w{0,5})(?![\w/(])")
_CI_KEY = lazy_pattern(r"^([ \t]*)(-[ \t]+)?(?:run|script|command):[ \t]*(.*)$")
_CI_ELSEWHERE = lazy_pattern(r"^[ \t]*(?:-[ \t]+)?working[-_]directory:", re.MULTILINE)
_CI_STEP = lazy_pattern(r"^(?=[ \t]*-[ \t]+[\w-]+:)", re.MULTILINE)
_NO_PROSE = (
    r"^(```|~~~).*?^\1|^[=\-~*`#]{3,}$|<[^>]+>|\[!\[[^\]]*\]\([^)]*\)\]\([^)]*\)|!?\[!\[[^\n]*|!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])"
    r"|^[ \t]*\[[^\]\n]+\](?:\([^)\n]*\))?[ \t]*$|^[ \t]*\[[^\]\n]+\]:[^\n]*$"
)
_TITLE = lazy_pattern(r"^#[ \t]+(.+?)[ \t#]*$|^(\S.*)\n=+[ \t]*$", re.MULTILINE)
_HOW_TO = lazy_pattern(
    r"^(?:#+[ \t]+(?:{0})|(?:{0})[^\n]*\n[=-]{{3,}}[ \t]*$)".format(
        r"(?:Usage|Install|Installing|Installation|Getting started|Quick ?start|Requirements|Run|Running|Licen[sc]e)\b"
    ),
    re.MULTILINE | re.IGNORECASE,
)
"""A heading below which a README says how to use the project, no more what it is."""
_ASIDE = lazy_pattern(
    r"#|\.\. |\||[-*+] |\d+[.)] |\[!"
    r"|\W*(?:Note|Warning|Important|Tip|Caution)\b\W|(?:See|Read|Visit|Check out|For more)\b"
)
"""What begins a paragraph that does not describe a project: headings, lists, notes and references."""
_LINK = lazy_pattern(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_HTML_HEADING = lazy_pattern(r"<h([1-6])\b[^>]*>(.*?)</h\1>", re.DOTALL | re.IGNORECASE)
_HTML_BLOCK = lazy_pattern(r"</?(?:p|div|figure|ul|ol)\b[^>]*>", re.IGNORECASE)
_HTML_ASIDE = lazy_pattern(r"<(figcaption|picture|table)\b.*?</\1>", re.DOTALL | re.IGNORECASE)
_HTML_LINK = lazy_pattern(r"<a\b[^>]*>(.*?)</a>", re.DOTALL)
_A_WORD = lazy_pattern(rf"[{UNSPACED}]|\w{{2,}}")
_LEAST_PROSE = 5
"""Words of a paragraph that can describe a project."""
_MOST_LANGUAGES = 4
_LEAST_SHARE = 0.15
"""Least share of a project's programs for a language that it is written in."""
_FIXTURE = lazy_pattern(r"(?:^|/)(?:_*fixtures?_*|testdata|test-data)/")
"""A file that a test reads, which is not part of the program."""
_EXAMPLE = lazy_pattern(r"(?:^|/)(?:_?examples?|samples?|_*fixtures?_*|testdata)/")
_PRODUCT = lazy_pattern(r"\b[A-Z]\w*\.js\b")
"""A name such as Node.js, which is no file."""
_WORDS = lazy_pattern(r"[A-Za-z]+(?:/[A-Za-z]+)+")
"""Words such as I/O and async/await, which look like a path."""
_PLACEHOLDER = lazy_pattern(r"<[^<>]+>|\{[^{}]*\}|\.\.\.|\bpath/to/|-name\b")


class ProjectCommand(NamedTuple):
    """``source`` is the file that defines it."""

    purpose: Purpose
    command: str
    source: str


class Project:
    """One project, read once: its files, its manifests and git's.

    ``commands`` has at most one for each purpose, the project's own tasks first, and ``others`` the rest; ``ci`` has
    further ones that continuous integration runs; ``tasks`` has all tasks of each runner. ``key_files``,
    ``dependencies`` and ``patterns`` map a path or name to a reason, version or place; ``agent_files`` are instruction
    files of other agents.
    """

    def __init__(self, root: Path) -> None:
        scan = self.scan = Scan(root)
        known = ecosystems()
        data = {
            path: parsed(tomllib.loads if path.endswith(".toml") else json.loads, scan.text(path))
            for path, _, _ in known.manifests
        }
        self.languages = _written_in(scan)
        present = [(language, _tests(scan, language)) for language in _present(scan, self.languages)]
        own_languages = [pair for pair in present if _is_own(pair[0], self.languages)]
        implied = list(_implied(scan, present))
        first_implied = list(_implied(scan, own_languages))
        named = list(_tasks(scan, data, implied, self.languages))
        entries = _entries(scan, data)
        runner = next((candidate for language, _ in present if (candidate := _runner(scan, language))), "")
        scripts = [name for name, path in entries.items() if path.endswith(".py")]
        own = [ProjectCommand("run", f"{runner} {name}".strip(), "pyproject.toml") for name in scripts]
        told = [command for task in named if not task.foreign for command in task.commands]
        foreign = [command for task in named if task.foreign for command in task.commands]
        vague = [command for task in named for command in task.vague]
        rest = [command for command in implied if command not in first_implied]
        commands = [*told, *own, *first_implied, *foreign, *vague, *rest]
        unique = list({command.command: command for command in reversed(commands)}.values())[::-1]
        first = {command.purpose: command for command in reversed(unique)}
        self.commands = [first[purpose] for purpose in known.purposes if purpose in first]
        self.others = [command for command in unique if command not in self.commands]
        self.tasks = {task.runner: task.names for task in named}
        self.languages = self.languages or [
            language.variant[0] if scan.matching(language.variant[1]) else language.name
            for language, _ in present
            if language.name
        ]
        least = "" if scan.complete else "at least "
        self.patterns = {
            f"Tests ({least}{plural(len(tests), 'file')})": f"`{tests[0]}` and its neighbours"
            for _, tests in present
            if tests
        }
        self.dependencies = _dependencies(scan, data)
        key_files = _key_files(scan, named, entries)
        self.key_files = dict(list(key_files.items())[:_MAX_KEY_FILES])
        readme = scan.text(next((path for path, why in key_files.items() if why == "introduction"), ""))
        self.readme = readme[:_README_CHARS]
        manifests = [language.manifest for language, _ in own_languages]
        name, self.description = _described(scan, data, readme, manifests)
        self.name = name or root.name
        self.agent_files = list(_agent_files(root, scan))
        git = git_facts(root)
        self.branch = (git.branch or "") if git else ""
        self.commit = head_commit(git)[:10] if git else ""
        plain = [command.command.removeprefix(f"{runner} ") for command in unique]
        evident = dict.fromkeys([*(command.command for command in unique), *plain])
        self._evident = [words for command in evident if (words := _words(command))]
        self.ci: list[ProjectCommand] = []
        kinds = set[str]()
        for path, command in _of_ci(scan):
            if command not in evident and (kind := _kind(command)) not in kinds and self._runs(command):
                self.ci.append(ProjectCommand("run", command, path))
                kinds.add(kind)
        del self.ci[_MAX_CI:]
        self._evident += [words for command in self.ci if (words := _words(command.command))]
        self._named = re.compile(rf"\b({'|'.join(known.commands)})\b")

    def has(self, path: str) -> bool:
        plain = path.removeprefix("./").rstrip("/")
        return self.scan.has(plain) or plain in self.scan.directories

    def has_command(self, command: str) -> bool:
        if _words(command) in self._evident:
            return True
        return not _OPERATORS.search(command) and all(self._has_part(_words(part)) for part in command.split("&&"))

    def names_only_known(self, statement: str) -> bool:
        """Whether all paths and commands in ``statement`` exist."""
        return not ("<!--" in statement or "\n#" in statement or any(self._unknown(statement)))

    def misnamed(self, document: str) -> list[str]:
        """Paths and commands in a document's code spans that the project lacks."""
        spans = dict.fromkeys(_SPAN.findall(document))
        spans = (span for span in spans if "/" in span or (_is_command(span) and " " in span))
        return [span for span in spans if not _PLACEHOLDER.search(span) and any(self._unknown(f"`{span}`"))]

    def shows_where(self, statement: str) -> bool:
        """Like ``names_only_known``, with at least one path."""
        words = re.findall(r"[\w./@-]+", statement)
        return self.names_only_known(statement) and any(self.has(word.partition(":")[0].rstrip(".")) for word in words)

    def _unknown(self, statement: str) -> Iterator[str]:
        """Paths and commands that the project lacks."""
        spans = _SPAN.findall(statement)
        commands = [span for span in spans if _is_command(span)]
        prose = _SPAN.sub(" ", statement)
        plain = "\n".join([*(span for span in spans if span not in commands), prose])
        for command in [*commands, *self._named.findall(plain)]:
            words = command.split()
            begun = any(evident[: len(words)] == words for evident in self._evident)
            if not begun and not self.has_command(command):
                yield command
        yield from self._unknown_paths("\n".join(span for span in spans if span not in commands))
        for path in self._unknown_paths(prose):
            if not _WORDS.fullmatch(path.rstrip(".")) or path.partition("/")[0] in self.scan.directories:
                yield path

    def _runs(self, command: str) -> bool:
        """Whether a command of continuous integration can be run from here, as far as the files tell."""
        program = command.partition(" ")[0]
        named = program in self.tasks or program in _NODE or program in ecosystems().words["runners"]
        return self.has_command(command) or not (
            named or _OPERATORS.search(command) or any(self._unknown_paths(command))
        )

    def _unknown_paths(self, text: str) -> Iterator[str]:
        for path in _PATH.findall(_PRODUCT.sub(lambda match: match[0] if self.scan.named(match[0]) else "", text)):
            is_path = "/" in path or path.rpartition(".")[2] in ecosystems().words["file_endings"]
            if is_path and not self._has_path(path):
                yield path

    def _has_path(self, path: str) -> bool:
        plain = path.removeprefix("./").rstrip("./")
        return not plain or self.has(plain) or ("/" not in plain and self.scan.named(plain))

    def _has_part(self, words: list[str]) -> bool:
        while words and re.fullmatch(r"[A-Z_][A-Z0-9_]*=\S*", words[0]):
            words = words[1:]
        if not words:
            return False
        program = words[0]
        names = {word for word in words[1:] if not word.startswith("-") and "=" not in word and word != "run"}
        if names and names <= self.tasks.get("npm" if program in _NODE else program, frozenset()):
            return True
        for evident in self._evident:
            if words[: len(evident)] == evident and self._harmless(words[len(evident) :]):
                return True
        is_script = program.startswith("./")
        script = words if is_script else words[1:] if program in ecosystems().words["interpreters"] else []
        return bool(script) and not script[0].startswith("-") and self._harmless(script)

    def _harmless(self, words: Iterable[str]) -> bool:
        """Whether the words are only options and paths of the project."""
        paths = [word.partition("::")[0] for word in words if not word.startswith("-")]
        return all(path in ("", ".", "./") or self.has(path) for path in paths)


def _agent_files(root: Path, scan: Scan) -> Iterator[str]:
    """Instructions of other agents: files that say more than where another one is, and folders of rules."""
    for name in _AGENT_FILES:
        others = [other for other in _AGENT_FILES if other != name]
        lines = [line for line in scan.text(name).splitlines() if line.strip() and not line.startswith("#")]
        if any(not any(other in line for other in others) for line in lines):
            yield name
    for name in _AGENT_FOLDERS:
        with contextlib.suppress(OSError):
            if any((root / name).iterdir()):
                yield f"{name}/"


def _is_command(span: str) -> bool:
    return span.startswith("./") or span.partition(" ")[0] in ecosystems().words["programs"]


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


_Data = Mapping[str, JsonObject]
"""Content of the manifests, by file."""


class _Tasks(Struct, frozen=True):
    """Tasks of one file: all ``names`` for ``runner``, ``commands`` for those of known purpose, and ``vague`` for those
    whose purpose is less sure than what the manifests imply. ``foreign``: the runner is for a language that little of
    the project is written in."""

    runner: str
    path: str
    names: frozenset[str]
    commands: list[ProjectCommand]
    vague: list[ProjectCommand]
    foreign: bool


def _tasks(scan: Scan, data: _Data, implied: Iterable[ProjectCommand], written_in: Sequence[str]) -> Iterator[_Tasks]:
    """``implied`` shows the manager that installs a Node package."""
    installers = [command.command.split()[0] for command in implied if command.purpose == "install"]
    manager = next((installer for installer in installers if installer in _NODE), "npm")
    for task_file in ecosystems().task_files:
        for path in [match[0] for match in scan.matching(task_file.file)[:1]]:
            scripts = as_object(find(data.get(path), task_file.keys))
            names = [name for name, script in scripts.items() if "no test specified" not in str(script)]
            if task_file.names:
                names = [
                    name for line in re.findall(task_file.names, scan.text(path), re.MULTILINE) for name in line.split()
                ]
            meant = {name: re.search(form, scan.text(path)) is None for name, form in task_file.not_meant.items()}
            told = [name for name in names if meant.get(name, True)]
            runner, known = task_file.runner.replace("npm", manager), ecosystems()
            commands = list(_usual(known.tasks, runner, path, told))
            vague = list(_usual(known.vague_tasks, runner, path, told))
            foreign = bool(task_file.languages and written_in) and task_file.languages.isdisjoint(written_in)
            yield _Tasks(task_file.runner.split()[0], path, task_file.built_in.union(names), commands, vague, foreign)


def _usual(
    purposes: Mapping[Purpose, Sequence[str]], runner: str, path: str, names: Iterable[str]
) -> Iterator[ProjectCommand]:
    """Commands for tasks with a purpose known from their name, the most usual name of each purpose first."""
    plain = {name.lower().replace("_", "-"): name for name in names}
    for purpose, words in purposes.items():
        for name in [plain[word] for word in words if word in plain]:
            short = name == "test" and runner in ("npm run", "yarn run", "pnpm run")
            yield ProjectCommand(purpose, f"{runner.removesuffix(' run') if short else runner} {name}", path)


def _of_ci(scan: Scan) -> Iterator[tuple[str, str]]:
    """Commands of continuous integration with their files, without preparations and what runs in another folder."""
    paths = [match[0] for match in scan.matching(ecosystems().ci)]
    preparations = ecosystems().words["preparations"]
    for path in sorted(paths, key=lambda path: re.fullmatch(ecosystems().ci_first, path) is None):
        before, *steps = _CI_STEP.split(scan.text(path))
        for step in () if _CI_ELSEWHERE.search(before) else (before, *steps):
            for line in () if _CI_ELSEWHERE.search(step) else _scripts(step):
                for command in line.split("&&"):
                    words = command.split()
                    prepares = any(word in preparations or word.endswith("install") for word in words[:4])
                    whole = bool(_words(command)) and not _OPERATORS.search(command) and ".github/" not in command
                    whole = whole and len(command) <= _MAX_CI_CHARS and not _says_nothing(words)
                    if whole and _is_command(words[0]) and not prepares and not _is_outward(words):
                        yield path, " ".join(words)
                    elif words[:1] == ["cd"]:
                        break


def _says_nothing(words: list[str]) -> bool:
    """Whether a command only shows a version, or lacks what it runs."""
    return words[-1] == "run" or words in (["cargo"], ["go"]) or words[1:] in (["-v"], ["-V"], ["-Vv"])


def _kind(command: str) -> str:
    """What is the same in commands that differ only in options, such as builds for several targets."""
    words = command.split()
    plain = list(takewhile(lambda word: not word.startswith("-"), words))
    return " ".join(plain) if len(plain) > 1 and plain[1] != "run" else command


def _is_outward(words: Iterable[str]) -> bool:
    """Whether a command publishes something, judging by its words and the names of its scripts."""
    plain = [word for word in words if not word.startswith("-")]
    parts = (part.lower() for word in plain for part in re.split(r"[/._:-]|(?<=[a-z])(?=[A-Z])", word))
    return not ecosystems().words["outward"].isdisjoint(parts)


def _scripts(text: str) -> Iterator[str]:
    """Lines of shell in a piece of YAML: values of ``run``, ``script`` and ``command``, whatever their form."""
    lines = text.replace("\\\n", " ").split("\n")
    for number, line in enumerate(lines):
        key = _CI_KEY.match(line)
        if key is None:
            continue
        indent, value = len(key[1]) + len(key[2] or ""), key[3].strip()
        if value and value[0] not in "|>":
            yield value.strip("\"'")
            continue
        folded = list[str]()
        for below in lines[number + 1 :]:
            inside = len(below) - len(below.lstrip())
            if below.strip() and (inside < indent or (inside == indent and not below.lstrip().startswith("- "))):
                break
            if value.startswith(">"):
                folded.append(below.strip())
            elif value or below.lstrip().startswith("- "):
                yield below.strip() if value else below.strip().removeprefix("- ").strip("\"' ")
        if folded:
            yield " ".join(folded)


def _runner(scan: Scan, language: Language) -> str:
    """The program that runs others in the project's environment; empty if there is none."""
    return next((runner for pattern, runner in language.runners if scan.matching(pattern)), "")


def _implied(scan: Scan, present: Iterable[tuple[Language, list[str]]]) -> Iterator[ProjectCommand]:
    """Commands of all languages. Only the first language with tests tells how one of them is run: another's command
    would look like the project's."""
    tested = False
    for language, tests in present:
        commands = list(_ruled(scan, language, tests))
        yield from (command for command in commands if not (tested and command.purpose == "test_one"))
        tested = tested or any(command.purpose == "test" for command in commands)


def _ruled(scan: Scan, language: Language, tests: list[str]) -> Iterator[ProjectCommand]:
    """Commands of one language: the first of each purpose, and every way to lint, format and check types."""
    seen: set[Purpose] = set()
    runner = _runner(scan, language)
    declared = "\n".join(scan.text(path) for path in ("pyproject.toml", "Pipfile")) if runner else ""
    locks = ecosystems().package_runners.items()
    package_runner = next((run for lock, run in locks if scan.matching(lock)), "npx")
    for rule in language.rules:
        beside = scan.matching(rule.beside)
        if rule.beside and not beside:
            continue
        text = language.test_class if rule.is_class else rule.text
        for match in _visible(scan, rule.file)[:20]:
            content_match = re.search(text, scan.text(match[0]), re.MULTILINE)
            if content_match is None:
                continue
            words = {
                **match.groupdict(),
                **content_match.groupdict(),
                "path": match[0],
                "test": tests[0] if tests else "",
            }
            words["exec"] = package_runner
            words["beside"] = beside[0][0] if beside else ""
            words["project"] = ":" + words.get("module", "").replace("/", ":")
            for purpose, form in rule.commands.items():
                needs_test = "{test}" in form
                if (purpose in seen and purpose not in ("lint", "format", "types")) or (needs_test and not tests):
                    continue
                if purpose == "test_one" and "test" not in seen and tests == [match[0]]:
                    purpose = "test"  # With one file, a single test file is all tests.
                seen.add(purpose)
                if runner and purpose != "install" and _in_environment(form.split()[0], language, declared):
                    form = f"{runner} {form}"
                yield ProjectCommand(purpose, form.format(**words), tests[0] if needs_test else match[0])
            break


def _in_environment(program: str, language: Language, declared: str) -> bool:
    pattern = language.declares.format(program=re.escape(program))
    return program in ecosystems().words["interpreters"] or re.search(pattern, declared, re.MULTILINE) is not None


def _present(scan: Scan, written_in: list[str]) -> list[Language]:
    """The languages of a project, those that most of it is written in first."""

    def rank(language: Language) -> int:
        names = [written_in.index(name) for name in (language.name, language.variant[0]) if name in written_in]
        return min(names, default=len(written_in))

    return sorted(
        (
            language
            for language in ecosystems().languages
            if scan.matching(language.manifest)
            or (scan.matching(language.sources) and rank(language) < max(1, len(written_in)))
        ),
        key=rank,
    )


def _is_own(language: Language, written_in: list[str]) -> bool:
    """Whether the project is written in it, as far as the files tell; true for what belongs to no language."""
    return not (written_in and language.name) or not {language.name, language.variant[0]}.isdisjoint(written_in)


def _tests(scan: Scan, language: Language) -> list[str]:
    """Files of tests, those of the project itself before those of packages inside it, which may not run from here."""
    paths = [match[0] for match in _visible(scan, language.tests) or _visible(scan, language.tests_else)]
    inner = {match[0].rpartition("/")[0] for match in scan.matching(rf"(?:.*/)(?:{language.manifest})")}
    return sorted(paths, key=lambda path: any(str(folder) in inner for folder in PurePosixPath(path).parents))


def _visible(scan: Scan, pattern: str) -> list[re.Match[str]]:
    """Matches outside hidden folders, such as the workflows of continuous integration; examples come last."""
    matches = [match for match in scan.matching(pattern) if not (match[0].startswith(".") and "/" in match[0])]
    return sorted(matches, key=lambda match: _EXAMPLE.search(match[0]) is not None)


def _written_in(scan: Scan) -> list[str]:
    """The languages of most programs, the one with the most files first; empty without programs."""
    known = ecosystems()
    by_language = {name: [match[0] for match in scan.matching(pattern)] for name, pattern in known.written_in.items()}
    counts = {name: sum(not _FIXTURE.search(path) for path in paths) for name, paths in by_language.items()}
    least = max(1, _LEAST_SHARE * sum(counts.values()))
    names = [name for name, count in counts.items() if count >= least]
    names = [name for name in names if counts[name] > counts.get(known.variants.get(name, ""), 0)]
    return sorted(names, key=lambda name: -counts[name])[:_MOST_LANGUAGES]


def _key_files(scan: Scan, named: Iterable[_Tasks], entries: Mapping[str, str]) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for path, why in (
        *((task.path, f"tasks of the project ({task.runner})") for task in named if not task.path.endswith(".json")),
        *((path, f"entry point of the command `{name}`") for name, path in entries.items()),
        *((match[0], why) for pattern, why in ecosystems().key_files.items() for match in scan.matching(pattern)[:2]),
    ):
        reasons.setdefault(path, why)
    if not any(scan.matching(language.manifest) for language in ecosystems().languages):
        parts = ((match[0], why) for form, why in ecosystems().part_files.items() for match in scan.matching(form)[:4])
        reasons |= {path: why for path, why in parts if not _FIXTURE.search(path)}
    return reasons


def _entries(scan: Scan, data: _Data) -> dict[str, str]:
    """Commands that a package installs, with the files of their entry points."""
    entries: dict[str, str] = {}
    python, node = data["pyproject.toml"], data["package.json"]
    scripts = as_object(find(python, "project.scripts")) or as_object(find(python, "tool.poetry.scripts"))
    for name, target in scripts.items():
        module = re.escape(one_line(target).partition(":")[0].strip().replace(".", "/"))
        for match in scan.matching(rf"(?:src/)?{module}(?:/__init__)?\.py")[:1]:
            entries[name] = match[0]
    binaries = node.get("bin")
    for name, target in (as_object(binaries) or {one_line(node.get("name")): binaries}).items():
        if scan.has(path := one_line(target).removeprefix("./")):
            entries[name] = path
    return entries


def _dependencies(scan: Scan, data: _Data) -> dict[str, str]:
    """Direct dependencies, with the manifest's own text for the version."""
    versions: dict[str, str] = {}
    forms = ecosystems().dependency_lines
    for file, _, key in ecosystems().manifests:
        stated = find(data[file], key)
        for line in texts(stated):
            versions |= re.findall(forms["requirements.txt"], line)
        for name, version in as_object(stated).items():
            versions[name] = one_line(version) or one_line(find(version, "version"))
    for path, form in forms.items():
        versions |= re.findall(form, scan.text(path), re.MULTILINE)
    return {name: version.strip() for name, version in versions.items() if name not in ("python", "php")}


def _described(scan: Scan, data: _Data, readme: str, manifests: Iterable[str]) -> tuple[str, str]:
    """Name and description, from the manifest if possible, else from the README; empty without either. A manifest that
    is none of ``manifests`` (patterns of the project's own languages) comes last: it may be of a small part."""
    title, paragraph = _beginning(readme)
    own, rest = list[object](), list[object]()
    for file, key, _ in ecosystems().manifests:
        packages = own if any(re.fullmatch(pattern, file) for pattern in manifests) else rest
        packages.append(find(data[file], key))
    lines = [re.search(form, scan.text(path), re.MULTILINE) for path, form in ecosystems().name_lines.items()]
    names = [one_line(find(package, "name")) for package in own]
    names += [*(line[1] for line in lines if line), title, *(one_line(find(package, "name")) for package in rest)]
    descriptions = [one_line(find(package, "description")) for package in own]
    descriptions += [paragraph, *(one_line(find(package, "description")) for package in rest)]
    telling = (name for name in names if name.rpartition("/")[2].lower() not in {"", *ecosystems().words["nameless"]})
    return next(telling, ""), next(filter(None, descriptions), "")


def _beginning(readme: str) -> tuple[str, str]:
    """Title and first paragraph of prose, on one line each; both may be empty."""
    no_code = re.sub(r"^(```|~~~).*?^\1", "", readme, flags=re.MULTILINE | re.DOTALL)
    no_code = _HTML_HEADING.sub(lambda match: f"\n\n{'#' * int(match[1])} {one_line(match[2])}\n\n", no_code)
    no_code = _HTML_BLOCK.sub("\n\n", _HTML_ASIDE.sub("\n\n", no_code))
    how_to = _HOW_TO.search(no_code)
    about = no_code[: how_to.start()] if how_to else no_code
    title = _TITLE.search(about)
    if title and _first_prose(about[: title.start()]):
        title = None  # the heading of a section
    name = _without_links(re.sub(_NO_PROSE, "", (title[1] or title[2]) if title else ""))
    return name[:80], _first_prose(_TITLE.sub("\n\n", about))


def _first_prose(markdown: str) -> str:
    """The first paragraph that says something, on one line and at most 400 characters; empty without one."""
    linked = _HTML_LINK.sub(lambda match: f"[{one_line(match[1])}](.)", markdown)
    rest = re.sub(_NO_PROSE, "", linked, flags=re.MULTILINE | re.DOTALL)
    first = next(filter(None, map(_described_by, re.split(r"\n\s*\n", rest))), "")
    if len(first) <= 400:
        return first
    sentences = first[:400].rpartition(". ")[0]
    return f"{sentences}." if sentences else f"{first[:400].rpartition(' ')[0]} ..."


def _described_by(paragraph: str) -> str:
    """A paragraph of prose on one line; empty for asides, links and what only introduces a list."""
    text = _without_links(re.sub(r"^[ \t]*>[ \t]?", "", paragraph, flags=re.MULTILINE))
    if _ASIDE.match(text) or len(_A_WORD.findall(_LINK.sub("", paragraph))) < _LEAST_PROSE:
        return ""
    return text if not text.endswith(":") else text[: text.rfind(". ") + 1]


def _without_links(text: str) -> str:
    """A piece of Markdown on one line, its links as their words."""
    return one_line(_LINK.sub(r"\1", text))


def parsed(parse: Callable[[str], object], text: str) -> JsonObject:
    """The table in a text; empty if it is invalid."""
    try:
        return as_object(parse(text))
    except (ValueError, RecursionError):
        return {}


def find(value: object, place: str) -> object:
    """The value at ``place`` in a decoded file, keys joined by dots; None if there is none."""
    for key in filter(None, place.split(".")):
        value = as_object(value).get(key)
    return value


def one_line(value: object) -> str:
    """A string on one line; empty for anything else."""
    return " ".join(as_text(value).split())


def texts(value: object) -> list[str]:
    """The strings of a list; empty for anything else."""
    return [item for item in as_list(value) if isinstance(item, str)]
