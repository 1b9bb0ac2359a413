"""The page in headless Chromium: what a visitor does, and what then is on the screen."""

import time

import pytest

pytestmark = pytest.mark.slow


def settle(browser):
    """Until the answers to what was done last are on the screen."""
    time.sleep(0.3)
    browser.wait(
        "!document.querySelector('.busy') && document.getElementById('surrogate-ms').textContent !== '–' "
        "&& document.getElementById('solver-ms').textContent !== '…'"
    )


def test_a_visit(browser, server):
    browser.open(server.url)
    settle(browser)
    browser.wait("document.getElementById('nrmse').textContent !== '–'")
    assert browser.text("surrogate-ms").endswith("s")
    assert "vcnef" in browser.text("about")
    first = {
        name: browser.picture(name) for name in ("lines", "difference", "map-surrogate", "map-solver", "map-error")
    }

    # Another time: other curves, another error there, the same error over all times.
    whole, now = browser.text("nrmse"), browser.text("nrmse-now")
    browser.set("time", 10)
    assert browser.text("time-value") == "t = 0.125"
    assert browser.picture("lines") != first["lines"]
    assert browser.text("nrmse-now") != now
    assert browser.text("nrmse") == whole

    # A drawn state.
    browser.drag("lines", (0.2, 0.5), (0.4, 0.15), (0.6, 0.8), (0.9, 0.4))
    settle(browser)
    assert browser.picture("map-surrogate") != first["map-surrogate"]
    assert browser.text("nrmse") != whole

    # A parameter far outside: a warning, and none any more back inside.
    browser.set("parameter-nu", 2)
    settle(browser)
    browser.wait("document.getElementById('warnings').textContent.includes('nu is 2')")
    browser.set("slider-nu", 100)
    settle(browser)
    browser.wait("!document.getElementById('warnings').textContent.includes('nu is')")

    # Finer, random, and modes on top.
    browser.set("points", 3)
    browser.set("preset", "random", "change")
    browser.set("mode-2", 0.5)
    settle(browser)
    assert browser.text("points-value") == "512"
    assert browser.text("error") == ""

    # Two dimensions: the solver only when asked.
    browser.set("model", 1, "change")
    settle(browser)
    browser.wait("document.getElementById('channel').length === 4")
    assert browser.text("solver-ms") == "–"
    browser.set("points", 0)
    settle(browser)
    before = browser.picture("map-solver")
    browser.click("solve")
    browser.wait("document.getElementById('nrmse').textContent !== '–'")
    assert browser.picture("map-solver") != before
    browser.set("channel", "vx", "change")
    assert browser.run("return document.getElementById('line-part').hidden")

    # Downloads: data and figure.
    for kind, opening in (("npz", b"PK"), ("csv", b"t,x,y,density"), ("png", b"\x89PNG")):
        browser.click(f"save-{kind}")
        assert browser.downloaded(f"vcnef_cns2d.{kind}").startswith(opening)

    # Three dimensions: a slice, which is moved.
    browser.set("model", 3, "change")
    settle(browser)
    browser.wait("document.getElementById('channel').length === 5")
    assert browser.text("points-value") == "16³"
    assert browser.text("slice-value") == "z = 0.531"
    browser.set("time", 0)  # later, an untrained model's answer is nearly even
    before = browser.picture("map-surrogate")
    browser.set("slice", 2)
    assert browser.text("slice-value") == "z = 0.156"
    assert browser.picture("map-surrogate") != before
    browser.set("points", 0)
    settle(browser)
    assert browser.run("return document.getElementById('slice').max") == "7"
    browser.click("solve")
    browser.wait("document.getElementById('nrmse').textContent !== '–'")
    assert browser.text("error") == ""

    # And back to a line.
    browser.set("model", 0, "change")
    settle(browser)
    assert browser.run("return document.getElementById('slice-row').hidden")

    assert browser.complaints() == []
    assert browser.foreign_requests(server.url) == set()


def scale(browser, canvas):
    """The lowest part of a picture: its colours with the ends of their scale."""
    return browser.run(
        f"const it = document.getElementById('{canvas}');"
        "const strip = it.getContext('2d').getImageData(0, it.height - 22, it.width, 22);"
        "return Array.from(strip.data).join()"
    )


@pytest.mark.parametrize("model", [1, 3])
def test_frames_have_one_scale_of_colours(browser, server, model):
    browser.open(server.url)
    settle(browser)
    browser.set("model", model, "change")
    browser.set("points", 0)
    settle(browser)
    names = ("map-surrogate", "map-solver", "map-error")
    browser.click("solve")
    browser.wait("document.getElementById('nrmse').textContent !== '–'")
    last = {name: (browser.picture(name), scale(browser, name)) for name in names}
    browser.set("time", 0)
    for name in names:
        assert browser.picture(name) != last[name][0]
        assert scale(browser, name) == last[name][1]


def test_what_another_model_answered_is_not_shown_beside_an_error(browser, server, monkeypatch):
    blank = (
        "return [...document.querySelectorAll('canvas')].every(each => !new Uint32Array(each.getContext('2d')"
        ".getImageData(0, 0, each.width, each.height).data.buffer).some(Boolean))"
    )
    browser.open(server.url)
    settle(browser)
    browser.set("parameter-nu", 2)
    browser.wait("document.getElementById('warnings').textContent.includes('nu is 2')")
    assert not browser.run(blank)

    def refuse(ask):
        raise ValueError("There is too little memory.")

    monkeypatch.setattr(server.workbench, "predict", refuse)
    browser.set("model", 2, "change")
    browser.wait("document.getElementById('error').textContent === 'There is too little memory.'")
    browser.set("time", 3)
    assert browser.run(blank)
    assert [browser.text(name) for name in ("surrogate-ms", "solver-ms", "nrmse", "warnings")] == ["–", "–", "–", ""]
    monkeypatch.undo()
    browser.set("model", 1, "change")
    settle(browser)
    assert browser.text("error") == ""
    assert not browser.run(blank)


def test_an_emptied_parameter_is_missed(browser, server):
    missing = "nu has no value. Enter a number, e.g. 0.0707."
    browser.open(server.url)
    settle(browser)
    shown = browser.picture("lines")
    browser.set("parameter-nu", "")
    assert browser.text("error") == ""
    browser.set("parameter-nu", "", "change")
    browser.wait(f"document.getElementById('error').textContent === '{missing}'")
    browser.set("points", 3)
    settle(browser)
    assert browser.text("error") == missing
    assert browser.picture("lines") == shown
    browser.set("parameter-nu", 0.1)
    settle(browser)
    assert browser.text("error") == ""
    assert browser.picture("lines") != shown


def test_an_emptied_seed_is_the_one_before(browser, server):
    browser.open(server.url)
    settle(browser)
    browser.set("preset", "random", "change")
    browser.set("seed", 7)
    settle(browser)
    shown = browser.picture("lines")
    browser.set("seed", "")
    browser.set("seed", "", "change")
    settle(browser)
    assert browser.run("return document.getElementById('seed').value") == "7"
    assert browser.picture("lines") == shown
