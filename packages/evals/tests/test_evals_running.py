"""Measuring: the bundled collections, in real databases, with the embedder that is built in."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from haiku.rag.client import DatabaseScope, HaikuRAG
from haiku.rag.config import AppConfig, ModelConfig
from haiku.rag.errors import AmbiguousDatabaseError, ConfigError, HaikuRagError, UnknownPluginError
from haiku.rag.evals import configured, surroundings
from haiku.rag.evals.errors import EvalError
from haiku.rag.evals.html_page import html_report
from haiku.rag.evals.lines import lines_of
from haiku.rag.evals.loading import load_suite
from haiku.rag.evals.populating import populate
from haiku.rag.evals.progress import Step
from haiku.rag.evals.run_file import load_run
from haiku.rag.evals.running import evaluate
from haiku.rag.evals.summary import Summary, summary_of
from haiku.rag.evals.variants import Mode, Variant, every_variant, reranking_model
from haiku.rag.evals.workspace import LEFTOVER_SECONDS, Workspace, default_workspace

pytestmark = pytest.mark.anyio
CALIBRATED = Variant(fusion="calibrated")


@pytest.fixture(scope="module")
def summaries(measured: Path) -> dict[tuple[str, str], Summary]:
    lines = lines_of({"": load_run(measured)})
    return {(line.label, line.mode): summary_of(line) for line in lines}


async def test_the_bundled_collections_are_answered_well_and_by_their_own_databases(
    summaries: dict[tuple[str, str], Summary],
) -> None:
    assert len(summaries) == 9
    alone = summaries["hybrid calibrated", "alone"]
    federated, pooled = (summaries["hybrid calibrated", mode] for mode in ("federated", "pooled"))
    assert alone.own_share == 1
    assert alone.overall["nDCG@10"] > 0.8
    assert federated.overall["nDCG@10"] > 0.95 * pooled.overall["nDCG@10"]
    assert 0.5 < federated.own_share < 1
    assert federated.fused_by == "calibrated"
    assert set(federated.by_dataset) == {"fieldguide", "garten", "kitchen", "workshop"}


async def test_reciprocal_rank_over_several_databases_shows_its_flaw(
    summaries: dict[tuple[str, str], Summary],
) -> None:
    flawed, sound = (summaries[f"hybrid {name}", "federated"].overall["nDCG@10"] for name in ("rrf", "calibrated"))
    assert flawed < sound


async def test_a_measurement_repeats_exactly_and_the_order_of_datasets_changes_nothing(workspace: Path) -> None:
    suite = load_suite()
    turned = type(suite)(datasets=suite.datasets[::-1], shared=suite.shared)
    runs = [
        await evaluate(one, AppConfig(), variants=[CALIBRATED], modes=[Mode.FEDERATED], workspace=Workspace(workspace))
        for one in (suite, suite, turned)
    ]
    values = [dict(zip((q.key for q in run.questions), run.outcomes[0].values["nDCG@10"], strict=True)) for run in runs]
    assert values[0] == values[1] == values[2]


async def test_progress_is_told_and_what_is_kept_is_used_again(pets: Path, tmp_path: Path) -> None:
    space = Workspace(tmp_path / "space")
    seen: list[Step] = []
    for _ in range(2):
        await evaluate(load_suite([pets]), AppConfig(), variants=[CALIBRATED], workspace=space, on_step=seen.append)
        labels = [step.label for step in seen]
    assert labels.count("pets: storing") == 2
    assert all(0 <= step.done <= step.total for step in seen)
    assert len(list((tmp_path / "space" / "databases").glob("*.json"))) == 1


async def test_a_filter_narrows_what_is_searched_and_judged(pets: Path, workspace: Path) -> None:
    run = await evaluate(
        load_suite([pets]),
        AppConfig(),
        variants=[CALIBRATED],
        workspace=Workspace(workspace),
        filter="uri = 'pets/fish'",
    )
    assert [question.id for question in run.questions] == ["q2"]
    assert run.outcomes[0].hits == [["pets/fish"]]


async def test_a_filter_that_no_case_matches_is_an_error_and_no_score(pets: Path, workspace: Path) -> None:
    with pytest.raises(EvalError, match="selects no document that answers a question"):
        await evaluate(load_suite([pets]), AppConfig(), workspace=Workspace(workspace), filter="uri = 'pets/dog'")


async def test_a_reranker_is_measured_and_its_failures_are_counted(pets: Path, workspace: Path) -> None:
    ways = every_variant(["hybrid"], ["calibrated"], ["none", "local"])
    run = await evaluate(load_suite([pets]), AppConfig(), variants=ways, workspace=Workspace(workspace))
    assert [outcome.reranker for outcome in run.outcomes] == [None, "local"]
    assert all(outcome.rerank_failures == 0 for outcome in run.outcomes)


async def test_names_that_are_not_known_are_told_before_anything_is_made(tmp_path: Path, pets: Path) -> None:
    for way in (Variant(fusion="calibrate"), Variant(reranker="loca")):
        with pytest.raises(UnknownPluginError, match="Did you mean"):
            await evaluate(load_suite([pets]), AppConfig(), variants=[way], workspace=Workspace(tmp_path / "space"))
    assert not (tmp_path / "space").exists()


async def test_limits_below_one_and_places_that_are_not_there_are_refused(pets: Path, tmp_path: Path) -> None:
    suite = load_suite([pets])
    with pytest.raises(ValueError, match="at least 1"):
        await evaluate(suite, AppConfig(), limit=0)
    with pytest.raises(ValueError, match="the mode 'given'"):
        await evaluate(suite, AppConfig(), modes=[Mode.GIVEN], workspace=Workspace(tmp_path))


async def test_a_database_that_was_there_before_is_measured_as_it_is(pets: Path, tmp_path: Path) -> None:
    suite = load_suite([pets])
    async with HaikuRAG(tmp_path / "mine.lancedb", create=True) as client:
        await populate(client, suite.datasets[0])
    scope = DatabaseScope.resolve(AppConfig(), database_path=tmp_path / "mine.lancedb")
    run = await evaluate(load_suite([pets], with_passages=False), AppConfig(), variants=[CALIBRATED], scope=scope)
    assert summary_of(lines_of({"": run})[0]).overall["MRR"] == 1
    assert run.settings.databases == ["mine"]


async def test_a_database_of_other_documents_is_an_error_and_no_score(pets: Path, tmp_path: Path) -> None:
    async with HaikuRAG(tmp_path / "other.lancedb", create=True) as client:
        await client.create_document("A cat that belongs to nobody.")
    scope = DatabaseScope.resolve(AppConfig(), database_path=tmp_path / "other.lancedb")
    with pytest.raises(EvalError, match="nothing that was found in 'other' is a passage of the datasets"):
        await evaluate(load_suite([pets]), AppConfig(), scope=scope)


async def test_a_set_of_databases_is_not_populated(pets: Path, tmp_path: Path) -> None:
    places = {name: str(tmp_path / f"{name}.lancedb") for name in ("a", "b")}
    config = AppConfig.model_validate({"lancedb": {"databases": places}})
    async with HaikuRAG(config=config) as client:
        with pytest.raises(AmbiguousDatabaseError, match="several are covered: 'a', 'b'"):
            await populate(client, load_suite([pets]).datasets[0])


async def test_a_database_that_was_cut_off_is_made_again(pets: Path, tmp_path: Path) -> None:
    space, suite = Workspace(tmp_path / "space"), load_suite([pets])
    await evaluate(suite, AppConfig(), variants=[CALIBRATED], workspace=space)
    (database,) = (tmp_path / "space" / "databases").glob("*.lancedb")
    async with HaikuRAG(database) as client:
        (first, *_) = await client.list_documents()
        await client.delete_document(first.id)
    run = await evaluate(suite, AppConfig(), variants=[CALIBRATED], workspace=space)
    assert summary_of(lines_of({"": run})[0]).overall["MRR"] == 1


async def test_vectors_are_kept_until_the_model_changes_under_its_name(pets: Path, tmp_path: Path) -> None:
    from haiku.rag.models import EmbeddingIdentity

    dataset = load_suite([pets]).datasets[0]
    identity = EmbeddingIdentity(provider="acme", model="m", dimension=2)
    asked: list[int] = []

    async def embed(texts: list[str], angle: float = 0.0) -> np.ndarray:
        asked.append(len(texts))
        return np.array([[np.cos(angle + n), np.sin(angle + n)] for n in range(len(texts))], dtype=np.float32)

    space = Workspace(tmp_path / "space")
    first = await space.vectors(dataset, identity, embed)  # type: ignore[arg-type]
    again = await space.vectors(dataset, identity, embed)  # type: ignore[arg-type]
    assert asked == [1, 3, 1]
    assert (first == again).all()
    turned = await space.vectors(dataset, identity, lambda texts: embed(list(texts), 1.0))
    assert asked == [1, 3, 1, 1, 3]
    assert not np.allclose(turned, first)
    (block,) = (tmp_path / "space").rglob("*.npy")
    np.save(block, turned[:2])
    assert (await space.vectors(dataset, identity, lambda texts: embed(list(texts), 1.0)) == turned).all()
    np.save(block, np.ones((3, 5), np.float32))
    assert (await space.vectors(dataset, identity, lambda texts: embed(list(texts), 1.0)) == turned).all()


async def test_a_database_that_is_damaged_is_made_again(pets: Path, tmp_path: Path) -> None:
    space, suite = Workspace(tmp_path / "space"), load_suite([pets])
    await evaluate(suite, AppConfig(), variants=[CALIBRATED], workspace=space)
    (database,) = (tmp_path / "space" / "databases").glob("*.lancedb")
    shutil.rmtree(database)
    run = await evaluate(suite, AppConfig(), variants=[CALIBRATED], workspace=space)
    assert summary_of(lines_of({"": run})[0]).overall["MRR"] == 1


async def test_a_language_stems_what_is_searched_by_its_words(pets: Path, workspace: Path) -> None:
    found = {}
    for language in ("none", "english"):
        run = await evaluate(
            load_suite([pets]),
            AppConfig(),
            variants=[Variant(search_type="fts")],
            workspace=Workspace(workspace),
            language=language,
        )
        found[language] = run.outcomes[0].hits
    assert "pets/cat" not in found["none"][0]
    assert found["english"][0][0] == "pets/cat"


async def test_an_engine_without_languages_says_so(pets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configured, "LANGUAGE_KEY", "tongue")  # which the engine's section does not have
    with pytest.raises(ConfigError, match="the storage engine 'lancedb' has no language for full text"):
        await evaluate(load_suite([pets]), AppConfig(), workspace=Workspace(tmp_path), language="english")


async def test_one_way_alone_has_no_difference_to_show(pets: Path, workspace: Path) -> None:
    run = await evaluate(load_suite([pets]), AppConfig(), variants=[CALIBRATED], workspace=Workspace(workspace))
    page = html_report({"": run})
    assert "<h2>Quality</h2>" in page
    assert "<h2>Differences</h2>" not in page


async def test_a_library_that_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "LIBRARIES", ("numpy", "no-such-library"))
    found = surroundings.versions(AppConfig().kernel)
    assert found["numpy"] == np.__version__
    assert "no-such-library" not in found


async def test_leftovers_go_after_a_day(tmp_path: Path) -> None:
    import os
    import time

    space = Workspace(tmp_path)
    kept, left = space.new_database("a", ".x"), space.new_database("b", ".x")
    for path in (kept, left):
        path.mkdir()
        os.utime(path, (time.time() - LEFTOVER_SECONDS - 60,) * 2)
    space.keep("a", kept, documents=1)
    space.tidy()
    assert (kept.exists(), left.exists()) == (True, False)
    assert space.database("a") == (kept, 1)
    assert space.database("b") is None


async def test_the_workspace_is_in_the_cache_when_none_is_named() -> None:
    assert default_workspace() == Workspace().folder


async def test_a_reranker_is_a_provider_and_maybe_a_model() -> None:
    config = AppConfig.model_validate({"reranking": {"model": {"provider": "local", "name": "m"}}})
    assert reranking_model(config, None) == config.reranking.model
    assert reranking_model(config, "none") is None
    assert reranking_model(config, "local") == config.reranking.model
    assert reranking_model(config, "acme:big") == ModelConfig(provider="acme", name="big")
    changed = reranking_model(config, "local:other")
    assert changed is not None
    assert changed.name == "other"
    assert isinstance(EvalError("x"), HaikuRagError)
