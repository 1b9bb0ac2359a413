"""The page in headless Chromium, driven through its WebDriver: what a visitor does, and what then is on the screen."""

import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
]
PATIENCE = 60

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver"),
]


class Browser:
    """A session of the WebDriver protocol, which is JSON over HTTP."""

    def __init__(self, address: str, folder: Path) -> None:
        chrome = {
            "binary": CHROMIUM,
            "args": [*FLAGS, f"--user-data-dir={folder / 'profile'}"],
            "prefs": {"download.default_directory": str(folder)},
        }
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.base = f"{address}/session"
        self.base += "/" + self.send("", capabilities={"alwaysMatch": wanted})["sessionId"]

    def send(self, path, **body):
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return json.load(reply)["value"]

    def run(self, script):
        return self.send("/execute/sync", script=script, args=[])

    def text(self, name):
        return self.run(f"return document.getElementById('{name}').textContent")

    def set(self, name, value, event="input"):
        self.run(
            f"const it = document.getElementById('{name}'); it.value = {json.dumps(value)};"
            f"it.dispatchEvent(new Event('{event}', {{bubbles: true}}))"
        )

    def click(self, name):
        (element,) = self.send("/element", using="css selector", value=f"#{name}").values()
        self.send(f"/element/{element}/click")

    def wait(self, condition):
        """Until a JavaScript expression is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < deadline, f"{condition} did not become true"
            time.sleep(0.05)

    def settle(self):
        """Until the answers to what was done last are on the screen."""
        time.sleep(0.3)
        self.wait(
            "!document.querySelector('.busy') && document.getElementById('surrogate-ms').textContent !== '–' "
            "&& document.getElementById('solver-ms').textContent !== '…'"
        )

    def picture(self, canvas):
        return self.run(f"return document.getElementById('{canvas}').toDataURL()")

    def drag(self, name, *places):
        """The mouse along places that are parts of an element's width and height."""
        box = self.run(f"return document.getElementById('{name}').getBoundingClientRect()")
        points = [(box["x"] + a * box["width"], box["y"] + b * box["height"]) for a, b in places]
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 30} for x, y in points]
        moves.insert(1, {"type": "pointerDown", "button": 0})
        moves.append({"type": "pointerUp", "button": 0})
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}
        self.send("/actions", actions=[mouse])

    def log(self, kind):
        return self.send("/se/log", type=kind)


@pytest.fixture
def browser(tmp_path):
    with subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True) as driver:
        try:
            line = next(line for line in driver.stdout if "successfully on port" in line)
            port = line.split("port")[-1].strip(" .\n")
            session = Browser(f"http://127.0.0.1:{port}", tmp_path)
            yield session
            urllib.request.urlopen(urllib.request.Request(session.base, method="DELETE"), timeout=PATIENCE).close()
        finally:
            driver.terminate()


def test_a_visit(browser, server, tmp_path):
    browser.send("/url", url=server.url)
    browser.settle()
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
    browser.settle()
    assert browser.picture("map-surrogate") != first["map-surrogate"]
    assert browser.text("nrmse") != whole

    # A parameter far outside: a warning, and none any more back inside.
    browser.set("parameter-nu", 2)
    browser.settle()
    browser.wait("document.getElementById('warnings').textContent.includes('nu is 2')")
    browser.set("slider-nu", 100)
    browser.settle()
    browser.wait("!document.getElementById('warnings').textContent.includes('nu is')")

    # Finer, random, and modes on top.
    browser.set("points", 3)
    browser.set("preset", "random", "change")
    browser.set("mode-2", 0.5)
    browser.settle()
    assert browser.text("points-value") == "512"
    assert browser.text("error") == ""

    # Two dimensions: the solver only when asked.
    browser.set("model", 1, "change")
    browser.settle()
    browser.wait("document.getElementById('channel').length === 4")
    assert browser.text("solver-ms") == "–"
    browser.set("points", 0)
    browser.settle()
    before = browser.picture("map-solver")
    browser.click("solve")
    browser.wait("document.getElementById('nrmse').textContent !== '–'")
    assert browser.picture("map-solver") != before
    browser.set("channel", "vx", "change")
    assert browser.run("return document.getElementById('line-part').hidden")

    # Downloads: data and figure.
    for kind, opening in (("npz", b"PK"), ("csv", b"t,x,y,density"), ("png", b"\x89PNG")):
        browser.click(f"save-{kind}")
        assert _downloaded(tmp_path / f"vcnef_cns2d.{kind}").startswith(opening)

    assert [entry for entry in browser.log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    assert _foreign(browser.log("performance"), server.url) == set()


def _downloaded(path):
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} was not downloaded"
        time.sleep(0.05)
    return path.read_bytes()


def _foreign(entries, own):
    """Addresses that the page asked for and that are not the server's."""
    events = [json.loads(entry["message"])["message"] for entry in entries]
    sent = [each["params"] for each in events if each["method"] == "Network.requestWillBeSent"]
    asked = {each["request"]["url"] for each in sent if each["documentURL"].startswith(own)}
    return {address for address in asked if not address.startswith((own, "data:", "blob:"))}
