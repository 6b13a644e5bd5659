"""Where pages and figures are written."""

from __future__ import annotations

import pytest

from paramixer.report.output import resolve_explanation, resolve_output, write_output


def test_a_page_in_a_folder_gets_a_name(tmp_path):
    assert resolve_output(tmp_path, "report.html") == tmp_path / "report.html"
    assert resolve_output(tmp_path / "new" / "page.html", "report.html") == tmp_path / "new" / "page.html"


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file is a file, not a folder"):
        resolve_output(tmp_path / "file" / "page.html", "report.html")


def test_figure_and_page_share_a_name(tmp_path):
    for out, stem in ((".", "explanation"), ("one.png", "one"), ("two.html", "two"), ("v1.2", "v1.2")):
        assert resolve_explanation(tmp_path / out) == (tmp_path / f"{stem}.png", tmp_path / f"{stem}.html")
    (tmp_path / "taken.html").mkdir()
    with pytest.raises(IsADirectoryError, match="taken.html is a folder"):
        resolve_explanation(tmp_path / "taken")


def test_missing_folders_are_made(tmp_path):
    write_output(tmp_path / "deep" / "down" / "page.html", b"page")
    assert (tmp_path / "deep" / "down" / "page.html").read_bytes() == b"page"
