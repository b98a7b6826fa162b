"""Python runs this first in every program that a test starts with this folder in PYTHONPATH."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import usual_ports

del sys.path[0]
usual_ports.close()
