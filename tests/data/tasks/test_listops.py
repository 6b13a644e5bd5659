"""ListOps: generated trees are right, LRA's files are read, and bad files are named with their line."""

from __future__ import annotations

import hashlib
import random
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paramixer as pm
from paramixer.data import DataError
from paramixer.data.tasks import listops
from paramixer.data.tasks.listops import Job, grow_trees


def words_of(tokens) -> list[str]:
    return [listops.VOCABULARY.symbols[token] for token in tokens]


def some(job: Job) -> list[tuple[list[str], int]]:
    found = grow_trees(job)
    sequences = np.split(found.tokens, np.cumsum(found.lengths)[:-1])
    return [(words_of(tokens), value) for tokens, value in zip(sequences, found.values.tolist(), strict=True)]


def evaluated(words: list[str]) -> tuple[int, int, list[int]]:
    """Value, depth and numbers of arguments, by a stack of the operators that are open."""
    open_lists: list[list] = [[]]
    deepest, counts = 0, []
    for word in words:
        if word.startswith("["):
            open_lists.append([word])
        elif word == "]":
            operator, *arguments = open_lists.pop()
            counts.append(len(arguments))
            arguments.sort()
            if operator == "[MIN":
                value = arguments[0]
            elif operator == "[MAX":
                value = arguments[-1]
            elif operator == "[SM":
                value = sum(arguments) % 10
            else:
                value = int(np.median(arguments))
            open_lists[-1].append(value)
        else:
            open_lists[-1].append(int(word))
            deepest = max(deepest, len(open_lists))
    ((value,),) = open_lists
    return value, deepest, counts


def naive_tree(rng: random.Random, limit: int) -> list[str] | None:
    """A tree as the definition says; None as soon as it has ``limit`` tokens."""
    tokens: list[str] = []

    def grow(depth: int) -> bool:
        if depth == 10 or rng.random() > 0.25:
            tokens.append(str(rng.randrange(10)))
            return len(tokens) < limit
        tokens.append(rng.choice(listops.OPERATORS))
        if not all(grow(depth + 1) for _ in range(rng.randint(2, 10))):
            return False
        tokens.append("]")
        return len(tokens) < limit

    return tokens if grow(1) else None


def measures(words: list[str], evaluation: tuple[int, int, list[int]]) -> list[float]:
    """Length, shares of operators, MED and a digit, mean arguments, arguments of the root, and value."""
    value, _, counts = evaluation
    return [
        len(words),
        sum(word.startswith("[") for word in words) / len(words),
        words.count("[MED") / words.count("]"),
        words.count("7") / len(words),
        float(np.mean(counts)),
        counts[-1],
        value,
    ]


def in_parentheses(words: list[str]) -> str:
    """As LRA writes it: every argument closes one more pair."""
    done: list[list[str]] = [[]]
    for word in words:
        if word.startswith("["):
            done.append([word])
        elif word == "]":
            text, *rest = done.pop()
            for part in [*rest, "]"]:
                text = f"( {text} {part} )"
            done[-1].append(text)
        else:
            done[-1].append(word)
    return done[0][0]


@pytest.fixture(scope="module")
def generated() -> list[tuple[list[str], int]]:
    return some(Job("train", 0, 600, 0, 2000))


@pytest.fixture(scope="module")
def evaluations(generated) -> list[tuple[int, int, list[int]]]:
    """What the independent evaluator finds, computed once."""
    return [evaluated(words) for words, _ in generated]


def test_generated_trees_agree_with_an_independent_evaluator(generated, evaluations):
    assert [value for _, value in generated] == [value for value, _, _ in evaluations]


def test_length_depth_and_arguments_are_within_the_bounds_and_reach_them(generated, evaluations):
    lengths = [len(words) for words, _ in generated]
    assert min(lengths) > 500
    assert max(lengths) < 2000
    assert min(lengths) < 520
    assert max(lengths) > 1900
    assert max(deepest for _, deepest, _ in evaluations) == 10
    assert {count for _, _, counts in evaluations for count in counts} == set(range(2, 11))


def test_generated_trees_are_distributed_like_trees_that_are_drawn_naively_and_rejected(generated, evaluations):
    rng = random.Random(0)
    naive: list[list[str]] = []
    while len(naive) < 200:
        words = naive_tree(rng, 2000)
        if words is not None and len(words) > 500:
            naive.append(words)
    here = np.array([measures(words, found) for (words, _), found in zip(generated, evaluations, strict=True)])
    there = np.array([measures(words, evaluated(words)) for words in naive])
    error = np.sqrt(here.var(0) / len(here) + there.var(0) / len(there))
    assert (np.abs(here.mean(0) - there.mean(0)) < 4 * error).all()


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("[MED 1 2 ]", 1),
        ("[MED 9 0 4 ]", 4),
        ("[MED 9 8 1 2 ]", 5),
        ("[SM 9 9 5 ]", 3),
        ("[MAX [MIN 7 3 ] 2 ]", 3),
    ],
)
def test_the_evaluator_of_these_tests_knows_what_the_operators_mean(words, value):
    assert evaluated(words.split())[0] == value


def test_every_tree_can_be_drawn_alone(generated):
    for index in (0, 17, 599):
        assert some(Job("train", index, index + 1, 0, 2000)) == [generated[index]]


def test_seeds_and_splits_give_different_trees():
    found = [
        tuple(words)
        for split in ("train", "validation", "test")
        for seed in (0, 1)
        for words, _ in some(Job(split, 0, 20, seed, 2000))
    ]
    assert len(set(found)) == 120


def test_no_tree_stands_twice(generated):
    assert len({tuple(words) for words, _ in generated}) == len(generated)


def test_trees_are_the_same_on_every_machine():
    found = grow_trees(Job("train", 0, 50, 0, 2000))
    digest = hashlib.sha256(found.tokens.tobytes() + found.values.astype("<i8").tobytes()).hexdigest()
    assert digest == "4251a637c64c5b31c1a42c29a7e9f2d5c7b684248d2080882f982f04b5ca0140"


def test_trees_do_not_depend_on_the_number_of_processes(monkeypatch):
    monkeypatch.setattr(listops, "_TREES_PER_JOB", 20)
    sizes = {"train": 70, "validation": 5, "test": 21}
    alone, together = (list(listops.generate_rows(3, sizes, 2000, workers)) for workers in (1, 2))
    assert [split for split, _ in alone] == ["train"] * 70 + ["validation"] * 5 + ["test"] * 21
    assert len(alone) == len(together)
    for (split, row), (other_split, other) in zip(alone, together, strict=True):
        assert (split, row.target, row.id) == (other_split, other.target, other.id)
        assert np.array_equal(row.sequence, other.sequence)


def test_the_task_has_the_papers_facts_and_sequences_that_read_back():
    task = pm.data.load("listops", train=30, validation=4, test=5, seed=2)
    assert [len(split) for split in task.splits.values()] == [30, 4, 5]
    assert (task.preset, task.metric, task.length) == ("listops", "accuracy", 2000)
    assert task.classes == tuple("0123456789")
    assert task.vocabulary.symbols == ("<pad>", "[MIN", "[MAX", "[MED", "[SM", "]", *"0123456789")
    assert len(task.vocabulary) == pm.preset("listops").vocabulary
    for split in task.splits.values():
        for index, (inputs, target) in enumerate(split):
            words = words_of(inputs.tolist())
            assert evaluated(words)[0] == target.item() == split.targets[index]
            assert task.vocabulary.encode(" ".join(words)).tolist() == inputs.tolist()
    again = pm.data.load("listops", train=30, validation=4, test=5, seed=2)
    assert again.fingerprint == task.fingerprint
    assert pm.data.load("listops", train=30, validation=4, test=5, seed=3).fingerprint != task.fingerprint


@pytest.mark.parametrize("length", [5, 20, 100, 4000])
def test_trees_fit_any_length(length):
    task = pm.data.load("listops", length=length, train=40, validation=1, test=1)
    assert task.length == length
    assert task.train.lengths.max() < length
    assert task.train.lengths.min() > min(500, length // 4)
    assert all(evaluated(words_of(inputs.tolist()))[0] == target for inputs, target in task.train)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"length": 4}, "length=4"), ({"train": 0}, "train=0"), ({"test": -1}, "test=-1")],
)
def test_settings_that_make_no_sense_are_named(options, message):
    with pytest.raises(DataError, match=message):
        pm.data.load("listops", **options)


def write(folder: Path, **contents: bytes | str) -> Path:
    """LRA's files; those that are not given have one tree of every value."""
    plain = "Source\tTarget\n" + "".join(f"( ( ( [MAX {digit} ) 0 ) ] )\t{digit}\n" for digit in range(10))
    for name in ("train", "val", "test"):
        content = contents.get(name, plain)
        (folder / f"basic_{name}.tsv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_files_of_lra_give_the_trees_that_were_written(tmp_path, generated):
    lines = {
        name: "Source\tTarget\n" + "".join(f"{in_parentheses(words)}\t{value}\n" for words, value in part)
        for name, part in (("train", generated[:200]), ("val", generated[200:240]), ("test", generated[240:300]))
    }
    assert lines["train"].split("\n")[1].startswith("( ( ")
    task = pm.data.load("listops", source=write(tmp_path, **lines))
    assert [len(split) for split in task.splits.values()] == [200, 40, 60]
    assert task.classes == tuple("0123456789")
    for split, part in zip(
        task.splits.values(), (generated[:200], generated[200:240], generated[240:300]), strict=True
    ):
        found = [(words_of(inputs.tolist()), target.item()) for inputs, target in split]
        assert found == part


def test_lines_may_end_as_on_windows(tmp_path):
    plain = write(tmp_path).joinpath("basic_val.tsv").read_bytes()
    write(tmp_path, train=plain.replace(b"\n", b"\r\n"))
    assert len(pm.data.load("listops", source=tmp_path).train) == 10


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"basic_train.tsv, line 1: the first line must be Source and Target"),
        ("( [MAX 1 ) ]\t1\n", r"basic_train.tsv, line 1: the first line must be Source and Target"),
        ("Source\tTarget\n", r"basic_train.tsv: there is no tree"),
        ("Source\tTarget\n[MAX 1 2 ]\t2\n[MAX 1 2 ]\n", r"basic_train.tsv, line 3: 1 fields"),
        ("Source\tTarget\n[MAX 1 2 ]\t2\t2\n", r"basic_train.tsv, line 2: 3 fields"),
        ("Source\tTarget\n[MAX 1 2 ]\t2\n\n", r"basic_train.tsv, line 3: 1 fields"),
        ("Source\tTarget\n[AVG 1 2 ]\t2\n", r"basic_train.tsv, line 2: '\[AVG' is not a token"),
        ("Source\tTarget\n<pad> [MIN 1 2 ]\t2\n", r"basic_train.tsv, line 2: '<pad>' is not a token"),
        ("Source\tTarget\n( )\t2\n", r"basic_train.tsv, line 2: there is no expression"),
        ("Source\tTarget\n[MAX 1 2 ]\t10\n", r"basic_train.tsv, line 2: the target is '10'"),
        ("Source\tTarget\n[MAX 1 2 ]\t\n", r"basic_train.tsv, line 2: the target is ''"),
        (b"Source\tTarget\n[MAX 1 2 ]\t2\n\xff\xfe\t1\n", r"basic_train.tsv, line 3: not UTF-8"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_line(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        pm.data.load("listops", source=write(tmp_path, train=content))


def test_nothing_is_left_in_the_cache_of_a_file_that_is_wrong(tmp_path, cache_folder):
    with pytest.raises(DataError):
        pm.data.load("listops", source=write(tmp_path, test="Source\tTarget\nwrong\t1\n"))
    assert [file for file in cache_folder.iterdir() if not file.name.endswith(".lock")] == []


def test_a_missing_file_is_named(tmp_path):
    (write(tmp_path) / "basic_val.tsv").unlink()
    with pytest.raises(DataError, match="no file basic_val.tsv"):
        pm.data.load("listops", source=tmp_path)


def test_how_many_trees_a_source_has_cannot_be_asked_for(tmp_path):
    with pytest.raises(DataError, match="leave them out"):
        pm.data.load("listops", source=write(tmp_path), train=5)


TREES = st.recursive(
    st.integers(0, 9).map(str),
    lambda inner: st.builds(
        lambda operator, arguments: f"{operator} {' '.join(arguments)} ]",
        st.sampled_from(listops.OPERATORS),
        st.lists(inner, min_size=2, max_size=4),
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trees=st.lists(TREES, min_size=1, max_size=5), ending=st.sampled_from(["\n", "\r\n"]))
def test_any_well_formed_trees_load(trees, ending):
    # Every digit is a target of train.
    lines = ["Source\tTarget", *(f"{in_parentheses(tree.split())}\t{evaluated(tree.split())[0]}" for tree in trees)]
    lines += [f"{digit}\t{digit}" for digit in range(10)]
    with tempfile.TemporaryDirectory() as folder:
        train = pm.data.load("listops", source=write(Path(folder), train=ending.join(lines) + ending)).train
        assert [" ".join(words_of(train[i].inputs.tolist())) for i in range(len(trees))] == trees


LINES = st.lists(st.sampled_from(["[MAX", "[SM", "]", "(", ")", "3", "12", "\t", "\t7\n", "\n", " ", "é", "\r"]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(
        st.binary(max_size=60),
        st.builds(lambda rest: b"Source\tTarget\n" + rest, st.binary(max_size=60)),
        st.builds(lambda words: ("Source\tTarget\n" + " ".join(words)).encode(), LINES),
    )
)
def test_any_bytes_give_data_or_a_data_error(content):
    with tempfile.TemporaryDirectory() as folder:
        source = write(Path(folder), train=content, val="Source\tTarget\n3\t3\n", test="Source\tTarget\n3\t3\n")
        with suppress(DataError):
            assert len(pm.data.load("listops", source=source).train) > 0
