"""A folder that can't be written, for root too."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

_VERSION_3 = 0x2008_0522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextmanager
def closed(folder: Path, files: int = 0o400) -> Generator[None]:
    """The folder and what is in it can only be read in the block, by this thread and those that it starts."""
    names = [folder, *folder.iterdir()]
    modes = [path.stat().st_mode & 0o777 for path in names]
    for path in names:
        path.chmod(0o500 if path.is_dir() else files)
    try:
        with as_others_may():
            yield
    finally:
        for path, mode in zip(names, modes, strict=True):
            path.chmod(mode)


@contextmanager
def as_others_may() -> Generator[None]:
    """Without what root may do besides."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root may write everywhere")
    libc, header, sets = ctypes.CDLL(None, use_errno=True), _Header(_VERSION_3, 0), (_Sets * 2)()
    assert libc.capget(ctypes.byref(header), sets) == 0
    before = [one.effective for one in sets]
    try:
        for one in sets:
            one.effective = 0
        assert libc.capset(ctypes.byref(header), sets) == 0
        yield
    finally:
        for one, effective in zip(sets, before, strict=True):
            one.effective = effective
        assert libc.capset(ctypes.byref(header), sets) == 0
