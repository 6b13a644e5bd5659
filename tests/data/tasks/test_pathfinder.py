"""Pathfinder: labels are what a tracer finds, nothing but the path tells them, and LRA's folders are read."""

from __future__ import annotations

import hashlib
import io
import pickle
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy import ndimage
from scipy.sparse.csgraph import connected_components
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import paramixer as pm
from paramixer.data import DataError
from paramixer.data.tasks.pathfinder import lra_files, pathfinder
from paramixer.data.tasks.pathfinder.pathfinder import Group, Images, Job, draw_images, grow_groups


@pytest.fixture(scope="module")
def pooled() -> Images:
    """Images of all difficulties, which take turns: easy, easy, medium, medium, hard, hard."""
    return draw_images(Job("train", 0, 1800, 0, 32, "pooled"))


@pytest.fixture(scope="module", params=["easy", "medium", "hard"])
def group(request) -> Group:
    (found,) = grow_groups(Job("train", 0, 60, 1, 32, request.param))
    return found


def point_to_segment(point, begin, end):
    along = end - begin
    share = np.clip(((point - begin) * along).sum(-1) / (along * along).sum(-1), 0, 1)
    return np.linalg.norm(begin + share[..., None] * along - point, axis=-1)


def distances(paddles):
    """Between segments ``[paddles, 2, 2]``, as far as they do not cross."""
    begins, ends = paddles[:, 0], paddles[:, 1]
    of_points = [point_to_segment(point[:, None], begins[None], ends[None]) for point in (begins, ends)]
    nearest = np.minimum(*of_points)
    return np.minimum(nearest, nearest.T)


def traced(picture, scale: int = 4, threshold: int = 50) -> bool:
    """Whether the two discs of a picture are joined, from its pixels alone."""
    bright = ndimage.uniform_filter(picture.astype(float), 3, mode="constant")
    first = np.unravel_index(bright.argmax(), bright.shape)
    rows, columns = np.indices(bright.shape)
    bright[np.hypot(rows - first[0], columns - first[1]) < 3] = 0
    second = np.unravel_index(bright.argmax(), bright.shape)
    smooth = ndimage.zoom(picture.astype(float), scale, order=3, grid_mode=True, mode="grid-constant")
    parts, _ = ndimage.label(smooth > threshold, np.ones((3, 3)))
    here, there = (parts[tuple(scale * np.array(place) + scale // 2)] for place in (first, second))
    assert here
    assert there
    return bool(here == there)


def test_following_paddles_in_a_scene_leads_from_disc_to_disc_where_the_label_says_so(group):
    for points, discs, path in zip(group.scenes.points, group.discs, group.paths, strict=True):
        paddles = points[:, [0, 2]]
        _, parts = connected_components(distances(paddles) < 1.5)
        marked = [parts[np.linalg.norm(paddles - disc, axis=-1).min(1).argmin()] for disc in discs]
        assert (marked[0] == marked[1]) == path
        # Each snake is one part, and no two snakes are.
        assert len(set(zip(parts.tolist(), group.scenes.plan.snakes.tolist(), strict=True))) == parts.max() + 1


@pytest.mark.parametrize("count", [300, pytest.param(1200, marks=pytest.mark.slow)])
def test_following_the_pixels_gives_the_label(pooled, count):
    right = np.array([traced(picture) for picture in pooled.pixels[:count]]) == pooled.paths[:count]
    level = np.arange(count) // 2 % 3
    for number in range(3):
        assert right[level == number].mean() >= 0.99


def test_snakes_have_the_lengths_and_numbers_of_the_long_range_arena():
    for difficulty, expected in (
        ("easy", [6, 6, *[2] * 10]),
        ("medium", [9, 9, *[3] * 6]),
        ("hard", [14, 14, *[4] * 5]),
    ):
        (found,) = grow_groups(Job("train", 0, 2, 0, 32, difficulty))
        assert np.bincount(found.scenes.plan.snakes).tolist() == expected


def test_snakes_keep_their_distance_and_stay_inside(group):
    snakes = group.scenes.plan.snakes
    ends = np.flatnonzero(np.diff(snakes, prepend=-1, append=-1)[:-1] | np.diff(snakes, append=-1))[:4]
    for points in group.scenes.points:
        paddles = points[:, [0, 2]]
        assert np.allclose(np.linalg.norm(paddles[:, 1] - paddles[:, 0], axis=-1), 2, atol=1e-3)
        between = distances(paddles)
        number = np.arange(len(paddles))
        follows = (snakes[:, None] == snakes) & (number[:, None] == number + 1)
        # Three points stand for a paddle when it is placed, which is a little less than the whole of it.
        assert between[~follows & ~follows.T & (number[:, None] != number)].min() > 2.4
        assert between[follows].max() <= 1 + 1e-3
        assert between[follows].min() > 0.5
        assert points.min() > 1
        assert points.max() < 31
        assert points[ends].min() >= 2.5
        assert points[ends].max() <= 29.5


def test_contours_begin_where_those_of_the_long_range_arena_do(group):
    """The first in the middle, twice as far from the border as the second from it; either of them is marked."""
    contour, points = group.scenes.plan.contour, group.scenes.points
    assert points[:, 0].min() >= 14 - 1e-3
    assert points[:, 0].max() <= 18 + 1e-3
    apart = points[:, contour, 0] - points[:, 0, 0]
    assert np.allclose(np.linalg.norm(apart, axis=-1), 7, atol=1e-3)
    of_first = (group.discs[:, 0] == points[:, 0, 0]).all(-1)
    assert (of_first | (group.discs[:, 0] == points[:, contour, 0]).all(-1)).all()
    for path in (True, False):
        assert 0.2 < of_first[group.paths == path].mean() < 0.8


def test_contours_bend_but_seldom_sharply(group):
    turns = np.diff(group.scenes.headings, axis=1)[:, np.diff(group.scenes.plan.snakes) == 0]
    degrees = np.abs((turns + 2048) % 4096 - 2048) * 360 / 4096
    assert degrees.max() <= 90
    assert 15 < np.median(degrees) < 35


def test_discs_are_white_and_all_the_rest_is_dimmer_on_average(pooled):
    for picture in pooled.pixels[:100]:
        assert (picture == 255).sum() >= 4
        assert picture.min() == 0
        assert 0.1 < (picture > 0).mean() < 0.4
    assert 60 < np.median(pooled.pixels[pooled.pixels > 0]) < 160


def test_labels_are_exactly_balanced_for_every_difficulty(pooled):
    level = np.arange(len(pooled.paths)) // 2 % 3
    assert [int(pooled.paths[level == number].sum()) for number in range(3)] == [300, 300, 300]
    assert 0.4 < pooled.paths[::2].mean() < 0.6


def test_a_linear_model_of_pixel_counts_cannot_tell_the_label(pooled):
    shades = np.stack([np.bincount(picture.reshape(-1) >> 4, minlength=16) for picture in pooled.pixels])
    level = np.eye(3)[np.arange(len(shades)) // 2 % 3]
    counts = np.column_stack([(pooled.pixels > 0).sum((1, 2)), pooled.pixels.sum((1, 2)), shades, level])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(counts[:900], pooled.paths[:900])
    assert model.score(counts[900:], pooled.paths[900:]) <= 0.55


def test_a_linear_model_of_pixels_cannot_tell_the_label(pooled):
    pixels = pooled.pixels.reshape(len(pooled.pixels), -1) / 255
    model = LogisticRegression(C=1e-3, max_iter=1000).fit(pixels[:900], pooled.paths[:900])
    assert model.score(pixels[900:], pooled.paths[900:]) <= 0.55


def test_every_picture_can_be_drawn_alone(pooled):
    for index in (0, 3, 5, 301):
        alone = draw_images(Job("train", index, index + 1, 0, 32, "pooled"))
        assert np.array_equal(alone.pixels[0], pooled.pixels[index])
        assert alone.paths[0] == pooled.paths[index]


def test_seeds_and_splits_give_different_pictures():
    found = [
        picture.tobytes()
        for split in ("train", "validation", "test")
        for seed in (0, 1)
        for picture in draw_images(Job(split, 0, 6, seed, 32, "easy")).pixels
    ]
    assert len(set(found)) == 36


def test_pictures_are_the_same_on_every_machine():
    digest = hashlib.sha256(draw_images(Job("train", 0, 12, 0, 32, "pooled")).pixels.tobytes()).hexdigest()
    assert digest == "7f89fcbbd1d92cc54dd6976888f55f58de58742f2b757888ba4e34957c74be06"
    digest = hashlib.sha256(draw_images(Job("test", 4, 6, 7, 128, "hard")).pixels.tobytes()).hexdigest()
    assert digest == "a8350c2289a0a190e9532c4fa62824aba0dda365c0028273b838023afa31989f"


def test_pictures_do_not_depend_on_the_number_of_processes(monkeypatch):
    monkeypatch.setattr(pathfinder, "_IMAGES_PER_JOB", 20)
    sizes = {"train": 50, "validation": 7, "test": 20}
    alone, together = (list(pathfinder.generate_rows(3, sizes, 32, "pooled", workers)) for workers in (1, 2))
    assert [split for split, _ in alone] == ["train"] * 50 + ["validation"] * 7 + ["test"] * 20
    for (split, row), (other_split, other) in zip(alone, together, strict=True):
        assert (split, row.target, row.id) == (other_split, other.target, other.id)
        assert np.array_equal(row.sequence, other.sequence)


def test_the_task_has_the_papers_facts_and_pictures_that_read_back(pooled):
    task = pm.data.load("pathfinder", difficulty="pooled", train=10, validation=4, test=6)
    assert [len(split) for split in task.splits.values()] == [10, 4, 6]
    assert (task.preset, task.metric, task.length, task.classes) == (
        "pathfinder",
        "accuracy",
        1024,
        ("no path", "path"),
    )
    assert len(task.vocabulary) == pm.preset("pathfinder").vocabulary
    assert task.vocabulary.pad is None
    assert task.settings["difficulty"] == "pooled"
    inputs, target = task.train[7]
    assert np.array_equal(inputs.numpy(), pooled.pixels[7].reshape(-1))
    assert target == int(pooled.paths[7])
    assert (task.train.path.parent / "train.arrow").stat().st_size < 10 * 1024 + 4096
    hard = pm.data.load("pathfinder", train=10, validation=4, test=6)
    assert hard.fingerprint != task.fingerprint


@pytest.mark.parametrize("size", [16, 48, 128])
def test_pictures_have_any_size(size):
    task = pm.data.load("pathfinder", size=size, train=4, validation=2, test=2)
    assert task.length == size * size
    assert task.train[0].inputs.shape == (size * size,)


def test_the_paths_of_path_x_are_unambiguous_too():
    (found,) = grow_groups(Job("train", 0, 20, 0, 128, "hard"))
    snakes = found.scenes.plan.snakes
    for points, discs, path in zip(found.scenes.points, found.discs, found.paths, strict=True):
        paddles = points[:, [0, 2]]
        between = distances(paddles)
        assert between[snakes[:, None] != snakes].min() > 6
        _, parts = connected_components(between < 3)
        marked = [parts[np.linalg.norm(paddles - disc, axis=-1).min(1).argmin()] for disc in discs]
        assert (marked[0] == marked[1]) == path


def test_a_scene_is_the_same_at_other_sizes():
    small, large = (next(grow_groups(Job("train", 0, 4, 0, size, "hard"))).scenes.points for size in (32, 64))
    assert np.allclose(2 * small, large)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"difficulty": "harder"}, "difficulty='harder'"),
        ({"size": 8}, "size=8"),
        ({"length": 16384}, "give size"),
        ({"train": 0}, "train=0"),
    ],
)
def test_settings_that_make_no_sense_are_named(options, message):
    with pytest.raises(DataError, match=message):
        pm.data.load("pathfinder", **options)


def write(folder: Path, found: Images, name: str = "curv_contour_length_14", form: str = "text") -> Path:
    """A folder as LRA has it, with two lists of pictures."""
    target = folder / name
    (target / "metadata").mkdir(parents=True)
    half = len(found.pixels) // 2
    for part, numbers in enumerate((range(half), range(half, len(found.pixels)))):
        (target / "imgs" / str(part)).mkdir(parents=True)
        rows = []
        for number in numbers:
            Image.fromarray(found.pixels[number]).save(target / "imgs" / str(part) / f"sample_{number}.png")
            rows.append(
                [f"imgs/{part}", f"sample_{number}.png", str(number), str(int(found.paths[number])), "1.0", "14"]
            )
        file = target / "metadata" / f"{part}.npy"
        if form == "text":
            file.write_text("".join(" ".join(row) + "\n" for row in rows))
        else:
            np.save(file, np.array(rows).astype(form))
    return folder


@pytest.mark.parametrize("form", ["text", "S", "U"])
@pytest.mark.parametrize("inside", [False, True], ids=["pathfinder32", "its folder"])
def test_folders_of_lra_give_the_pictures_that_were_written(tmp_path, pooled, form, inside):
    few = Images(pooled.pixels[:40], pooled.paths[:40])
    source = write(tmp_path / "pathfinder32", few, form=form)
    task = pm.data.load("pathfinder", source=source / "curv_contour_length_14" if inside else source)
    assert [len(split) for split in task.splits.values()] == [32, 4, 4]
    assert task.notes == ()
    expected = {(picture.tobytes(), bool(path)) for picture, path in zip(few.pixels, few.paths, strict=True)}
    read = {
        (inputs.numpy().astype(np.uint8).tobytes(), bool(target))
        for split in task.splits.values()
        for inputs, target in split
    }
    assert read == expected
    index = task.train.id(0).rsplit("_", 1)[1].removesuffix(".png")
    assert np.array_equal(task.train[0].inputs.numpy(), few.pixels[int(index)].reshape(-1))


def test_pooled_folders_are_cut_as_in_the_paper(tmp_path, pooled):
    for part, name in enumerate(("curv_baseline", "curv_contour_length_9", "curv_contour_length_14")):
        some = slice(20 * part, 20 * part + 20)
        write(tmp_path, Images(pooled.pixels[some], pooled.paths[some]), name)
    task = pm.data.load("pathfinder", source=tmp_path, difficulty="pooled")
    assert [len(split) for split in task.splits.values()] == [54, 3, 3]


def test_an_empty_picture_is_left_out_with_a_note(tmp_path, pooled):
    write(tmp_path, Images(pooled.pixels[:40], pooled.paths[:40]))
    (tmp_path / "curv_contour_length_14" / "imgs" / "0" / "sample_3.png").write_bytes(b"")
    task = pm.data.load("pathfinder", source=tmp_path)
    assert sum(map(len, task.splits.values())) == 39
    assert task.notes == ("1 image files are empty and were left out",)


def replaced(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def halved(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def png(size: int) -> bytes:
    data = io.BytesIO()
    Image.new("L", (size, size)).save(data, "PNG")
    return data.getvalue()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "imgs/0/sample_1.png").unlink(), r"0.npy, line 2: there is no image imgs/0/sample_1.png"),
        (lambda f: (f / "imgs/0/sample_1.png").write_bytes(b"GIF89a"), r"sample_1.png: it cannot be read as PNG"),
        (lambda f: halved(f / "imgs/0/sample_1.png"), r"sample_1.png: it cannot be read as PNG"),
        (
            lambda f: (f / "imgs/0/sample_1.png").write_bytes(png(64)),
            r"sample_1.png: the image has 64 x 64 pixels",
        ),
        (
            lambda f: replaced(f / "metadata/0.npy", "sample_1.png 1 ", "sample_1.png 1 2"),
            r"0.npy, line 2: the label is",
        ),
        (lambda f: replaced(f / "metadata/0.npy", "sample_1.png", "../../x"), r"0.npy, line 2: .*outside"),
        (lambda f: (f / "metadata/1.npy").write_text("imgs/0 sample_0.png\n"), r"1.npy, line 1: 2 fields"),
        (lambda f: (f / "metadata/1.npy").write_bytes(b"\xff\xfe"), r"1.npy: neither text"),
        (lambda f: (f / "metadata/1.npy").write_bytes(b"\x93NUMPY\x01\x00"), r"1.npy: it cannot be read"),
        (lambda f: np.save(f / "metadata/1.npy", np.zeros((3, 5))), r"1.npy: an array of float64"),
        (lambda f: [file.unlink() for file in (f / "metadata").iterdir()], r"metadata: there is no list"),
        (lambda f: [file.write_text("\n") for file in (f / "metadata").iterdir()], r"not a single sequence"),
    ],
)
def test_what_is_wrong_in_a_folder_is_said_with_its_place(tmp_path, pooled, spoil, message):
    write(tmp_path, Images(pooled.pixels[:8], pooled.paths[:8]))
    spoil(tmp_path / "curv_contour_length_14")
    with pytest.raises(DataError, match=message):
        pm.data.load("pathfinder", source=tmp_path)


def test_a_list_of_python_objects_is_refused_and_not_opened(tmp_path, pooled):
    write(tmp_path, Images(pooled.pixels[:8], pooled.paths[:8]))
    np.save(tmp_path / "curv_contour_length_14/metadata/0.npy", np.array([[Touch(tmp_path / "made")]], object))
    with pytest.raises(DataError, match="never of Python objects"):
        pm.data.load("pathfinder", source=tmp_path)
    assert not (tmp_path / "made").exists()
    pickle.loads(pickle.dumps(Touch(tmp_path / "made")))
    assert (tmp_path / "made").exists()


def test_a_folder_without_pictures_of_the_difficulty_is_named(tmp_path, pooled):
    write(tmp_path, Images(pooled.pixels[:8], pooled.paths[:8]), "curv_baseline")
    with pytest.raises(DataError, match="no curv_contour_length_14/metadata"):
        pm.data.load("pathfinder", source=tmp_path)
    with pytest.raises(DataError, match="only the easy images"):
        pm.data.load("pathfinder", source=tmp_path / "curv_baseline")
    with pytest.raises(DataError, match="only the easy images"):
        pm.data.load("pathfinder", source=tmp_path / "curv_baseline", difficulty="pooled")
    with pytest.raises(DataError, match="no such folder"):
        pm.data.load("pathfinder", source=tmp_path / "elsewhere")
    with pytest.raises(DataError, match="leave them out"):
        pm.data.load("pathfinder", source=tmp_path, difficulty="easy", train=5)


@given(
    content=st.one_of(
        st.binary(max_size=80),
        st.builds(lambda rest: b"\x93NUMPY" + rest, st.binary(max_size=80)),
        st.builds(
            lambda header: b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode(),
            st.builds(
                "{{'descr': '{}', 'fortran_order': {}, 'shape': {}}}".format,
                st.sampled_from(["|S3", "<U4", "|O", "<f8", "<U-1", "|V0", "|S0"]),
                st.sampled_from(["True", "False", "3"]),
                st.sampled_from(["(2, 4)", "(0, 4)", "(2, 0)", "()", "(9999999999999, 4)", "(-1, 4)", "x"]),
            ),
        ),
        st.lists(st.sampled_from(["imgs", "a.png", "0", "1", "\n", "..", "/", "\0", "é"])).map(
            lambda words: " ".join(words).encode()
        ),
    )
)
def test_any_bytes_as_a_list_give_data_or_a_data_error(content):
    with tempfile.TemporaryDirectory() as folder:
        metadata = Path(folder, "metadata")
        metadata.mkdir()
        (metadata / "0.npy").write_bytes(content)
        with suppress(DataError):
            for sample in lra_files.read_samples([Path(folder)], 32, pathfinder.CLASSES, set()):
                assert len(sample.sequence) == 1024


@given(count=st.integers(1, 6), form=st.sampled_from(["text", "S", "U"]))
def test_any_well_formed_list_gives_its_images(pooled, count, form):
    few = Images(pooled.pixels[:count], pooled.paths[:count])
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), few, "curv_baseline", form if count > 1 else "text")
        samples = list(lra_files.read_samples([Path(folder, "curv_baseline")], 32, pathfinder.CLASSES, set()))
    assert [sample.sequence.tobytes() for sample in samples] == [pixels.tobytes() for pixels in few.pixels]
    assert [sample.target for sample in samples] == [pathfinder.CLASSES[int(path)] for path in few.paths]


def test_a_list_that_claims_a_trillion_empty_strings_is_refused(tmp_path):
    header = b"{'descr': '|S0', 'fortran_order': True, 'shape': (1, 1000000000000)}"
    file = tmp_path / "list.npy"
    file.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(DataError, match="table of strings"):
        lra_files._read_array(file.read_bytes(), file)
