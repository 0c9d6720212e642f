"""What the tests share: a small real cross-encoder, configurations, and a hub on the loopback interface.

Without sentence-transformers there is nothing to test.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from haiku.rag.config import AppConfig
from haiku.rag.testing import testing_config
from haiku.rag.testing.reranker import ANSWER, PASSAGES, QUERY

collect_ignore_glob = [] if find_spec("sentence_transformers") else ["test_*.py"]
WORDS = (QUERY, ANSWER, *PASSAGES, "kettle descaled vinegar", "red green blue")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def overlap_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a cross-encoder whose score is the share of the query's words in the passage."""
    return save_overlap_model(tmp_path_factory.mktemp("models") / "overlap", WORDS)


@pytest.fixture(scope="session")
def save_model() -> Callable[..., Path]:
    """The function that makes such a folder."""
    return save_overlap_model


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., AppConfig]:
    """A configuration with a model of this name and these keys in its section."""
    from haiku.rag.rerankers.sentence_transformers import plugin
    from haiku.rag.testing import plugin as memory_plugin

    def build(name: Path | str, *plugins: object, **section: Any) -> AppConfig:
        data = {
            "reranking": {"model": {"provider": "sentence-transformers", "name": str(name)}},
            "rerank_sentence_transformers": section,
            "storage": {"data_dir": str(tmp_path / "data")},
        }
        return testing_config(data, plugin, memory_plugin, *plugins)

    return build


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub, which the client in this process asks, and an empty cache."""
    constants = import_module("huggingface_hub.constants")

    with serving() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 5)
        yield hub


SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
LONGEST = 128
CODES = 80
SEGMENT, END, FOUND, RESULT = range(CODES, CODES + 4)
WIDTH = CODES + 4


def save_overlap_model(folder: Path, texts: Iterable[str], *, labels: int = 1) -> Path:
    """A folder with a small real cross-encoder, made by hand, and its tokenizer, which knows the words of `texts`.

    It is a BERT whose score is the share of the query's words in the passage. In its first layer each token looks for
    its own word among the passage's tokens, or finds the separator that ends the passage; in its second the first token
    takes the mean, over the query's tokens, of whether they found their word.
    """
    words = sorted({word for text in texts for word in re.findall(r"\w+|[^\w\s]", text.lower())})
    vocabulary = [*SPECIAL, *words]
    _tokenizer(vocabulary).save_pretrained(folder)
    _model(len(vocabulary), labels).save_pretrained(folder)
    return folder


def _tokenizer(vocabulary: list[str]) -> Any:
    numbers = {word: number for number, word in enumerate(vocabulary)}
    tokenizers, transformers = import_module("tokenizers"), import_module("transformers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, numbers[name]) for name in ("[CLS]", "[SEP]")],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=LONGEST,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def _model(size: int, labels: int) -> Any:
    torch, transformers = import_module("torch"), import_module("transformers")
    config = transformers.BertConfig(
        vocab_size=size,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=1,
        intermediate_size=1,
        max_position_embeddings=LONGEST,
        num_labels=labels,
    )
    model = transformers.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for module in model.modules():
            if isinstance(module, torch.nn.LayerNorm):
                module.weight.fill_(1)
        _write(model, size)
    return model


def _write(model: Any, size: int) -> None:
    torch = import_module("torch")
    embeddings = model.bert.embeddings
    generator = torch.Generator().manual_seed(7)
    embeddings.word_embeddings.weight[:, :CODES] = torch.randint(2, (size, CODES), generator=generator) * 2.0 - 1
    embeddings.word_embeddings.weight[SPECIAL.index("[SEP]"), END] = 4
    embeddings.token_type_embeddings.weight[:, SEGMENT] = torch.tensor([-2.0, 2.0])
    first, second = model.bert.encoder.layer
    looks, puts = first.attention.self, first.attention.output.dense
    same_word = range(CODES)
    looks.query.weight[same_word, same_word] = looks.key.weight[same_word, same_word] = 1.5
    looks.query.bias[SEGMENT], looks.key.weight[SEGMENT, SEGMENT] = 10, 6
    looks.query.bias[END], looks.key.weight[END, END] = 5, 5
    looks.value.bias[FOUND], looks.value.weight[FOUND, END] = 1, -0.27
    puts.weight[FOUND, FOUND] = 6
    takes, sums = second.attention.self, second.attention.output.dense
    takes.query.bias[SEGMENT], takes.key.weight[SEGMENT, SEGMENT] = 2, -12
    takes.value.weight[FOUND, FOUND] = 1
    sums.weight[RESULT, FOUND] = 1
    model.bert.pooler.dense.weight[0, RESULT] = 0.4
    model.classifier.weight[:, 0], model.classifier.bias[:] = 12, -6


API = re.compile(r"/api/models/(?P<name>[^/]+/[^/]+)/(?P<what>revision|tree)/(?P<revision>[^/?]+)")
FILE = re.compile(r"/(?P<name>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>[^?]+)")


class Hub:
    """Models by name, each its files. What is asked is in `asked`; what is to go wrong is said beforehand.

    `refusals` holds a status and the hub's word for it by a model's name, or for one kind of question such as
    `acme/x/tree`; `cut` how many bytes of a file are sent before the connection breaks and the model is refused; a file
    in `held` is sent when its event is set.
    """

    def __init__(self) -> None:
        self.url = ""
        self.models: dict[str, dict[str, bytes]] = {}
        self.refusals: dict[str, tuple[HTTPStatus, str]] = {}
        self.cut: dict[str, int] = {}
        self.held: dict[str, Event] = {}
        self.asked: list[str] = []
        self.tokens: set[str] = set()

    def put(self, name: str, files: Mapping[str, bytes]) -> None:
        """Have a model of these files."""
        self.models[name] = dict(files)

    def put_folder(self, name: str, folder: Path) -> None:
        """Have a model of a folder's files."""
        self.put(name, {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")})

    def commit(self, name: str) -> str:
        """The commit of a model's files as they are now."""
        digest = hashlib.sha1(usedforsecurity=False)
        for path, data in sorted(self.models[name].items()):
            digest.update(path.encode() + data)
        return digest.hexdigest()

    def sent(self) -> list[str]:
        """The files that were asked for, with their contents."""
        return [line.split("/", 5)[-1] for line in self.asked if line.startswith("GET") and "/resolve/" in line]


class Handler(BaseHTTPRequestHandler):
    """Answers for `hub`."""

    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""

    def _answer(self) -> None:
        self.hub.asked.append(f"{self.command} {self.path}")
        self.hub.tokens.add(self.headers.get("Authorization", ""))
        found = API.match(self.path) or FILE.match(self.path)
        if found is None:
            self._refuse(HTTPStatus.NOT_FOUND, "")
            return
        name, revision = found["name"], found["revision"]
        refusal = self.hub.refusals.get(name) or self.hub.refusals.get(
            f"{name}/{found.groupdict().get('what', 'files')}"
        )
        if refusal is not None:
            self._refuse(*refusal)
        elif name not in self.hub.models:
            self._refuse(HTTPStatus.NOT_FOUND, "RepoNotFound")
        elif revision not in ("main", self.hub.commit(name)):
            self._refuse(HTTPStatus.NOT_FOUND, "RevisionNotFound")
        elif "path" in found.groupdict():
            self._send_file(name, found["path"])
        else:
            self._send_listing(name, found["what"])

    def _refuse(self, status: HTTPStatus, code: str) -> None:
        self._send(b"", {"X-Error-Code": code}, status=status)

    def _send_listing(self, name: str, what: str) -> None:
        files = self.hub.models[name]
        tree = [{"type": "file", "oid": _oid(data), "size": len(data), "path": path} for path, data in files.items()]
        about = {"id": name, "sha": self.hub.commit(name), "siblings": [{"rfilename": path} for path in files]}
        self._send(json.dumps(tree if what == "tree" else about).encode(), {"Content-Type": "application/json"})

    def _send_file(self, name: str, path: str) -> None:
        data = self.hub.models[name][path]
        headers = {"ETag": f'"{_oid(data)}"', "X-Repo-Commit": self.hub.commit(name), "Accept-Ranges": "bytes"}
        span = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if span is not None:
            start = int(span[1])
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self._send(data[start:], headers, status=HTTPStatus.PARTIAL_CONTENT)
            return
        if self.command == "GET" and path in self.hub.held:
            self.hub.held[path].wait(60)
        limit = self.hub.cut.pop(path, None) if self.command == "GET" else None
        if limit is not None:
            self.hub.refusals[name] = (HTTPStatus.BAD_GATEWAY, "")
        self._send(data, headers, limit=limit)

    def _send(
        self, data: bytes, headers: Mapping[str, str], *, status: HTTPStatus = HTTPStatus.OK, limit: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            with suppress(ConnectionError):  # whoever asked has given up
                self.wfile.write(data[:limit])
        self.close_connection = limit is not None


def _oid(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub that answers at its `url`."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("HubHandler", (Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        for event in hub.held.values():
            event.set()
        server.shutdown()
        server.server_close()
        thread.join()
