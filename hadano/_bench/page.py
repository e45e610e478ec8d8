"""The measured figures as a table for a terminal, as JSON, and as one page for a browser.

The page needs nothing but itself: its charts are SVG, drawn here. Knows figures, and nothing of
what was measured.
"""

from collections.abc import Iterable
from html import escape
from math import ceil, floor, log10
from typing import Any, Final

from msgspec import Struct

from hadano._bench.measure import Series

_SHARES: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
#: Of the charts, in pixels.
_LABELS, _WIDTH, _ROW = 230, 560, 26

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #6a737d; --line: #d8dee4;
  --mark: #0b6bcb; --goal: #c2410c; --paper: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #8b949e; --line: #30363d;
  --mark: #58a6ff; --goal: #fb923c; --paper: #0d1117; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
td, th { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: right; }
td:nth-child(-n+2), th:nth-child(-n+2) { text-align: left; }
.better { color: var(--mark); } .worse { color: var(--goal); }
svg { width: 100%; height: auto; font-size: 12px; } svg text { fill: var(--ink); }
svg .soft { fill: var(--soft); } svg .grid { stroke: var(--line); }
svg .dot { fill: var(--mark); fill-opacity: .35; } svg .bar { fill: var(--mark); }
svg .tick { stroke: var(--ink); stroke-width: 2; } svg .goal { stroke: var(--goal);
  stroke-width: 2; stroke-dasharray: 4 3; }
"""


class Report(Struct):
    """All that one run of the bench has found."""

    #: What was measured, where and with which versions: name and value.
    about: dict[str, str]
    series: list[Series]
    #: Bytes by table and index, largest first.
    sizes: dict[str, int]


def table(report: Report) -> str:
    """The figures as lines of text."""
    head = ("", "", "n", *(name for name, _ in _SHARES), "published")
    rows = [head, *_rows(report.series)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [f"{name}: {value}" for name, value in report.about.items()]
    lines += ["", *(_line(row, widths) for row in rows), "", "bytes by table"]
    lines += [f"{size:>14,}  {name}" for name, size in report.sizes.items()]
    return "\n".join(lines)


def as_json(report: Report) -> dict[str, Any]:
    """The figures for machines: every time of every series, in milliseconds."""
    return {
        "about": report.about,
        "series": [
            {
                "group": series.group,
                "name": series.name,
                "published_ms": series.published,
                **{f"{name}_ms": round(series.at(share), 4) for name, share in _SHARES},
                "times_ms": [round(time, 4) for time in series.times],
            }
            for series in report.series
        ],
        "bytes_by_table": report.sizes,
    }


def html(report: Report) -> str:
    """The figures as a page that stands alone."""
    about = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in report.about.items()
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Hadano bench</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE} dl {{ display: grid; grid-template-columns: max-content 1fr;"
        " gap: 0 1rem } dd { margin: 0 }</style>"
        f"<h1>Hadano bench</h1><dl>{about}</dl>"
        "<h2>Latency</h2><p>Milliseconds on a logarithmic axis: every call a dot, with bars at the"
        " median and the 95th percentile; a dashed line is a published figure.</p>"
        f"{_strips(report.series)}{_html_table(report.series)}"
        f"<h2>Size by table</h2>{_bars(report.sizes)}</html>\n"
    )


def _rows(series: Iterable[Series]) -> list[tuple[str, ...]]:
    return [
        (
            one.group,
            one.name,
            f"{len(one.times):,}",
            *(f"{one.at(share):,.2f}" for _, share in _SHARES),
            "" if one.published is None else f"{one.published:,.2f}",
        )
        for one in series
    ]


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _html_table(series: list[Series]) -> str:
    head = "".join(f"<th>{name}</th>" for name, _ in _SHARES)
    body = ""
    for one, row in zip(series, _rows(series), strict=True):
        met = one.published is not None and one.at(0.95) <= one.published
        kind = "" if one.published is None else f' class="{"better" if met else "worse"}"'
        body += f"<tr{kind}>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
    return f"<table><tr><th>what</th><th></th><th>n</th>{head}<th>published</th></tr>{body}</table>"


def _strips(series: list[Series]) -> str:
    """One row of dots a series."""
    times = [max(time, 0.001) for one in series for time in one.times]
    low, high = floor(log10(min(times))), ceil(log10(max(times)))

    def x(time: float) -> float:
        share = (log10(max(time, 0.001)) - low) / max(high - low, 1)
        return round(_LABELS + share * _WIDTH, 1)

    height = _ROW * len(series)
    parts = []
    for power in range(low, high + 1):
        at = x(10.0**power)
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="0" y2="{height}"/>')
        parts.append(
            f'<text class="soft" text-anchor="middle" x="{at}" y="{height + 16}">'
            f"{10.0**power:g} ms</text>"
        )
    for row, one in enumerate(series):
        parts.append(_strip(one, row * _ROW, x))
    return _svg(parts, height + 24)


def _strip(one: Series, top: int, x: Any) -> str:
    middle = top + _ROW / 2
    label = escape(f"{one.group}: {one.name}")
    dots = "".join(
        f'<circle class="dot" r="2.5" cx="{x(time)}" cy="{middle + (n % 7 - 3) * 1.5}"/>'
        for n, time in enumerate(one.times)
    )
    ticks = "".join(
        f'<line class="{kind}" x1="{x(at)}" x2="{x(at)}" y1="{top + 4}" y2="{top + _ROW - 4}"/>'
        for kind, at in (
            ("tick", one.at(0.5)),
            ("tick", one.at(0.95)),
            *([("goal", one.published)] if one.published is not None else []),
        )
    )
    text = f'<text text-anchor="end" x="{_LABELS - 10}" y="{middle + 4}">{label}</text>'
    return text + dots + ticks


def _bars(sizes: dict[str, int]) -> str:
    most = max(sizes.values())
    parts = []
    for row, (name, size) in enumerate(sizes.items()):
        middle, width = row * _ROW + _ROW / 2, round(size / most * (_WIDTH - 90), 1)
        parts.append(
            f'<text text-anchor="end" x="{_LABELS - 10}" y="{middle + 4}">{escape(name)}</text>'
            f'<rect class="bar" x="{_LABELS}" y="{middle - 8}" width="{width}" height="16"/>'
            f'<text class="soft" x="{_LABELS + width + 6}" y="{middle + 4}">'
            f"{size / 1e6:,.1f} MB</text>"
        )
    return _svg(parts, _ROW * len(sizes))


def _svg(parts: list[str], height: int) -> str:
    return f'<svg role="img" viewBox="0 0 {_LABELS + _WIDTH + 30} {height}">{"".join(parts)}</svg>'
