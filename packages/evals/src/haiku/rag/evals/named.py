"""Datasets by the names of the library ir_datasets, which fetches them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from haiku.rag.evals.datasets import Dataset, Passage
from haiku.rag.evals.errors import EvalError


def read_named(name: str, *, with_passages: bool = True) -> Dataset:
    """The dataset of a name such as `beir/scifact/test`; slashes in it become dashes.

    `EvalError` where the library is not installed, does not know the name, or where the dataset has no judged
    questions.
    """
    try:
        import ir_datasets
    except ModuleNotFoundError:
        raise EvalError(
            f"there is no folder '{name}'. If it is the name of a dataset of ir_datasets, install that library with: "
            "pip install 'haiku-rag-evals[ir-datasets]'."
        ) from None
    try:
        found = ir_datasets.load(name)
    except KeyError:
        raise EvalError(f"there is no folder '{name}', and ir_datasets knows no dataset of this name.") from None
    if not (found.has_docs() and found.has_queries() and found.has_qrels()):
        raise EvalError(
            f"dataset '{name}' lacks documents, queries or judgments. Name a part that is judged, such as /test."
        )
    judgments: dict[str, dict[str, int]] = defaultdict(dict)
    for judgment in found.qrels_iter():
        if judgment.relevance > 0:
            judgments[judgment.query_id][judgment.doc_id] = int(judgment.relevance)
    questions = {query.query_id: query.default_text() for query in found.queries_iter()}
    judged = {question: grades for question, grades in judgments.items() if question in questions}
    if not judged:
        raise EvalError(f"dataset '{name}' has no question that is judged.")
    passages = tuple(map(_passage, found.docs_iter())) if with_passages else ()
    return Dataset(name=name.replace("/", "-"), passages=passages, questions=questions, judgments=judged)


def _passage(document: Any) -> Passage:
    title = str(getattr(document, "title", "") or "")
    text = str(document.text) if title and hasattr(document, "text") else str(document.default_text())
    return Passage(id=document.doc_id, title=title if text != title else "", text=text)
