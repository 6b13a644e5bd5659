from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from bench import samples
from paramixer.bench import plot, record, tables

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("what", tables.TABLES)
def test_every_benchmark_has_tables_and_a_plot(what, tmp_path):
    made = samples.record(what, samples.RECORDS[what])
    for table in tables.tables(made):
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(tables.on_terminal(made))
    assert "engine cpu" in console.export_text()
    plot.draw(made, tmp_path / "one.svg")
    plot.draw(made, tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_text() == (tmp_path / "two.svg").read_text()
    assert "<svg" in (tmp_path / "one.svg").read_text()


def test_ratios_and_refusals_stand_in_the_table():
    text = tables.markdown(samples.record("block", samples.BLOCK))
    assert "| PyTorch rolls, link by link | 10 ms | 5.00x | 50% | 10 ms | 5.00x |  |" in text
    assert "| the authors' gather-scatter: wrong: its output is off |  |  |  |  |  |  |" in text
    assert "GEMM peak 100 GFLOP/s" in text
    assert "2 of 2 cores, torch 2.13.0, engine cpu, commit 0123456789ab" in text


def test_figures_stand_beside_their_bounds_and_unmeasured_ones_are_empty():
    text = tables.markdown(samples.record("figures", samples.FIGURES))
    assert "| against rolls | at least 5x | 6.12x | yes |" in text
    assert "| memory | at most 1.5 GB | 1.75 GB | no |" in text
    assert "| share | at least 55 % |  |  |" in text


def test_growth_is_told_against_the_law():
    text = tables.markdown(samples.record("scaling", samples.SCALING))
    assert "| 256 | 1 | 400 | 1200 | 1.50x |" in text
    assert "| N = 16: wrong: its output is off |  |  |  |  |" in text


def test_tables_go_between_their_markers_and_nothing_else_changes():
    made = samples.record("figures", samples.FIGURES)
    page = "before\n<!-- bench figures -->\nold\n<!-- end -->\nafter\n<!-- bench block -->\n<!-- end -->\n"
    new = tables.insert(page, made)
    assert new.startswith("before\n<!-- bench figures -->\n")
    assert new.endswith("<!-- end -->\nafter\n<!-- bench block -->\n<!-- end -->\n")
    assert "old" not in new
    assert tables.markdown(made) in new
    assert tables.insert(new, made) == new
    with pytest.raises(ValueError, match="no place for this table; put <!-- bench figures -->"):
        tables.insert("a page", made)


def test_a_quick_run_does_not_get_into_the_docs():
    with pytest.raises(ValueError, match="quick run, which measures nothing"):
        tables.insert("<!-- bench figures -->\n<!-- end -->", samples.record("figures", samples.FIGURES, quick=True))


def test_the_tables_of_the_docs_come_from_the_records():
    page = (ROOT / "docs" / "performance.md").read_text()
    for what in tables.TABLES:
        path = ROOT / "results" / "bench" / f"{what}.json"
        place = page.partition(f"<!-- bench {what} -->\n")[2].partition("<!-- end -->")[0]
        if path.is_file():
            assert tables.insert(page, record.read(path)) == page, f"run paramixer bench show {path} --into docs/..."
        else:
            assert place == "", f"docs/performance.md shows {what} without a record"
