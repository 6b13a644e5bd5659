"""Pages about runs: complete, self-contained, safe from hostile text, and readable when parts are missing."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import shutil

import numpy as np
import pytest

from paramixer.report.confusion import list_frequent_confusions, show_confusion
from paramixer.report.page import RunSection, render_page
from paramixer.report.record_tables import compare_runs
from paramixer.report.run_report import build_report
from paramixer.report.runs import open_run
from paramixer.report.wording import format_score, show_invisible
from paramixer.training.runs.folder import RunFolder
from report.pages import list_ids, read_explorers
from report.runs import HOSTILE, KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_page_shows_the_record_and_is_self_contained(run, page, kind):
    text = page(kind)
    record = RunFolder(run(kind)).read_record()
    name = record["metric"].replace("_", " ")
    assert f'<h2 id="name-1">{kind}</h2>' in text
    assert f"<strong>{format_score(record['test'][record['metric']])}</strong><span>{name} on test" in text
    for heading in ("Training curves", "Predictions on test", "Data", "Speed and memory", "Settings"):
        assert f"<h3>{heading}</h3>" in text or f"<summary>{heading}</summary>" in text
    assert ("<h3>Mixing matrix</h3>" in text) == (kind not in ("ngrams", "transformer"))
    assert ("<h3>Attribution</h3>" in text) == (kind == "transformer")
    assert ("ROC curve" in text) == (kind in ("hostile", "ngrams", "pathfinder", "genome"))
    assert ("Confusion matrix" in text) == ("Calibration" in text) == (kind != "adding")
    assert ("Predictions and targets" in text) == (kind == "adding")
    # Nothing is fetched: every address is data or a place on the page.
    for address in re.findall(r'(?:src|href)="([^"]*)"', text):
        assert address.startswith(("data:image/png;base64,", "#")), address
    assert "url(" not in re.sub(r"url\(#", "", text)
    assert len(list_ids(text)) == len(set(list_ids(text)))


def test_only_the_page_s_own_script_may_run(page):
    text = page("hostile")
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text


def test_hostile_text_is_escaped_and_complete(page):
    text = page("hostile")
    assert text.count("<script") == 2
    assert "<img src=x" not in text
    assert "<b>good" not in text
    assert html.escape("<b>good") in text
    assert "bad &amp; worse" in text
    sequences = ["".join(explorer["view"]["symbols"]) for explorer in read_explorers(text)[0]]
    assert any(any(show_invisible(start)[:20] in sequence for start in HOSTILE) for sequence in sequences)


def test_comparison_has_one_column_per_run(run):
    runs = [open_run(run(kind)) for kind in ("order", "transformer", "ngrams")]
    text = render_page("page", "", [RunSection(opened.name) for opened in runs], *compare_runs(runs))
    comparison = text[text.index("Comparison") : text.index('<article id="run-1"')]
    assert re.findall(r'<th scope="col">([^<]*)</th>', comparison) == ["order", "transformer", "ngrams"]
    comparison = re.sub(r'<td data-run="[^"]*">', "<td>", comparison)
    rows = dict(re.findall(r'<th scope="row">([^<]*)</th>((?:<td>[^<]*</td>)+)', comparison))
    for name, kind in (("error on test", "order"), ("accuracy on test", "ngrams")):
        record = RunFolder(run(kind)).read_record()
        assert f"<td>{format_score(record['test'][record['metric']])}</td>" in rows[name]
    assert rows["model"] == "<td>CHORD</td><td>transformer</td><td>ngrams</td>"
    assert comparison.count("<svg") == 4
    assert rows["model.channels"] == "<td>8</td><td>32</td><td>32</td>"
    # Settings on which the runs agree are left out, and settings that only one of them has.
    assert "model.pad" in rows
    assert "model.ring" not in rows
    assert "training.precision" not in rows


def test_runs_of_the_same_name_get_numbers_and_a_damaged_model_is_missing_only_in_its_section(run, page, tmp_path):
    copy = tmp_path / "order"
    shutil.copytree(run("order"), copy)
    weights = copy / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    text = build_report([copy, run("order")], sequences=5)
    assert '<h2 id="comparison">Comparison</h2>' in text
    assert f'<h2 id="name-1">1: {copy}</h2>' in text
    assert f'<h2 id="name-2">2: {run("order")}</h2>' in text
    assert len(list_ids(text)) == len(set(list_ids(text)))
    assert text.count("The model cannot be read: ") == 1
    assert [len(explorers) > 0 for explorers in read_explorers(text)] == [False, True]
    assert text.count("Predictions on test") == 1
    assert "5 of the 24 test sequences, evenly spaced" in text
    assert "All 24 test sequences: " in page("order")


def test_page_of_a_run_without_data_or_model_shows_its_curves(run, tmp_path):
    copy = tmp_path / "unfinished"
    shutil.copytree(run("order"), copy)
    folder = RunFolder(copy)
    record = folder.read_record()
    for name in ("format", "metric", "validation", "test", "steps", "best_step", "stopped"):
        del record[name]
    folder.write_record({**record, "finished": False, "fingerprint": "other"})
    shutil.rmtree(folder.model)
    text = build_report([copy])
    assert "not finished" in text
    assert "The run has no model yet" in text
    assert "The data is not available: the data has changed since" in text
    assert "Validation error" in text
    assert "Predictions on test" not in text
    assert "<h3>Data</h3>" not in text


def test_many_classes_are_shown_by_their_confusions():
    labels = [f"class {number}" for number in range(60)]
    counts = np.eye(60, dtype=np.int64) * 9
    counts[3, 5], counts[7, 1] = 4, 2
    assert list_frequent_confusions(labels, counts) == [("class 3", "class 5", 4), ("class 7", "class 1", 2)]


@pytest.mark.parametrize("classes", [2, 12, 13, 40, 41, 300])
def test_every_confusion_matrix_has_all_its_counts(classes):
    names = [f"a class with a long name, number {number}" for number in range(classes)]
    counts = np.random.default_rng(0).integers(0, 4, (classes, classes))
    shown = show_confusion(names, counts)
    if classes <= 12:
        assert [[count for count, _ in row] for _, row in shown.table] == counts.tolist()
    else:
        cells = re.findall(r"<title>label (\d+), prediction (\d+): (\d+)</title>", shown.picture)
        assert {(int(row) - 1, int(column) - 1): int(count) for row, column, count in cells} == {
            (int(row), int(column)): int(counts[row, column]) for row, column in np.argwhere(counts)
        }
    # Every class has its name somewhere, or the most frequent confusions have theirs.
    assert len(shown.classes) == (classes if classes <= 40 else 0)
    assert len(shown.frequent) == (0 if classes <= 40 else 40)


def test_short_names_are_heads_of_the_confusion_matrix():
    shown = show_confusion(["neg", "pos"], np.array([[3, 1], [0, 4]]))
    assert (shown.labels, shown.classes) == (("neg", "pos"), ())


def test_the_box_on_top_has_metric_interval_baseline_verdict_and_mistakes(run, page):
    text = page("hostile")
    record = RunFolder(run("hostile")).read_record()
    box = text[text.index('<section class="glance"') : text.index("<h3>Training curves</h3>")]
    assert text.index('<section class="glance"') < text.index("<figure>")
    low, high = record["intervals"]["accuracy"]
    assert f"<small>95 % interval {format_score(low)} to {format_score(high)}</small>" in box
    assert f"<strong>{format_score(record['baseline']['test'])}</strong><span>baseline: n-grams</span>" in box
    assert html.escape(record["verdict"].splitlines()[-1]) in box or "better than the baseline" in box
    assert "<figcaption>Validation accuracy</figcaption>" in box
    assert 1 <= box.count("</strong> instead of <strong>") <= 3


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_shows_how_python_writes_values(page, kind):
    visible = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", page(kind), flags=re.DOTALL)
    assert re.findall(r"\b(?:None|nan|inf|True|False)\b", visible) == []


def test_a_metric_that_is_not_defined_is_said_to_be_so(run, tmp_path):
    copy = tmp_path / "undefined"
    shutil.copytree(run("order"), copy)
    folder = RunFolder(copy)
    record = folder.read_record()
    folder.write_record({**record, "test": {**record["test"], record["metric"]: float("nan")}})
    text = build_report([copy], sequences=5)
    assert "<strong>not defined</strong>" in text
    assert not re.search(r"\bnan\b", re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL))


def test_wrong_arguments_are_refused(tmp_path):
    with pytest.raises(ValueError, match="name at least one run folder"):
        build_report([])
    with pytest.raises(ValueError, match="sequences=0; it must be at least 1"):
        build_report([tmp_path], sequences=0)
    with pytest.raises(ValueError, match="batch=0; it must be at least 1"):
        build_report([tmp_path], batch=0)
