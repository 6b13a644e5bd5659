from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from torch import Generator

# A test that sets its own max_examples keeps them under both profiles.
settings.register_profile("short", max_examples=40, deadline=None)
settings.register_profile("long", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("PARAMIXER_FUZZ", "short"))

if "PYTEST_XDIST_WORKER" in os.environ:
    # Test processes share the cores; threads on top of them only wait for each other.
    torch.set_num_threads(1)

_BROWSER_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run --hide-scrollbars "
    "--disable-background-networking --disable-component-update --disable-sync --window-size=1200,900"
)


@pytest.fixture
def generator() -> Generator:
    """The randomness of a test, the same in every run."""
    return torch.Generator().manual_seed(0)


@pytest.fixture
def shared_data() -> Path:
    """Real data sets beside the project, for tests that need them."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs real data in ../shared/data")
    return folder


@pytest.fixture(scope="module")
def driver() -> Iterator[object]:
    """Chromium without a window, which logs what pages print and what fails."""
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    browser, control = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or control is None:
        pytest.skip("needs Chromium and its driver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in _BROWSER_FLAGS.split():
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(control))
    yield browser
    browser.quit()
