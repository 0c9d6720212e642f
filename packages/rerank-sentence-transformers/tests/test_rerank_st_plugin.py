"""What the package registers, and what its configuration may say."""

from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from haiku.rag.config import AppConfig, load_config
from haiku.rag.errors import ConfigError, MissingDependencyError, RerankError
from haiku.rag.plugins import ConfigSectionRecord, RerankerRecord
from haiku.rag.rerankers.sentence_transformers import library as library_module
from haiku.rag.rerankers.sentence_transformers import plugin
from haiku.rag.rerankers.sentence_transformers.library import library
from haiku.rag.rerankers.sentence_transformers.place import place_of
from haiku.rag.rerankers.sentence_transformers.reranker import create_sentence_transformers
from haiku.rag.rerankers.sentence_transformers.section import CrossEncoderSection
from haiku.rag.rerankers.sentence_transformers.tracking import Bar, Tracker
from haiku.rag.testing import testing_config, testing_kernel

Settings = Callable[..., AppConfig]
EXAMPLE = Path(__file__).parents[3] / "config-examples/cross-encoder.yaml"


def test_the_reranker_and_its_section_are_registered() -> None:
    kernel = testing_kernel(plugin)
    assert [record.name for record in kernel.records(RerankerRecord)] == ["sentence-transformers"]
    assert kernel.resolve(RerankerRecord.kind, "sentence-transformers") is create_sentence_transformers
    assert kernel.resolve(ConfigSectionRecord.kind, "rerank_sentence_transformers") is CrossEncoderSection


def test_without_a_word_it_is_exact_and_runs_no_foreign_code(settings: Settings) -> None:
    section = settings("acme/x").section("rerank_sentence_transformers")
    assert (section.device, section.dtype, section.activation) == ("cpu", "float32", "sigmoid")
    assert not section.trust_remote_code


def test_the_scale_is_known_without_the_model(settings: Settings) -> None:
    assert create_sentence_transformers(settings("acme/x")).scale == (0.0, 1.0)
    assert create_sentence_transformers(settings("acme/x", activation="none")).scale is None


@pytest.mark.parametrize("model", [None, {"provider": "sentence-transformers"}])
def test_a_model_has_to_be_named(model: Any) -> None:
    config = testing_config({"reranking": {"model": model}}, plugin)
    with pytest.raises(ConfigError, match="reranking.model.name: reranker 'sentence-transformers' needs the folder"):
        create_sentence_transformers(config)


def test_what_has_no_effect_is_refused() -> None:
    model = {"provider": "sentence-transformers", "name": "acme/x", "temperature": 0.5}
    config = testing_config({"reranking": {"model": model}}, plugin)
    with pytest.raises(ConfigError, match="reranking.model.temperature: .* has no use for it. Leave it out."):
        create_sentence_transformers(config)


@pytest.mark.parametrize(("argument", "place"), [("torch_dtype", "dtype"), ("local_files_only", "offline")])
def test_arguments_that_have_a_place_of_their_own_are_refused(argument: str, place: str) -> None:
    with pytest.raises(ValidationError, match=f"'{argument}' is not given here, but by: {place}"):
        CrossEncoderSection.model_validate({"model_kwargs": {argument: "x"}})


def test_without_the_library_the_error_says_what_to_install(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(library_module, "find_spec", find)
    with pytest.raises(MissingDependencyError, match=r"pip install 'haiku-rag-core\[rerank-sentence-transformers\]'"):
        create_sentence_transformers(settings("acme/x"))


def test_a_library_that_cannot_be_imported_is_one_sentence() -> None:
    with pytest.raises(RerankError, match="needs no_such_library, which is installed and cannot be imported"):
        library("no_such_library")


@pytest.mark.parametrize(
    ("name", "repository"),
    [
        ("acme/x", "acme/x"),
        ("x", "cross-encoder/x"),
        ("models/x", None),
        ("./x", None),
        ("~/x", None),
        ("/x", None),
        ("a/b/c", None),
        ("a\\b", None),
    ],
)
def test_a_folder_that_is_there_comes_before_the_hub(name: str, repository: str | None, tmp_path: Path) -> None:
    (tmp_path / "models/x").mkdir(parents=True)
    place = place_of(name, tmp_path / name, revision=None, token=None)
    assert (place.hub and place.hub.repository) == repository


def test_a_bar_draws_nothing_and_counts_bytes_only() -> None:
    tracker = Tracker()
    tracker.expect(100)
    with tracker.bar(total=3) as files, tracker.bar(total=100, initial=10, unit="B") as received:
        files.update(3)
        files.set_description("anything")
        assert tracker.done == 0
        received.update(50)
        received.update(-20)
        assert tracker.done == 60
    tracker.count_whole(70)
    assert tracker.done == 70
    with tracker.bar(total=30, unit="B") as of_the_next:
        of_the_next.update(1000)
    assert tracker.done == 100
    with pytest.raises(AttributeError):
        _ = Bar()._unknown


@pytest.mark.anyio
async def test_the_example_is_a_configuration_for_it(overlap_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models/reranker").symlink_to(overlap_folder)
    (tmp_path / "haiku.rag.yaml").write_text(EXAMPLE.read_text())
    config = load_config(tmp_path / "haiku.rag.yaml", kernel=testing_kernel(plugin))
    assert create_sentence_transformers(config)._place.require() == tmp_path / "models/reranker"
