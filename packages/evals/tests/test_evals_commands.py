"""`haiku-rag eval`: what it prints, writes and refuses."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import Result

from haiku.rag.evals.commands.working import run_shown, shown_steps
from haiku.rag.evals.errors import EvalError
from haiku.rag.evals.html_page import html_report
from haiku.rag.evals.progress import OnStep, Step
from haiku.rag.evals.run_file import load_run, save_run

Shell = Callable[..., Result]


def test_the_whole_of_the_table_is_printed(shell: Shell, workspace: Path) -> None:
    shown = shell("run", "--strategy", "cosine", "--max-queries", 6, "--workspace", workspace).stdout
    assert "Quality and cost" in shown
    assert "nDCG@10 by dataset" in shown
    assert "Several databases over one that holds everything" in shown


def test_json_is_one_document_with_a_line_for_each_way_and_place(shell: Shell, workspace: Path) -> None:
    result = shell("run", "-s", "fts", "-s", "vector", "--mode", "federated", "--json", "--workspace", workspace)
    document = json.loads(result.stdout)
    assert [line["label"] for line in document["results"]] == ["fts default", "vector default"]
    assert document["report"]["settings"]["limit"] == 10


def test_without_keeping_nothing_is_left(
    shell: Shell, pets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    shell("run", pets, "--no-keep")
    assert list((tmp_path / "temporary").iterdir()) == []
    assert "Leave --workspace out" in shell("run", pets, "--no-keep", "--workspace", "x", fails=True).stderr


def test_two_ways_of_one_run_are_compared(shell: Shell, measured: Path) -> None:
    shown = shell("compare", f"{measured}#rrf", f"{measured}#calibrated").stdout
    assert "hybrid calibrated, federated against hybrid rrf, federated" in shown
    assert "Gain most" in shown
    result = json.loads(shell("compare", f"{measured}#rrf", f"{measured}#cosine", "--json").stdout)
    (pair,) = [one for one in result["results"] if one["first"] == "hybrid rrf, federated"]
    found = pair["differences"]["nDCG@10"]
    assert found["difference"] == pytest.approx(found["second"] - found["first"])


def test_a_run_differs_from_itself_by_nothing(shell: Shell, measured: Path) -> None:
    for pair in json.loads(shell("compare", measured, measured, "--json").stdout)["results"]:
        assert pair["better"] == pair["worse"] == 0
        assert pair["differences"]["MAP"]["p"] == 1


def test_what_makes_two_runs_not_quite_comparable_is_said(
    shell: Shell, measured: Path, workspace: Path, tmp_path: Path
) -> None:
    options = ("--strategy", "rrf", "--max-queries", 5, "--limit", 5, "--workspace", workspace)
    shell("run", *options, "--out", tmp_path / "few.json")
    result = shell("compare", measured, tmp_path / "few.json")
    assert "5 questions are in both" in result.stderr
    assert "the lists have different lengths" in result.stderr


@pytest.mark.parametrize(
    ("first", "sentence"),
    [("#unheard", "is none of the run's ways of searching"), ("#hybrid", "is not one alone")],
)
def test_a_way_that_a_run_does_not_have_is_refused(shell: Shell, measured: Path, first: str, sentence: str) -> None:
    error = shell("compare", f"{measured}{first}", measured, fails=True).exception
    assert isinstance(error, EvalError)
    assert sentence in str(error)


def test_runs_without_a_question_in_common_are_refused(
    shell: Shell, measured: Path, pets: Path, workspace: Path, tmp_path: Path
) -> None:
    out = tmp_path / "pets.json"
    shell("run", pets, "-s", "fts", "--workspace", workspace, "--out", out)
    assert "no question in common" in str(shell("compare", f"{measured}#rrf", out, fails=True).exception)
    assert "which are to be compared?" in str(shell("compare", measured, out, fails=True).exception)
    run = load_run(out)
    (outcome,) = run.outcomes
    save_run(run.model_copy(update={"outcomes": [outcome.model_copy(update={"values": {"other": [0.0, 1.0]}})]}), out)
    assert "no measure in common" in str(shell("compare", f"{measured}#rrf", out, fails=True).exception)


def test_a_dataset_that_changed_between_two_runs_is_said(shell: Shell, measured: Path, tmp_path: Path) -> None:
    run = load_run(measured)
    first, *others = run.datasets
    changed = [first.model_copy(update={"digest": "other"}), *others]
    save_run(run.model_copy(update={"datasets": changed}), tmp_path / "changed.json")
    assert (
        f"dataset '{first.name}' is not the same in both."
        in shell("compare", measured, tmp_path / "changed.json").stderr
    )


def test_the_page_needs_nothing_else_and_is_well_formed(shell: Shell, measured: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert shell("report", measured, "--html", page).stdout == f"Wrote {page}.\n"
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)\s*=\s*[\"']?(?!#)", text.replace('xlink:href="#', ""))
    assert "<script" not in text
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawings) == 4
    for drawing in drawings:
        ET.fromstring(drawing)


def test_texts_on_the_page_cannot_become_markup(measured: Path) -> None:
    run = load_run(measured)
    evil = run.model_copy(update={"settings": run.settings.model_copy(update={"filter": "<img src=x>"})})
    text = html_report({"<b>one</b>": evil, "two": run})
    assert "<img" not in text
    assert "<b>one" not in text
    assert "&lt;b&gt;one" in text


def test_runs_are_shown_side_by_side(shell: Shell, measured: Path, tmp_path: Path) -> None:
    again = tmp_path / measured.name
    save_run(load_run(measured), again)
    shown = shell("report", measured, again).stdout
    assert "run (2): hybrid rrf" in shown
    assert len(json.loads(shell("report", measured, "--json").stdout)["results"]) == 9


def test_a_page_that_cannot_be_written_is_said(shell: Shell, measured: Path, tmp_path: Path) -> None:
    error = shell("report", measured, "--html", tmp_path / "no" / "page.html", fails=True).exception
    assert isinstance(error, EvalError)
    assert "cannot be written" in str(error)
    run = load_run(measured)
    with pytest.raises(EvalError, match="cannot be written"):
        save_run(run, tmp_path / "no" / "run.json")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "cannot be read"),
        (b"\xff", "cannot be read: it is not text"),
        (b"{}", "is not a run of 'haiku-rag eval run --out'"),
        (b"no", "is not a run"),
    ],
)
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, text: bytes | None, sentence: str) -> None:
    path = tmp_path / "run.json"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(EvalError, match=sentence):
        load_run(path)


def test_runs_of_a_later_format_or_without_outcomes_are_refused(measured: Path, tmp_path: Path) -> None:
    run = load_run(measured)
    save_run(run.model_copy(update={"version": 99}), tmp_path / "late.json")
    save_run(run.model_copy(update={"outcomes": []}), tmp_path / "bare.json")
    with pytest.raises(EvalError, match="Upgrade haiku-rag-evals"):
        load_run(tmp_path / "late.json")
    with pytest.raises(EvalError, match="holds no outcome"):
        load_run(tmp_path / "bare.json")


def test_a_database_is_populated_and_measured_whatever_is_configured(
    shell: Shell, pets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "haiku.rag.yaml"
    configuration.write_text(f"lancedb:\n  databases:\n    a: {tmp_path}/a.lancedb\n    b: {tmp_path}/b.lancedb\n")
    refused = str(shell("populate", pets, fails=True).exception)
    assert "several are configured: 'a', 'b'" in refused
    run_haiku(tmp_path, "--db-name", "a", "init")
    assert (
        run_haiku(tmp_path, "--db-name", "a", "eval", "populate", str(pets))
        == "3 passages of 'pets' are stored in 'a'.\n"
    )
    assert shell("populate", pets, "--db", tmp_path / "a.lancedb").stdout == "3 passages of 'pets' are stored in 'a'.\n"
    stored = json.loads(shell("populate", pets, "--db", tmp_path / "a.lancedb", "--json").stdout)
    assert stored["results"] == [{"source": "a", "dataset": "pets", "passages": 3}]
    found = json.loads(shell("run", pets, "--db", tmp_path / "a.lancedb", "--json").stdout)
    assert found["results"][0]["mode"] == "given"
    assert "are for databases that are made" in shell("run", pets, "--db", "a", "--mode", "alone", fails=True).stderr
    assert "Give one of them" in shell("run", pets, "--db", "a", "--configured", fails=True).stderr
    refused = run_haiku(tmp_path, "--read-only", "--db-name", "a", "eval", "populate", str(pets), fails=True)
    assert "--read-only was given" in refused


def test_an_interruption_says_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    async def work(on_step: OnStep) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_shown(work)
    assert "the next run goes on from there" in capsys.readouterr().err


def test_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with shown_steps() as show:
        show(Step(label="pets: storing", done=1, total=3))
    assert "pets: storing" in terminal.getvalue()
    assert "1/3" in terminal.getvalue()


def test_failures_of_the_reranker_are_a_warning(shell: Shell, pets: Path, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "haiku.rag.yaml").write_text(
        "reranking:\n  model: {provider: http, name: m, base_url: 'http://127.0.0.1:9/rerank'}\n"
    )
    result = shell("run", pets, "--strategy", "cosine", "--workspace", workspace, "--max-queries", 1)
    assert "the reranker failed for 1 of 1 questions, and the fused order stood" in result.stderr


def run_haiku(folder: Path, *arguments: str, fails: bool = False) -> str:
    code = "from haiku.rag.cli.app import cli; cli()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, check=False, text=True
    )
    assert (done.returncode != 0) == fails, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if fails else done.stdout


def test_a_name_that_is_not_known_is_a_sentence_and_an_exit_status(pets: Path, tmp_path: Path) -> None:
    assert "Did you mean 'calibrated'" in run_haiku(
        tmp_path, "eval", "run", str(pets), "--strategy", "calibrate", fails=True
    )
    assert "there is no folder 'nowhere'" in run_haiku(tmp_path, "eval", "run", "nowhere", fails=True)
