"""Notes about samples that a user should know before training: duplicates, rare classes, what never changes."""

from __future__ import annotations

from collections import Counter

from paramixer.data.census import Census

# So many names are listed.
_LISTED = 5


def find_duplicates(census: Census, splits: list[str]) -> tuple[str, ...]:
    """Return notes about sequences that occur in several splits, or in train more than once."""
    # The notes enter the fingerprint, so their wording stays.
    splits_of: dict[bytes, set[str]] = {}
    for content, split in zip(census.hashes, splits, strict=True):
        splits_of.setdefault(content, set()).add(split)
    notes = []
    for split, others in (("validation", {"train"}), ("test", {"train", "validation"})):
        hashes = [content for content, name in zip(census.hashes, splits, strict=True) if name == split]
        if repeated := sum(bool(splits_of[content] & others) for content in hashes):
            notes.append(
                f"{repeated} of the {len(hashes)} {split} sequences also stand in {' or '.join(sorted(others))}"
            )
    training = Counter(content for content, split in zip(census.hashes, splits, strict=True) if split == "train")
    if repeated := sum(training.values()) - len(training):
        notes.append(f"{repeated} training sequences stand in train more than once")
    return tuple(notes)


def find_conflicts(census: Census) -> tuple[str, ...]:
    """Return a note about sequences that have several targets."""
    targets_of: dict[bytes, set[str]] = {}
    for content, label in zip(census.hashes, census.classes, strict=True):
        targets_of.setdefault(content, set()).add(label)
    conflicts = sum(len(targets) > 1 for targets in targets_of.values())
    return (f"{conflicts} different sequences stand there with more than one target each",) if conflicts else ()


def find_rare_classes(census: Census, splits: list[str]) -> tuple[str, ...]:
    """Return notes about classes with one or two examples, and about those that a split lacks."""
    counts = Counter(census.classes)
    notes = []
    for count, words in ((1, "one example"), (2, "two examples")):
        if rare := sorted(label for label, found in counts.items() if found == count):
            where = _list_splits({split for label, split in zip(census.classes, splits, strict=True) if label in rare})
            classes, have = ("class", "has") if len(rare) == 1 else ("classes", "have")
            notes.append(f"{classes} {_join(rare)} {have} {words}, in {where}; add examples or leave them out")
    for split in ("validation", "test"):
        present = {label for label, name in zip(census.classes, splits, strict=True) if name == split}
        if missing := sorted(label for label in counts if counts[label] > 2 and label not in present):
            notes.append(f"no example of class {_join(missing)} is in {split}")
    return tuple(notes)


def find_constants(census: Census) -> tuple[str, ...]:
    """Return a note about features that have the same number at every position of every sequence."""
    if census.ranges is None:
        return ()
    low, high = census.ranges
    constant = [number for number in range(len(low)) if low[number] == high[number]]
    if not constant:
        return ()
    if len(constant) == len(low):
        return (f"all numbers of all sequences are {'equal' if len(low) > 1 else f'{low[0]:g}'}",)
    listed = _join([f"{number + 1} ({low[number]:g})" for number in constant])
    what, change = ("feature", "never changes") if len(constant) == 1 else ("features", "never change")
    return (f"{what} {listed} of {len(low)} {change}; nothing can be learned from that",)


def _join(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(repr(name) if not name[0].isdigit() else name for name in names[:_LISTED]) + more


def _list_splits(splits: set[str]) -> str:
    return " and ".join(split for split in ("train", "validation", "test") if split in splits) + (
        " only" if len(splits) < 3 else ""
    )
