"""Prints what the program costs. Ratios are to something measured in the same run; nothing is asserted.

python -m benchmarks [PART ...]
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time

PARTS = (
    "startup",
    "decoding",
    "session",
    "screen",
    "painted",
    "inspector",
    "lab",
    "context",
    "undo",
    "facts",
    "lessons",
    "store",
    "sessions",
    "memory",
    "memory_sessions",
    "files",
    "sandbox",
    "processes",
    "replay",
    "live",
    "everyday",
    "recovery",
    "ecosystem",
    "headless",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS))
    parts = parser.parse_args().parts or PARTS
    for part in parts:
        module = importlib.import_module(f"benchmarks.{part}")
        start = time.perf_counter()
        print(f"{part}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
        for name, value, unit in module.run():
            print(f"  {name:<58} {_figure(value):>10} {unit}", flush=True)
        print(f"  ({time.perf_counter() - start:.0f} s)\n", flush=True)
    return 0


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or float(value).is_integer() else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
