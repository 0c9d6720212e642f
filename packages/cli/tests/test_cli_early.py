"""What is read of the configuration before plugins are imported."""

from pathlib import Path

import pytest

from haiku.rag.cli.early import plugin_settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plugins: {disabled: [a, 'b'], prefer: [c]}", (("a", "b"), ("c",))),
        ("plugins: {disabled: [1, a], prefer: c}", (("a",), ())),
        ("search: {limit: 3}", ((), ())),
        ("plugins: [", ((), ())),
        ("plugins: \xff", ((), ())),
        ("plugins: a", ((), ())),
        ("plugins: {disabled: [a]}\nsince: 2001-99-99", ((), ())),
        ("plugins: " + "[" * 5000, ((), ())),
        ("- plugins", ((), ())),
    ],
)
def test_names_are_taken_from_the_file_and_faults_mean_none(
    tmp_path: Path, text: str, expected: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    path = tmp_path / "some.yaml"
    path.write_bytes(text.encode("latin-1"))
    assert plugin_settings(str(path)) == expected


def test_the_file_is_found_where_the_configuration_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: Path, name: str) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"plugins: {{disabled: [{name}]}}")
        return str(path)

    assert plugin_settings(None) == ((), ())
    write(tmp_path / "data" / "haiku.rag" / "haiku.rag.yaml", "data")
    assert plugin_settings(None) == (("data",), ())
    write(tmp_path / "haiku.rag.yaml", "here")
    assert plugin_settings(None) == (("here",), ())
    monkeypatch.setenv("HAIKU_RAG_CONFIG_PATH", write(tmp_path / "env.yaml", "env"))
    assert plugin_settings(None) == (("env",), ())
    assert plugin_settings(write(tmp_path / "named.yaml", "named")) == (("named",), ())
    assert plugin_settings("gone.yaml") == ((), ())


@pytest.mark.parametrize("named", ["~no-such-user-here/some.yaml", "/dev/zero"])
def test_a_place_that_is_no_file_means_none(named: str) -> None:
    assert plugin_settings(named) == ((), ())


def test_a_file_that_cannot_be_read_means_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.yaml"
    path.write_text("plugins: {disabled: [a]}")

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert plugin_settings(str(path)) == ((), ())
