"""The HTML page in real Chromium: charts have pixels, reading and zoom are linked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from pgdyno.experiment.comparing import compare
from pgdyno.experiment.store import new_run
from pgdyno.reports.comparison_page import render_comparison_page
from pgdyno.reports.documents import read_run
from pgdyno.reports.html import write_report
from tests.builders import RunOptions, build_experiment, build_run
from tests.comparisons import asked, side

pytestmark = pytest.mark.pg

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DEADLINE_S = 20
DRAWN = "return [...document.querySelectorAll('.strip')].every(strip => strip.dataset.drawn)"
# Pixels of each chart's canvas that differ from its most common colour, as a share.
INK = """
return [...document.querySelectorAll('.track canvas')].map(canvas => {
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const counts = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const key = data.slice(at, at + 4).join();
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const all = data.length / 4;
  return {share: 1 - Math.max(...counts.values()) / all, colours: counts.size};
});
"""
READINGS = """
return [...document.querySelectorAll('#trial-1-time .track')].map(track =>
  [...track.querySelectorAll('output')].map(output => output.textContent));
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    return write_report(build_run(folder, RunOptions()), folder / "report.html")


@pytest.fixture
def open_page(tmp_path: Path) -> Iterator[Callable[..., webdriver.Chrome]]:
    """Opens a page in a browser of its own; closes it and fails on anything in its console."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.fail("no Chromium: apt-get install chromium chromium-driver")
    opened: list[webdriver.Chrome] = []

    def open_in(path: Path, *, width: int = 1400, theme: str = "light") -> webdriver.Chrome:
        options = Options()
        options.binary_location = binary
        for flag in (*FLAGS, f"--user-data-dir={tmp_path / f'profile{len(opened)}'}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        browser = webdriver.Chrome(options=options, service=Service(driver))
        opened.append(browser)
        browser.set_page_load_timeout(DEADLINE_S)
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        # Smooth scrolling would let a click go to where a button was.
        media = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in media.items()]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(path.as_uri())
        wait(browser, DRAWN, "the charts were never drawn")
        return browser

    yield open_in
    for browser in opened:
        # Reading pixels back, as `INK` does, earns a word of advice about speed.
        console = [
            entry for entry in browser.get_log("browser") if "getImageData" not in entry["message"]
        ]
        browser.quit()
        assert console == []


def wait(browser: webdriver.Chrome, script: str, message: str) -> None:
    """Until a script says true, or the deadline."""
    WebDriverWait(browser, DEADLINE_S).until(lambda it: it.execute_script(script), message)


def tracks(browser: webdriver.Chrome) -> list[Any]:
    return browser.find_elements("css selector", "#trial-1-time .track")


def now(browser: webdriver.Chrome) -> str:
    return str(browser.execute_script("return document.querySelector('.now').textContent"))


def readings(browser: webdriver.Chrome) -> list[list[str]]:
    found: list[list[str]] = browser.execute_script(READINGS)
    return found


def point(browser: webdriver.Chrome, track: Any, share: float) -> None:
    """Move the pointer over a chart, to a share of its width."""
    over = track.find_element("css selector", ".u-over")
    across = int((share - 0.5) * over.size["width"])
    ActionChains(browser).move_to_element_with_offset(over, across, 0).perform()


def drag(browser: webdriver.Chrome, track: Any, begin: float, end: float) -> None:
    over = track.find_element("css selector", ".u-over")
    width = over.size["width"]
    (
        ActionChains(browser)
        .move_to_element_with_offset(over, int((begin - 0.5) * width), 0)
        .click_and_hold()
        .move_by_offset(int((end - begin) * width), 0)
        .release()
        .perform()
    )


def second(browser: webdriver.Chrome) -> float:
    """Where the reading line stands, in seconds."""
    return float(now(browser).split(" s")[0].replace("−", "-"))


def requests(browser: webdriver.Chrome, page: str) -> list[str]:
    """Every address the page asked for, as the browser's own log has it."""
    found = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        params = message["params"]
        # The browser's own start page asks for things of its own.
        if message["method"] == "Network.requestWillBeSent" and params["documentURL"] == page:
            found.append(params["request"]["url"])
    return found


def test_every_chart_is_drawn_and_nothing_is_fetched(report: Path, open_page: Any) -> None:
    browser = open_page(report)
    ink = browser.execute_script(INK)
    assert len(ink) == 9
    for chart in ink:
        assert chart["share"] > 0.01
        assert chart["colours"] > 8
    page = report.as_uri()
    assert [url for url in requests(browser, page) if not url.startswith("data:")] == [page]
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_pointing_at_one_panel_reads_them_all(report: Path, open_page: Any) -> None:
    browser = open_page(report)
    assert {text for values in readings(browser) for text in values} == {""}
    point(browser, tracks(browser)[0], 0.5)
    values = readings(browser)
    assert len(values) == 7
    assert all(text not in ("", "–") for panel in values for text in panel)
    assert second(browser) == pytest.approx(17.5, abs=0.3)
    assert "UTC" in now(browser)
    # The middle lies before the checkpoint, a little further lies in it.
    assert float(values[0][0].replace("\u202f", "")) > 7000
    point(browser, tracks(browser)[4], 26 / 45)
    assert float(readings(browser)[0][0].replace("\u202f", "")) < 6000


def test_zooming_one_panel_zooms_them_all_and_comes_back(report: Path, open_page: Any) -> None:
    browser = open_page(report)
    drag(browser, tracks(browser)[1], 0.4, 0.6)
    for track in tracks(browser):
        point(browser, track, 0.02)
        assert second(browser) == pytest.approx(13.2, abs=0.6)
        point(browser, track, 0.98)
        assert second(browser) == pytest.approx(21.8, abs=0.6)
    over = tracks(browser)[2].find_element("css selector", ".u-over")
    ActionChains(browser).double_click(over).perform()
    point(browser, tracks(browser)[5], 0.01)
    assert second(browser) == pytest.approx(-4.5, abs=0.6)
    drag(browser, tracks(browser)[0], 0.1, 0.3)
    reset = browser.find_element("css selector", ".reset")
    assert reset.is_displayed()
    reset.click()
    assert not reset.is_displayed()


def test_keys_read_zoom_and_reset(report: Path, open_page: Any) -> None:
    browser = open_page(report)
    track = tracks(browser)[0]
    browser.execute_script("arguments[0].focus()", track)
    keys = ActionChains(browser)
    keys.send_keys(Keys.ARROW_RIGHT).perform()
    first = second(browser)
    assert first == pytest.approx(-4.0, abs=0.1)
    keys.send_keys(Keys.ARROW_RIGHT).perform()
    assert second(browser) == pytest.approx(first + 1, abs=0.01)
    ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(
        Keys.SHIFT
    ).perform()
    assert second(browser) == pytest.approx(first + 11, abs=0.01)
    ActionChains(browser).send_keys(Keys.ARROW_LEFT).perform()
    assert second(browser) == pytest.approx(first + 10, abs=0.01)
    spoken = browser.execute_script("return document.querySelector('.spoken').textContent")
    assert "committed" in spoken and "tps" in spoken
    reset = browser.find_element("css selector", ".reset")
    ActionChains(browser).send_keys("+").perform()
    assert reset.is_displayed()
    ActionChains(browser).send_keys("0").perform()
    assert not reset.is_displayed()
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert now(browser) == ""


def test_a_line_can_be_hidden(report: Path, open_page: Any) -> None:
    browser = open_page(report)
    before = browser.execute_script(INK)[2]
    button = tracks(browser)[2].find_element("css selector", ".readings button")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert browser.execute_script(INK)[2] != before
    button.click()
    assert browser.execute_script(INK)[2] == before


def test_dark_and_light(report: Path, open_page: Any) -> None:
    brightness = """
    const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
    return (r + g + b) / 3;
    """
    browser = open_page(report, theme="dark")
    assert browser.execute_script(brightness) < 60
    dark = browser.execute_script(INK)
    browser.find_element("id", "theme").click()
    assert browser.execute_script(brightness) > 200
    light = browser.execute_script(INK)
    assert len(light) == len(dark) == 9
    assert all(chart["share"] > 0.01 for chart in (*light, *dark))
    browser.find_element("id", "theme").click()
    assert browser.execute_script(brightness) < 60
    assert open_page(report, theme="light").execute_script(brightness) > 200


@pytest.mark.parametrize("width", [360, 390, 768, 1400, 2560])
def test_no_width_needs_sideways_scrolling(report: Path, open_page: Any, width: int) -> None:
    browser = open_page(report, width=width)
    assert browser.execute_script("return innerWidth") == width
    page = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
    assert browser.execute_script(page) == 0
    plots = browser.execute_script(
        "return [...document.querySelectorAll('.plot canvas')].map(it => it.clientWidth)"
    )
    assert len(plots) == 9
    assert all(200 < plot <= width for plot in plots)


def test_charts_follow_the_window(report: Path, open_page: Any) -> None:
    browser = open_page(report)
    metrics = {"width": 600, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    fits = "return document.querySelector('.track canvas').clientWidth < 600"
    wait(browser, fits, "the charts kept their width")


def test_print_is_light_unfolded_and_has_charts(report: Path, open_page: Any) -> None:
    browser = open_page(report, theme="dark")
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script("return document.documentElement.dataset.theme") == "light"
    assert browser.execute_script("return document.querySelector('details').open")
    assert all(chart["share"] > 0.01 for chart in browser.execute_script(INK))
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script("return document.documentElement.dataset.theme") == "dark"
    assert not browser.execute_script("return document.querySelector('details').open")


def test_hostile_names_do_nothing(tmp_path: Path, open_page: Any) -> None:
    evil = "<img src=x onerror='window.bad=1'></script><script>window.bad=1</script>"
    options = RunOptions(
        name=evil, duration_s=5, warmup_s=0, error_message=evil, setting_value=evil, table_name=evil
    )
    path = write_report(build_run(tmp_path / "runs", options), tmp_path / "report.html")
    browser = open_page(path)
    assert browser.execute_script("return window.bad === undefined")
    assert browser.execute_script("return document.querySelector('strong').textContent") == evil


@pytest.mark.parametrize(
    "options",
    [
        RunOptions(empty=True, outcome="failed", reason="the server did not start"),
        RunOptions(duration_s=2, warmup_s=0, missing=("summary.json",), outcome=None),
        RunOptions(duration_s=1, warmup_s=0),
    ],
    ids=["nothing", "killed", "one interval"],
)
def test_incomplete_trials_open_without_errors(
    tmp_path: Path, open_page: Any, options: RunOptions
) -> None:
    path = write_report(build_run(tmp_path / "runs", options), tmp_path / "report.html")
    browser = open_page(path)
    assert browser.find_element("css selector", "h1").text


def test_an_hour_opens_quickly_and_stays_small(tmp_path: Path, open_page: Any) -> None:
    run = build_run(tmp_path / "runs", RunOptions(duration_s=3600, warmup_s=10, draws=12))
    path = write_report(run, tmp_path / "report.html")
    assert path.stat().st_size < 2_000_000
    browser = open_page(path)
    timing = "return performance.timing.loadEventEnd - performance.timing.navigationStart"
    assert 0 < browser.execute_script(timing) < 2000
    assert all(chart["share"] > 0.01 for chart in browser.execute_script(INK))


@pytest.mark.parametrize(("width", "theme"), [(1400, "light"), (390, "dark")])
def test_the_page_of_an_experiment_fits_and_draws(
    open_page: Callable[..., webdriver.Chrome], tmp_path: Path, width: int, theme: str
) -> None:
    values = [1000.0, 1004.0, 997.0, 1001.0, 1002.0, 600.0, 999.0]
    sides = side("fsync=on", values), side("fsync=off", [each * 1.05 for each in values])
    comparison = compare(sides[0], [sides[1]], asked("set:fsync"))
    path = tmp_path / "comparison.html"
    run = new_run(build_experiment(RunOptions()), tmp_path)
    path.write_text(render_comparison_page(read_run(run), comparison, (), {}))
    browser = open_page(path, width=width, theme=theme)
    assert browser.execute_script(
        "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    marks = browser.execute_script(
        "return [...document.querySelectorAll('.plane .point')]"
        ".map(mark => mark.getBoundingClientRect()).map(box => [box.x, box.y])"
    )
    # Two sides of seven trials, each at a place of its own.
    assert len({tuple(place) for place in marks}) == 14
