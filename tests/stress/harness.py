"""The parent's side: what a database may look like after a kill, and whether it does."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import victim

from haiku.rag.client import HaikuRAG
from haiku.rag.errors import ConfigMismatchError

VICTIM = Path(__file__).with_name("victim.py")
State = dict[str, str]
JOBS = ("add", "update", "delete", "vacuum", "tag", "rebuild")
MODELS = ("words-a", "words-b")
LONGEST_S = {"add": 0.5, "update": 0.5, "delete": 0.5, "vacuum": 0.8, "tag": 0.8, "rebuild": 1.5}


class Expected:
    """The states in which a database may be: one, and a second while an operation is in doubt."""

    def __init__(self) -> None:
        self.states: list[State] = [{}]
        self.tags: dict[str, State] = {}
        self.doubtful_tag: str | None = None

    def follow(self, lines: Iterator[Mapping[str, Any]]) -> None:
        """Take over what a victim told."""
        open_operation: Mapping[str, Any] | None = None
        for line in lines:
            if "begin" in line:
                open_operation = line
            elif "done" in line and open_operation is not None:
                self._after(open_operation, done=True)
                open_operation = None
        if open_operation is not None:
            self._after(open_operation, done=False)

    def _after(self, operation: Mapping[str, Any], *, done: bool) -> None:
        before = self.states[-1]
        after = dict(before)
        kind, tag = operation["begin"], operation.get("tag", "")
        if kind == "write":
            for uri, token in operation["changes"].items():
                after.pop(uri, None)
                after |= {} if token is None else {uri: token}
        elif kind == "restore":
            after = dict(self.tags[tag])
        elif kind == "tag":
            self.tags[tag] = before
            self.doubtful_tag = None if done else tag
        elif kind == "untag":
            self.doubtful_tag = None if done else tag
            if done:
                del self.tags[tag]
        self.states = [after] if done else [before, after]


class Victims:
    """Starts victims ahead of time: importing takes longer than living."""

    def __init__(self, location: Path, environment: Mapping[str, str]) -> None:
        self._location, self._environment = location, environment
        self.started: list[subprocess.Popen[str]] = []

    def start(self, model: str, seed: int, job: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(VICTIM), str(self._location), model, str(seed), job]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen(command, env=dict(self._environment), text=True, **pipes)  # type: ignore[call-overload]
        self.started.append(process)
        return process  # type: ignore[no-any-return]

    def end(self) -> None:
        """Leave none behind."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


def go(process: subprocess.Popen[str]) -> None:
    """Wait until a victim has imported everything, and let it open the database."""
    assert process.stdout is not None
    assert process.stdin is not None
    assert json.loads(process.stdout.readline() or "null") == {"ready": True}, process.communicate()[1]
    process.stdin.write("go\n")
    process.stdin.flush()


def killed(process: subprocess.Popen[str], delay: float) -> list[dict[str, Any]]:
    """Let a victim live for so long, kill it, and return what it told."""
    lines: list[str] = []
    assert process.stdout is not None
    reading = threading.Thread(target=_collect, args=(process.stdout, lines))
    go(process)
    reading.start()
    time.sleep(delay)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    reading.join()
    assert process.stderr is not None
    error = process.stderr.read()
    assert not error, error
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _collect(stream: IO[str], lines: list[str]) -> None:
    lines.extend(stream)


def delay_of(job: str, rng: random.Random) -> float:
    """When to kill: opening takes a part of it."""
    return rng.uniform(0.02, LONGEST_S[job])


async def open_reader(location: Path, tag: str | None = None) -> HaikuRAG:
    """A reader, for whichever embedding the database records by now."""
    for model in MODELS:
        configured = victim.config(str(location), model)
        client = HaikuRAG.over(HaikuRAG(config=configured, tag=tag)._scope, configured)
        try:
            return await client.__aenter__()
        except ConfigMismatchError:
            continue
    raise AssertionError("the database opens with neither embedding")


async def recorded(location: Path) -> str:
    """The model that the database records."""
    client = await open_reader(location)
    try:
        identity = (await client.info()).identity
        assert identity is not None
        return identity.model
    finally:
        await client.aclose()


async def seen(client: HaikuRAG) -> State:
    """The state of the database, every document whole, or an assertion fails."""
    documents = await client.list_documents(include_content=True)
    state = {str(found.uri): str(found.content) for found in documents}
    assert len(state) == len(documents), "a document is there twice"
    if not documents:
        return state
    hits = await client.search(f"part0 {documents[0].content}", len(documents) * victim.PARTS * 3, search_type="vector")
    by_document = Counter(hit.document_id for hit in hits)
    assert by_document == {found.id: victim.PARTS for found in documents}, "chunks are missing, doubled or left over"
    tokens = {found.id: str(found.content) for found in documents}
    assert all(hit.content.startswith(f"{tokens[str(hit.document_id)]} part") for hit in hits), "versions are mixed"
    assert all(found.title == found.content for found in documents)
    return state


async def parts_whole(client: HaikuRAG) -> None:
    """Items, pictures and the full-text index go with the documents."""
    for found in await client.list_documents(include_content=True):
        token = str(found.content)
        assert await client.get_picture_bytes(found.id, "#/0") == token.encode()
        hits = await client.search(token, 20, search_type="fts", filter=f"uri = '{found.uri}'")
        assert sorted(hit.content for hit in hits) == [f"{token} part{n} {found.uri}" for n in range(victim.PARTS)]
