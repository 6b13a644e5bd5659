"""Folders by class: texts, images and sounds become sequences, and what does not fit names the flag."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from paramixer.data import load
from paramixer.data.errors import DataError
from paramixer.data.formats import unlabeled
from paramixer.data.tasks.user_file import LONGEST


def fails(path, **options) -> str:
    with pytest.raises(DataError) as caught:
        load(path, **options)
    return str(caught.value)


def write_texts(folder, splits=("",), suffix=".txt"):
    for split in splits:
        for number in range(24):
            place = folder / split / ("pos" if number % 2 else "neg")
            place.mkdir(parents=True, exist_ok=True)
            content = f"text {number} of {split or 'all'}".encode()
            (place / f"{number}{suffix}").write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    return folder


def write_images(folder, mode="RGB", size=(6, 4), count=12, suffix="png"):
    draw = np.random.default_rng(0)
    for number in range(count):
        place = folder / ("b" if number % 2 else "a")
        place.mkdir(parents=True, exist_ok=True)
        pixels = draw.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        Image.fromarray(pixels).convert(mode).save(place / f"{number}.{suffix}")
    return folder


def write_sounds(folder, rate=8000, count=12, seconds=0.05, channels=1):
    for number in range(count):
        place = folder / ("high" if number % 2 else "low")
        place.mkdir(parents=True, exist_ok=True)
        times = np.arange(int(rate * seconds)) / rate
        wave = np.sin(2 * np.pi * (800 if number % 2 else 200) * times)
        soundfile.write(place / f"{number}.wav", np.stack([0.5 * wave] * channels, 1), rate)
    return folder


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_texts_by_class(tmp_path, suffix):
    task = load(write_texts(tmp_path / "texts", suffix=suffix))
    assert task.classes == ("neg", "pos")
    assert [len(split) for split in task.splits.values()] == [20, 2, 2]
    assert {task.train.id(index) for index in range(20)} <= {str(number) for number in range(24)}


def test_folders_of_splits_are_kept(tmp_path):
    task = load(write_texts(tmp_path / "texts", ("train", "valid", "test")))
    assert [len(split) for split in task.splits.values()] == [24, 24, 24]
    assert "splits: the folders above those of the classes" in task.describe()


def test_an_archive_is_read_like_its_folder(tmp_path):
    folder = write_images(tmp_path / "images")
    shutil.make_archive(str(tmp_path / "packed"), "zip", folder)
    assert [len(split) for split in load(tmp_path / "packed.zip").splits.values()] == [8, 2, 2]


def test_texts_in_another_encoding_name_the_flag(tmp_path):
    folder = write_texts(tmp_path / "texts")
    (folder / "pos" / "1.txt").write_bytes(b"caf\xe9")
    assert "pos/1.txt: not UTF-8 (byte 0xe9 at position 3); give its encoding, perhaps --encoding latin-1" in fails(
        folder
    )
    assert load(folder, encoding="latin-1").classes == ("neg", "pos")


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "L", "1", "I;16"])
def test_images_are_read_row_by_row(tmp_path, mode):
    folder = write_images(tmp_path / "images", "L" if mode == "I;16" else mode)
    if mode == "I;16":
        for path in folder.rglob("*.png"):
            Image.fromarray(np.asarray(Image.open(path)).astype(np.uint16) * 257).save(path)
    task = load(folder)
    color = mode in ("RGB", "RGBA", "P")
    assert (task.length, task.features, task.preset) == (24, 3 if color else None, "adding" if color else "image")
    path = folder / task.train.id(0)
    pixels = np.asarray(Image.open(path)) >> 8 if mode == "I;16" else Image.open(path).convert("RGB" if color else "L")
    expected = np.asarray(pixels, np.float32) / (255 if color else 1)
    assert np.array_equal(task.train[0].inputs.numpy().astype(np.float32), expected.reshape(24, *[3] * color))


def test_images_of_several_sizes_are_resized_when_asked(tmp_path):
    folder = write_images(tmp_path / "images")
    Image.new("RGB", (9, 9)).save(folder / "b" / "other.png")
    assert "b/other.png: the image has 9 x 9 pixels, where the first has 6 x 4; resize all with --image-size" in fails(
        folder
    )
    assert load(folder, image_size=5).length == 25
    assert load(folder, image_size="5").fingerprint == load(folder, image_size=5).fingerprint
    task = load(folder, image_size="5x3")
    assert (task.length, task.describe()[3]) == (15, "images: 5 x 3 pixels, colors (--image-size)")
    assert [len(item.sequence) for item in unlabeled.read(folder, task)] == [15] * 13
    assert [len(item.sequence) for item in unlabeled.read(folder / "b" / "other.png", task)] == [15]


def test_large_images_are_not_cut_silently(tmp_path):
    folder = write_images(tmp_path / "images", size=(LONGEST, 2), count=6)
    assert f"images of {LONGEST} x 2 pixels are sequences of 32,768; resize them with --image-size 64" in fails(folder)
    assert load(folder, length=2 * LONGEST).length == 2 * LONGEST


def test_a_damaged_image_or_sound_is_named(tmp_path):
    images, sounds = write_images(tmp_path / "images"), write_sounds(tmp_path / "sounds")
    whole = (images / "b" / "3.png").read_bytes()
    (images / "b" / "3.png").write_bytes(whole[:50])
    assert "b/3.png: it cannot be read as an image" in fails(images)
    for path in images.rglob("*.png"):
        path.write_bytes(b"no image")
    assert fails(images).endswith("it cannot be read as an image (cannot identify image file)")
    (sounds / "high" / "3.wav").write_bytes(b"RIFF")
    assert "high/3.wav: it cannot be read as audio" in fails(sounds)


@pytest.mark.parametrize("channels", [1, 2])
def test_sounds_are_signals(tmp_path, channels):
    task = load(write_sounds(tmp_path / "sounds", channels=channels))
    assert (task.length, task.features, task.classes) == (400, channels, ("high", "low"))
    assert float(task.train[0].inputs.abs().max()) == pytest.approx(0.48, abs=0.03)
    words = "1 channel" if channels == 1 else "2 channels"
    assert f"sounds: 8000 samples per second, {words} (--rate)" in task.describe()


def test_sounds_of_several_rates_are_resampled_when_asked(tmp_path):
    folder = write_sounds(tmp_path / "sounds")
    soundfile.write(folder / "low" / "other.wav", np.zeros(320), 6400)
    assert "low/other.wav: 6400 samples per second, where others have 8000; resample all with --rate 6400" in fails(
        folder
    )
    assert load(folder, rate=4000).length == 200
    assert "low/other.wav: 6400 samples per second, fewer than the 7000 of --rate; lower it" in fails(folder, rate=7000)
    soundfile.write(folder / "low" / "other.wav", np.zeros((320, 2)), 8000)
    assert "2 channels, where others have 1" in fails(folder)


def test_long_sounds_get_a_lower_rate_rather_than_being_cut(tmp_path):
    task = load(write_sounds(tmp_path / "sounds", rate=44_100, seconds=1, count=6))
    assert task.length == 14_700
    assert "sounds: 14700 samples per second, resampled from 44100, 1 channel (--rate)" in task.describe()
    assert load(tmp_path / "sounds", length=1000).settings["rate"] == 44_100


def test_a_table_can_name_its_files(tmp_path):
    write_sounds(tmp_path / "sounds")
    rows = [f"sounds/{'high' if n % 2 else 'low'}/{n}.wav,{n % 3}" for n in range(12)]
    table = tmp_path / "a.csv"
    table.write_text("\n".join(["file,kind", *rows]))
    task = load(table, rate=4000)
    assert (task.length, task.features, task.classes) == (200, 1, ("0", "1", "2"))
    assert [item.sequence.shape for item in unlabeled.read(table, task)] == [(200, 1)] * 12
    of_folder = load(tmp_path / "sounds", rate=4000)
    assert [item.sequence.shape for item in unlabeled.read(table, of_folder)] == [(200, 1)] * 12
    table.write_text("\n".join(["file,kind", *rows, "sounds/none.wav,1"]))
    assert "line 14: there is no file 'sounds/none.wav'; paths are relative to the folder of the table" in fails(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "x"}, "in folders the class is the name of the folder"),
        ({"rate": 5}, "the folder holds texts; leave out --rate"),
        ({"image_size": "5y"}, "image_size=5y; write one number of pixels, 32, or width and height, 32x24"),
        ({"alphabet": "rna"}, "alphabet='rna'; choose from dna, protein, text"),
        ({"rate": 0}, "rate=0; it must be a whole number of at least 1"),
        ({"encoding": "hex"}, "encoding='hex' is none; try utf-8, latin-1, cp1252 or utf-16"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, options, message):
    assert message in fails(write_texts(tmp_path / "texts"), **options)


def test_a_note_names_the_current_folder(tmp_path, monkeypatch):
    folder = write_texts(tmp_path / "texts")
    write_images(folder, count=1)
    monkeypatch.chdir(folder)
    assert load(Path()).notes[0].startswith("texts was read as texts; ")


def test_a_folder_of_anything_else_says_what_is_expected(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.doc").write_text("x")
    assert "no texts (.txt), images or sounds in folders of classes; expected CLASS/NAME" in fails(tmp_path / "folder")
