"""Instruction files while a session runs: those of folders that the model comes to, and changes on disk.

What the system prompt says stays as it is, so that its bytes can be reused; news come behind it.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from swecli.core.context_management.instructions import (
    INSTRUCTION_NAMES,
    MAX_BYTES,
    InstructionFile,
    Instructions,
    nested_instructions,
    read_head,
)
from swecli.core.context_management.prompts import harmless
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import InstructionFiles
from swecli.core.protocol.events import Notice
from swecli.core.protocol.messages import TextPart

_TOLD = re.compile(r'<(?:instructions|quoted) path="([^"]+)"')
_Stamp = tuple[int, int] | None


class InstructionNews:
    """Looks before each request. Cheap where nothing changed: a look at the status of a few files."""

    def __init__(self, files: InstructionFiles, recorder: Recorder, tell_model: Callable[[str, str], None]) -> None:
        self._files = files
        self._recorder = recorder
        self._tell_model = tell_model
        self._present = {file.name: file for file in files.loaded.files}
        self._stamps: dict[Path, _Stamp] | None = None
        self._paths: set[str] = set()
        self._folders: set[Path] = set()
        self._nested: dict[str, InstructionFile | None] = {}
        """Files of folders below that the model knows, by name; None where an earlier run told it."""
        self._nested_stamps: dict[Path, _Stamp] = {}
        self._rewrites = -1

    async def look(self) -> None:
        """Tell model and user what is new."""
        if not self._files.watch:
            return
        self._tell_again()
        await self._look_for_changes()
        await self._look_again_below()
        await self._look_below()

    # --- files that were there at the start -------------------------------------------------------------------

    async def _look_for_changes(self) -> None:
        stamps = await asyncio.to_thread(_stamps, self._watched())
        before, self._stamps = self._stamps, stamps
        if stamps == before:
            return
        now = await asyncio.to_thread(self._files.read)
        present = {file.name: file for file in now.files}
        known = {file.digest for file in self._present.values()}
        own = {change.after for change in self._recorder.ledger.changes if self._is_models(change.item)}
        changed = [file for file in now.files if file.digest not in known and file.digest not in own]
        gone = [name for name in self._present if name not in present]
        for text in now.notices:
            if text not in self._files.loaded.notices:
                self._recorder.emit(Notice(text, "warning", "instructions"))
        self._present = present
        self._stamps = await asyncio.to_thread(_stamps, self._watched())
        if changed or gone:
            self._announce(changed, gone)

    def _watched(self) -> list[Path]:
        places = [folder / name for folder in self._files.folders for name in INSTRUCTION_NAMES]
        return list(dict.fromkeys([*places, *(file.path for file in self._present.values())]))

    def _is_models(self, item: str) -> bool:
        return item in self._recorder.ledger.entries

    def _announce(self, changed: Sequence[InstructionFile], gone: Sequence[str]) -> None:
        names = ", ".join(file.name for file in changed)
        texts: list[str] = []
        if changed:
            texts.append(
                f"{names} changed on disk while this conversation runs. From now on this holds in place of what you "
                f"were told of it.\n\n{_told(changed)}"
            )
        if gone:
            texts.append(f"What {', '.join(gone)} said no longer holds: it was removed.")
        title = f"Instructions changed: {', '.join(filter(None, (names, *(f'{name} removed' for name in gone))))}"
        self._tell_model(title, "\n\n".join(texts))

    # --- folders below ----------------------------------------------------------------------------------------

    async def _look_below(self) -> None:
        paths = self._recorder.ledger.files.paths()
        new = paths - self._paths
        self._paths |= new
        folders = list(dict.fromkeys(folder for path in new for folder in self._between(Path(path).parent)))
        if not folders:
            return
        known = [file.digest for file in (*self._present.values(), *self._nested.values()) if file is not None]
        for found in await asyncio.to_thread(self._read_below, folders, known):
            for text in found.notices:
                self._recorder.emit(Notice(text, "warning", "instructions"))
            fresh = [file for file in found.files if file.name not in self._nested]
            if fresh:
                self._tell_nested(fresh)

    def _between(self, folder: Path) -> Iterable[Path]:
        """Folders below the working directory down to this one that were not looked at."""
        cwd = self._files.cwd
        chain = [one for one in (folder, *folder.parents) if one != cwd and one.is_relative_to(cwd)]
        for one in reversed(chain):
            if one not in self._folders:
                self._folders.add(one)
                yield one

    async def _look_again_below(self) -> None:
        """Tell files of folders below again that changed since."""
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
            own = {change.after for change in self._recorder.ledger.changes if self._is_models(change.item)}
            self._nested[name] = changed = replace(file, text=head.text, digest=head.digest, whole=head.whole)
            if head.digest != file.digest and head.digest not in own:
                self._announce((changed,), ())

    def _read_below(self, folders: Sequence[Path], known: Sequence[str]) -> list[Instructions]:
        seen, found = list(known), list[Instructions]()
        for folder in folders:
            read = nested_instructions(folder, self._files.root, seen, quoted=self._files.quoted)
            seen += [file.digest for file in read.files]
            found.append(read)
        return found

    def _tell_nested(self, files: Sequence[InstructionFile]) -> None:
        self._nested.update((file.name, file) for file in files)
        self._nested_stamps.update((file.path, _stamp(file.path)) for file in files)
        names = ", ".join(file.name for file in files)
        folder = os.path.dirname(files[0].name) or "."
        self._tell_model(
            f"Instructions of {folder}: {names}", f"For work in {folder} this holds too.\n\n{_told(files)}"
        )

    # --- what is no longer before the model -------------------------------------------------------------------

    def _tell_again(self) -> None:
        """After the conversation was cut or rewound: tell files of folders again that are not in it any more."""
        ledger = self._recorder.ledger
        if self._rewrites == ledger.rewrites:
            return
        first, self._rewrites = self._rewrites < 0, ledger.rewrites
        told = self._visible()
        if first:
            self._nested.update((name, None) for name in told - self._present.keys() if name not in self._nested)
            return
        lost = [file for name, file in self._nested.items() if file is not None and name not in told]
        for file in lost:
            self._tell_nested([file])

    def _visible(self) -> set[str]:
        ledger, found = self._recorder.ledger, set[str]()
        for one in ledger.view:
            entry = ledger.entries.get(one.id)
            if entry is None:
                found.update(_TOLD.findall(one.text))
            elif entry.kind == "note" and one.kind == "live":
                texts = (part.text for part in entry.parts if isinstance(part, TextPart))
                found.update(name for text in texts for name in _TOLD.findall(text))
        return found


def _told(files: Sequence[InstructionFile]) -> str:
    return harmless(Instructions(tuple(files)).render())


def _stamps(paths: Iterable[Path]) -> dict[Path, _Stamp]:
    return {path: _stamp(path) for path in paths}


def _stamp(path: Path) -> _Stamp:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size
