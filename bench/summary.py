#!/usr/bin/env python3
"""Tables of gpu_table as one of Markdown: for each operator and direction, how many points were timed, and the least, the median
and the largest share of a copy.

    bench/summary.py TABLE...
"""
import collections
import re
import statistics
import sys

shares = collections.defaultdict(list)
for path in sys.argv[1:]:
    for line in open(path):
        found = re.match(r"([\d.]+) (\S+) (forward|backward) ", line)
        if found:
            shares[found[2], found[3]].append(float(found[1]))
if not shares:
    sys.exit(__doc__)
print("| operator | forward: points | least | median | most | backward: points | least | median | most |")
print("| --- |" + " ---: |" * 8)
for operator in sorted({operator for operator, _ in shares}):
    cells = []
    for direction in ("forward", "backward"):
        some = shares.get((operator, direction))
        cells += [len(some), f"{min(some):.2f}", f"{statistics.median(some):.2f}", f"{max(some):.2f}"] if some else ["–"] * 4
    print(f"| {operator} | " + " | ".join(map(str, cells)) + " |")
everything = [share for some in shares.values() for share in some]
print(f"\n{len(everything)} points, median {statistics.median(everything):.2f}, "
      f"{sum(share >= 0.9 for share in everything)} of them at 0.90 and more.")
