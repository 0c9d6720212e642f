"""settings, init-config and plugins: what opens no database."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from pydantic import Field, SecretStr

from haiku.rag.cli.masking import MASK, masked, masked_url
from haiku.rag.config import AppConfig, Section, load_config
from haiku.rag.errors import HaikuRagError
from haiku.rag.plugins import CommandRecord, ConfigSectionRecord, ErrorRecord, FusionRecord, hookimpl
from haiku.rag.plugins.loading import Plugin
from haiku.rag.testing import testing_plugin

NESTED = {"api-key": "k", "list": [{"password": "p"}], "empty_token": "", "max_tokens": 5}


class AcmeSection(Section):
    """A stranger's section."""

    pin: int = 1234
    url: str = "https://user:word@host/x?token=abc&q=1"
    nested: dict[str, Any] = Field(default_factory=lambda: dict(NESTED))


class StrictSection(Section):
    """A section without defaults."""

    needed: str


class AcmeError(HaikuRagError):
    """A stranger's error."""


def sections(**factories: str) -> Any:
    """A plugin with sections of the configuration."""

    @hookimpl
    def register() -> Any:
        for name, factory in factories.items():
            yield ConfigSectionRecord(name=name, summary=f"Settings of {name}", factory=factory, secrets=("pin",))

    return SimpleNamespace(haiku_rag_register_config_section=register)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that holds what this test module defines."""
    monkeypatch.setitem(sys.modules, "acme_settings", sys.modules[__name__])
    return "acme_settings"


def test_K2_settings_shows_what_is_in_effect_and_opens_nothing(shell: Any, module: str) -> None:
    shell.use(testing_plugin(sections(acme=f"{module}:AcmeSection"), name="acme"))
    shell.configure(
        embeddings={"model": {"provider": "hash", "api_key": "sk-geheim"}},
        memory={
            "databases": {"a": "s3://ak:geheim@host/bucket"},
            "storage_options": {
                "region": "eu", "endpoint": "http://u:geheim@h", "allow_http": "true", "use_ssl": "false",
                "aws_secret_access_key": "geheim", "account_name": "geheim",
            },
        },
        reranking={"model": {"provider": "overlap", "extra_body": {"token": "geheim"}}},
        mcp={"port": 1},
    )  # fmt: skip
    text = shell("settings").stdout
    assert "geheim" not in text
    assert "word" not in text.replace("password", "").replace("keyword", "")
    settings = yaml.safe_load(text)
    assert settings["search"]["limit"] == 5
    assert settings["embeddings"]["model"]["api_key"] == MASK
    assert settings["memory"]["databases"]["a"]["location"] == "s3://***@host/bucket"
    assert settings["memory"]["storage_options"] == {
        "region": "eu", "endpoint": "http://***@h", "allow_http": "true", "use_ssl": "false",
        "aws_secret_access_key": MASK, "account_name": MASK,
    }  # fmt: skip
    assert settings["reranking"]["model"]["extra_body"] == {"token": MASK}
    assert settings["acme"] == {
        "pin": MASK,
        "url": f"https://***@host/x?token={MASK}&q=1",
        "nested": {"api-key": MASK, "list": [{"password": MASK}], "empty_token": "", "max_tokens": 5},
    }
    assert text.startswith(f"# {shell.folder / 'haiku.rag.yaml'}\n")
    assert text.endswith("# Sections that nothing installed reads: mcp\n")
    document = shell.data("settings")
    assert (document["settings"], document["inert_sections"]) == (settings, ["mcp"])
    assert shell.server.calls == {}


def test_settings_warns_of_a_section_that_cannot_be_shown(shell: Any, module: str) -> None:
    shell.use(testing_plugin(sections(strict=f"{module}:StrictSection", gone="nowhere:Gone"), name="acme"))
    result = shell("settings")
    assert result.exit_code == 0
    assert "Warning: the section 'strict' has no defaults and is not in the configuration.\n" in result.stderr
    assert "Warning: config_section 'gone' needs nowhere." in result.stderr


def test_settings_without_a_file_are_the_defaults(shell: Any) -> None:
    (shell.folder / "haiku.rag.yaml").unlink()
    assert shell("settings").stdout.startswith("# There is no configuration file; these are the defaults.\n")


def test_a_fault_in_the_configuration_is_one_line_that_names_the_key_and_no_value(shell: Any) -> None:
    shell.configure(serach={"api_key": "geheim"})
    result = shell("settings")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: haiku.rag.yaml is not valid: serach: unknown key 'serach'. Did you mean 'search'?\n"
    missing = shell("--config", "nope.yaml", "settings")
    assert missing.exit_code == 1
    assert missing.stderr.startswith("Error: there is no configuration file 'nope.yaml'.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://me:p/w@host/db", "postgresql://***@host/db"),
        ("git://me@host", "git://***@host"),
        ("host=h password=pw user=u", f"host=h password={MASK} user=u"),
        ("AccountName=a;AccountKey=k==;x=1", f"AccountName=a;AccountKey={MASK};x=1"),
        ("https://h/p?sig=abc&v=1", f"https://h/p?sig={MASK}&v=1"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("plain", "plain"),
    ],
)
def test_what_authorises_is_masked_inside_of_texts(text: str, expected: str) -> None:
    assert masked_url(text) == expected


def test_masking_keeps_what_is_no_secret() -> None:
    value = {"tokens": ["a"], "keys": [], "monkeys": 3, "token": None, "secret": True, "path": Path("/x"), "set": {1}}
    assert masked(value) == {
        "tokens": MASK, "keys": [], "monkeys": 3, "token": None, "secret": True, "path": "/x", "set": [1],
    }  # fmt: skip
    assert masked([SecretStr("x"), object, 1.5]) == [MASK, str(object), 1.5]


def test_init_config_writes_an_example_once(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "haiku.rag.yaml").unlink()
    assert shell("init-config").stdout == "Wrote an example configuration to haiku.rag.yaml.\n"
    written = (tmp_path / "haiku.rag.yaml").read_text()
    again = shell("init-config")
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr == "Error: 'haiku.rag.yaml' exists already, and is left as it is. Give another path.\n"
    assert (tmp_path / "haiku.rag.yaml").read_text() == written
    nowhere = shell("init-config", "no/folder/x.yaml")
    assert (nowhere.exit_code, nowhere.stderr.count("\n")) == (1, 1)


def test_the_example_is_valid_as_it_is_and_without_its_comment_signs(shell: Any, module: str, tmp_path: Path) -> None:
    shell.use(testing_plugin(sections(acme=f"{module}:AcmeSection"), name="acme"))
    assert shell("init-config", "example.yaml").exit_code == 0
    path = tmp_path / "example.yaml"
    assert load_config(path, kernel=shell.kernel).section_names == ()
    text = path.read_text()
    path.write_text(re.sub(r"(?m)^#(?! )|^#(?=  )", "", text))
    config = load_config(path, kernel=shell.kernel)
    assert set(config.section_names) == {"memory", "memory_many", "acme"}
    assert list(config.section("memory").databases) == ["papers", "wiki"]
    assert config.search.boosts == {"wiki": 0.1}
    defaults = AppConfig.model_validate({}, context={"kernel": shell.kernel})
    for name in ("embeddings", "reranking", "processing", "plugins"):
        assert getattr(config, name) == getattr(defaults, name)


@pytest.fixture
def broken(shell: Any, module: str) -> Any:
    """A shell with a plugin of every kind of fault, one that failed to load, and a conflict."""

    @hookimpl
    def fusions() -> Any:
        yield FusionRecord(name="rrf", summary="Another one", factory=f"{module}:AcmeError")
        yield FusionRecord(name="torn", summary="Torn", factory="nowhere.at.all:Torn")
        yield FusionRecord(name="number", summary="No factory", factory=f"{module}:MASK")

    @hookimpl
    def commands() -> Any:
        yield CommandRecord(name="odd", summary="Odd", factory=f"{module}:AcmeError")

    @hookimpl
    def errors() -> Any:
        yield ErrorRecord(name="odd", summary="Odd", factory=f"{module}:AcmeSection")
        yield ErrorRecord(name="good", summary="Good", factory=f"{module}:AcmeError", exit_status=3)

    made = sections(acme=f"{module}:AcmeError")
    made.haiku_rag_register_fusion = fusions
    made.haiku_rag_register_command = commands
    made.haiku_rag_register_error = errors
    lost = Plugin(
        name="lost", distribution="acme-lost", version="3", module="lost", status="failed", reason="ImportError: torch"
    )
    shell.use(testing_plugin(made, name="acme", distribution="acme-tools", version="2"), lost)
    return shell


def test_plugins_list_shows_what_is_there_and_what_is_wrong(broken: Any) -> None:
    broken.configure(mcp={})
    text = broken("plugins", "list").stdout
    assert "cli (haiku-rag-cli 0.1.0) loaded\n  command: add, add-src, " in text
    assert "lost (acme-lost 3) failed: ImportError: torch\n" in text
    assert "Conflict: fusion 'rrf' is provided by two plugins: " in text
    assert text.endswith("Sections of the configuration that nothing reads: mcp\n")
    document = broken.data("plugins", "list")
    assert document["inert_sections"] == ["mcp"]
    assert len(document["conflicts"]) == 1
    assert {entry["name"]: entry["status"] for entry in document["results"]}["lost"] == "failed"


def test_plugins_list_works_with_a_configuration_that_does_not(shell: Any) -> None:
    shell.configure(serach={})
    result = shell("plugins", "list")
    assert result.exit_code == 0
    assert "cli (haiku-rag-cli 0.1.0) loaded" in result.stdout
    assert result.stderr.startswith("Warning: haiku.rag.yaml is not valid")


def test_plugins_show_prints_the_records(broken: Any) -> None:
    text = broken("plugins", "show", "acme").stdout
    assert text.startswith("acme (acme-tools 2) loaded\n")
    assert "  error 'good': Good\n    factory: acme_settings:AcmeError\n    exit_status: 3\n" in text
    assert "    suffixes: .md, .txt\n" in broken("plugins", "show", "memory").stdout
    (entry,) = broken.data("plugins", "show", "memory")["results"]
    assert {record["kind"] for record in entry["records"]} >= {"storage", "embedder", "chunker"}


def test_plugins_check_names_every_fault(broken: Any) -> None:
    result = broken("plugins", "check", "acme")
    assert result.exit_code == 1
    assert result.stderr == "Error: plugin 'acme' has 6 faults.\n"
    for fault in (
        "fusion 'torn': 'nowhere.at.all:Torn' cannot be imported: ModuleNotFoundError: No module named 'nowhere'.",
        "fusion 'number': 'acme_settings:MASK' is not what can be called.",
        "command 'odd': 'acme_settings:AcmeError' is not what a command must be: a click.Command.",
        "error 'odd': 'acme_settings:AcmeSection' is not what an error must be: a class derived from HaikuRagError.",
        "config_section 'acme': 'acme_settings:AcmeError' is not what a section must be: a class derived from",
        "fusion 'rrf' is provided by two plugins: ",
    ):
        assert f"\n  {fault}" in result.stdout
    assert broken("plugins", "check", "acme", "--json").stdout.count('"faults"') == 1


def test_plugins_check_passes_what_is_well_and_refuses_what_is_not_there(broken: Any) -> None:
    well = broken("plugins", "check", "cli")
    assert (well.exit_code, well.stdout) == (
        0, "cli (haiku-rag-cli 0.1.0) loaded\n  loaded; 20 records, and every factory is there.\n",
    )  # fmt: skip
    lost = broken("plugins", "check", "acme-lost")
    assert (lost.exit_code, lost.stderr) == (1, "Error: plugin 'acme-lost' has 1 fault.\n")
    assert "it was not loaded: ImportError: torch." in lost.stdout
    unknown = broken("plugins", "check", "acne")
    assert unknown.exit_code == 1
    assert "Did you mean 'acme'?" in unknown.stderr


def test_an_unknown_command_mentions_the_plugin_that_might_have_had_it(broken: Any) -> None:
    assert "Plugin 'lost' (acme-lost 3) was not loaded: ImportError: torch." in broken("xyzzy").stderr
