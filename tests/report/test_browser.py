"""The page of real runs in headless Chromium, on a desk, on a phone and on paper."""

import contextlib

import pytest

from vcnef.cli import main

pytestmark = pytest.mark.slow

WORLD = ["--samples", "24", "--resolution", "32", "--frames", "9", "--horizon", "0.1", "--set", "nu=0.01"]
LONG = "vcnef-with-a-name-that-is-far-too-long-for-the-screen-of-any-phone-there-is"
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
IMAGES = "[...document.images].map(each => [each.complete, each.naturalWidth, each.naturalHeight])"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two debug runs on one page, with everything that a report can show."""
    folder = tmp_path_factory.mktemp("report")
    data, runs = ["--data", "burgers.hdf5"], ["runs/fno", f"runs/{LONG}"]
    for command in (
        ["generate", "burgers", *WORLD, "--device", "cpu", "--out", "burgers.hdf5"],
        ["train", "debug/fno1d", *data, "--out", runs[0], "--devices", "cpu"],
        ["train", "debug/vcnef1d", *data, "--out", runs[1], "--devices", "cpu"],
        ["report", *runs, *data, "--space", "16,32", "--time", "5,9", "--device", "cpu", "--out", "report.html"],
    ):
        with contextlib.chdir(folder), pytest.raises(SystemExit) as stop:
            main(command)
        assert not stop.value.code
    return folder / "report.html"


@pytest.mark.parametrize("phone", [False, True], ids=["desk", "phone"])
def test_the_report_in_a_browser(browser, page, phone):
    if phone:
        browser.be_a_phone()
    browser.open(page.as_uri())
    assert browser.run("return window.innerWidth < 500") == phone
    assert "2 runs compared" in browser.run("return document.querySelector('h1').textContent")
    images = browser.run(f"return {IMAGES}")
    assert len(images) == page.read_text(encoding="utf-8").count("<img ") > 10
    assert all(complete and width > 100 and height > 100 for complete, width, height in images)
    assert not browser.run(f"return {TOO_WIDE}"), "the page is wider than the screen"
    browser.run("document.querySelector('nav a:last-child').click()")
    browser.wait("window.scrollY > 1000")
    assert browser.complaints() == []
    assert browser.foreign_requests(page.as_uri()) == set()


def test_the_report_on_paper(browser, page):
    browser.open(page.as_uri())
    browser.send("/goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params={"media": "print"})
    # A sheet of A4 has about so many pixels between its margins; nothing can be scrolled there.
    browser.be_a_phone(width=718, height=1047)
    browser.wait("getComputedStyle(document.querySelector('nav')).display === 'none'")
    assert not browser.run(f"return {TOO_WIDE}"), "the page is wider than the paper"
