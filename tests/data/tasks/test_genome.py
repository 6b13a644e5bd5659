"""FASTA files become a genome task: whole records, or windows of chromosomes that are split by position."""

from __future__ import annotations

import dataclasses
import gzip
import pickle
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
import torch

import paramixer as pm
from paramixer.data import DataError, registry
from paramixer.data.formats import fasta
from paramixer.data.rng import draw_bits, permutation
from paramixer.data.tasks import genome
from paramixer.data.tasks.genome import kmers, score_kmers
from paramixer.data.tasks.genome.class_files import are_chromosomes
from paramixer.data.tasks.genome.windows import WindowSequences, cut_windows, split_regions
from paramixer.data.vocabulary import BASES, Vocabulary


def bases(count: int, seed: int, letters="ACGT") -> str:
    return "".join(np.array(list(letters))[draw_bits(count, seed, "train", 0) % np.uint64(len(letters))])


def write(folder, **files):
    """A folder with a FASTA file for every keyword, of records by name."""
    folder.mkdir(exist_ok=True)
    for name, found in files.items():
        text = "".join(f">{record} about it\n{sequence}\n" for record, sequence in found.items())
        (folder / f"{name}.fa.gz").write_bytes(gzip.compress(text.encode(), 1))
    return folder


def coordinates(id: str) -> tuple[str, int, int]:
    record, _, span = id.rpartition(":")
    first, last = map(int, span.split("-"))
    return record, first - 1, last


def decoded(ids: torch.Tensor) -> str:
    return "".join("NACGT"[token] for token in ids.tolist())


@pytest.fixture(scope="module")
def transcripts(tmp_path_factory):
    """Records of 20 to 99 bases; those of fly are rich in T."""
    folder = tmp_path_factory.mktemp("data") / "transcripts"
    human = {f"h{number}": bases(20 + number % 80, number) for number in range(160)}
    fly = {f"f{number}": bases(20 + number % 80, number + 1000, "ACGTTT") for number in range(80)}
    return write(folder, human=human, fly=fly)


@pytest.fixture(scope="module")
def chromosomes(tmp_path_factory):
    """Two chromosomes with unknown bases for one class, one for the other."""
    folder = tmp_path_factory.mktemp("data") / "chromosomes"
    first = bases(240_000, 1)
    first = first[:30_000] + "N" * 500 + first[30_500:150_000] + "R" + first[150_001:170_000] + "n" + first[170_001:]
    return write(folder, weed={"1": first, "2:x": bases(201_003, 2)}, worm={"X": bases(220_000, 3, "ACGTT")})


def test_bases_have_the_papers_five_ids_and_n_pads():
    vocabulary = BASES
    assert len(vocabulary) == pm.preset("hfdna").vocabulary == pm.preset("mtcdna").vocabulary
    assert vocabulary.pad == vocabulary.unknown == pm.preset("hfdna").pad == 0
    assert vocabulary.cls is None
    assert vocabulary.encode("NACGTacgtR-").tolist() == [0, 1, 2, 3, 4, 1, 2, 3, 4, 0, 0]
    assert Vocabulary.from_document(vocabulary.document()) == vocabulary


def test_the_papers_two_tasks_and_ones_own_are_registered(transcripts):
    tasks = {name: registry.load(name, transcripts, 64, shortest=30) for name in ("genome", "hfdna", "mtcdna")}
    assert {name: task.name for name, task in tasks.items()} == {name: name for name in tasks}
    assert {name: task.preset for name, task in tasks.items()} == {
        "genome": "hfdna",
        "hfdna": "hfdna",
        "mtcdna": "mtcdna",
    }
    assert all(not registry.definitions()[name].generated for name in tasks)
    assert all("name" not in registry.definitions()[name].options for name in tasks)


def test_records_keep_their_letters_and_are_cut_to_n(transcripts):
    task = genome.load(source=transcripts, length=64, shortest=30)
    assert (task.classes, task.metric, task.outputs) == (("fly", "human"), "roc_auc", 2)
    assert task.settings == {"seed": 0, "windows": False, "strict": False, "shortest": 30}
    source = {r.name: r.sequence for name in task.classes for r in fasta.read_records(transcripts / f"{name}.fa.gz")}
    seen = []
    for split in task.splits.values():
        for index in range(len(split)):
            inputs, target = split[index]
            name = split.id(index)
            assert decoded(inputs) == source[name][:64]
            assert split.full_lengths[index] == len(source[name])
            assert task.classes[target] == ("human" if name.startswith("h") else "fly")
            seen.append(name)
    assert sorted(seen) == sorted(name for name, sequence in source.items() if len(sequence) > 30)


def test_only_records_over_the_shortest_are_taken(transcripts):
    def count(shortest):
        task = genome.load(source=transcripts, length=64, shortest=shortest)
        lengths = np.concatenate([split.full_lengths for split in task.splits.values()])
        assert lengths.min() == shortest + 1
        return len(lengths)

    assert count(19) == 240
    assert count(20) == 237
    task = genome.load(source=transcripts, length=64, shortest=20)
    assert task.notes[:2] == (
        "fly: 79 of 80 records have over 20 bases",
        "human: 158 of 160 records have over 20 bases",
    )


def test_by_default_records_over_5000_bases_are_taken(tmp_path):
    some = {f"r{n}": bases(length, n) for n, length in enumerate([4999, 5000, *[5001] * 9])}
    more = {name: sequence[::-1] for name, sequence in some.items()}
    task = genome.load(source=write(tmp_path / "both", a=some, b=more))
    assert sum(map(len, task.splits.values())) == 18
    assert task.length == 16384


def test_records_are_split_60_20_20_by_the_seed(transcripts):
    tasks = [genome.load(source=transcripts, length=64, shortest=0, seed=seed) for seed in (0, 0, 1)]
    ids = [{name: [split.id(i) for i in range(len(split))] for name, split in task.splits.items()} for task in tasks]
    assert {name: len(found) for name, found in ids[0].items()} == {"train": 144, "validation": 48, "test": 48}
    assert ids[0] == ids[1] != ids[2]
    assert tasks[0].fingerprint == tasks[1].fingerprint != tasks[2].fingerprint
    names = [f"f{n}" for n in range(80)] + [f"h{n}" for n in range(160)]
    assert ids[0]["test"] == [names[number] for number in sorted(permutation(240, 0)[48:96])]


def test_classes_choose_files_and_their_order(transcripts, tmp_path):
    folder = write(tmp_path / "three", a={"x": "ACGT" * 9}, b={"y": "ACGG" * 9}, c={"z": "AACC" * 9})
    for name in "abc":
        (folder / f"{name}.fa.gz").write_bytes(
            gzip.compress("".join(f">{name}{n}\n{bases(50, n, 'ACGT')}\n" for n in range(40)).encode())
        )
    (folder / "README.txt").write_text("not a class")
    assert genome.load(source=folder, shortest=5).classes == ("a", "b", "c")
    assert genome.load(source=folder, shortest=5).metric == "accuracy"
    task = genome.load(source=folder, shortest=5, classes=("c", "a"))
    assert (task.classes, task.metric) == (("c", "a"), "roc_auc")
    assert {task.train.id(i)[0] for i in np.flatnonzero(task.train.targets == 0)} == {"c"}


def test_names_of_classes_keep_dots_that_are_not_suffixes(transcripts, tmp_path):
    for name, file in {"human": "Homo.GRCh38.cdna.all.fa.gz", "fly": "fly.FASTA.GZ"}.items():
        (tmp_path / file).write_bytes((transcripts / f"{name}.fa.gz").read_bytes())
    task = genome.load(source=tmp_path, length=64, shortest=30)
    assert task.classes == ("Homo.GRCh38.cdna.all", "fly")


def test_every_base_belongs_to_one_split_or_a_gap():
    for count in (10, 999, 1000, 123_457):
        train, validation, test = split_regions(count, 7)
        assert (train.begin, test.end) == (0, count)
        assert (validation.begin - train.end, test.begin - validation.end) == (7, 7)
        assert abs(train.end - 0.6 * count) < 1
        assert abs(validation.end - 0.8 * count) < 1


def test_windows_are_split_by_position_and_never_touch(chromosomes):
    task = genome.load(source=chromosomes, length=256, stride=100)
    assert task.settings == {"seed": 0, "windows": True, "strict": False, "stride": 100}
    source = {
        (target, record.name): record.sequence
        for target, name in enumerate(task.classes)
        for record in fasta.read_records(chromosomes / f"{name}.fa.gz")
    }
    found = defaultdict(list)
    for name, split in task.splits.items():
        assert set(split.lengths.tolist()) == {256}
        for index in range(len(split)):
            inputs, target = split[index]
            record, begin, end = coordinates(split.id(index))
            key = int(split.targets[index]), record
            assert key[0] == target
            assert end - begin == 256
            assert decoded(inputs) == source[key][begin:end]
            assert "N" not in source[key][begin:end]
            found[key, name].append((begin, end))
    assert {key for key, _ in found} == set(source)
    for key, sequence in source.items():
        train, validation, test = (sorted(found[key, name]) for name in ("train", "validation", "test"))
        assert train[-1][1] <= len(sequence) * 6 // 10
        assert validation[0][0] - train[-1][1] >= 256
        assert test[0][0] - validation[-1][1] >= 256
        assert len(sequence) - test[-1][1] < 256
        for held_out in (validation, test):
            assert all(one[1] <= other[0] for one, other in pairwise(held_out))


def test_held_out_windows_are_as_many_as_fit(chromosomes):
    task = genome.load(source=chromosomes, length=256)
    # Record 1 has unknown bases in validation, at 150 000 and 170 000; there are none elsewhere in what is held out.
    first = (150_000 - 144_256) // 256 + (170_000 - 150_001) // 256 + (192_000 - 170_001) // 256
    second, worm = (160_802 - 120_857) // 256, (176_000 - 132_256) // 256
    assert np.bincount(task.validation.targets).tolist() == [first + second, worm]
    first, second, worm = (240_000 - 192_256) // 256, (201_003 - 161_058) // 256, (220_000 - 176_256) // 256
    assert np.bincount(task.test.targets).tolist() == [first + second, worm]


def test_training_windows_by_default_are_as_many_as_fit_side_by_side(chromosomes):
    task = genome.load(source=chromosomes, length=256)
    weed = 30_000 // 256 + (144_000 - 30_500) // 256 + 120_601 // 256
    assert np.bincount(task.train.targets).tolist() == [weed, 132_000 // 256]
    denser = genome.load(source=chromosomes, length=256, stride=32)
    assert len(denser.train) == pytest.approx(8 * len(task.train), rel=0.01)
    assert len(denser.test) == len(task.test)


def test_training_windows_start_anywhere(chromosomes):
    train = genome.load(source=chromosomes, length=256, stride=16).train
    starts = np.array([coordinates(train.id(index))[1] for index in np.flatnonzero(train.targets == 1).tolist()])
    assert np.bincount(starts % 16, minlength=16).min() > 0.05 * len(starts)
    assert starts[0] < 16
    assert starts[-1] > 132_000 - 256 - 16
    assert 0 < np.diff(starts).min() < 4
    assert 28 < np.diff(starts).max() < 32


def test_windows_follow_from_seed_and_index_alone(chromosomes):
    first, again, other = (genome.load(source=chromosomes, length=256, seed=seed).train for seed in (3, 3, 4))
    assert isinstance(first, WindowSequences)
    order = [17, 3, 900, 3]
    items = first.__getitems__(order)
    assert all(torch.equal(item.inputs, again[index].inputs) for item, index in zip(items, order, strict=True))
    copied = pickle.loads(pickle.dumps(first))
    assert torch.equal(copied[17].inputs, first[17].inputs)
    assert torch.equal(first[-1].inputs, first[len(first) - 1].inputs)
    assert sum(first.id(index) == other.id(index) for index in range(len(first))) < 0.1 * len(first)
    with pytest.raises(IndexError):
        first[len(first)]


def test_windows_are_the_same_on_every_machine(chromosomes):
    train = genome.load(source=chromosomes, length=256, seed=5).train
    assert [train.id(index) for index in (0, 500, 1000, len(train) - 1)] == [
        "1:187-442",
        "1:128558-128813",
        "2:x:112497-112752",
        "X:131527-131782",
    ]


def test_a_stretch_as_long_as_a_window_gives_one():
    sequence = "".join(("A" * 50 + "N") * 4 for _ in range(20))
    found = list(cut_windows(sequence, 50, 50))
    assert len(found) > 60
    assert all(end - begin == 50 and begin % 51 == 0 for _, begin, end in found)
    assert not list(cut_windows(sequence, 51, 51))


def test_long_regions_are_stored_in_pieces_without_losing_a_start(monkeypatch):
    monkeypatch.setattr("paramixer.data.tasks.genome.windows._PIECE", 1000)
    sequence = bases(30_000, 9)
    sequence = sequence[:7000] + "N" + sequence[7001:]
    for length, stride in ((50, 50), (50, 7), (64, 3000)):
        train = [cut for cut in cut_windows(sequence, length, stride) if cut.split == "train"]
        starts = [start for _, begin, end in train for start in range(begin, end - length + 1)]
        assert starts == [start for start in range(18_000 - length + 1) if "N" not in sequence[start : start + length]]
        slots = sum(-(-(end - begin - length + 1) // stride) for _, begin, end in train)
        assert slots == -(-(7000 - length + 1) // stride) + -(-(18_000 - 7001 - length + 1) // stride)


def test_chromosomes_are_told_from_transcripts_by_where_their_bases_are():
    chromosomes, transcripts = np.array([27_000_000, 400_000, *[900] * 50]), np.array([109_000, *[3000] * 20_000])
    assert are_chromosomes(chromosomes, 16384)
    assert not are_chromosomes(transcripts, 16384)
    assert not are_chromosomes(transcripts, 16)
    assert not are_chromosomes(np.array([250_000]), 16384)
    assert are_chromosomes(np.array([250_000]), 4096)
    assert not are_chromosomes(np.array([250_000, *[3000] * 100]), 4096)


def test_windows_may_be_asked_for_or_refused(tmp_path, transcripts):
    one = bases(200_000, 0)
    long = {f"r{number}": one[number:] + one[:number] for number in range(5)}
    folder = write(tmp_path / "long", a=long, b={name: sequence[::-1] for name, sequence in long.items()})
    assert genome.load(source=folder, length=256).settings["windows"]
    whole = genome.load(source=folder, length=256, windows=False)
    assert [len(split) for split in whole.splits.values()] == [6, 2, 2]
    assert not genome.load(source=transcripts, length=4, shortest=5).settings["windows"]
    assert isinstance(genome.load(source=transcripts, length=4, windows=True).train, WindowSequences)


def test_a_training_item_reads_only_its_window(chromosomes, monkeypatch):
    train = genome.load(source=chromosomes, length=256).train
    asked = []
    part = train.stored.part
    monkeypatch.setattr(train.stored, "part", lambda *where: asked.append(where) or part(*where))
    train[3]
    ((_, begin, end),) = asked
    assert end - begin == 256


def refused(folder, **options) -> str:
    with pytest.raises(DataError) as error:
        genome.load(source=folder, **options)
    return str(error.value)


def test_what_makes_no_task_is_said_with_the_remedy(tmp_path, transcripts, chromosomes):
    (tmp_path / "empty").mkdir()
    one = write(tmp_path / "one", human={"x": "ACGT"})
    assert "two or more are needed" in refused(tmp_path / "empty")
    assert "two or more are needed" in refused(one)
    assert "give a folder with two or more" in refused(one / "human.fa.gz")
    assert "no such file" in refused(tmp_path / "absent")
    assert "no record has over 5000 bases, the most is 99; lower shortest" in refused(transcripts)
    assert "no FASTA file for class 'mouse'; there are fly, human" in refused(transcripts, classes=("fly", "mouse"))
    assert "two or more are needed" in refused(transcripts, classes=("fly",))
    assert "length=1" in refused(transcripts, length=1)
    assert "stride=0" in refused(transcripts, stride=0)
    message = refused(chromosomes, length=30_000, windows=True)
    assert "no window of 30000 bases without N for" in message
    assert "lower the length" in message
    (one / "human.fasta").write_text(">x\nACGT\n")
    assert "class 'human' is also in" in refused(one)


def test_bad_files_are_named_and_leave_nothing_behind(tmp_path, cache_folder):
    folder = write(tmp_path / "both", a={"x": "ACGT" * 2000}, b={"y": "ACGT" * 2000})
    (folder / "b.fa.gz").write_bytes((folder / "b.fa.gz").read_bytes()[:-9])
    assert "b.fa.gz, after line" in refused(folder)
    write(folder, b={"y": "MEFILPQZ" * 2000})
    assert "is it protein?" in refused(folder)
    write(folder, b={"y": "ACG-T" * 2000})
    assert "'-' is not a base" in refused(folder, strict=True)
    assert not [path for path in cache_folder.iterdir() if path.is_dir()]


def test_letters_that_are_no_bases_are_noted(tmp_path):
    some = {f"r{n}": bases(60, n) for n in range(9)}
    folder = write(tmp_path / "both", a=some, b={name: f"AC-X{sequence}" for name, sequence in some.items()})
    task = genome.load(source=folder, shortest=5)
    assert "b: 18 letters that are no bases read as N" in task.notes


def test_a_changed_file_is_read_again(tmp_path):
    folder = write(
        tmp_path / "both", a={f"r{n}": bases(60, n) for n in range(9)}, b={f"r{n}": bases(60, n) for n in range(9)}
    )
    before = genome.load(source=folder, shortest=5)
    write(folder, b={f"r{n}": bases(61, n + 50) for n in range(12)})
    after = genome.load(source=folder, shortest=5)
    assert sum(map(len, before.splits.values())) == 18
    assert sum(map(len, after.splits.values())) == 21
    assert before.fingerprint != after.fingerprint


def test_counts_of_kmers_are_those_of_the_letters(transcripts):
    task = genome.load(source=transcripts, length=64, shortest=30)
    shares = kmers._compute_shares(task.test, range(len(task.test)), 2)
    for index in range(len(task.test)):
        text = decoded(task.test[index].inputs)
        pairs = [text[place : place + 2] for place in range(len(text) - 1)]
        wanted = [pairs.count(first + second) / len(pairs) for first in "ACGT" for second in "ACGT"]
        np.testing.assert_allclose(shares[index], wanted, rtol=1e-5)


def test_kmers_with_an_unknown_base_are_left_out(tmp_path):
    folder = write(tmp_path / "both", a={f"r{n}": "ACNGT" for n in range(9)}, b={f"r{n}": "NN" for n in range(9)})
    task = genome.load(source=folder, shortest=1)
    both = kmers._compute_shares(task.train, range(len(task.train)), 2)
    for shares, target in zip(both, task.train.targets, strict=True):
        assert shares[[0b0001, 0b1011]].tolist() == ([0.5, 0.5] if target == 0 else [0, 0])
        assert shares.sum() == (target == 0)


def test_the_baseline_learns_what_kmers_tell_and_nothing_else(tmp_path):
    def records(letters, seed):
        return {f"r{n}": bases(300, 1000 * seed + n, letters) for n in range(120)}

    told = write(tmp_path / "told", a=records("ACGT", 1), b=records("ACGTT", 2))
    alike = write(tmp_path / "alike", a=records("ACGT", 1), b=records("ACGT", 2))
    task = genome.load(source=told, shortest=5)
    assert score_kmers(task) > 0.9
    assert score_kmers(dataclasses.replace(task, metric="accuracy")) > 0.8
    assert 0.25 < score_kmers(genome.load(source=alike, shortest=5)) < 0.75
    with pytest.raises(ValueError, match="k=7; choose 1 to 6"):
        score_kmers(task, 7)


def test_real_chromosomes_have_the_windows_that_were_counted(shared_data):
    counts = []
    for path in sorted((shared_data / "genome").glob("*.fa.gz")):
        (record,) = fasta.read_records(path, strict=True)
        text = record.sequence
        counts.append(sum("N" not in text[at : at + 16384] for at in range(0, len(text) - 16383, 16384)))
    assert counts == [1638, 1081]


def test_real_chromosomes_are_cut_into_windows_by_themselves(shared_data):
    task = genome.load(source=shared_data / "genome")
    assert task.settings["windows"]
    assert task.classes == ("arabidopsis_thaliana_chr5_TAIR9", "caenorhabditis_elegans_chrX_ce2")
    # Two gaps of one window, and what is left over at ends and beside unknown bases.
    assert 1638 + 1081 - 10 < sum(map(len, task.splits.values())) <= 1638 + 1081
    for split in task.splits.values():
        assert split.targets.mean() == pytest.approx(1081 / (1638 + 1081), abs=0.005)
        for index in range(0, len(split), 50):
            inputs, _ = split[index]
            assert len(inputs) == 16384
            assert inputs.min() >= 1


@pytest.mark.slow
def test_kmers_tell_real_chromosomes_apart_where_single_bases_do_not(shared_data):
    """The README of the data says 99 % for 3-mers and 57 % for bases at 4 096 bases, with a split of its own."""
    task = dataclasses.replace(genome.load(source=shared_data / "genome", length=4096), metric="accuracy")
    assert score_kmers(task) == pytest.approx(0.99, abs=0.005)
    assert score_kmers(task, 1) < 0.65
