"""A rebuild with another embedding, killed at several points, while another process reads."""

import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.anyio

WORKER = Path(__file__).with_name("lancedb_rebuild_worker.py")
spec = importlib.util.spec_from_file_location("lancedb_rebuild_worker", WORKER)
assert spec is not None
assert spec.loader is not None
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)

KILLED_AFTER = (1, 3, 4, 4, 4)
"""So many lines of the rebuild: before the first document, among them, and at the change of tables."""


def killed_after(process: subprocess.Popen[str], lines: int, pause: float) -> None:
    assert process.stdout is not None
    for _ in range(lines):
        process.stdout.readline()
    time.sleep(pause)
    process.kill()
    process.communicate()


@pytest.fixture
def start(tmp_path: Path, worker_environment: dict[str, str]) -> Iterator[Callable[[str], "subprocess.Popen[str]"]]:
    """Starts a worker on the database; none outlives the test."""
    running: list[subprocess.Popen[str]] = []

    def started(job: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(WORKER), str(tmp_path / "notes.lancedb"), job, "16"]
        pipe = subprocess.PIPE
        running.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=worker_environment))
        return running[-1]

    yield started
    for process in running:
        process.kill()
        process.communicate()


async def test_a_killed_rebuild_goes_on_and_readers_see_whole_documents_all_the_while(
    tmp_path: Path, start: Callable[[str], "subprocess.Popen[str]"]
) -> None:
    location = str(tmp_path / "notes.lancedb")
    await worker.fill(location, 8)
    reader = start("read")
    assert reader.stdout is not None
    assert reader.stdout.readline() == "reading\n"
    for number, lines in enumerate(KILLED_AFTER):
        killed_after(start("rebuild"), lines, pause=0.02 * number)
    last = start("rebuild")
    output, errors = last.communicate(timeout=120)
    assert (last.returncode, output.splitlines()[-1:]) == (0, ["done"]), errors
    (tmp_path / "stop").touch()
    output, errors = reader.communicate(timeout=60)
    assert reader.returncode == 0, errors
    assert output.endswith(" looks, 16 dimensions\n")
    async with worker.client(location, 16) as notes:
        (hit,) = await notes.search("document3 word part1", limit=1)
        assert hit.content == "document3 word part1"
        assert {document.title for document in await notes.list_documents()} == {"as it was"}
