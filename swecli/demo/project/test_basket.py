"""Tests of the shop's prices. They need nothing but Python: python3 test_basket.py"""

import sys

from basket.pricing import line_total, order_total
from basket.receipt import receipt

CHECKS = [
    ("9 pens have no discount", lambda: line_total(200, 9), 1800),
    ("10 pens are 5 % cheaper", lambda: line_total(200, 10), 1900),
    ("50 pens are 12 % cheaper", lambda: line_total(200, 50), 8800),
    ("shipping is free from 50.00 on", lambda: order_total([(2500, 2)]), 5000),
    ("the receipt names the discount", lambda: receipt([("pen", 200, 10)]).splitlines()[0], "10 x pen (-5 %): 19.00"),
]


def main() -> int:
    failed = 0
    for name, check, expected in CHECKS:
        result = check()
        if result == expected:
            print(f"ok    {name}")
        else:
            failed += 1
            print(f"FAIL  {name}: {result!r}, not {expected!r}")
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
