"""Processes of a test, told from those of other tests and of other runs on the same machine."""

from __future__ import annotations

import os

import psutil

ME = os.getpid()
"""Part of the argument of each ``sleep`` that a test looks for: no other process of this machine has it."""


def running_with(word: str) -> list[psutil.Process]:
    """Live processes with ``word`` among their arguments; not zombies, which have none."""
    return [found for found in psutil.process_iter(["cmdline"]) if word in (found.info["cmdline"] or [])]


def words(process: psutil.Process) -> list[str]:
    """Its program and arguments; none of one that has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def lives(process: psutil.Process) -> bool:
    """Whether it still runs; a zombie does not."""
    try:
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
