"""The page in a real browser: no errors, reactions to pointer and keys, and no code from text."""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import paramixer as pm
from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import Vocabulary
from paramixer.report.explanation import explain_sequence
from paramixer.report.explorer import build_explorer
from paramixer.report.page import RunSection, render_page
from paramixer.report.run_report import build_report
from paramixer.report.wording import show_invisible
from report.runs import HOSTILE, KINDS, train_run

pytest.importorskip("selenium")
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

pytestmark = pytest.mark.slow


# Elements that reach beyond the window, elements whose content is wider than they are, and text outside of its chart.
_FIND_CUT_OFF = """
return Array.from(document.querySelectorAll("body *")).filter((element) => {
  if (element.closest(".skip, [hidden], option")) return false;
  const box = element.getBoundingClientRect();
  if (!box.width) return false;
  if (element.ownerSVGElement) {
    if (element.tagName !== "text") return false;
    const chart = element.closest("svg").getBoundingClientRect();
    return box.left < chart.left - 1 || box.right > chart.right + 1;
  }
  const inside = Math.ceil(element.clientWidth || box.width);
  return box.right > arguments[0] + 1 || box.left < -1 || element.scrollWidth > inside + 1;
}).map((element) => `${element.tagName} ${element.textContent.slice(0, 60)}`);
"""


def _build(kind, run, page, folder):
    """The page of a run, of twenty classes with long names, of three runs, or of an explanation."""
    if kind == "three runs":
        return build_report([run(name) for name in ("hostile", "ngrams", "transformer")], sequences=8)
    if kind == "an explanation":
        return explain_sequence(run("hostile"), index=2)[1]
    if kind == "twenty classes":
        return build_report([train_run(folder, "species")])
    return page(kind)


class Page:
    """An open page."""

    def __init__(self, driver: object, path: Path) -> None:
        self.driver = driver
        driver.get(path.resolve().as_uri())
        self.driver.get_log("browser")
        driver.refresh()

    def ask(self, script: str, *arguments: object) -> object:
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> object:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    @property
    def explorer(self) -> object:
        return self.find(".explorer")

    def position(self) -> int:
        return int(self.explorer.get_attribute("data-position"))

    def values(self) -> np.ndarray:
        return np.array(self.ask("return Array.from(document.querySelector('.explorer').explorer.values)"))

    def errors(self) -> list[dict]:
        return self.driver.get_log("browser")

    def pixels(self, selector: str) -> np.ndarray:
        self.ask("arguments[0].scrollIntoView()", self.find(selector))
        return np.asarray(Image.open(io.BytesIO(self.find(selector).screenshot_as_png)).convert("RGB")).astype(int)


@pytest.fixture
def open_page(driver, run, page, tmp_path):
    def open_in_browser(kind: str) -> Page:
        path = tmp_path / "page.html"
        path.write_text(_build(kind, run, page, tmp_path), encoding="utf-8")
        return Page(driver, path)

    yield open_in_browser
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("kind", KINDS)
def test_pages_log_no_errors(open_page, kind):
    page = open_page(kind)
    assert page.errors() == []
    if kind != "ngrams":
        assert page.explorer.get_attribute("data-ready") == "true"


def test_rows_columns_and_rollout_on_the_page_are_those_of_the_model(open_page, run):
    page = open_page("two-blocks")
    model = pm.Paramixer.from_pretrained(run("two-blocks") / "model")
    index = int(page.ask("return document.querySelector('.explorer').explorer.sequence.title").split()[1].rstrip(":"))
    task = pm.data.load("order", length=24, train=40, validation=16, test=24, seed=1)
    explanation = pm.explain(model, task.test[index].inputs, [5])
    select = """
        const explorer = document.querySelector('.explorer').explorer;
        explorer.mapSelect.value = arguments[0];
        explorer.blockSelect.value = arguments[1];
        explorer.selectPosition(5, true);
    """
    cases = [
        ("rows", "0", explanation.rows[0, 0]),
        ("rows", "1", explanation.rows[1, 0]),
        ("columns", "1", explanation.columns[1, 0]),
        ("rows", "all", explanation.rollout[0]),
    ]
    for name, block, exact in cases:
        page.ask(select, name, block)
        # The page has the factors to 8 bits.
        np.testing.assert_allclose(page.values(), exact, atol=0.02 * float(exact.abs().max()))
        assert np.abs(page.values() - exact.numpy()).max() > 0
    for name, exact in (("evidence", explanation.evidence), ("occlusion", explanation.occlusion)):
        page.ask(select, name, "0")
        np.testing.assert_allclose(page.values(), exact, rtol=6e-3, atol=1e-9)


@pytest.mark.parametrize(("residual", "ring"), [("block", True), ("none", True), ("factor", False), ("block", False)])
def test_every_residual_on_the_page_is_that_of_the_model(driver, tmp_path, residual, ring):
    config = pm.ParamixerConfig(
        layer="paper",
        length=20,
        vocabulary=6,
        outputs=2,
        channels=6,
        hidden=5,
        residual=residual,
        ring=ring,
        protocol="cdil",
        links=3,
    )
    model = pm.Paramixer(config, generator=torch.Generator().manual_seed(3)).eval()
    page = _open_explorer(driver, tmp_path, model, 20)
    tokens = torch.arange(20) % 6
    explanation = pm.explain(model, tokens, [4])
    select = """
        const explorer = document.querySelector('.explorer').explorer;
        explorer.mapSelect.value = arguments[0];
        explorer.selectPosition(4, true);
    """
    for name, exact in (("rows", explanation.rows[0, 0]), ("columns", explanation.columns[0, 0])):
        page.ask(select, name)
        np.testing.assert_allclose(page.values(), exact, atol=0.03 * float(exact.abs().max()))


def test_the_explorer_follows_pointer_and_keys(open_page):
    page = open_page("order")
    canvas = page.find(".explorer canvas[role=slider]")
    page.ask("arguments[0].scrollIntoView({block: 'center'})", canvas)
    width = canvas.size["width"]
    positions = []
    for share in (0.1, 0.5, 0.9):
        ActionChains(page.driver).move_to_element_with_offset(canvas, round((share - 0.5) * width), 0).perform()
        positions.append(page.position())
        assert canvas.get_attribute("aria-valuenow") == str(positions[-1])
        assert page.find(".explorer output").text.startswith(f"Position {positions[-1]} (")
    assert positions == [2, 12, 21]
    before = page.values()
    # Away from the canvas, so that the pointer selects nothing more.
    ActionChains(page.driver).move_to_element(page.find("h1")).perform()
    page.ask("arguments[0].focus()", canvas)
    steps = [(Keys.ARROW_LEFT, 20), (Keys.ARROW_RIGHT, 21), (Keys.END, 23), (Keys.ARROW_RIGHT, 23), (Keys.HOME, 0)]
    for key, position in steps:
        canvas.send_keys(key)
        assert page.position() == position
    assert not np.allclose(before, page.values())
    assert page.find(".explorer caption").text == "Row 0 of each factor, without the residual"
    page.find(".explorer .letters span:nth-of-type(4)").click()
    assert page.position() == 3


def test_the_image_follows_the_pointer(open_page):
    page = open_page("pathfinder")
    scene = page.find(".explorer .scene canvas")
    page.ask("arguments[0].scrollIntoView({block: 'center'})", scene)
    size = scene.size["width"]
    # The middle of the pixel in row 24, column 8.
    right, down = round((8.5 / 32 - 0.5) * size), round((24.5 / 32 - 0.5) * size)
    ActionChains(page.driver).move_to_element_with_offset(scene, right, down).perform()
    assert page.position() == 24 * 32 + 8
    pixels = page.pixels(".explorer .scene canvas")
    # Gray pixels, a colored map over them, and a frame around the position.
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
    assert (np.ptp(pixels, axis=2) > 40).any()


def test_drawings_are_visible_in_light_and_dark(open_page):
    page = open_page("order")
    light = page.pixels(".explorer canvas[role=slider]")
    page.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    time.sleep(0.3)
    dark = page.pixels(".explorer canvas[role=slider]")
    assert light.mean() > 180 > 90 > dark.mean()
    # Bars in warm or cool colors, and the mark of the position.
    for pixels in (light, dark):
        assert (np.ptp(pixels, axis=2) > 60).mean() > 0.005
    chart = page.pixels("figure svg")
    assert 0.001 < (np.abs(chart - np.median(chart, axis=(0, 1))).sum(2) > 60).mean() < 0.5


@pytest.mark.parametrize("kind", [*KINDS, "twenty classes", "three runs", "an explanation"])
def test_nothing_overflows_sideways_or_is_cut_off(open_page, kind):
    page = open_page(kind)
    for width, scheme in ((1400, "light"), (1400, "dark"), (390, "light"), (390, "dark"), (360, "light")):
        size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 1000}
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        preference = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", preference)
        page.driver.refresh()
        page.ask("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        assert page.ask("return document.documentElement.scrollWidth") <= width, (width, scheme)
        assert page.ask(_FIND_CUT_OFF, width) == [], (width, scheme)
        assert page.errors() == []


def test_hostile_text_shows_as_text_and_runs_nothing(open_page):
    page = open_page("hostile")
    assert page.ask("return window.harmed") is None
    select_all = """
        const explorer = document.querySelector('.explorer').explorer;
        for (let i = 0; i < explorer.length; i++) explorer.selectPosition(i, true);
    """
    page.ask(select_all)
    assert page.ask("return window.harmed") is None
    assert page.ask("return document.querySelectorAll('img:not([src^=\"data:\"])').length") == 0
    assert page.errors() == []
    texts = page.ask(
        "return document.querySelector('.explorer').explorer.sequences.map((s) => s.view.symbols.join(''))"
    )
    for text in texts:
        assert any(show_invisible(start)[:16] in text for start in HOSTILE)
    letters = page.ask("return document.querySelector('.letters').textContent")
    assert texts[0][:30] in letters


def test_a_page_for_16384_positions_is_small_and_quick(driver, tmp_path):
    config = pm.ParamixerConfig(layer="paper", length=16384, vocabulary=6, outputs=2, channels=32, hidden=32, links=15)
    page = _open_explorer(driver, tmp_path, pm.Paramixer(config).eval(), 16384)
    assert (tmp_path / "page.html").stat().st_size < 10e6
    assert page.errors() == []
    milliseconds = page.ask(
        """
        const explorer = document.querySelector('.explorer').explorer;
        const times = [];
        for (let i = 0; i < 30; i++) {
          const began = performance.now();
          explorer.selectPosition(500 * i + 17);
          times.push(performance.now() - began);
        }
        return times;
        """
    )
    # The fastest of several: a busy machine may delay any single one.
    assert min(milliseconds) < 100


def _open_explorer(driver: object, folder: Path, model: pm.Paramixer, length: int) -> Page:
    """A page with only the explorer of an untrained model."""
    info = TaskInfo(
        name="own",
        preset="text",
        metric="accuracy",
        target="class",
        length=length,
        classes=("a", "b"),
        vocabulary=Vocabulary(symbols=tuple("ACGTN-"), pad_symbol="-", unknown_symbol="N"),
    )
    explorer = build_explorer(model, info, torch.arange(length) % 6, "sequence")
    path = folder / "page.html"
    path.write_text(render_page("page", "", [RunSection("model", explorers=[explorer])]), encoding="utf-8")
    return Page(driver, path)
