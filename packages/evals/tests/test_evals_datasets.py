"""Reading judged collections, and what is wrong with some."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from haiku.rag.evals.beir import read_beir
from haiku.rag.evals.datasets import Suite, drawn, restricted
from haiku.rag.evals.errors import EvalError
from haiku.rag.evals.loading import load_suite
from haiku.rag.evals.named import read_named

Beir = Callable[..., Path]


def test_the_bundled_collections_are_what_is_taken_when_nothing_is_named() -> None:
    suite = load_suite([])
    assert suite.names == ("fieldguide", "garten", "kitchen", "workshop")
    assert len(suite.shared) == 2
    for dataset in suite.datasets:
        known = {passage.id for passage in dataset.passages}
        assert all(grades.keys() <= known for grades in dataset.judgments.values())


def test_a_question_that_two_collections_ask_is_answered_by_the_passages_of_both() -> None:
    cases = {case.key: case for case in load_suite().cases()}
    case, other = cases["fieldguide/fq05"], cases["kitchen/kq06"]
    assert set(case.everywhere) == set(case.own) | set(other.own)
    assert case.everywhere.keys() == other.everywhere.keys()


def test_a_folder_of_folders_is_all_of_them_by_name(pets: Path, beir: Beir) -> None:
    beir("birds", {"owl": "Owls hunt at night."}, {"q": "night hunter"}, {"q": {"owl": 1}})
    assert load_suite([pets.parent]).names == ("birds", "pets")
    assert load_suite([pets]).names == ("pets",)


def test_judgments_of_the_usual_place_and_grades_of_nought(beir: Beir) -> None:
    folder = beir("d", {"a": "x", "b": "y"}, {"q": "x", "r": "y"}, {"q": {"a": 1, "b": 0}, "r": {"b": 0}})
    (folder / "qrels").mkdir()
    (folder / "qrels.tsv").rename(folder / "qrels" / "test.tsv")
    assert read_beir(folder).judgments == {"q": {"a": 1}}
    assert read_beir(folder, with_passages=False).passages == ()


def test_blank_lines_titles_and_a_byte_order_mark_are_read(beir: Beir) -> None:
    folder = beir("d", {}, {"q": "x"}, {"q": {"a": 1}})
    (folder / "corpus.jsonl").write_text('\ufeff{"_id": "a", "text": "body", "title": "Head"}\n\n', encoding="utf-8")
    (passage,) = read_beir(folder).passages
    assert passage.content == "Head\nbody"


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("corpus.jsonl", '{"_id": "a", "text": "x"}\n{broken', "d/corpus.jsonl, line 2: not a JSON object with texts"),
        ("corpus.jsonl", '{"_id": 7, "text": "x"}', "line 1: not a JSON object"),
        ("corpus.jsonl", '{"_id": "a", "text": "x"}\n' * 2, "'a' is there twice"),
        ("corpus.jsonl", None, "dataset 'd' has no corpus.jsonl"),
        ("qrels.tsv", None, "dataset 'd' has no judgments: neither qrels.tsv nor qrels/test.tsv is there"),
        ("qrels.tsv", "query\tdoc\n", "the first line has to be a heading with 'query-id', 'corpus-id', 'score'"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\nq\ta\tgood", "the score 'good' is not a whole number"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\nq\ta", "line 2: fewer columns than the heading has"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\nother\ta\t1", "has no question that is judged"),
        ("queries.jsonl", b"\xff\xfe\x00", "d/queries.jsonl cannot be read: UnicodeDecodeError"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_dataset_is_said_in_a_sentence(
    beir: Beir, file: str, text: str | bytes | None, sentence: str
) -> None:
    folder = beir("d", {"a": "x"}, {"q": "x"}, {"q": {"a": 1}})
    if text is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(EvalError, match=sentence):
        read_beir(folder)


def test_what_is_no_dataset_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(EvalError, match="'empty' is no dataset and holds none"):
        load_suite([tmp_path / "empty"])
    with pytest.raises(EvalError, match="is not a folder"):
        load_suite([tmp_path / "file"])
    with pytest.raises(EvalError, match=r"pip install 'haiku-rag-evals\[ir-datasets\]'"):
        load_suite(["nowhere/at-all"])


def test_a_suite_has_datasets_and_each_name_once(pets: Path) -> None:
    with pytest.raises(EvalError, match="there is no dataset"):
        Suite(datasets=())
    with pytest.raises(EvalError, match="two datasets are called 'pets'"):
        load_suite([pets, pets])


def test_a_digest_tells_contents_apart_and_not_names(pets: Path) -> None:
    dataset = read_beir(pets)
    renamed = read_beir(pets.rename(pets.with_name("animals")))
    assert renamed.content_digest == dataset.content_digest
    (renamed_folder := pets.with_name("animals") / "corpus.jsonl").write_text('{"_id": "cat", "text": "Cats."}')
    assert renamed_folder.exists()
    assert read_beir(pets.with_name("animals")).digest != dataset.digest


def test_some_of_the_cases_are_drawn_the_same_each_time() -> None:
    cases = load_suite().cases()
    some = drawn(cases, 5, seed=1)
    assert some == drawn(cases, 5, seed=1) != drawn(cases, 5, seed=2)
    assert drawn(cases, 1_000, seed=1) == drawn(cases, None, seed=1) == cases
    kept = restricted(cases, frozenset(some[0].own))
    assert some[0].id in {case.id for case in kept}
    assert all(case.own.keys() <= some[0].own.keys() for case in kept)


class Named:
    """A dataset as the library gives it."""

    def __init__(self, *, judged: bool = True, relevance: int = 1) -> None:
        self.judged, self.relevance = judged, relevance

    def has_docs(self) -> bool:
        return True

    has_queries = has_docs

    def has_qrels(self) -> bool:
        return self.judged

    def docs_iter(self) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(doc_id="a", title="Cats", text="They sleep."),
            SimpleNamespace(doc_id="b", default_text=lambda: "Dogs walk."),
        ]

    def queries_iter(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(query_id="q", default_text=lambda: "who sleeps")]

    def qrels_iter(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(query_id="q", doc_id="a", relevance=self.relevance)]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> dict[str, Named]:
    """Stands in for ir_datasets, which fetches what it is asked for."""
    known: dict[str, Named] = {}
    module = ModuleType("ir_datasets")
    module.load = known.__getitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ir_datasets", module)
    return known


def test_a_name_of_the_library_is_a_dataset(library: dict[str, Named]) -> None:
    library["x/test"] = Named()
    dataset = read_named("x/test")
    assert (dataset.name, dataset.judgments) == ("x-test", {"q": {"a": 1}})
    assert [passage.content for passage in dataset.passages] == ["Cats\nThey sleep.", "Dogs walk."]
    assert load_suite(["x/test"], with_passages=False).datasets[0].passages == ()


def test_what_the_library_does_not_have_is_said(library: dict[str, Named]) -> None:
    library |= {"bare": Named(judged=False), "unanswered": Named(relevance=0)}
    with pytest.raises(EvalError, match="knows no dataset of this name"):
        read_named("unknown")
    with pytest.raises(EvalError, match="lacks documents, queries or judgments"):
        read_named("bare")
    with pytest.raises(EvalError, match="no question that is judged"):
        read_named("unanswered")
