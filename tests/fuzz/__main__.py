"""python tests/fuzz --minutes N [--target NAME] [--from NUMBER]: read what is spoilt, tell what it raises.

Each try has a number and is the same whenever it is repeated: `--target NAME --from NUMBER --tries 1` shows it again.
Exit code 1 where something was found.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "support"))

from hostile import TARGETS, attempt


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--tries", type=int, default=0, help="of each target; 0: as many as there is time for")
    asked = parser.parse_args()
    deadline, found, tried = time.monotonic() + 60 * asked.minutes, {}, 0
    numbers = range(asked.first, asked.first + asked.tries) if asked.tries else itertools.count(asked.first)
    for number in numbers:
        for target in [asked.target] if asked.target else TARGETS:
            tried += 1
            became = attempt(target, number)
            kind = (target, became.partition(":")[0], became.rpartition(" at ")[2])
            if became not in ("read", "refused") and kind not in found:
                found[kind] = number
                print(f"{target} {number}: {became.encode('unicode_escape').decode()}", flush=True)
        if time.monotonic() > deadline:
            break
    print(f"{tried:,} tries, {len(found)} kinds of finding")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
