"""How fast searching is, each figure beside the bar that it has to reach; exit status 1 where one is missed.

Run by `nox -s bench`. Databases are built from a fixed seed, and each part is measured in a fresh process with a warm
page cache, on vectors around centres (clustered) and on vectors without structure (isotropic). Every query is another
one. `--json` prints figures and bars as JSON, `--only` takes the parts whose names begin so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import fanout
import filtered
import large
import seeded
from bars import bars
from clock import Figures

Build = Callable[[Path, str], Coroutine[Any, Any, None]]
Measure = Callable[[Path, str, int], Coroutine[Any, Any, Figures]]


async def nothing(_: Path, __: str) -> None:
    """Nothing to build."""


PARTS: dict[str, tuple[Build, Measure]] = {
    "many": (seeded.build_many, fanout.measure),
    "large": (large.build, large.measure),
    "half": (filtered.build, filtered.measure),
    "write": (nothing, large.measure_writing),
}


def chosen(only: str) -> list[str]:
    """The parts whose names begin so, each with the kind of its vectors."""
    names = [f"{part}-{kind}" for part in PARTS for kind in seeded.KINDS]
    return [name for name in names if name.startswith(only)]


def in_a_fresh_process(name: str, root: Path, rounds: int) -> Figures:
    """Build what is missing in this process, measure in another."""
    part, kind = name.split("-")
    asyncio.run(PARTS[part][0](root, kind))
    command = [sys.executable, __file__, "--measure", name, "--root", str(root), "--rounds", str(rounds)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: Figures = json.loads(output.splitlines()[-1])
    return figures


def main() -> None:
    """Build what is missing, measure, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(".bench"))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()
    root = options.root.resolve()
    if options.measure:
        part, kind = options.measure.split("-")
        print(json.dumps(asyncio.run(PARTS[part][1](root, kind, options.rounds))))
        return
    root.mkdir(parents=True, exist_ok=True)
    figures = {name: in_a_fresh_process(name, root, options.rounds) for name in chosen(options.only)}
    judged = [bar.judged(figures) for kind in seeded.KINDS for bar in bars(kind) if bar.part in figures]
    if options.json:
        print(json.dumps({"figures": figures, "bars": judged}))
    else:
        show(figures, judged)
    if not all(bar["held"] for bar in judged):
        sys.exit(1)


def show(figures: dict[str, Figures], judged: list[Figures]) -> None:
    """The figures of each part, then the bars."""
    for name, found in figures.items():
        print(name)
        for figure, value in found.items():
            inner = value.items() if isinstance(value, dict) else ()
            print(f"  {figure}: {', '.join(f'{key} {number}' for key, number in inner) or value}")
    print("bars")
    for bar in judged:
        limit = f"at most {bar['most']:g}" if bar["most"] is not None else f"at least {bar['least']:g}"
        aim = f", aim {bar['aim']:g}" if bar["aim"] else ""
        print(f"  {'held  ' if bar['held'] else 'MISSED'} {bar['part']} {bar['figure']}: {bar['value']} ({limit}{aim})")


if __name__ == "__main__":
    main()
