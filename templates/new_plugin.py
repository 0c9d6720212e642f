"""Write the four files that a plugin begins with: `new_plugin.py KIND NAME [FOLDER]`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from string import Template

TEMPLATES = Path(__file__).parent / "plugin"
CORE = TEMPLATES.parent.parent / "packages" / "core" / "pyproject.toml"
KINDS = sorted(path.name.removesuffix(".py.tmpl") for path in TEMPLATES.glob("kinds/*.tmpl"))
USAGE = f"usage: nox -s new_plugin -- KIND NAME [FOLDER]    KIND is one of: {', '.join(KINDS)}"


def main(arguments: list[str]) -> str:
    """Write the files and say where they are; `SystemExit` with a sentence where that cannot be done."""
    if len(arguments) not in (2, 3):
        raise SystemExit(USAGE)
    kind, name, *rest = arguments
    if kind not in KINDS:
        raise SystemExit(f"there is no template for the kind '{kind}'.\n{USAGE}")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise SystemExit(f"'{name}' cannot be a plugin's name: use lower-case letters, digits and hyphens.")
    folder = Path(*rest or [f"{name}-{kind}"])
    if folder.exists():
        raise SystemExit(f"'{folder}' is there already. Choose another folder.\n{USAGE}")
    return write_plugin(folder, kind, name)


def write_plugin(folder: Path, kind: str, name: str) -> str:
    """Fill the templates; the lines that say what comes next."""
    facts = facts_of(kind, name)
    module = folder / facts["module"]
    files = {
        folder / "pyproject.toml": "pyproject.toml.tmpl",
        module / "plugin.py": "plugin.py.tmpl",
        module / f"{kind}.py": f"kinds/{kind}.py.tmpl",
        folder / "tests" / "test_contract.py": "test_contract.py.tmpl",
    }
    for path, template in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template((TEMPLATES / template).read_text("utf-8")).substitute(facts), "utf-8")
    steps = (f"pip install -e '{folder}[test]'", f"pytest {folder}", f"haiku-rag plugins check {name}")
    return "\n  ".join(["Written:", *map(str, files)]) + "\n\n" + "\n  ".join(["Next:", *steps])


def facts_of(kind: str, name: str) -> dict[str, str]:
    """What the templates name."""
    version = tomllib.loads(CORE.read_text("utf-8"))["project"]["version"]
    major, minor, *_ = version.split(".")
    camel = "".join(part.capitalize() for part in name.split("-"))
    return {
        "kind": kind,
        "name": name,
        "distribution": f"{name}-{kind}",
        "module": f"{name.replace('-', '_')}_{kind}",
        "class_name": f"{camel}{kind.capitalize()}",
        "record": f"{kind.capitalize()}Record",
        "contract": f"{kind.capitalize()}Contract",
        "at_least": f"{major}.{minor}",
        "below": f"{major}.{int(minor) + 1}",
    }


if __name__ == "__main__":
    sys.stdout.write(f"{main(sys.argv[1:])}\n")
