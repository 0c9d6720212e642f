"""What `haiku-rag search` takes as a whole process, beside what importing LanceDB and loading the model take.

Run by `nox -s bench`: five runs of each, in turn, medians.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

FLOOR = (
    "import lancedb, asyncio\n"
    "from haiku.rag.config import AppConfig\n"
    "from haiku.rag.embedders.local.embedder import create_local\n"
    "asyncio.run(create_local(AppConfig.model_validate({})).embed_query('warm'))\n"
)
TEXTS = {
    "tea": "Green tea is steeped at 75 degrees for two minutes.",
    "bread": "A sourdough loaf rests overnight in the cold before it is baked.",
}


def seconds(command: list[str], folder: Path) -> float:
    """The wall time of one whole process."""
    started = perf_counter()
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    return perf_counter() - started


def main() -> None:
    """Make two small databases, time, print."""
    script = Path(sys.executable).with_name("haiku-rag")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        entries = "".join(f"    {base}: {base}.lancedb\n" for base in TEXTS)
        (folder / "haiku.rag.yaml").write_text(f"lancedb:\n  databases:\n{entries}")
        for base, text in TEXTS.items():
            for command in (["init"], ["add", text, "--title", base]):
                subprocess.run([script, "--db-name", base, *command], check=True, cwd=folder, capture_output=True)
        search = [str(script), "search", "how hot is the water"]
        floor = [sys.executable, "-c", FLOOR]
        help_ = [str(script), "--help"]
        runs = [(seconds(search, folder), seconds(floor, folder), seconds(help_, folder)) for _ in range(5)]
    medians = [statistics.median(column) for column in zip(*runs, strict=True)]
    print(f"start-up on {os.cpu_count()} cores, medians of five")
    print(f"  haiku-rag search: {medians[0]:.2f} s")
    print(f"  import lancedb and load the model: {medians[1]:.2f} s")
    print(f"  ratio: {medians[0] / medians[1]:.2f} (bar: 2.5)")
    print(f"  haiku-rag --help: {medians[2]:.2f} s")


if __name__ == "__main__":
    main()
