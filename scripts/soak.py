"""Runs the test suite again and again, each time with new random examples, until the time is over.

The suite's property tests and sweeps draw their examples at random; one run sees few of them. ``SWECLI_EXAMPLES`` is
how many whole sessions each round makes up (500 here, 12 in the suite), ``SWECLI_HISTORIES`` how many histories at the
level of ledger and policy (5,000 here, at most 64 in the suite), ``SWECLI_TIMEOUTS`` and ``SWECLI_COMMANDS`` how many
commands are killed at their time limit (200) and how many run to their end (10,000); ``SWECLI_KILLS`` and
``SWECLI_FULL_DISKS`` how often the whole program is killed (1,000) and how often its disk is full (100),
``SWECLI_STORE_FAULTS`` how often its store is damaged or taken away between runs (100),
``SWECLI_JOURNEYS`` how many long sessions go through all wire forms (100). ``SWECLI_THOROUGH`` takes all cases where
the suite takes a fixed part of them. With 500 examples every bit of the first page of a session database is flipped,
one at a time. A failure ends the soak and names the seed that repeats it.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to go on starting new rounds")
    parser.add_argument("paths", nargs="*", default=["tests"], help="test files or folders")
    options = parser.parse_args()
    end = time.monotonic() + options.minutes * 60
    rounds = 0
    while rounds == 0 or time.monotonic() < end:
        rounds += 1
        seed = random.SystemRandom().randrange(2**31)
        print(f"round {rounds}, seed {seed}", flush=True)
        command = [sys.executable, "-m", "pytest", "-n", "2", f"--hypothesis-seed={seed}", *options.paths]
        environment = {
            "SWECLI_THOROUGH": "1",
            "SWECLI_EXAMPLES": "500",
            "SWECLI_HISTORIES": "5000",
            "SWECLI_TIMEOUTS": "200",
            "SWECLI_KILLS": "1000",
            "SWECLI_FULL_DISKS": "100",
            "SWECLI_STORE_FAULTS": "100",
            "SWECLI_COMMANDS": "10000",
            "SWECLI_JOURNEYS": "100",
            "SWECLI_DOCUMENTS": "10000",
            "SWECLI_HISTORY": str(seed),
            **os.environ,
        }
        status = subprocess.run(command, check=False, env=environment).returncode
        if status != 0:
            print(f"failed in round {rounds}; repeat it with: {' '.join(command[1:])}")
            return 1
    print(f"{rounds} rounds passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
