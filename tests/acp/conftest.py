"""Without the SDK, which has no release for Python 3.15 yet, only its absence is tested."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("acp") is None:
    collect_ignore_glob = ["test_agent.py", "test_files.py", "test_program.py", "test_transport.py"]
