"""What the site does to pages before and after mkdocs: records beside docs/, roles in docstrings, numbers."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))
from notebook_pages import convert  # noqa: E402

# Pages link to notebooks by where they are in the repository.
_NOTEBOOK = re.compile(r"\]\(([\w./-]+)\.ipynb\)")
# Pages in docs/ name pictures of records by where they are in the repository.
_RECORD = re.compile(r"\]\(\.\./results/([\w./-]+)\)")
# A role such as :func:`fit` or :class:`~package.Name`, after Markdown has made the name code.
_ROLE = re.compile(r":(?:py:)?(?:class|func|meth|mod|attr|data):<code>~?([\w.]*?)</code>")

# The space in 16 384 and in 5 %, and what must be left alone: code and tags.
_NUMBER_SPACE = re.compile(r"(?<=\d) (?=%|\d{3}(?!\d))")
_NO_TEXT = re.compile(r"(<pre.*?</pre>|<code.*?</code>|<[^>]*>)", re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add the pictures that pages take from results/, and a page for each notebook."""
    for notebook in sorted(Path(config.docs_dir).glob("notebooks/*.ipynb")):
        text, pictures = convert(notebook)
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    for page in Path(config.docs_dir).glob("*.md"):
        for name in sorted(set(_RECORD.findall(page.read_text(encoding="utf-8")))):
            files.append(File.generated(config, f"records/{name}", abs_src_path=str(ROOT / "results" / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point to the pictures of records and to the pages of notebooks where the site has them."""
    markdown = _NOTEBOOK.sub(r"](\1.md)", markdown)
    if "/" in page.file.src_uri:
        return markdown
    return _RECORD.sub(r"](records/\1)", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Show roles as the names that they hold, and keep numbers on one line."""
    html = _ROLE.sub(lambda role: f"<code>{role[1].rpartition('.')[2]}</code>", html)
    parts = _NO_TEXT.split(html)
    parts[::2] = [_NUMBER_SPACE.sub("&nbsp;", text) for text in parts[::2]]
    return "".join(parts)
