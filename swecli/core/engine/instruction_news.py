"""Instruction files in a session: what changes, and what applies in folders that the model works in."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from swecli.core.config.trust import LOCAL_INSTRUCTIONS, RULE_FOLDERS
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.instructions import (
    INSTRUCTION_NAMES,
    MAX_BYTES,
    InstructionFile,
    Instructions,
    applies_below,
    matching_rules,
    nested_instructions,
    read_head,
)
from swecli.core.context_management.note_topics import INSTRUCTIONS
from swecli.core.context_management.prompt import MemoryText, Prompt
from swecli.core.context_management.prompts import harmless
from swecli.core.context_management.stored_prompt import INSTRUCTION_SOURCES, QUOTED, sources_of
from swecli.core.engine.companion import Companion
from swecli.core.engine.notes import Notes, Statement
from swecli.core.engine.prompt_record import PromptRecord
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import InstructionFiles
from swecli.core.protocol.events import Notice
from swecli.core.protocol.messages import TextPart
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.context_management.rule_files import RuleFile

_TOLD = lazy_pattern(r'<(?:instructions|quoted) path="([^"]+)"')
_FRAME = lazy_pattern(r'<(instructions|quoted) path="([^"]+)"[^>]*>\n.*?\n</\1>', re.DOTALL)
MOST_NAMED = 30
"""Rules that a message names."""
_Stamp = tuple[int, int] | None


class InstructionNews(Companion):
    """Detects changed instruction files before each request. Cheap without changes: it stats a few files."""

    def __init__(
        self, files: InstructionFiles, context: ContextManager, recorder: Recorder, notes: Notes, prompts: PromptRecord
    ) -> None:
        self._files = files
        self._context = context
        self._recorder = recorder
        self._notes = notes
        self._prompts = prompts
        self._present = {file.name: file for file in files.loaded.files}
        self._told_of: Prompt | None = None
        """The earlier run's prompt with which ``_statements`` compares the files; None: this run's."""
        self._statements: Sequence[Statement] = ()
        """What the model must know of files that differ from its system prompt."""
        self._texts: dict[str, tuple[InstructionFile, str]] = {}
        """The text of each of them, by name: it stays the same whatever the window."""
        self._stamps: dict[Path, _Stamp] | None = None
        self._paths: set[str] = set()
        self._folders: set[Path] = set()
        self._nested: dict[str, InstructionFile | None] = {}
        """Instruction files of nested folders known to the model, by name; None if an earlier run added them and they
        are not read again."""
        self._earlier: set[str] = set()
        """Names of those that an earlier run added and nobody has compared with the disk yet."""
        self._nested_stamps: dict[Path, _Stamp] = {}
        self._rules = {rule.name: rule for rule in files.loaded.rules}
        """Rules by name, those of nested folders included once these were checked."""
        self._rewrites = 0
        self._watched = self._places()

    def start(self, *, resumed: bool) -> None:
        """Mark the instructions already in a resumed conversation as known."""
        if not self._files.watch:
            return
        self._rewrites = self._recorder.ledger.rewrites
        self._earlier = self._visible() - self._present.keys()
        self._nested.update(dict.fromkeys(self._earlier))

    async def before_request(self) -> None:
        """Report changes to the model and the user."""
        if not self._files.watch:
            return
        ledger = self._recorder.ledger
        if self._rewrites != ledger.rewrites:
            self._tell_again()
        stamps, earlier = await asyncio.to_thread(_stamps, self._watched), self._prompts.earlier
        before, self._stamps = self._stamps, stamps  # of before the reading, so that a change meanwhile is found
        if stamps != before:
            self._take_over(await asyncio.to_thread(self._files.read))
        if stamps != before or self._told_of is not earlier:
            self._told_of, self._statements = earlier, [*self._differences(earlier)]
        for statement in self._statements:
            self._notes.state(statement)
        if self._earlier:
            await self._compare_with_earlier()
        if self._nested:
            await self._look_again_below()
        if len(ledger.files.touches) != len(self._paths):
            await self._look_below()

    # --- files present at the start ---------------------------------------------------------------------------

    def _take_over(self, now: Instructions) -> None:
        """Take these as the present files."""
        present = {file.name: file for file in now.files}
        for text in now.notices:
            if text not in self._files.loaded.notices:
                self._recorder.emit(Notice(text, "warning", "instructions"))
        moved, self._present = present.keys() != self._present.keys(), present
        rules = {rule.name: rule for rule in now.rules}
        moved = moved or bool(rules.keys() - self._rules.keys())
        self._rules.update(rules)
        if moved:
            self._watched = self._places()

    def _differences(self, earlier: Prompt | None) -> Iterator[Statement]:
        """What the model must be told of the present files beside its system prompt."""
        loaded = self._files.loaded
        sources = sources_of(loaded, MemoryText(), ()) if earlier is None else earlier.sources
        known = {part.name: part for part in sources if part.source in INSTRUCTION_SOURCES}
        digests = {(part.digest, part.source == QUOTED) for part in known.values()}
        own = self._models_digests() if self._recorder.ledger.changes else ()
        told = self._notes.topics(INSTRUCTIONS)
        for name in dict.fromkeys((*self._present, *known, *(topic.removeprefix(INSTRUCTIONS) for topic in told))):
            file, topic = self._present.get(name), INSTRUCTIONS + name
            if file is None:
                text, gone = f"{name} was removed; its instructions no longer apply.", f"{name} removed"
                yield Statement(topic, f"Instructions changed: {gone}", text if name in known else "", text)
            elif file.digest not in own:
                text = "" if (file.digest, file.quoted) in digests else self._changed(file)
                yield Statement(
                    topic, f"Instructions changed: {name}", text, f"{name} is as in the system prompt again."
                )

    def _changed(self, file: InstructionFile) -> str:
        known, text = self._texts.get(file.name, (None, ""))
        if known is None or (known.digest, known.quoted) != (file.digest, file.quoted):
            text = _replaced(file.name, self._told((file,)))
            self._texts[file.name] = file, text
        return text

    def _places(self) -> list[Path]:
        names = (*INSTRUCTION_NAMES, LOCAL_INSTRUCTIONS, *RULE_FOLDERS)
        places = [folder / name for folder in self._files.folders for name in names]
        rules = (rule.path for rule in self._rules.values())
        return list(dict.fromkeys([*places, *(file.path for file in self._present.values()), *rules]))

    def _is_models(self, item: str) -> bool:
        return item in self._recorder.ledger.entries

    def _announce(self, changed: Sequence[InstructionFile], gone: Sequence[str]) -> None:
        """Tell of changes in nested folders."""
        names = ", ".join(file.name for file in changed)
        texts: list[str] = []
        if changed:
            texts.append(_replaced(names, self._told(changed)))
        if gone:
            texts.append(f"{', '.join(gone)} was removed; its instructions no longer apply.")
        title = f"Instructions changed: {', '.join(filter(None, (names, *(f'{name} removed' for name in gone))))}"
        self._notes.add(title, "\n\n".join(texts))

    # --- nested folders ---------------------------------------------------------------------------------------

    async def _look_below(self) -> None:
        paths = frozenset(self._recorder.ledger.files.touches)
        new = paths - self._paths
        self._paths |= new
        folders = list(dict.fromkeys(folder for path in new for folder in self._between(Path(path).parent)))
        known = [file.digest for file in (*self._present.values(), *self._nested.values()) if file is not None]
        if folders:
            for found in await asyncio.to_thread(self._read_below, folders, known):
                self._rules.update((rule.name, rule) for rule in found.rules)
                self._take(found)
        if self._rules:
            rules = await asyncio.to_thread(self._matching, new)
            files = self._files
            found = await asyncio.to_thread(matching_rules, rules, files.root, known, files.quoted, files.own_names)
            self._take(found)
            if found.rules and not self._files.quoted:
                names = [rule.name for rule in found.rules[:MOST_NAMED]]
                more = f" and {len(found.rules) - MOST_NAMED} more" if len(found.rules) > MOST_NAMED else ""
                listed = f"{', '.join(names)}{more}"
                self._notes.add(f"Further rules apply: {listed}", f"Read these rules if they matter for it: {listed}")
            for rule in rules:  # also those whose text is known from another file
                self._nested.setdefault(rule.name, None)

    def _take(self, found: Instructions) -> None:
        for text in found.notices:
            self._recorder.emit(Notice(text, "warning", "instructions"))
        fresh = [file for file in found.files if file.name not in self._nested]
        if fresh:
            self._tell_nested(fresh)

    def _matching(self, new: Iterable[str]) -> list[RuleFile]:
        """Rules that begin to apply with these files."""
        paths = [Path(path) for path in new]
        rules = [rule for name, rule in self._rules.items() if name not in self._nested]
        return [rule for rule in rules if rule.when == "matching" and any(map(rule.matches, paths))]

    def _between(self, folder: Path) -> Iterable[Path]:
        """Unchecked folders between the working directory and this one."""
        cwd = self._files.cwd
        chain = [one for one in (folder, *folder.parents) if one != cwd and one.is_relative_to(cwd)]
        for one in reversed(chain):
            if one not in self._folders:
                self._folders.add(one)
                yield one

    async def _look_again_below(self) -> None:
        """Repeat changed files of nested folders, and changed rules."""
        from swecli.core.extensions.front_matter import read_front_matter

        files = {name: file for name, file in self._nested.items() if file is not None}
        if not files:
            return
        stamps = await asyncio.to_thread(_stamps, [file.path for file in files.values()])
        for name, file in files.items():
            before, self._nested_stamps[file.path] = self._nested_stamps.get(file.path), stamps[file.path]
            if before is None or before == stamps[file.path]:
                continue
            try:
                head = await asyncio.to_thread(read_head, file.path, MAX_BYTES, self._files.root)
            except OSError:
                self._announce((), (name,))
                self._nested[name] = None
                continue
            own = self._models_digests()
            text = read_front_matter(head.text).body if file.scope else head.text
            self._nested[name] = changed = replace(file, text=text, digest=head.digest, whole=head.whole)
            if head.digest != file.digest and head.digest not in own:
                self._announce((changed,), ())

    async def _compare_with_earlier(self) -> None:
        """Repeat files of nested folders that changed since an earlier run told of them."""
        names, self._earlier = self._earlier, set()
        told, own = self._frames(), self._models_digests()
        folders = dict.fromkeys((self._files.root / name).parent for name in sorted(names))
        read = await asyncio.to_thread(self._read_below, [*folders], ())
        present = {file.name: file for found in read for file in found.files if file.name in names}
        self._nested.update(present)
        self._nested_stamps.update((file.path, _stamp(file.path)) for file in present.values())
        changed = [
            file
            for name, file in present.items()
            if name in told and file.digest not in own and told[name] not in harmless(self._fitting((file,)).render())
        ]
        gone = _missing(self._files.root, told.keys() & names)
        if changed or gone:
            self._announce(changed, gone)

    def _models_digests(self) -> set[str]:
        """Digests of the contents that the model itself wrote, as far as the conversation has its calls."""
        changes = self._recorder.ledger.changes
        return {change.after for change in changes if change.after and self._is_models(change.item)}

    def _read_below(self, folders: Sequence[Path], known: Sequence[str]) -> list[Instructions]:
        seen, found = list(known), list[Instructions]()
        for folder in folders:
            quoted, rules = self._files.quoted, self._files.rules
            own = self._files.own_names
            read = nested_instructions(folder, self._files.root, seen, quoted=quoted, rules=rules, own_names=own)
            seen += [file.digest for file in read.files]
            found.append(read)
        return found

    def _tell_nested(self, files: Sequence[InstructionFile]) -> None:
        self._nested.update((file.name, file) for file in files)
        self._nested_stamps.update((file.path, _stamp(file.path)) for file in files)
        names = ", ".join(file.name for file in files)
        if files[0].scope:
            title, where = "Rules that apply now", "work on the files of `applies-to`"
        else:
            folder = applies_below(files[0].name)
            title, where = f"Instructions of {folder}", f"work in {folder}"
        self._notes.add(f"{title}: {names}", f"For {where} these instructions also apply.\n\n{self._told(files)}")

    def _told(self, files: Sequence[InstructionFile]) -> str:
        fitting = self._fitting(files)
        for text in fitting.notices:
            self._recorder.emit(Notice(text, "warning", "instructions"))
        return harmless(fitting.render())

    def _fitting(self, files: Sequence[InstructionFile]) -> Instructions:
        """The files, cut to the room for instructions; its notices name those that are cut."""
        room = self._context.room_for_instructions
        whole = Instructions(tuple(files))
        return whole if room is None else whole.within(room)

    # --- files no longer in the context -----------------------------------------------------------------------

    def _tell_again(self) -> None:
        """Repeat files of nested folders that a cut or rewind removed from the conversation."""
        self._rewrites = self._recorder.ledger.rewrites
        told = self._visible()
        lost = [file for name, file in self._nested.items() if file is not None and name not in told]
        for file in lost:
            self._tell_nested([file])

    def _visible(self) -> set[str]:
        return {name for text in self._told_texts() for name in _TOLD.findall(text)}

    def _frames(self) -> dict[str, str]:
        """The newest text of each file in the conversation, in its frame, by name."""
        return {match[2]: match[0] for text in self._told_texts() for match in _FRAME.finditer(text)}

    def _told_texts(self) -> Iterator[str]:
        """The notes and summaries in the conversation, in order."""
        ledger = self._recorder.ledger
        for shown in ledger.view:
            entry = ledger.entries.get(shown.id)
            if entry is None:
                yield shown.text
            elif entry.kind == "note" and shown.kind == "live":
                yield from (part.text for part in entry.parts if isinstance(part, TextPart))


def _replaced(names: str, text: str) -> str:
    return (
        f"{names} changed on disk while this conversation runs. From now on this holds in place of what you were told "
        f"of it.\n\n{text}"
    )


def _stamps(paths: Iterable[Path]) -> dict[Path, _Stamp]:
    return {path: _stamp(path) for path in paths}


def _stamp(path: Path) -> _Stamp:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


def _missing(root: Path, names: Iterable[str]) -> list[str]:
    """The files that are no longer there."""
    return [name for name in sorted(names) if not os.path.exists(root / name)]
