"""Documents: a parquet file of arXiv papers in three close classes, up to 32 768 characters each.

    python examples/arxiv_documents.py [--quick]

A column names the split of each paper, and that is the split that is used. Three columns could be the text or the
label, so the command names both.
"""

from __future__ import annotations

import json

import walkthrough

_QUICK = 24


def main(arguments: list[str] | None = None) -> walkthrough.Walkthrough:
    """Run the walkthrough."""
    import pyarrow.parquet as parquet

    source = walkthrough.find_data("documents/arxiv_papers_3x1000_32k.parquet")
    walk = walkthrough.start("arxiv-documents", __doc__, arguments)
    papers = parquet.read_table(source)
    if walk.quick:
        classes, splits = papers["category"].to_pylist(), papers["split"].to_pylist()
        wanted = [
            row
            for split in ("train", "dev", "test")
            for name in sorted(set(classes))
            for row in [row for row in range(len(papers)) if (classes[row], splits[row]) == (name, split)][
                : _QUICK // 6
            ]
        ]
        papers = papers.take(wanted)
    parquet.write_table(papers, walk.folder / "papers.parquet")
    walk.explain(f"papers.parquet has {len(papers)} papers with the columns {', '.join(papers.column_names)}.")
    walk.train("arXiv documents", "papers.parquet --text text --label category", "runs/papers-1")
    walk.run("paramixer evaluate runs/papers-1")
    test = [row for row in papers.to_pylist() if row["split"] == "test"][:: 1 if walk.quick else 120][:5]
    lines = [json.dumps({"id": row["id"], "text": row["text"]}) for row in test]
    (walk.folder / "new.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    walk.explain("Five papers of the test split, without their classes, are in new.jsonl.")
    walk.run("paramixer predict runs/papers-1 new.jsonl --out predictions.csv")
    walk.run("cat predictions.csv")
    walk.explain(f"Their classes: {', '.join(row['category'] for row in test)}.")
    return walk


if __name__ == "__main__":
    walkthrough.main(main)
