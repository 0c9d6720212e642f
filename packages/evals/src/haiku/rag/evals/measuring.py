"""Figures of rankings, by ir_measures, which computes them as trec_eval does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from haiku.rag.evals.datasets import Grades

DEPTHS = (5, 10)


def measures_for(limit: int) -> dict[str, str]:
    """The measures of lists of `limit` results: what tables call each, and what ir_measures does.

    nDCG at 10, recall at 5, at 10 and at the limit, mean average precision and mean reciprocal rank over the list. The
    depths above the limit are left out.
    """
    first = min(10, limit)
    depths = sorted({depth for depth in (*DEPTHS, limit) if depth <= limit})
    recall = {f"Recall@{depth}": f"R@{depth}" for depth in depths}
    return {f"nDCG@{first}": f"nDCG@{first}", **recall, "MAP": "AP", "MRR": "RR"}


def figures(
    judged: Sequence[Grades], rankings: Sequence[Sequence[str]], measures: Mapping[str, str]
) -> dict[str, list[float]]:
    """Each measure's figure for each ranking, best first, against what answers its question. A blank ranking gets 0."""
    from ir_measures import iter_calc, parse_measure

    parsed = {parse_measure(name): label for label, name in measures.items()}
    qrels = {str(place): dict(grades) for place, grades in enumerate(judged)}
    # The places are the scores, so that ties in what the search gave stay in its order.
    run = {
        str(place): {key: float(len(ranking) - rank) for rank, key in enumerate(ranking)}
        for place, ranking in enumerate(rankings)
    }
    values = {label: [0.0] * len(judged) for label in measures}
    for metric in iter_calc(list(parsed), qrels, run):
        values[parsed[metric.measure]][int(metric.query_id)] = float(metric.value)
    return values
