"""Bringing paths back to what they were, without following a link and without removing what is not known."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path

from swecli.core.checkpoints.image import Image, capture
from swecli.core.checkpoints.plan import CHANGED_SINCE, Listed, Step
from swecli.core.workspace.atomic_write import PREFIX, StaleFileError, atomic_write
from swecli.core.workspace.folder import Folder
from swecli.core.workspace.regular_file import READ_FLAGS

Content = Callable[[str], bytes | None]
"""The stored bytes of a hash."""
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | (READ_FLAGS & ~os.O_RDONLY)
_COMPARED = 1 << 30
"""Bytes of the largest file that is compared."""


class _Refused(Exception):
    """The step was not done; the message says why."""


def restore(steps: Sequence[Step], content: Content) -> tuple[Listed, ...]:
    """Do the steps, each of them only if its path still is what it is thought to be. Returns those that were not
    done."""
    failed: dict[str, str] = {}
    with _accessible(steps):
        for step in _ordered(steps):
            try:
                _do(step, content)
            except _Refused as refused:
                failed[step.path] = str(refused)
            except (StaleFileError, FileExistsError):
                failed[step.path] = CHANGED_SINCE
            except OSError as error:
                failed[step.path] = _reason(error)
    for step in sorted(steps, key=lambda step: step.path, reverse=True):
        if step.then.kind == "folder" and step.path not in failed:
            with contextlib.suppress(OSError):
                _set_mode(step.path, step.then.mode)
    return tuple(Listed(path, why) for path, why in failed.items())


def _ordered(steps: Sequence[Step]) -> Iterator[Step]:
    """What goes away first, the deepest first; then folders from the top; then what is in them."""
    going = [step for step in steps if step.then.kind == "absent"]
    folders = [step for step in steps if step.then.kind == "folder"]
    rest = [step for step in steps if step.then.kind not in ("absent", "folder")]
    yield from sorted(going, key=lambda step: step.path, reverse=True)
    yield from sorted(folders, key=lambda step: step.path)
    # A file with several names after those with one: it may be linked to one of them.
    yield from sorted(rest, key=lambda step: (bool(step.then.twin), step.path))


@contextlib.contextmanager
def _accessible(steps: Sequence[Step]) -> Generator[None]:
    """Folders that hold paths to be changed and that the user may not write in are made writable meanwhile."""
    opened: list[tuple[str, int]] = []
    wanted = {step.path for step in steps}
    for folder in sorted({os.path.dirname(step.path) for step in steps}):
        with contextlib.suppress(OSError):
            status = os.lstat(folder)
            if folder in wanted and status.st_mode & 0o700 != 0o700 and status.st_uid == os.geteuid():
                opened.append((folder, status.st_mode & 0o7777))
                _set_mode(folder, status.st_mode & 0o7777 | 0o700)
    yield
    for folder, mode in reversed(opened):
        with contextlib.suppress(OSError):
            _set_mode(folder, mode)


def _do(step: Step, content: Content) -> None:
    path, now, then = step.path, step.now, step.then
    _require_plain_way(path)
    found = _now(path, now)
    linked = _is_linked(path, found, then) if step.relinks else True
    if found.same(then) and linked:
        return
    if not _as_expected(found, now) and not found.same(then):
        raise _Refused(CHANGED_SINCE)
    if then.kind == "folder" and found.kind == "folder":
        return  # its mode is set at the end, when nothing has to be put into it any more
    if then.kind == "file" and not linked and _link(path, found, then):
        return
    if then.kind == "file" and found.kind == "file" and linked and not (found.twin and not then.twin):
        _rewrite(path, found, then, content)
        return
    data = _bytes_of(then, content) if then.kind == "file" else b""
    _remove(path, found)
    match then.kind:
        case "file":
            _create(path, data, then.mode)
        case "folder":
            with Folder(Path(path).parent) as folder:
                folder.make_folder(os.path.basename(path))
        case "link":
            with Folder(Path(path).parent) as folder:
                folder.make_link(os.path.basename(path), then.target)
        case _:
            pass


def _as_expected(found: Image, now: Image) -> bool:
    """Whether a path is what it was when the plan was made; the mode of a folder may be open for the moment."""
    return found.same(now) or found.kind == now.kind == "folder"


def _require_plain_way(path: str) -> None:
    parent = os.path.dirname(path)
    if os.path.realpath(parent) != parent:
        raise _Refused("a link is in its path by now")


def _rewrite(path: str, found: Image, then: Image, content: Content) -> None:
    if found.content != then.content:
        data = _bytes_of(then, content)
        if not found.mode & 0o200:
            _set_mode(path, found.mode | 0o200)
        atomic_write(Path(path), data, found.content)
    _set_mode(path, then.mode)


def _create(path: str, data: bytes, mode: int) -> None:
    """Make a file that must not exist, whole at every moment. Not synced: its bytes are in the store as well, and a
    command may have removed thousands."""
    with Folder(Path(path).parent) as folder:
        name, temporary = os.path.basename(path), f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        descriptor = folder.open(temporary, _CREATE_FLAGS)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fchmod(stream.fileno(), mode)
            try:
                folder.link(temporary, name)
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links
                if folder.exists(name):
                    raise
                folder.rename(temporary, name)
        finally:
            folder.remove(temporary)


def _bytes_of(image: Image, content: Content) -> bytes:
    data = content(image.content)
    if data is None:
        raise _Refused("its stored content is damaged or gone")
    return data


def _remove(path: str, found: Image) -> None:
    if found.kind == "absent":
        return
    with Folder(Path(path).parent) as folder:
        if found.kind != "folder":
            folder.remove(os.path.basename(path))
            return
        try:
            folder.remove_folder(os.path.basename(path))
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise _Refused("the folder holds other files by now") from error
            raise


def _is_linked(path: str, found: Image, then: Image) -> bool:
    """Whether the file has other names if and only if it is to have some, one of them as it was."""
    others = [name for name in then.names if name != path]
    if not then.twin:
        return not found.twin
    return not others or any(_inode_of(name) == _inode_of(path) != "" for name in others)


def _link(path: str, found: Image, then: Image) -> bool:
    """Make ``path`` a further name of a file that it was a name of. False where none of those has the content that
    is wanted, yet: then the path gets a file of its own."""
    for other in then.names:
        if other == path or os.path.dirname(other) != os.path.realpath(os.path.dirname(other)):
            continue
        if not _now(other, then).same(then):
            continue
        if found.kind == "folder":
            _remove(path, found)
        temporary = os.path.join(os.path.dirname(path), f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}")
        os.link(other, temporary, follow_symlinks=False)
        os.replace(temporary, path)
        return True
    return False


def _inode_of(path: str) -> str:
    try:
        status = os.lstat(path)
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def _set_mode(path: str, mode: int) -> None:
    """Set the permission bits of what is at ``path`` itself, never of what a link points to."""
    try:
        descriptor = os.open(path, READ_FLAGS)
    except PermissionError:
        if not os.path.islink(path):
            os.chmod(path, mode)
        return
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "its folder is gone by now"
    text = error.strerror or str(error)
    return f"{text[:1].lower()}{text[1:]}"


def present(expected: Mapping[str, Image]) -> dict[str, Image]:
    """What paths are now; nothing is stored. Looked at in the way in which the expected images were made."""
    found: dict[str, Image] = {}
    for path, image in expected.items():
        plain = os.path.realpath(os.path.dirname(path)) == os.path.dirname(path)
        found[path] = _now(path, image) if plain else Image("other", note="a link is in its path by now")
    return found


def _now(path: str, like: Image) -> Image:
    return capture(path, lambda data, digest: True, _COMPARED, secret=like.content.startswith("?"))
