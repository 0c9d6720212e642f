"""Plots as SVG that takes its colours from the page around it, drawn by pygal."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from haiku.rag.evals.lines import Line, shared_figures, shared_measures
from haiku.rag.evals.significance import paired_difference
from haiku.rag.evals.summary import summary_of
from haiku.rag.evals.variants import Mode

COLOURS = 8
"""So many colours the page has; plots take `--colour-1` and so on."""
MOST_SERIES = 200
"""From here on pygal makes colours up, which it cannot from names; those that the page has come round again."""
ROW_HEIGHT = 34
_UNWANTED = re.compile(r"<!--.*?-->|<script\b.*?</script>|<script\b[^>]*/>|<\?xml.*?\?>", re.DOTALL)
_CHART_ID = re.compile(r"chart-[0-9a-f-]{36}")


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A plot: what it shows, in words, and its SVG."""

    title: str
    description: str
    svg: str


def quality_plot(lines: Sequence[Line]) -> Plot:
    """The first measure of each way of searching, a bar for each place."""
    measure = shared_measures(lines)[0]
    series = {
        str(mode): {line.label: summary_of(line).overall[measure] for line in lines if line.mode is mode}
        for mode in dict.fromkeys(line.mode for line in lines)
    }
    return _bars(f"{measure} by search", f"{measure} over all questions, a bar for each place", series, digits=3)


def dataset_plot(lines: Sequence[Line]) -> Plot:
    """The first measure of each way of searching for each dataset, at the place that is most like use."""
    measure = shared_measures(lines)[0]
    mode = next(mode for mode in (Mode.FEDERATED, Mode.GIVEN, Mode.POOLED, Mode.ALONE) if _has(lines, mode))
    series = {
        line.label: {name: values[measure] for name, values in summary_of(line).by_dataset.items()}
        for line in lines
        if line.mode is mode
    }
    return _bars(f"{measure} by dataset, {mode}", f"{measure} for each dataset", series, digits=3)


def latency_plot(lines: Sequence[Line]) -> Plot:
    """The time of a search: half of them, and all but a twentieth, are faster."""
    summaries = [(line.name, summary_of(line).latency) for line in lines]
    series = {
        "p50": {name: latency.p50 for name, latency in summaries},
        "p95": {name: latency.p95 for name, latency in summaries},
    }
    return _bars("Time of a search, ms", "The 50th and the 95th percentile in milliseconds", series, digits=1)


def difference_plot(lines: Sequence[Line]) -> Plot | None:
    """What each question gains or loses against the first way of searching, sorted: a curve for each other one."""
    measure = shared_measures(lines)[0]
    curves: dict[str, list[tuple[float, float]]] = {}
    for mode in dict.fromkeys(line.mode for line in lines):
        first, *others = [line for line in lines if line.mode is mode]
        for other in others:
            _, before, after = shared_figures(first, other, measure)
            gains = sorted((after - before).tolist(), reverse=True)
            mean = paired_difference(before, after).mean
            curves[f"{other.name} ({mean:+.3f})"] = [
                (100 * place / max(len(gains) - 1, 1), gain) for place, gain in enumerate(gains)
            ]
    if not curves:
        return None
    title = f"{measure}: gain of each question"
    chart = _new("XY", height=420, show_dots=False, x_title="questions, from most gained to most lost, %")
    for name, points in curves.items():
        chart.add(name, points)
    return Plot(
        title=title, description="Gain of each question against the first search, sorted", svg=_svg(chart, title)
    )


def _has(lines: Sequence[Line], mode: Mode) -> bool:
    return any(line.mode is mode for line in lines)


def _bars(title: str, description: str, series: Mapping[str, Mapping[str, float]], *, digits: int) -> Plot:
    labels = list(dict.fromkeys(label for values in series.values() for label in values))
    height = 90 + ROW_HEIGHT * len(labels) * max(1, len(series)) // 2 + 24 * len(series)
    chart = _new("HorizontalBar", height=max(height, 240), formatter=lambda value: f"{value:.{digits}f}")
    chart.x_labels = labels[::-1]  # pygal draws the first at the bottom
    for name, values in series.items():
        chart.add(str(name), [values.get(label) for label in labels[::-1]])
    return Plot(title=title, description=description, svg=_svg(chart, title))


def _new(kind: str, **options: Any) -> Any:
    import pygal
    from pygal.style import Style

    # pygal leaves a finder of modules behind that is for its own plugins and lacks what an import calls: each later
    # import of the process would warn.
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]

    style = Style(
        background="transparent",
        plot_background="transparent",
        foreground="var(--ink)",
        foreground_strong="var(--ink)",
        foreground_subtle="var(--faint)",
        colors=tuple(f"var(--colour-{number % COLOURS + 1})" for number in range(MOST_SERIES)),
        font_family="inherit",
        opacity=".85",
        label_font_size=12,
        major_label_font_size=12,
        legend_font_size=12,
    )
    return getattr(pygal, kind)(
        style=style, js=[], width=860, legend_at_bottom=True, legend_at_bottom_columns=1, margin=8, **options
    )


def _svg(chart: Any, title: str) -> str:
    """The chart without scripts and comments, and with an id that is the same each time."""
    text = _UNWANTED.sub("", chart.render(is_unicode=True)).strip()
    return _CHART_ID.sub("chart-" + re.sub(r"[^a-z0-9]+", "-", title.lower()), text)
