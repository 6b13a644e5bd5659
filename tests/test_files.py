from __future__ import annotations

import pytest

from paramixer import files


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "file"
    for content in (b"old", b"new and longer"):
        files.replace_file(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["write_synced", "sync_folder"])
def test_an_interrupted_replacement_leaves_a_whole_file_and_nothing_else(step, tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupt(*arguments):
        if step == "write_synced":
            arguments[0].write_bytes(b"ne")
        raise KeyboardInterrupt

    monkeypatch.setattr(files, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.replace_file(path, b"new")
    assert path.read_bytes() == (b"old" if step == "write_synced" else b"new")
    assert list(tmp_path.iterdir()) == [path]


def test_a_synced_file_is_never_overwritten(tmp_path):
    files.write_synced(tmp_path / "file", b"one")
    with pytest.raises(FileExistsError):
        files.write_synced(tmp_path / "file", b"two")
