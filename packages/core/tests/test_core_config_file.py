"""Where the configuration file is found, and how it is read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from haiku.rag.config import AppConfig, file, find_config, load_config
from haiku.rag.errors import ConfigError, MissingVariableError

Write = Callable[[str], AppConfig]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The working directory and the data directory, both empty."""
    found = {"cwd": tmp_path / "cwd", "data": tmp_path / "data"}
    for folder in found.values():
        folder.mkdir()
    monkeypatch.chdir(found["cwd"])
    monkeypatch.setattr(file, "default_data_dir", lambda: found["data"])
    return found


@pytest.fixture
def loaded(tmp_path: Path) -> Write:
    """Loads a file with the given text."""

    def load(text: str) -> AppConfig:
        path = tmp_path / "given.yaml"
        path.write_text(text, encoding="utf-8")
        return load_config(path)

    return load


def put(path: Path, limit: int) -> Path:
    path.write_text(f"search:\n  limit: {limit}\n", encoding="utf-8")
    return path


def test_a_named_file_comes_before_every_other(
    places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAIKU_RAG_CONFIG_PATH", str(put(tmp_path / "env.yaml", 2)))
    put(places["cwd"] / "haiku.rag.yaml", 3)
    assert load_config(put(tmp_path / "named.yaml", 1)).search.limit == 1


def test_the_variable_names_the_file_when_no_option_does(
    places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAIKU_RAG_CONFIG_PATH", str(put(tmp_path / "env.yaml", 2)))
    put(places["cwd"] / "haiku.rag.yaml", 3)
    assert load_config().search.limit == 2


def test_the_working_directory_holds_the_file_when_nothing_names_one(places: dict[str, Path]) -> None:
    put(places["cwd"] / "haiku.rag.yaml", 3)
    put(places["data"] / "haiku.rag.yaml", 4)
    assert load_config().search.limit == 3


def test_the_data_directory_holds_the_file_when_the_working_directory_does_not(places: dict[str, Path]) -> None:
    put(places["data"] / "haiku.rag.yaml", 4)
    assert load_config().search.limit == 4


def test_without_any_file_the_defaults_hold(places: dict[str, Path]) -> None:
    assert find_config() is None
    assert load_config().search.limit == 5


def test_an_empty_variable_names_nothing(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAIKU_RAG_CONFIG_PATH", "")
    assert find_config() is None


def test_a_named_file_that_is_not_there_is_an_error_with_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no configuration file '.*none\.yaml'.*init-config"):
        find_config(tmp_path / "none.yaml")


def test_a_variable_that_names_a_missing_file_is_an_error(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAIKU_RAG_CONFIG_PATH", "nowhere.yaml")
    put(places["cwd"] / "haiku.rag.yaml", 3)
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        load_config()


def test_a_home_directory_that_is_unknown_is_an_error_of_ours() -> None:
    with pytest.raises(ConfigError, match="no configuration file"):
        find_config("~no-such-user-here/haiku.rag.yaml")


def test_a_path_in_the_home_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path / "mine.yaml", 7)
    assert find_config("~/mine.yaml") == tmp_path / "mine.yaml"


def test_a_variable_stands_for_its_value(loaded: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPIC", "ships")
    assert loaded("prompts: {domain_preamble: 'About ${TOPIC}.'}").prompts.domain_preamble == "About ships."


def test_a_variable_that_is_set_comes_before_its_default(loaded: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMIT", "9")
    assert loaded("search: {limit: '${LIMIT:-3}'}").search.limit == 9


@pytest.mark.parametrize("value", [None, ""])
def test_the_default_serves_for_a_variable_that_is_unset_or_empty(
    loaded: Write, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("LIMIT", raising=False)
    if value is not None:
        monkeypatch.setenv("LIMIT", value)
    assert loaded("search: {limit: '${LIMIT:-3}'}").search.limit == 3


def test_a_default_may_be_empty(loaded: Write) -> None:
    assert loaded("prompts: {domain_preamble: '${NOT_SET_ANYWHERE:-}'}").prompts.domain_preamble == ""


def test_a_variable_without_value_or_default_is_an_error_that_names_it(loaded: Write) -> None:
    with pytest.raises(MissingVariableError, match=r"'NOT_SET_ANYWHERE'.*\$\{NOT_SET_ANYWHERE:-default\}"):
        loaded("prompts: {domain_preamble: '${NOT_SET_ANYWHERE}'}")


def test_two_dollars_stand_for_one(loaded: Write) -> None:
    assert loaded("prompts: {domain_preamble: '$${HOME} costs $$5'}").prompts.domain_preamble == "${HOME} costs $5"


def test_a_lone_dollar_and_an_unclosed_brace_stay(loaded: Write) -> None:
    assert loaded("prompts: {domain_preamble: '$5 ${OPEN'}").prompts.domain_preamble == "$5 ${OPEN"


def test_a_value_is_not_expanded_twice(loaded: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPIC", "${OTHER}")
    assert loaded("prompts: {domain_preamble: '${TOPIC}'}").prompts.domain_preamble == "${OTHER}"


def test_variables_stand_in_lists_too(loaded: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "acme")
    assert loaded("plugins: {disabled: ['${NAME}']}").plugins.disabled == ["acme"]


def test_an_empty_file_is_the_defaults(loaded: Write) -> None:
    assert loaded("").search.limit == 5


def test_an_empty_section_is_its_defaults(loaded: Write) -> None:
    assert loaded("search:\n").search.limit == 5


def test_a_file_that_is_not_yaml_is_an_error_with_its_place_and_no_content(loaded: Write) -> None:
    with pytest.raises(ConfigError, match=r"given\.yaml is not valid YAML at line \d+, column \d+") as caught:
        loaded("embeddings: {model: {api_key: 'sk-secret\n")
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("data", [b"search: \xff\xfe", b"a: \x00"])
def test_bytes_that_are_no_text_are_not_valid_yaml(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "given.yaml"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="not valid YAML"):
        load_config(path)


def test_a_date_that_does_not_exist_is_not_valid_yaml(loaded: Write) -> None:
    with pytest.raises(ConfigError, match="not valid YAML"):
        loaded("search: {limit: 2024-13-45}")


@pytest.mark.parametrize("text", ["- a\n- b\n", "just text", "42"])
def test_a_file_without_sections_is_an_error(loaded: Write, text: str) -> None:
    with pytest.raises(ConfigError, match="must hold sections at its top level"):
        loaded(text)


def test_a_file_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = put(tmp_path / "given.yaml", 1)

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigError, match=r"given\.yaml' cannot be read: Permission denied"):
        load_config(path)


def test_a_fault_is_named_by_the_path_of_its_key_and_the_file(loaded: Write) -> None:
    with pytest.raises(ConfigError, match=r"given\.yaml is not valid: search\.limit: Input should be greater than 0"):
        loaded("search: {limit: 0}")


def test_every_fault_is_named_at_once(loaded: Write) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded("search: {limit: 0}\nprocessing: {chunk_size: 1}\nserach: {}\n")
    for path in ("search.limit", "processing.chunk_size", "serach"):
        assert f"{path}: " in str(caught.value)


def test_relative_paths_are_taken_from_the_folder_of_the_file(loaded: Write, tmp_path: Path) -> None:
    config = loaded("search: {limit: 1}")
    assert config.base_dir == tmp_path
    assert config.resolve_path("dbs/a") == tmp_path / "dbs" / "a"
