from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import plot, record_tables
from benchmarks.record import read_record
from benchmarks.tests import samples

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("what", record_tables.TABLES)
def test_every_benchmark_has_tables_and_a_plot(what, tmp_path):
    made = samples.record(what, samples.RECORDS[what])
    for table in record_tables.tables_of(made):
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(record_tables.render_record(made))
    text = console.export_text()
    assert "commit 0123456789ab" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    plot.draw(made, tmp_path / "one.svg")
    plot.draw(made, tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_text() == (tmp_path / "two.svg").read_text()
    assert "<svg" in (tmp_path / "one.svg").read_text()


def test_ratios_and_refusals_stand_in_the_table():
    text = record_tables.format_record(samples.record("block", samples.BLOCK))
    assert "| PyTorch rolls, link by link | 10 ms | 5.00x | 50% | 10 ms | 5.00x |  |" in text
    assert "| the authors' gather-scatter: wrong: its output is off |  |  |  |  |  |  |" in text
    assert "GEMM peak 100 GFLOP/s" in text
    assert "2 of 2 cores, torch 2.13.0, backend cpu, commit 0123456789ab" in text


def test_figures_stand_beside_their_bounds_and_unmeasured_ones_are_empty():
    text = record_tables.format_record(samples.record("figures", samples.FIGURES))
    assert "| against rolls | at least 5x | 6.12x | yes |" in text
    assert "| memory | at most 1.5 GB | 1.75 GB | no |" in text
    assert "| share | at least 55 % |  |  |" in text


def test_growth_is_told_against_the_law():
    text = record_tables.format_record(samples.record("scaling", samples.SCALING))
    assert "| 256 | 1 | 400 | 1200 | 1.50x |" in text
    assert "| N = 16: wrong: its output is off |  |  |  |  |" in text


def test_tables_go_between_their_markers_and_nothing_else_changes():
    made = samples.record("figures", samples.FIGURES)
    page = "before\n<!-- bench figures -->\nold\n<!-- end -->\nafter\n<!-- bench block -->\n<!-- end -->\n"
    new = record_tables.insert(page, made)
    assert new.startswith("before\n<!-- bench figures -->\n")
    assert new.endswith("<!-- end -->\nafter\n<!-- bench block -->\n<!-- end -->\n")
    assert "old" not in new
    assert record_tables.format_record(made) in new
    assert record_tables.insert(new, made) == new
    with pytest.raises(ValueError, match="no place for this table; put <!-- bench figures -->"):
        record_tables.insert("a page", made)


def test_a_quick_run_does_not_get_into_the_docs():
    with pytest.raises(ValueError, match="quick run, which measures nothing"):
        record_tables.insert(
            "<!-- bench figures -->\n<!-- end -->", samples.record("figures", samples.FIGURES, quick=True)
        )


def test_the_tables_of_the_docs_come_from_the_records():
    page = (ROOT / "docs" / "performance.md").read_text()
    for what in record_tables.TABLES:
        path = ROOT / "results" / "bench" / f"{what}.json"
        place = page.partition(f"<!-- bench {what} -->\n")[2].partition("<!-- end -->")[0]
        if path.is_file():
            assert record_tables.insert(page, read_record(path)) == page, (
                f"run python -m benchmarks show {path} --into docs/..."
            )
        else:
            assert place == "", f"docs/performance.md shows {what} without a record"
