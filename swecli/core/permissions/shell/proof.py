"""The proof that a script only reads: every simple command, in every directory it may run in."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.permissions.facts import FileFacts
from swecli.core.permissions.git_facts import is_harmless_option
from swecli.core.permissions.rules import NO_READ_RULES, ReadRules
from swecli.core.permissions.shell.arguments import check_table
from swecli.core.permissions.shell.conditions import check_condition, ends
from swecli.core.permissions.shell.destructive import acts_elsewhere
from swecli.core.permissions.shell.edits import EditKind, edit_kind
from swecli.core.permissions.shell.expand import (
    NOWHERE_ELSE,
    Situation,
    absolute,
    asks_git,
    check_content,
    expand,
    is_number,
    is_sum,
)
from swecli.core.permissions.shell.offers import changes_shell
from swecli.core.permissions.shell.own_copies import check_json_tool, prints_json
from swecli.core.permissions.shell.programs import (
    BUILTINS,
    CHECK_SYNTAX,
    MAY_BE_UNKNOWN,
    OTHERWISE,
    PROGRAMS,
    check_find,
)
from swecli.core.permissions.shell.shell_state import (
    alters,
    before_rounds,
    changed_directory,
    check_assignments,
    harmless_assignment,
    joined,
    may_set_any,
    moved,
    read_into,
    read_names,
    without,
)
from swecli.core.permissions.shell.syntax import (
    AndOr,
    Case,
    Command,
    For,
    Group,
    If,
    Pipeline,
    Redirect,
    Script,
    Segment,
    Simple,
    UnprovenError,
    While,
    Word,
    script_of,
    scripts_in,
    simple_commands,
)
from swecli.core.permissions.shell.tables import is_plain_variable, tables
from swecli.core.permissions.shell.unpack import (
    NAME_TO_COME,
    check_each_name,
    list_of_names,
    names_of_substitution,
    producer,
    unwrap_xargs,
    with_names,
)
from swecli.core.permissions.shell.values import Array, Listed, Number
from swecli.core.permissions.shell.versions import obeyed_file, tells_about_itself
from swecli.core.permissions.shell.wrapped import unwrap
from swecli.core.permissions.types import Rule
from swecli.lazy_pattern import lazy_pattern

_GIT_SUBCOMMAND = lazy_pattern(r"[a-z]+(?:-[a-z]+)*")
_GIT_GLOBAL = frozenset(("-P", "--no-pager", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"))


def check_command(arguments: Sequence[str | None], situation: Situation, *, external: bool = False) -> None:
    """Raise ``UnprovenError`` unless this command only reads. ``external``: another program starts it, not the
    shell."""
    name = _name_on_path(arguments[0], situation)
    if name is None or not name or "/" in name:
        raise UnprovenError(f"{name or 'a computed name'} is not a known program")
    external |= name != arguments[0]
    rest = list(arguments[1:])
    inner = unwrap(name, rest, harmless_assignment)
    known = tables()
    if inner is not None:
        check_program(name, situation)
        check_command(inner, situation, external=True)
        return
    if tells_about_itself(name, rest):
        check_program(name, situation)
        return
    if name == "git":
        _git(rest, situation)
        return
    table = known.commands.get(name)
    builtin = name in BUILTINS or (table is not None and table.builtin)
    if external or not builtin:
        check_program(name, situation)
    if name == "find":
        known_words = [argument for argument in rest if argument is not None]
        if len(known_words) != len(rest):
            raise UnprovenError("an argument of find is unknown")
        for inner_words in check_find(known_words, situation):
            check_command(inner_words, situation, external=True)
        return
    if name in CHECK_SYNTAX and len(rest) == 2 and rest[0] == "-n" and rest[1] and rest[1][0] not in "-+":
        check_content(rest[1], situation)
    elif prints_json(name, rest):
        check_json_tool(rest, situation)
    elif name in PROGRAMS:
        _special(name, rest, situation)
    elif table is not None:
        check_table(name, table, rest, situation)
    else:
        does = OTHERWISE.get(name) or acts_elsewhere(name) or changes_shell(name)
        raise UnprovenError(f"{name} {does or 'may change files'}")


_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/")


def _name_on_path(name: str | None, situation: Situation) -> str | None:
    """The name of a program that is spelled with its folder, if PATH finds the same file; else what is given."""
    folder, slash, base = (name or "").rpartition("/")
    if folder + slash not in _SYSTEM_FOLDERS or not base or not situation.cwds:
        return name
    facts = situation.facts
    found = {facts.program(base, cwd) for cwd in situation.cwds}
    same = len(found) == 1 and "" not in found and facts.resolve(name or "") == facts.resolve(found.pop())
    return base if same else name


def _special(name: str, arguments: Sequence[str | None], situation: Situation) -> None:
    known = [argument for argument in arguments if argument is not None]
    if len(known) != len(arguments):
        allowed = MAY_BE_UNKNOWN.get(name)
        if allowed is None or not allowed(arguments):
            raise UnprovenError(f"an argument of {name} is unknown")
        known = ["" if argument is None else argument for argument in arguments]
    PROGRAMS[name](known, situation)


def _git(arguments: list[str | None], situation: Situation) -> None:
    rest = list(arguments)
    there = situation
    while rest and (rest[0] in _GIT_GLOBAL or rest[0] in ("-C", "-c")):
        option = rest.pop(0)
        if option == "-C":
            there = moved(rest.pop(0) if rest else None, there, "-C")
        elif option == "-c" and not is_harmless_option(rest.pop(0) if rest else None):
            raise UnprovenError("git -c may make git run another program")
    if not rest or rest[0] is None or rest[0].startswith("-"):
        raise UnprovenError("this use of git is not understood")
    check_program("git", situation)
    situation = _in_repository(there)
    if len(rest) == 2 and rest[1] == "--help" and _GIT_SUBCOMMAND.fullmatch(rest[0]):
        rest = ["help", rest[0]]  # shows a page of the manual, of an alias what it stands for
    for count in (2, 1):
        words = rest[:count]
        if len(words) == count and None not in words:
            name = "git " + " ".join(str(word) for word in words)
            if name in PROGRAMS:
                _special(name, rest[count:], situation)
                return
            table = tables().commands.get(name)
            if table is not None:
                check_table(name, table, rest[count:], situation)
                return
    raise UnprovenError(f"git {rest[0]} {OTHERWISE.get(f'git {rest[0]}') or 'may change files'}")


REPOSITORY_RUNS = "git may run a program here"
"""Beginning of the objection to every git command in a repository."""


def _in_repository(situation: Situation) -> Situation:
    """The situation of git, which starts in the folder where it runs.

    Raises:
        UnprovenError: that is unknown, in another repository, or git may run a program there.
    """
    facts = situation.facts
    if len(situation.cwds) != 1:
        raise UnprovenError("git after cd may use another repository's settings")
    cwd = situation.cwds[0]
    problem = facts.git_problem(cwd, situation.roots)
    if problem is not None:
        raise UnprovenError(f"{REPOSITORY_RUNS}: {problem}")
    if cwd != situation.start and facts.git_settings(cwd) != facts.git_settings(situation.start):
        raise UnprovenError("git after cd may use another repository's settings")
    if situation.edited and facts.kind(posixpath.join(cwd, ".git")) != "directory":
        raise UnprovenError("another command of it may lay out a repository where git runs")
    return replace(situation, start=cwd)


def check_program(name: str, situation: Situation) -> None:
    """Raise unless the name, and those of the programs that it starts, mean programs outside the workspace, or none."""
    for each in (name, *sorted(tables().helpers.get(name, ()))):
        for cwd in situation.cwds or (situation.start,):
            problem = situation.facts.program_problem(each, cwd, situation.roots)
            if problem is not None:
                raise UnprovenError(problem)
            file = obeyed_file(each, cwd, situation)
            if file:
                raise UnprovenError(f"{file} in the workspace or above it configures {each}")


MAX_COMMANDS = 20
MAX_ROUNDS = 60
SHELL = "bash"
"""The shell that reads every command; it must be a system program as well."""


class Part(Struct, frozen=True):
    """A simple command, or the redirection of a compound one, and the objection to running it.

    ``words`` are its arguments as far as known. ``reason`` is None if it is proven. ``writes`` are files that
    redirections would write. A word rule can't lift a ``fixed`` objection. ``edit`` is its only effect, on workspace
    files ("name": it renames them); ``no_edit`` says, as a clause, why a usual edit command does not count as one.
    ``git_knows``: git may refute the objection. ``effect`` is the objection to what it does, as a clause, behind a
    ``soft`` one to what it reads.
    """

    words: tuple[str | None, ...]
    reason: str | None = None
    soft: bool = False
    writes: tuple[str, ...] = ()
    fixed: bool = False
    edit: EditKind | None = None
    no_edit: str = ""
    git_knows: bool = False
    effect: str = ""
    rule: Rule | None = None
    """The user's rule about reading that objects."""


def prove(
    script: Script,
    facts: FileFacts,
    cwd: str,
    roots: tuple[str, ...],
    home: str,
    rules: ReadRules = NO_READ_RULES,
    *,
    moved: bool = False,
) -> tuple[Part, ...]:
    """Judge every part of the script. ``rules`` are the user's rules about reading; ``moved``: a git command that runs
    before it may change what git shows.

    Raises:
        UnprovenError: it has too many commands to judge.
    """
    if sum(1 for _ in simple_commands(script)) > MAX_COMMANDS:
        raise UnprovenError(f"it has more than {MAX_COMMANDS} commands")
    situation = Situation(facts, roots, home, cwd, (cwd,), frozenset(((cwd, ""),)), moved=moved, rules=rules)
    walker = _Walker()
    walker.script(script, situation, certain=True)
    edited = _edited_names(walker.parts)
    if edited:
        walker = _Walker()
        walker.script(script, replace(situation, edited=edited), certain=True)
    if all(part.reason is None for part in walker.parts):
        problem = facts.shell_problem(cwd, moving=False) or facts.program_problem(SHELL, cwd, roots)
        if problem is not None:
            walker.parts.append(Part((), problem, fixed=True))
    return tuple(dict.fromkeys(walker.parts))


def _edited_names(parts: Sequence[Part]) -> frozenset[str]:
    names: set[str] = set()
    for part in parts:
        if part.edit == "format" and not part.writes:  # its files keep their names and what they mean
            names.update(word for word in part.words[:1] if word)
        elif part.edit or part.writes:
            names.update(name for word in (*part.words, *part.writes) if word for name in word.split("/"))
    return frozenset(names)


class _Walker:
    """Follows the script as the shell would, keeping track of the possible directories."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._producer: Listed | None = None
        """The lines of the command whose output the current one reads, for xargs and read."""
        self._moved = False
        """Whether a git command so far may change what later ones show."""

    def script(self, script: Script, situation: Situation, *, certain: bool) -> Situation:
        for item in script.items:
            situation = self._and_or(item, situation, certain=certain)
        return situation

    def _and_or(self, node: AndOr, situation: Situation, *, certain: bool) -> Situation:
        possible = [situation]
        for index, (joint, pipeline) in enumerate(node.items):
            if joint == "||":
                situation = joined(situation, possible)
            situation = self._pipeline(pipeline, situation, certain=certain and index == 0)
            possible.append(situation)
        return joined(situation, possible)

    def _pipeline(self, node: Pipeline, situation: Situation, *, certain: bool) -> Situation:
        if len(node.commands) == 1:
            return self._command(node.commands[0], situation, certain=certain)
        for index, command in enumerate(node.commands):
            words = producer(node.commands[:index], situation)
            self._producer = None if words is None else Listed(words, situation.cwds)
            ends = index + 1 < len(node.commands) and _ends_early(node.commands[index + 1])
            self._command(command, replace(situation, piped=index > 0, cut=ends), certain=False)
        self._producer = None
        return situation

    def _command(self, node: Command, situation: Situation, *, certain: bool) -> Situation:
        if isinstance(node, Simple):
            return self._simple(node, situation, certain=certain)
        self._compound_redirects(node.redirects, situation)
        self._take_input(node.redirects)
        match node:
            case Group():
                after = self.script(node.script, situation, certain=certain)
                return situation if node.subshell else after
            case If():
                return self._one_of(node.scripts, situation)
            case Case():
                try:
                    for word in node.words:
                        self._substitutions(word, situation)
                        expand(quoted(word), situation)
                except UnprovenError as error:
                    self.parts.append(Part((), error.reason, error.soft, fixed=True, rule=error.rule))
                return self._one_of(node.bodies, situation)
            case For():
                return self._for(node, situation)
            case While():
                return self._while(node, situation)

    def _one_of(self, scripts: Sequence[Script], situation: Situation) -> Situation:
        """Judge scripts that may run one after the other or not at all."""
        after, possible = situation, [situation]
        for script in scripts:
            after = self.script(script, joined(after, possible), certain=False)
            possible.append(after)
        return joined(after, possible)

    def _take_input(self, redirects: Sequence[Redirect]) -> None:
        """Forget the lines of the pipe where a redirection puts something else in their place."""
        if any(redirect.operator.startswith("<") for redirect in redirects):
            self._producer = None

    def _for(self, node: For, situation: Situation) -> Situation:
        values: list[str | Listed | None] = []
        try:
            for word in node.words:
                self._substitutions(word, situation)
                expanded = expand(word, situation)
                names = names_of_substitution(word, situation) if None in expanded else None
                values += expanded if names is None else [Listed(names, situation.cwds)]
        except UnprovenError as error:
            self.parts.append(Part((), error.reason, error.soft, fixed=True, rule=error.rule))
            values = [None]
        rounds = list(dict.fromkeys(values))
        if len(rounds) > MAX_ROUNDS:
            self.parts.append(Part((), "a loop has too many rounds to judge", fixed=True))
            rounds = [None]
        # What the body sets is unknown after the loop, and already in its first lines, which run again.
        situation = before_rounds((node.body,), situation)
        left = situation.left
        for value in rounds:
            variables = {**situation.variables, node.variable: value}
            after = self._body(node.body, replace(situation, variables=variables, left=NOWHERE_ELSE))
            left = left if not after.left else NOWHERE_ELSE
            situation = replace(situation, altered=after.altered)
            if after.cwds != situation.cwds:
                self.parts.append(Part((), "a loop changes the directory", fixed=True))
        return without((node.variable,), replace(situation, left=left))

    def _while(self, node: While, situation: Situation) -> Situation:
        # The first round does not know what a later one finds in a variable.
        first = next(simple_commands(node.condition), None)
        reads = first is not None and bool(first.words) and first.words[0].literal == "read"
        if not reads and not ends(node, situation.variables):
            self.parts.append(Part((), "a loop may never end", fixed=True))
        if first is None or first.redirects:
            self._producer = None
        step = () if node.step is None else script_of(node.step).items
        inner = before_rounds((node.condition, node.body, Script(step)), situation)
        script = Script((*node.condition.items, *node.body.items, *step))
        after = self._body(script, replace(inner, left=NOWHERE_ELSE))
        if after.cwds != situation.cwds:
            self.parts.append(Part((), "a loop changes the directory", fixed=True))
            return replace(inner, cwds=(), left=NOWHERE_ELSE, altered=after.altered)
        return replace(inner, left=NOWHERE_ELSE if after.left else inner.left, altered=after.altered)

    def _body(self, script: Script, situation: Situation) -> Situation:
        """Judge what a loop repeats, again if a variable that it sets concerns its own next round."""
        after = self.script(script, situation, certain=True)
        if after.altered and not situation.altered:
            after = self.script(script, replace(situation, altered=after.altered), certain=True)
        return after

    # --- simple commands ------------------------------------------------------------------------------------------

    def _simple(self, node: Simple, situation: Situation, *, certain: bool) -> Situation:
        situation = replace(situation, moved=True) if self._moved else situation
        self._take_input(node.redirects)
        part, after, error = self._judged(node, situation, certain=certain)
        if error is None:
            self.parts.append(part)
            return after
        if error.soft:
            count = len(self.parts)
            behind = self._judged(node, replace(situation, effects_only=True), certain=certain)[0].reason
            del self.parts[count:]
            part = replace(part, effect=behind or "")
        self.parts.append(part)
        words = part.words
        self._moved |= (not error.soft or bool(part.effect)) and _may_start_git(node, words)
        if words and words[0] in ("cd", "pushd", "popd", None):
            after = replace(after, cwds=())
        if may_set_any(words):
            altered = alters(words, after) or after.altered
            after = replace(without(after.variables, after), altered=altered)
        return after

    def _judged(
        self, node: Simple, situation: Situation, *, certain: bool
    ) -> tuple[Part, Situation, UnprovenError | None]:
        """The command as a part, the situation after it, and the objection to it."""
        words: tuple[str | None, ...] = ()
        writes: tuple[str, ...] = ()
        fixed, setting = True, ""
        edit: EditKind | None = None
        no_edit = ""
        try:
            for word in (*node.words, *(value for _, value in node.assignments)):
                self._substitutions(word, situation)
            words = tuple(item.literal for item in node.words)
            if not node.words:
                situation = self._assign(node, situation, certain=certain)
            else:
                setting = check_assignments(node, situation)
            writes = self._redirects(node.redirects, situation)
            fixed = False
            if node.words and (printed := list_of_names(node.words, situation)) is not None:
                before = [argument for word in node.words[:-1] for argument in expand(word, situation)]
                words = (*before, None)
                check_command(with_names(printed, before, situation), situation)
            elif node.words and (each := each_name(node.words, situation)) is not None:
                listed, known = each
                words = tuple(known)
                check_each_name(listed, known, situation)
                check_command(known, situation)
            elif node.words:
                arguments = [argument for word in node.words for argument in expand(word, situation)]
                words = tuple(arguments)
                if not node.redirects and not setting:
                    edit, no_edit = edit_kind(arguments, situation)
                situation = self._run(node.words, arguments, situation)
            if writes:
                raise UnprovenError(f"it writes {writes[0]}")
            if setting:
                raise UnprovenError(setting)
        except UnprovenError as error:
            knows = error.git_knows or any(asks_git(word) for word in node.words)
            part = Part(words, error.reason, error.soft, writes, fixed, edit, no_edit, knows, rule=error.rule)
            return part, situation, error
        return Part(words), situation, None

    def _run(self, words: Sequence[Word], arguments: list[str | None], situation: Situation) -> Situation:
        name = words[0].literal or _of_variable(words[0], arguments)
        if not name or arguments[:1] != [name]:
            raise UnprovenError("the program's name is computed")
        if situation.altered:
            raise UnprovenError(f"setting {situation.altered} may change what the command does")
        if name == "cd":
            return changed_directory(arguments[1:], situation)
        if name == "[[":
            check_condition(words, arguments, situation)
            return situation
        if name == "read":
            after = read_into(arguments[1:], situation)
            if self._producer is None or not situation.piped:
                return after
            names = read_names(arguments[1:]) or []
            listed = {names[0]: self._producer} if len(names) == 1 else {}
            return replace(after, variables={**after.variables, **listed})
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
            now = replace(situation, variables=variables)
            if word.segments and word.segments[0].kind == "list":
                elements = [argument for each in word.segments[0].words for argument in expand(each, now)]
                variables[name] = Array(tuple(elements)) if certain else None
                continue
            values = expand(quoted(word), now)
            known = certain and len(values) == 1 and values[0] is not None and not word.has_glob
            sums = len(word.segments) == 1 and is_sum(word.segments[0], now)
            sums |= len(values) == 1 and is_number(values[0])
            counts = sums and (certain or is_number(variables.get(name)))
            variables[name] = values[0] if known else Number() if counts else None
        return replace(situation, variables=variables)

    def _substitutions(self, word: Word, situation: Situation) -> None:
        for script in scripts_in(word):
            self.script(script, situation, certain=False)

    # --- redirections ---------------------------------------------------------------------------------------------

    def _compound_redirects(self, redirects: Sequence[Redirect], situation: Situation) -> None:
        try:
            writes = self._redirects(redirects, situation)
        except UnprovenError as error:
            effect = self._written(redirects, situation) if error.soft else ""
            self.parts.append(Part((), error.reason, error.soft, fixed=True, effect=effect, rule=error.rule))
            return
        if writes:
            self.parts.append(Part((), f"it writes {writes[0]}", writes=writes, fixed=True))

    def _written(self, redirects: Sequence[Redirect], situation: Situation) -> str:
        """The objection to what redirections do, behind one to what they read, as a clause; empty if there is none."""
        count = len(self.parts)
        try:
            writes = self._redirects(redirects, replace(situation, effects_only=True))
        except UnprovenError as error:
            return error.reason
        finally:
            del self.parts[count:]
        return f"it writes {writes[0]}" if writes else ""

    def _redirects(self, redirects: Sequence[Redirect], situation: Situation) -> tuple[str, ...]:
        """The files that would be written; raises for input that may not be read."""
        writes: list[str] = []
        for redirect in redirects:
            if redirect.target is None:
                if redirect.document is not None:
                    self._substitutions(redirect.document, situation)
                    expand(redirect.document, situation)
                continue
            self._substitutions(redirect.target, situation)
            if redirect.operator == "<<<":
                expand(redirect.target, situation)
                continue
            listed = each_name((Word((Segment("text", "cat"),)), redirect.target), situation)
            if listed is not None and redirect.operator == "<":
                check_each_name(*listed, situation)
                continue
            targets = expand(redirect.target, situation)
            if len(targets) != 1 or targets[0] is None or redirect.target.has_glob:
                raise UnprovenError("the target of a redirection is uncertain")
            target = targets[0]
            if target.startswith(("/dev/tcp/", "/dev/udp/")):
                raise UnprovenError(f"it connects to {target.split('/')[3]}")
            if redirect.operator == "<":
                check_content(target, situation)
            elif redirect.operator == ">&" and re.fullmatch(r"[12]", target):
                continue
            elif target not in ("/dev/null", "/dev/stdout", "/dev/stderr"):
                writes += [situation.facts.resolve(path) for path in absolute(target, situation)]
        return tuple(writes)


_ENDS_EARLY = lazy_pattern(r"head(?: (?:-q|-\d+|-[nc] ?\d+[kKMG]?|--(?:lines|bytes)=\d+))*")


def _ends_early(command: Command) -> bool:
    """Whether a command reads a bounded part of its input, so that what writes into it ends as well."""
    if not isinstance(command, Simple) or command.assignments or command.redirects:
        return False
    return _ENDS_EARLY.fullmatch(" ".join(word.literal or "?" for word in command.words)) is not None


_GIT = lazy_pattern(r"(?<![\w.-])git(?![\w.-])")


def _may_start_git(node: Simple, words: Sequence[str | None]) -> bool:
    """Whether git may run by these words, or by a script among them or in what is read."""
    texts = (*words, *(redirect.body for redirect in node.redirects))
    return not words or words[0] is None or any(text is not None and _GIT.search(text) for text in texts)


# --- one command ---------------------------------------------------------------------------------------------------


def each_name(words: Sequence[Word], situation: Situation) -> tuple[Listed, list[str]] | None:
    """A command of which all is known but a name that another command lists, for which ``NAME_TO_COME`` stands; None
    if it is another."""
    if words[0].literal is None or words[0].literal in tables().lists["listed_any"] or _takes_any_text(words):
        return None
    listed: set[Listed] = set()
    known: list[str | None] = []
    for word in words:
        parts = [segment for segment in word.segments if segment.kind != "text" or segment.text]
        only = parts[0] if len(parts) == 1 and parts[0].kind == "variable" and not parts[0].change else None
        value = None if only is None else situation.variables.get(only.text)
        if isinstance(value, Listed):
            listed.add(value)
            known.append(NAME_TO_COME)
        else:
            known += expand(word, situation)
    plain = [word for word in known if word is not None]
    return (listed.pop(), plain) if len(listed) == 1 and len(plain) == len(known) else None


def _of_variable(word: Word, arguments: Sequence[str | None]) -> str:
    """The name of a program that a variable holds and that no builtin has; empty if it is another word."""
    pieces = [segment for segment in word.segments if segment.kind != "text" or segment.text]
    plain = len(pieces) == 1 and pieces[0].kind == "variable" and not pieces[0].change
    name = arguments[0] if plain and arguments else None
    if name is None or re.fullmatch(r"[a-z][a-z0-9.+-]*", name) is None or name in tables().lists["shell_words"]:
        return ""
    return name


def _takes_any_text(words: Sequence[Word]) -> bool:
    """Whether a command only prints or compares the texts that it gets."""
    known = [word.literal for word in words]
    match known:
        case ["printf", str(form), *_]:
            return not form.startswith("-")
        case ["[" | "[[" | "test", "-n" | "-z", _, *_]:
            return len(known) - (known[0] != "test") == 3
        case ["[" | "[[" | "test", _, "=" | "==" | "!=" | "=~", _, *_]:
            return len(known) - (known[0] != "test") == 4
        case _:
            return False


def quoted(word: Word) -> Word:
    """A word, or the value of an assignment, in which the shell neither splits what variables hold nor looks for
    names."""
    return Word(tuple(replace(each, quoted=True) for each in word.segments))
