#!/usr/bin/env python3
"""Usage: against.py THEN NOW

Two tables that bench/gpu_table printed, now against then: the ratio of shares at the points that both have, the geometric
mean of each operator, and every point that fell by more than a tenth. Exits 1 if there is one, or an operator's mean fell
by more than 3 %."""
import math
import sys


def points(path):
    found = {}
    for line in open(path):
        words = line.split()
        if len(words) >= 5 and words[0] not in ("none", "#"):
            found[" ".join(words[1:5])] = float(words[0])
    return found


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


then, now = points(sys.argv[1]), points(sys.argv[2])
both = sorted(then.keys() & now.keys())
if not both:
    sys.exit("no point is in both tables")
by_operator = {}
for key in both:
    by_operator.setdefault(key.split()[0], []).append(now[key] / then[key])
for name, ratios in sorted(by_operator.items(), key=lambda each: mean(each[1])):
    print(f"{mean(ratios):5.2f}  {name}: {len(ratios)} points, worst {min(ratios):.2f}")
fallen = [key for key in both if now[key] < 0.9 * then[key]]
for key in fallen:
    print(f"fell from {then[key]:.2f} to {now[key]:.2f}: {key}")
print(f"{len(both)} points in both tables, mean {mean([now[key] / then[key] for key in both]):.3f}")
sys.exit(1 if fallen or min(map(mean, by_operator.values())) < 0.97 else 0)
