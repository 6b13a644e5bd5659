"""What was inferred from a user's files, in words; each line names the flag that overrides it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paramixer.data.task import TaskInfo

_ALPHABETS = {"dna": "DNA", "protein": "proteins", "text": "text"}
_REASONS = {
    "given": "as given",
    "longest": "the longest sequence",
    "usual": "99 % of the sequences are not longer",
    "most": "the most unless it is given",
}


def describe_inferred(info: TaskInfo) -> list[str]:
    """Return short lines about what was inferred; none if nothing was."""
    found = info.inferred
    if not found:
        return []
    files = f", {found['files']} files read as one" if found.get("files", 1) > 1 else ""
    lines = [f"kind: {found['kind']}{files}", _describe_input(info, found), _describe_target(info, found)]
    if "image" in found:
        lines.append(f"images: {found['image']}, {found['alphabet']} (--image-size)")
    elif "sound" in found:
        channels = "1 channel" if info.features == 1 else f"{info.features} channels"
        lines.append(f"sounds: {found['sound']}, {channels} (--rate)")
    elif found["alphabet"] in _ALPHABETS and info.vocabulary is not None:
        lines.append(f"alphabet: {_ALPHABETS[found['alphabet']]}, {len(info.vocabulary)} symbols (--alphabet)")
    elif info.features is not None:
        lines.append(f"numbers: {info.features} per position")
    return [*lines, _describe_split(found), _describe_length(info, found["cut"])]


def _describe_input(info: TaskInfo, found: dict[str, Any]) -> str:
    has_choice = found["input"].startswith(("column", "array"))
    return f"input: {found['input']}{' (--text)' if has_choice else ''}"


def _describe_target(info: TaskInfo, found: dict[str, Any]) -> str:
    other = "value" if info.target == "class" else "class"
    what = f"{len(info.classes)} classes" if info.target == "class" else "a value"
    has_choice = found["target"].startswith(("column", "array", "the header", "the name"))
    return f"target: {found['target']}, {what} ({'--label, ' if has_choice else ''}--target {other})"


def _describe_split(found: dict[str, Any]) -> str:
    shares = "a random share of every class" if found.get("stratified") else "a random share"
    if "split" not in found:
        names = ", or --split COLUMN" if found["target"].startswith("column") else ""
        return f"splits: {shares} for validation and for test (--validation, --test{names})"
    cut = f", and {shares} of train for validation (--validation)" if found.get("validation_cut") else ""
    flag = " (--split)" if found["split"].startswith("column") else ""
    return f"splits: {found['split']}{flag}{cut}"


def _describe_length(info: TaskInfo, cut: dict[str, Any]) -> str:
    line = f"length: {info.length}, {_REASONS[cut['reason']]}"
    if cut["sequences"]:
        line += f"; {cut['sequences']} of {cut['of']} sequences are cut, the longest has {cut['longest']}"
    return f"{line} (--length{', or a lower --rate' if cut['sequences'] and 'sound' in info.inferred else ''})"
