"""Parts of a page, for tests to look at."""

from __future__ import annotations

import json
import re
from typing import Any


def read_explorers(page: str) -> list[list[dict[str, Any]]]:
    """The explorers' JSON documents of each run."""
    element = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert element is not None
    return [run["explorers"] for run in json.loads(element[1])["runs"]]


def list_ids(page: str) -> list[str]:
    """The ids of all elements."""
    return re.findall(r'\bid="([^"]*)"', page)
