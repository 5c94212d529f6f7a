# SPDX-License-Identifier: MIT OR Apache-2.0
"""Charts as SVG: panels side by side, the paper's left and ours right, each with bars or points
and marked values."""

import html
import math

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, GAP = 460, 300, 56, 64, 52, 24
COLOURS = ("#3b6ea5", "#d1782b", "#4f9a62", "#a5528f", "#8a7a3c")
TEXT = 'font-family="sans-serif" font-size="{}" fill="#222"'


def text(x, y, words, size=11, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {TEXT.format(size)} {more}>{html.escape(words)}</text>'


def line(x1, y1, x2, y2, colour="#888", more=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'


class Scale:
    """Maps values to pixels, linearly or by powers of ten."""

    def __init__(self, least, most, begin, end, log):
        self.log = log
        self.least, self.most = self.seen(least), self.seen(most)
        self.begin, self.end = begin, end

    def seen(self, value):
        return math.log10(max(value, 1e-9)) if self.log else value

    def at(self, value):
        span = self.most - self.least or 1.0
        share = min(1.0, max(0.0, (self.seen(value) - self.least) / span))
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        if self.log:
            return [10.0**power for power in range(math.ceil(self.least - 1e-9), math.floor(self.most + 1e-9) + 1)]
        step = 10 ** math.floor(math.log10(max(self.most - self.least, 1e-9)))
        step = next(step / part for part in (1, 2, 5) if (self.most - self.least) / (step / part) >= 4 or part == 5)
        first = math.ceil(self.least / step)
        return [step * number for number in range(first, math.floor(self.most / step + 1e-9) + 1)]


def panel(words):
    """Returns a panel: `title`, `kind` (bars or points), `series` of (name, [(x, y)]), axes, and
    marks of (value on the x axis, words)."""
    return {"kind": "bars", "marks": (), "x_log": False, "y_log": False, "x": "", "y": "", **words}


def limits(panels, axis, log):
    """Returns one scale for all panels, so that they are comparable."""
    values = [point[axis] for one in panels for _, points in one["series"] for point in points]
    values += [value for one in panels for value, _ in one["marks"] if axis == 0]
    values = [value for value in values if value is not None and (value > 0 or not log)] or [0.0, 1.0]
    least, most = min(values), max(values)
    if log:
        return 10 ** math.floor(math.log10(least) - 1e-9), 10 ** math.ceil(math.log10(most) + 1e-9)
    return min(0.0, least), 1.05 * most


def axes(one, x, y, left):
    bottom, right = TOP + HEIGHT - TOP - BOTTOM, left + WIDTH - LEFT
    out = [line(left, bottom, right, bottom, "#222"), line(left, TOP, left, bottom, "#222")]
    for value in x.ticks():
        out += [line(x.at(value), bottom, x.at(value), bottom + 4), text(x.at(value), bottom + 16, f"{value:g}", 10, "middle")]
    for value in y.ticks():
        out += [line(left, y.at(value), right, y.at(value), "#ddd"), text(left - 6, y.at(value) + 3, f"{value:g}", 10, "end")]
    out += [text((left + right) / 2, bottom + 32, one["x"], 11, "middle"), text(left, TOP - 8, one["y"], 11)]
    return out + [text(left, TOP - 24, one["title"], 13, more='font-weight="bold"')]


def shapes(one, x, y):
    out, bottom, count = [], y.begin, len(one["series"])
    for number, (_, points) in enumerate(one["series"]):
        colour = COLOURS[number % len(COLOURS)]
        for at, value in points:
            if value is None:
                continue
            if one["kind"] == "bars":
                place = x.at(at) + 3.2 * (number - count / 2)
                out.append(f'<rect x="{place:.1f}" y="{y.at(value):.1f}" width="3" height="{bottom - y.at(value):.1f}" fill="{colour}"/>')
            else:
                out.append(f'<circle cx="{x.at(at):.1f}" cy="{y.at(value):.1f}" r="4" fill="{colour}"/>')
        if one["kind"] == "points":
            known = [f"{x.at(at):.1f},{y.at(value):.1f}" for at, value in points if value is not None]
            out.append(f'<polyline points="{" ".join(known)}" fill="none" stroke="{colour}"/>')
    return out


def marks(one, x, y, left):
    out = []
    for number, (value, words) in enumerate(one["marks"]):
        right = x.at(value) > left + (WIDTH - LEFT) / 2
        out += [line(x.at(value), TOP, x.at(value), y.begin, "#b02020", 'stroke-dasharray="5 3"'),
                text(x.at(value) + (-4 if right else 4), TOP + 12 + 13 * number, words, 10, "end" if right else "start")]
    return out


def legend_width(names):
    """Returns the approximate width in pixels."""
    return sum(26 + 6.0 * len(name) for name in names)


def legend(one, left):
    out, at = [], left
    for number, (name, _) in enumerate(one["series"]):
        colour = COLOURS[number % len(COLOURS)]
        out += [f'<rect x="{at:.1f}" y="{HEIGHT - 14}" width="9" height="9" fill="{colour}"/>', text(at + 13, HEIGHT - 6, name, 10)]
        at += legend_width([name])
    return out


def svg(title, panels, footers):
    """Draws all panels in a row, with the same scales, and lines of text below them."""
    panels = [panel(one) for one in panels]
    x_log, y_log = panels[0]["x_log"], panels[0]["y_log"]
    x_limits, y_limits = limits(panels, 0, x_log), limits(panels, 1, y_log)
    width = len(panels) * (WIDTH + GAP) + GAP
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT + 74}" width="{width}" height="{HEIGHT + 74}">',
        f'<title>{html.escape(title)}</title><rect width="100%" height="100%" fill="white"/>',
        text(GAP, 18, title, 15, more='font-weight="bold"'),
        '<g transform="translate(0 24)">',
    ]
    for number, one in enumerate(panels):
        left = GAP + number * (WIDTH + GAP) + LEFT
        x = Scale(*x_limits, left, left + WIDTH - LEFT - 8, x_log)
        y = Scale(*y_limits, HEIGHT - BOTTOM, TOP, y_log)
        out += axes(one, x, y, left) + shapes(one, x, y) + marks(one, x, y, left) + legend(one, left)
    below = [text(GAP, HEIGHT + 48 + 14 * number, footer, 10) for number, footer in enumerate(footers)]
    return "\n".join([*out, "</g>", *below, "</svg>"]) + "\n"
