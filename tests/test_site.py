"""The site builds without a warning, is what the code says, and works in a browser from disk."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

import paramixer as pm

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tools"))
import write_reference  # noqa: E402

WIDTHS = {"desktop": (1400, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built strictly."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder


def list_pages(site: Path) -> list[str]:
    """Every page of the site, by its path."""
    return sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html") if page.name != "404.html")


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(site):
    pages = list_pages(site)
    assert len(pages) > 28
    for page in pages:
        text = (site / page).read_text()
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=\"?([^\s\">]+)", text)
        loaded += re.findall(r"<link[^>]*rel=\"?stylesheet\"?[^>]*href=\"?([^\s\">]+)", text)
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], page


def test_links_and_pictures_of_the_site_lead_somewhere(site):
    """Also those written as HTML, which mkdocs does not check; anchors, too."""
    texts = {name: (site / name).read_text() for name in list_pages(site)}
    anchors = {name: set(re.findall(r"\sid=\"?([^\s\">]+)", text)) for name, text in texts.items()}
    for name, text in texts.items():
        for address in re.findall(r"<(?:a|img)\s[^>]*?(?:href|src)=\"?([^\s\">]+)", text):
            if re.match(r"\w+:", address):
                continue
            path, _, anchor = unquote(address).partition("#")
            target = (site / name).parent / path if path else site / name
            assert target.exists(), f"{name} links to {address}"
            page = os.path.relpath(target, site)
            if anchor and page in anchors:
                assert anchor in anchors[page] or anchor.startswith("__"), f"{name} links to {address}"


@pytest.mark.parametrize("name", write_reference.PAGES)
def test_generated_pages_are_those_of_the_code(name):
    page = ROOT / "docs" / "reference" / name
    assert page.read_text() == write_reference.PAGES[name](), "run: python tools/write_reference.py"


def test_every_public_name_is_in_the_reference():
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    documented = set(re.findall(r"^::: [\w.]+\.(\w+)$", page, re.MULTILINE))
    # pm.data is a module; its functions and values are documented.
    assert set(pm.__all__) - {"__version__", "data"} | {"definitions", "Task"} <= documented


def test_every_variable_of_the_environment_is_in_the_reference():
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    read = re.compile(r"(?:environ|getenv)\W.{0,12}?\"(PARAMIXER_[A-Z_]+)\"")
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".cpp", ".h")]
    names = {name for path in sources for name in read.findall(path.read_text())}
    assert {"PARAMIXER_BACKEND", "PARAMIXER_DATA", "PARAMIXER_CACHE"} <= names
    assert names <= set(re.findall(r"`(PARAMIXER_\w+)`", page))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_overflows_sideways(site, driver, width, scheme):
    across, down = WIDTHS[width]
    size = {"width": across, "height": down, "deviceScaleFactor": 1, "mobile": width == "phone"}
    preference = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", preference)
    for name in list_pages(site):
        driver.get((site / name).as_uri())
        widest = driver.execute_script("return document.documentElement.scrollWidth")
        assert widest <= across, f"{name} is {widest} wide"
        shown = driver.execute_script("return document.body.getAttribute('data-md-color-scheme')")
        assert shown == {"light": "default", "dark": "slate"}[scheme], name
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == [], name


@pytest.mark.slow
@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_the_animation_stands_still_and_complete_where_motion_is_not_wanted(driver, motion):
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": motion}]}
    )
    driver.get((ROOT / "docs" / "figures" / "travel.svg").as_uri())
    animations = driver.execute_script("return document.getAnimations().length")
    assert (animations == 0) == (motion == "reduce")
    if motion == "reduce":
        shown = "return Array.from(document.querySelectorAll('circle, path')).map((e) => getComputedStyle(e))"
        assert driver.execute_script(
            f"{shown}.every((s) => Number(s.opacity) > 0 && parseFloat(s.strokeDashoffset) === 0)"
        )


@pytest.mark.slow
def test_search_works_from_disk(site, driver):
    driver.get((site / "index.html").as_uri())
    driver.execute_script(
        "const field = document.querySelector('[data-md-component=search-query]');"
        "field.focus(); field.value = 'occlusion'; field.dispatchEvent(new Event('keyup', {bubbles: true}));"
    )
    for _ in range(100):
        found = driver.execute_script(
            "return Array.from(document.querySelectorAll('.md-search-result__link')).map((link) => link.href)"
        )
        if found:
            break
        time.sleep(0.1)
    assert any("guides/explain.html" in address for address in found), found
