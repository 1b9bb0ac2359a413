"""Headless Chromium for tests, driven through its WebDriver, which is JSON over HTTP."""

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


class Browser:
    """A session with an empty profile; what a page downloads lies in `folder`."""

    def __init__(self, address: str, folder: Path) -> None:
        chrome = {
            "binary": CHROMIUM,
            "args": [*FLAGS, f"--user-data-dir={folder / 'profile'}"],
            "prefs": {"download.default_directory": str(folder)},
        }
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.folder = folder
        self.base = f"{address}/session"
        self.base += "/" + self.send("", capabilities={"alwaysMatch": wanted})["sessionId"]

    def send(self, path, **body):
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return json.load(reply)["value"]

    def open(self, address):
        self.send("/url", url=address)

    def be_a_phone(self, width=390, height=844):
        screen = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": True}
        self.send("/goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride", params=screen)

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

    def downloaded(self, name):
        """The contents of a file, as soon as it is there."""
        path, deadline = self.folder / name, time.monotonic() + PATIENCE
        while not path.exists():
            assert time.monotonic() < deadline, f"{name} was not downloaded"
            time.sleep(0.05)
        return path.read_bytes()

    def complaints(self):
        """Errors and warnings on the console."""
        entries = self.send("/se/log", type="browser")
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def foreign_requests(self, own):
        """Addresses that a page of `own` asked for, and that are neither there nor in the page itself."""
        entries = self.send("/se/log", type="performance")
        events = [json.loads(entry["message"])["message"] for entry in entries]
        sent = [each["params"] for each in events if each["method"] == "Network.requestWillBeSent"]
        asked = {each["request"]["url"] for each in sent if each["documentURL"].startswith(own)}
        assert asked, f"nothing was asked for by {own}"
        return {address for address in asked if not address.startswith((own, "data:", "blob:"))}


@contextmanager
def open_browser(folder: Path) -> Iterator[Browser]:
    with subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True) as driver:
        try:
            line = next(line for line in driver.stdout if "successfully on port" in line)
            port = line.split("port")[-1].strip(" .\n")
            session = Browser(f"http://127.0.0.1:{port}", folder)
            yield session
            urllib.request.urlopen(urllib.request.Request(session.base, method="DELETE"), timeout=PATIENCE).close()
        finally:
            driver.terminate()
