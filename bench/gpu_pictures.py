#!/usr/bin/env python3
"""Draws what bench/peers_gpu.py measured: the share of a copy against columns, peers beside us, one SVG a direction.

    python3 bench/gpu_pictures.py peers_gpu.json docs
"""
import json
import math
import sys

COLORS = {"trireme": "#c2410c", "torch": "#94a3b8", "torch.compile": "#2563eb", "liger": "#16a34a"}
WIDTH, HEIGHT, LEFT, TOP, GAP = 330, 190, 46, 52, 40


def panel(results, operator, direction, left, top):
    points = [each for each in results if each["operator"] == operator]
    low, high = (math.log2(pick(each["columns"] for each in points)) for pick in (min, max))
    x = lambda columns: left + (math.log2(columns) - low) / (high - low) * WIDTH
    y = lambda share: top + HEIGHT - min(share, 1.1) / 1.1 * HEIGHT
    out = [f'<text x="{left}" y="{top - 10}" font-weight="600">{operator} {direction}</text>']
    for share in (0, 0.25, 0.5, 0.75, 1):
        weight = 1.4 if share == 1 else 0.5
        out.append(f'<path d="M{left} {y(share):.1f}h{WIDTH}" stroke="#cbd5e1" stroke-width="{weight}"/>'
                   f'<text x="{left - 6}" y="{y(share) + 4:.1f}" text-anchor="end" fill="#64748b">{share:g}</text>')
    for each in points[::2]:
        columns = each["columns"]
        label = f"{columns // 1024}k" if columns >= 1024 else columns
        out.append(f'<text x="{x(columns):.1f}" y="{top + HEIGHT + 16}" text-anchor="middle" fill="#64748b">{label}</text>')
    for who, color in COLORS.items():
        line = [(x(each["columns"]), y(each["found"][who][f"{direction}_share"])) for each in points
                if f"{direction}_share" in each["found"].get(who, {})]
        if not line:
            continue
        width = 2.6 if who == "trireme" else 1.5
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in line)
        out.append(f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width}" stroke-linejoin="round"/>')
        out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{width}" fill="{color}"/>' for a, b in line]
    return out


def picture(data, direction):
    operators = list(dict.fromkeys(each["operator"] for each in data["results"]))
    across = 2
    down = (len(operators) + across - 1) // across
    width = across * (WIDTH + LEFT) + GAP
    height = TOP + down * (HEIGHT + 64) + 6
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" '
           f'font-size="11" fill="#0f172a"><rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{LEFT}" y="20" font-size="14" font-weight="600">Share of a copy of the same bytes, by columns</text>']
    at = width - GAP
    for who, color in reversed(COLORS.items()):
        if any(who in each["found"] for each in data["results"]):
            at -= 8 * len(who) + 22
            out.append(f'<circle cx="{at}" cy="16" r="4" fill="{color}"/><text x="{at + 8}" y="20">{who}</text>')
    for k, operator in enumerate(operators):
        out += panel(data["results"], operator, direction, LEFT + k % across * (WIDTH + LEFT), TOP + k // across * (HEIGHT + 64) + 12)
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    with open(sys.argv[1]) as file:
        data = json.load(file)
    for direction in ("forward", "backward"):
        with open(f"{sys.argv[2]}/gpu_{direction}.svg", "w") as file:
            file.write(picture(data, direction))


main()
