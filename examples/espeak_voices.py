"""Voices: folders of sounds that espeak-ng speaks. Which voice is it? Which word is it?

    python examples/espeak_voices.py [--quick]

Pitch, speed and volume vary from sound to sound. The first folder has a folder for each voice, whose sounds are of two
words each; its splits are cut at random. The second has a folder for each word in folders train, validation and test,
which are spoken by different voices: the words must be recognized in voices that training has not heard.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import walkthrough

_VOICES = ("m1", "m2", "m3", "m4", "f1", "f2", "f3", "f4")
_SPLITS = {
    "train": ("m1", "m2", "m3", "m4", "m8", "f1", "f2", "f3", "adam", "Alicia", "Andrea", "Michael"),
    "validation": ("m6", "f5"),
    "test": ("m5", "m7", "f4", "Annie"),
}
_WORDS = ("yes", "no", "up", "down", "left", "right", "stop", "go", "seven", "water")
# Sounds by voice, and sounds by word in each split.
_COUNTS = 2400, {"train": 2000, "validation": 300, "test": 600}
_QUICK = 24, {"train": 20, "validation": 10, "test": 10}


def main(arguments: list[str] | None = None) -> walkthrough.Walkthrough:
    """Run the walkthrough."""
    if shutil.which("espeak-ng") is None:
        raise walkthrough.DataMissingError("there is no espeak-ng; install it with: apt-get install espeak-ng")
    walk = walkthrough.start("espeak-voices", __doc__, arguments)
    count, counts = _QUICK if walk.quick else _COUNTS
    draw = random.Random(0)

    sounds = []
    for number in range(count):
        voice = _VOICES[number % len(_VOICES)]
        sounds.append((walk.folder / "voices" / voice / f"{number}.wav", voice, " ".join(draw.sample(_WORDS, 2))))
    new = [(walk.folder / "new" / f"{voice}.wav", voice, "water stop") for voice in _VOICES[::2]]
    _speak(sounds + new, draw)
    walk.explain(f"voices/ has {count} sounds in a folder for each of {len(_VOICES)} voices; new/ has four more.")
    walk.run("ls voices && ls voices/m1 | head -n 3")
    walk.train("which voice?", "voices/", "runs/voices-1")
    walk.run("paramixer evaluate runs/voices-1")
    walk.run("paramixer predict runs/voices-1 new/ --out predictions.csv")
    walk.run("cat predictions.csv")

    sounds = []
    for split, voices in _SPLITS.items():
        for number in range(counts[split]):
            word, voice = _WORDS[number % len(_WORDS)], draw.choice(voices)
            sounds.append((walk.folder / "words" / split / word / f"{voice}-{number}.wav", voice, word))
    _speak(sounds, draw)
    walk.explain(f"words/ has {len(sounds)} sounds of {len(_WORDS)} words, by other voices in each split.")
    walk.run("ls words && ls words/test | head -n 3")
    walk.train("which word?", "words/", "runs/words-1")
    walk.run("paramixer evaluate runs/words-1")
    return walk


def _speak(sounds: list[tuple[Path, str, str]], draw: random.Random) -> None:
    """Write a file for each path, voice and text, in a manner of its own."""
    commands = []
    for path, voice, text in sounds:
        path.parent.mkdir(parents=True, exist_ok=True)
        manner = ["-p", draw.randint(30, 70), "-s", draw.randint(130, 210), "-a", draw.randint(60, 140)]
        commands.append(["espeak-ng", "-v", f"en-us+{voice}", *map(str, manner), "-w", str(path), text])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda command: subprocess.run(command, check=True), commands))


if __name__ == "__main__":
    walkthrough.main(main)
