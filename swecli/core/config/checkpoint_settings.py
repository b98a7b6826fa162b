"""The settings of checkpoints: what of changed files is kept, so that it can be taken back."""

from __future__ import annotations

from swecli.core.config.section import Count, Section


class CheckpointSettings(Section):
    """Copies of files for /undo."""

    enabled: bool = True
    """false: nothing is recorded, and /undo has nothing to take back."""
    max_file_bytes: Count = 2_000_000
    """The largest file that is copied because a command could change it. Files that are edited are always copied."""
    max_total_bytes: Count = 500_000_000
    """All copies of one workspace together, compressed. The changes of the oldest sessions go first."""
    max_files: Count = 100_000
    """The most files and folders of a tree that are looked at around a command."""
    keep_days: Count = 30
    """For how long after its last change the changes of a session can be taken back."""
