"""The proof that a script only reads: every simple command of it, in every directory it may run in."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from swecli.core.permissions.facts import FileFacts
from swecli.core.permissions.shell.expand import Situation, expand
from swecli.core.permissions.shell.known_command import check_command, check_program, harmless_assignment
from swecli.core.permissions.shell.listed import list_of_names, producer, unwrap_xargs, with_names
from swecli.core.permissions.shell.places import absolute, check_content, check_name
from swecli.core.permissions.shell.syntax import (
    AndOr,
    Command,
    For,
    Group,
    If,
    Pipeline,
    Redirect,
    Script,
    Simple,
    UnprovenError,
    While,
    Word,
    simple_commands,
)
from swecli.core.permissions.shell.variables import is_plain_variable

MAX_COMMANDS = 20
MAX_ROUNDS = 60
SHELL = "bash"
"""What reads every command: it has to be a program of the system as well."""


@dataclass(frozen=True, slots=True)
class Part:
    """One simple command, or the redirection of a compound one, and what stands against running it.

    ``words`` are its arguments as far as they are known. ``reason`` is None when it is proven. ``writes`` are
    files that redirections would write. ``fixed`` objections can't be lifted by a rule about the words.
    """

    words: tuple[str | None, ...]
    reason: str | None = None
    soft: bool = False
    writes: tuple[str, ...] = ()
    fixed: bool = False


def prove(script: Script, facts: FileFacts, cwd: str, roots: tuple[str, ...], home: str) -> tuple[Part, ...]:
    """Judge every part of the script.

    Raises:
        UnprovenError: it has too many commands to judge.
    """
    if sum(1 for _ in simple_commands(script)) > MAX_COMMANDS:
        raise UnprovenError(f"it has more than {MAX_COMMANDS} commands")
    walker = _Walker()
    walker.script(script, Situation(facts, roots, home, cwd, (cwd,)), certain=True)
    problem = facts.shell_problem(cwd, moving=False) or facts.program_problem(SHELL, cwd, roots)
    if problem is not None and all(part.reason is None for part in walker.parts):
        walker.parts.append(Part((), problem, fixed=True))
    return tuple(dict.fromkeys(walker.parts))


class _Walker:
    """Follows the script the way the shell would, keeping track of where it may be."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._producer: tuple[str | None, ...] | None = None
        """The words of the command whose output the present one reads, for xargs."""

    def script(self, script: Script, situation: Situation, *, certain: bool) -> Situation:
        for item in script.items:
            situation = self._and_or(item, situation, certain=certain)
        return situation

    def _and_or(self, node: AndOr, situation: Situation, *, certain: bool) -> Situation:
        possible = set(situation.cwds)
        lost = not situation.cwds
        for index, (joint, pipeline) in enumerate(node.items):
            if joint == "||":
                situation = replace(situation, cwds=() if lost else tuple(sorted(possible)))
            situation = self._pipeline(pipeline, situation, certain=certain and index == 0)
            possible |= set(situation.cwds)
            lost |= not situation.cwds
        return replace(situation, cwds=() if lost else tuple(sorted(possible)))

    def _pipeline(self, node: Pipeline, situation: Situation, *, certain: bool) -> Situation:
        if len(node.commands) == 1:
            return self._command(node.commands[0], situation, certain=certain)
        for index, command in enumerate(node.commands):
            self._producer = producer(node.commands[:index])
            self._command(command, situation, certain=False)
        self._producer = None
        return situation

    def _command(self, node: Command, situation: Situation, *, certain: bool) -> Situation:
        if isinstance(node, Simple):
            return self._simple(node, situation, certain=certain)
        self._compound_redirects(node.redirects, situation)
        match node:
            case Group():
                after = self.script(node.script, situation, certain=certain)
                return situation if node.subshell else after
            case If():
                after, lost, possible = situation, False, set(situation.cwds)
                for script in node.scripts:
                    after = self.script(script, replace(after, cwds=tuple(sorted(possible))), certain=False)
                    possible |= set(after.cwds)
                    lost |= not after.cwds
                return replace(after, cwds=() if lost else tuple(sorted(possible)))
            case For():
                return self._for(node, situation)
            case While():
                return self._while(node, situation)

    def _for(self, node: For, situation: Situation) -> Situation:
        values: list[str | None] = []
        try:
            for word in node.words:
                self._substitutions(word, situation)
                values += expand(word, situation)
        except UnprovenError as error:
            self.parts.append(Part((), error.reason, error.soft, fixed=True))
            values = [None]
        rounds = list(dict.fromkeys(values))
        if len(rounds) > MAX_ROUNDS:
            self.parts.append(Part((), "a loop has too many rounds to judge", fixed=True))
            rounds = [None]
        for value in rounds:
            variables = {**situation.variables, node.variable: value}
            after = self.script(node.body, replace(situation, variables=variables), certain=False)
            if after.cwds != situation.cwds:
                self.parts.append(Part((), "a loop changes the directory", fixed=True))
        return replace(situation, variables={**situation.variables, node.variable: None})

    def _while(self, node: While, situation: Situation) -> Situation:
        # What a later round finds in a variable is not known in the first one.
        first = next(simple_commands(node.condition), None)
        if first is None or not first.words or first.words[0].literal != "read":
            self.parts.append(Part((), "a loop may never end", fixed=True))
        names = {name for script in (node.condition, node.body) for name in _assigned(script)}
        inner = replace(situation, variables={**situation.variables, **dict.fromkeys(names)})
        after = self.script(node.body, self.script(node.condition, inner, certain=False), certain=False)
        if after.cwds != situation.cwds:
            self.parts.append(Part((), "a loop changes the directory", fixed=True))
        return replace(inner, cwds=situation.cwds if after.cwds == situation.cwds else ())

    # --- simple commands ------------------------------------------------------------------------------------------

    def _simple(self, node: Simple, situation: Situation, *, certain: bool) -> Situation:
        words: tuple[str | None, ...] = ()
        writes: tuple[str, ...] = ()
        fixed = True
        try:
            for word in (*node.words, *(value for _, value in node.assignments)):
                self._substitutions(word, situation)
            words = tuple(item.literal for item in node.words)
            if not node.words:
                situation = self._assign(node, situation, certain=certain)
            else:
                _check_assignments(node, situation)
            writes = self._redirects(node.redirects, situation)
            fixed = False
            if node.words and (listed := list_of_names(node.words)) is not None:
                known = [argument for word in node.words[:-1] for argument in expand(word, situation)]
                words = (*known, None)
                check_command(with_names(listed, known, situation), situation)
            elif node.words:
                arguments = [argument for word in node.words for argument in expand(word, situation)]
                words = tuple(arguments)
                situation = self._run(node.words[0], arguments, situation)
            if writes:
                raise UnprovenError(f"it writes {writes[0]}")
        except UnprovenError as error:
            self.parts.append(Part(words, error.reason, error.soft, writes, fixed))
            if words and words[0] in ("cd", "pushd", "popd", None):
                situation = replace(situation, cwds=())
        else:
            self.parts.append(Part(words))
        return situation

    def _run(self, word: Word, arguments: list[str | None], situation: Situation) -> Situation:
        """Judge one command; the situation after it."""
        name = word.literal
        if name is None or not arguments or arguments[0] != name:
            raise UnprovenError("which program runs is computed")
        if name == "cd":
            return _cd(arguments[1:], situation)
        if name == "read":
            return _read(arguments[1:], situation)
        if name == "xargs" and self._producer is not None:
            check_program(name, situation)
            check_command(unwrap_xargs(self._producer, arguments[1:], situation), situation, external=True)
            return situation
        check_command(arguments, situation)
        return situation

    def _assign(self, node: Simple, situation: Situation, *, certain: bool) -> Situation:
        variables = dict(situation.variables)
        for name, word in node.assignments:
            if not is_plain_variable(name):
                raise UnprovenError(f"setting {name} may change what follows")
            values = expand(word, replace(situation, variables=variables))
            variables[name] = values[0] if certain and len(values) == 1 and not word.has_glob else None
        return replace(situation, variables=variables)

    def _substitutions(self, word: Word, situation: Situation) -> None:
        for segment in word.segments:
            if segment.script is not None:
                self.script(segment.script, situation, certain=False)

    # --- redirections ---------------------------------------------------------------------------------------------

    def _compound_redirects(self, redirects: Sequence[Redirect], situation: Situation) -> None:
        try:
            writes = self._redirects(redirects, situation)
        except UnprovenError as error:
            self.parts.append(Part((), error.reason, error.soft, fixed=True))
            return
        if writes:
            self.parts.append(Part((), f"it writes {writes[0]}", writes=writes, fixed=True))

    def _redirects(self, redirects: Sequence[Redirect], situation: Situation) -> tuple[str, ...]:
        """The files that would be written; raises for input that may not be read."""
        writes: list[str] = []
        for redirect in redirects:
            if redirect.target is None:
                if not redirect.literal_body and any(char in redirect.body for char in "$`\\"):
                    raise UnprovenError("a here-document with expansions is not understood")
                continue
            self._substitutions(redirect.target, situation)
            if redirect.operator == "<<<":
                expand(redirect.target, situation)
                continue
            targets = expand(redirect.target, situation)
            if len(targets) != 1 or targets[0] is None or redirect.target.has_glob:
                raise UnprovenError("where a redirection goes is not certain")
            target = targets[0]
            if redirect.operator == "<":
                check_content(target, situation)
            elif redirect.operator == ">&" and re.fullmatch(r"[12]", target):
                continue
            elif target not in ("/dev/null", "/dev/stdout", "/dev/stderr"):
                writes += [situation.facts.resolve(path) for path in absolute(target, situation)]
        return tuple(writes)


# --- one command ---------------------------------------------------------------------------------------------------


def _check_assignments(node: Simple, situation: Situation) -> None:
    for name, word in node.assignments:
        values = expand(word, situation)
        value = values[0] if len(values) == 1 else None
        if value is None or not harmless_assignment(name, value):
            raise UnprovenError(f"setting {name} may change what the command does")


def _cd(arguments: Sequence[str | None], situation: Situation) -> Situation:
    rest = [argument for argument in arguments if argument not in ("--", "-P", "-L")]
    if len(rest) != 1 or rest[0] is None or rest[0] in ("", "-") or rest[0].startswith(("-", "+")):
        raise UnprovenError("where cd goes is not certain")
    target = rest[0]
    problem = situation.facts.shell_problem(situation.start, moving=True)
    if problem is not None:
        raise UnprovenError(problem)
    check_name(target, situation)
    # The shell keeps a directory's name as it was given, the kernel does not: they agree only where no link is.
    places: list[str] = []
    for path in absolute(target, situation):
        resolved = situation.facts.resolve(path)
        if posixpath.normpath(path) != resolved:
            raise UnprovenError(f"cd {target} passes a link")
        if situation.facts.kind(resolved) not in ("directory", "missing"):
            raise UnprovenError(f"{target} is no directory")
        places.append(resolved)
    return replace(situation, cwds=tuple(sorted(set(places))))


def _read(arguments: Sequence[str | None], situation: Situation) -> Situation:
    """``read -r name …`` sets plain variables to something that is not known."""
    names = [argument for argument in arguments if argument != "-r"]
    for name in names:
        if name is None or not is_plain_variable(name):
            raise UnprovenError("read may set a variable that changes what follows")
    return replace(situation, variables={**situation.variables, **{str(name): None for name in names}})


def _assigned(script: Script) -> set[str]:
    """Variables that a script sets."""
    names: set[str] = set()
    for simple in simple_commands(script):
        names |= {name for name, _ in simple.assignments}
        words = [word.literal for word in simple.words]
        if words[:1] == ["read"]:
            names |= {word for word in words[1:] if word is not None and is_plain_variable(word)}
    return names
