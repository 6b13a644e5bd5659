"""Movie reviews: an archive with a folder for each class, 2 000 long reviews by Pang and Lee.

    python examples/movie_reviews.py [--quick]

The archive is read as it was downloaded. Its texts are tokenized and in lower case, and so are new ones.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import walkthrough

_QUICK = 20


def main(arguments: list[str] | None = None) -> walkthrough.Walkthrough:
    """Run the walkthrough."""
    source = walkthrough.find_data("movie_reviews/movie_reviews.zip")
    walk = walkthrough.start("movie-reviews", __doc__, arguments)
    walk.explain(
        "movie_reviews.zip has movie_reviews/neg/*.txt and movie_reviews/pos/*.txt. It is trained on as it is."
    )
    _copy(source, walk.folder / "movie_reviews.zip", _QUICK if walk.quick else None)
    walk.train("movie reviews", "movie_reviews.zip", "runs/movie_reviews-1")
    walk.run("paramixer evaluate runs/movie_reviews-1")
    walk.explain("New reviews come through standard input, one in each line.")
    (walk.folder / "new.txt").write_text(
        "a dull , lifeless film with a wasted cast and a plot that makes no sense .\n"
        "the best film of the year : moving , funny and wonderfully acted .\n"
        "it begins well , but the second half is a mess , and the ending is unbearably stupid .\n"
    )
    walk.run("paramixer predict runs/movie_reviews-1 - --proba < new.txt")
    return walk


def _copy(source: Path, target: Path, reviews: int | None) -> None:
    """Copy the archive, or the first reviews of each class."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for label in ("neg", "pos"):
            names = [name for name in archive.namelist() if f"/{label}/" in name and name.endswith(".txt")]
            for name in sorted(names)[:reviews]:
                copy.writestr(name, archive.read(name))


if __name__ == "__main__":
    walkthrough.main(main)
