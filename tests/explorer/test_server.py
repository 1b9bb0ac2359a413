"""What the explorer's server gives to its page, and what it refuses to everybody."""

import http.client
import json
import re
import socket
from contextlib import ExitStack
from threading import Event, Thread

import pytest

from vcnef.explorer import ExplorerServer, Workbench
from vcnef.explorer.server import BODY_LIMIT, PAGE


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("/", "text/html", b"<main>"),
        ("/explorer.css", "text/css", b":root"),
        ("/explorer.js", "text/javascript", b"fetch"),
        ("/numbers.js", "text/javascript", b"export"),
    ],
)
def test_the_page_and_its_files(client, path, kind, words):
    status, headers, content = client.request("GET", path)
    assert status == 200
    assert headers["Content-Type"] == f"{kind}; charset=utf-8"
    assert headers["Content-Security-Policy"].startswith("default-src 'self';")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert words in content


def test_the_page_needs_nothing_from_elsewhere_and_has_no_inline_script():
    html = (PAGE / "index.html").read_text()
    assert re.findall(r'(?:src|href)="([^"]*)"', html) == ["explorer.css", "explorer.js"]
    assert not re.search(r"<script(?![^>]*src)|\sstyle=|\son\w+=", html)
    for path in PAGE.iterdir():
        assert not re.search(r"https?://|@import|url\(", path.read_text()), path.name


def test_every_control_has_a_label():
    html = (PAGE / "index.html").read_text()
    for control in re.findall(r'<(?:input|select) id="([^"]*)"', html):
        assert f'for="{control}"' in html, control


def test_every_element_that_the_script_finds_is_there():
    html, script = (PAGE / "index.html").read_text(), (PAGE / "explorer.js").read_text()
    ids = set(re.findall(r'id="([^"]*)"', html))
    assert set(re.findall(r'find\("([^"]*)"\)', script)) <= ids


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/index.html",
        "/../server.py",
        "/%2e%2e/server.py",
        "//etc/passwd",
        "/page/index.html",
        "/api/predict",
    ],
)
def test_nothing_else_is_served(client, path):
    status, headers, content = client.request("GET", path)
    assert (status, json.loads(content)) == (404, {"error": "There is nothing at this address."})
    assert "Content-Security-Policy" in headers
    assert client.ask("/api/other")[0] == 404


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:80", "[::1]:8765"])
def test_local_names_are_answered(client, host):
    assert client.request("GET", "/", Host=host)[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", None, "[", "192.168.0.7"])
def test_other_names_are_refused(client, host):
    status, _, content = client.request("GET", "/api/models", Host=host)
    assert status == 403
    assert "is not the explorer's" in json.loads(content)["error"]


def test_pages_of_other_sites_are_refused(client):
    for origin in ("http://evil.example", "null"):
        assert client.request("GET", "/api/models", Origin=origin)[0] == 403
    assert client.request("GET", "/api/models", Origin="http://localhost:1")[0] == 200
    # A form of another site can send no JSON.
    assert client.request("POST", "/api/predict", b"{}", **{"Content-Type": "text/plain"})[0] == 415


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"[" * 100000, b'"u"'])
def test_what_is_not_json_is_refused(client, body):
    status, _, content = client.request("POST", "/api/predict", body, **{"Content-Type": "application/json"})
    assert (status, json.loads(content)) == (400, {"error": "The question is not a JSON object."})


@pytest.mark.parametrize(("length", "status"), [(str(BODY_LIMIT + 1), 413), ("-1", 411), ("many", 411), (None, 411)])
def test_bodies_are_bounded_and_measured(client, length, status):
    headers = {"Content-Type": "application/json", "Content-Length": length}
    got, headers, content = client.request("POST", "/api/predict", None, **headers)
    assert got == status
    assert headers["Connection"] == "close"
    assert "at most 1048576 bytes" in json.loads(content)["error"]


def test_other_methods_are_refused(client):
    for method in ("PUT", "DELETE", "OPTIONS"):
        status, headers, content = client.request(method, "/api/models")
        assert (status, headers["Content-Type"]) == (501, "application/json; charset=utf-8")
        assert headers["Connection"] == "close"
        words = f"Unsupported method ({method!r}). The explorer answers GET and POST of HTTP/1.1."
        assert json.loads(content) == {"error": words}
        assert "Content-Security-Policy" in headers
    assert client.request("HEAD", "/api/models")[::2] == (501, b"")


@pytest.mark.parametrize(("line", "status"), [(b"nonsense", 400), (b"GET / HTTP/x", 400), (b"GET / HTTP/3.0", 505)])
def test_what_is_no_http_is_answered_in_json(client, line, status):
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(line + b"\r\n\r\n")
        reply = http.client.HTTPResponse(connection)
        reply.begin()
        assert reply.status == status
        assert "The explorer answers GET and POST" in json.loads(reply.read())["error"]


def test_many_may_ask_at_once(surrogates):
    """Before any of them is taken."""
    with ExplorerServer(Workbench(surrogates), port=0) as server, ExitStack() as connections:
        for _ in range(60):
            connections.enter_context(socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=2))


@pytest.mark.parametrize(("error", "said"), [(ConnectionResetError, False), (KeyError, True)])
def test_a_page_that_is_closed_is_no_failure(server, capsys, error, said):
    try:
        raise error
    except error:
        server.handle_error(None, ("127.0.0.1", 1))
    assert (error.__name__ in capsys.readouterr().err) == said


def test_a_failure_inside_is_one_sentence(client, server, monkeypatch):
    def fail(ask):
        raise RuntimeError("sizes do not match\nat line 3")

    monkeypatch.setattr(server.workbench, "predict", fail)
    assert client.ask("/api/predict") == (500, {"error": "The computation failed: sizes do not match"})


def test_an_answer_under_way_is_waited_for_and_none_begins_after_the_end(client, surrogates):
    begun, go = Event(), Event()

    def slow(ask):
        begun.set()
        go.wait(10)
        raise ValueError("late")

    with ExplorerServer(Workbench(surrogates), port=0) as server:
        server.workbench.predict = slow
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        client = type(client)(server)
        asker = Thread(target=client.ask, args=("/api/predict",), daemon=True)
        asker.start()
        assert begun.wait(5)
        assert not server.answering.stop(0.01)
        go.set()
        assert server.answering.stop(5)
        asker.join(5)
        status, _, content = client.request("GET", "/api/models")
        assert status == 503
        assert json.loads(content)["error"].startswith("The explorer has been stopped")
        server.shutdown()


def test_a_port_that_is_taken(surrogates):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match=r"Cannot serve at 127.0.0.1:\d+: .* Choose another --port or --host."):
            ExplorerServer(Workbench(surrogates), port=taken.getsockname()[1])


def test_the_given_host_is_answered(surrogates):
    with ExplorerServer(Workbench(surrogates), "127.0.0.2", 0) as server:
        assert server.hosts == {"localhost", "127.0.0.1", "::1", "127.0.0.2"}
        assert server.url == f"http://127.0.0.2:{server.server_address[1]}/"


def test_the_whole_machine_answers_to_names_that_are_allowed(client, surrogates):
    with ExplorerServer(Workbench(surrogates), "0.0.0.0", 0, allow=["Lab.example"]) as server:
        assert server.hosts == {"localhost", "127.0.0.1", "::1", "lab.example"}
        assert server.url == f"http://localhost:{server.server_address[1]}/"
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        client = type(client)(server)
        assert client.request("GET", "/api/models", Host="lab.example:80")[0] == 200
        status, _, content = client.request("GET", "/api/models", Host="other.example")
        assert (status, "start it with --allow-host" in json.loads(content)["error"]) == (403, True)
        server.shutdown()


@pytest.mark.parametrize(
    "headers",
    [
        "Host: localhost\r\nHost: localhost\r\nContent-Length: 2",
        "Host: localhost\r\nContent-Length: 2\r\nContent-Length: 2",
        "Host: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked",
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused(client, headers):
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(f"POST /api/predict HTTP/1.1\r\n{headers}\r\n\r\n{{}}".encode())
        reply = http.client.HTTPResponse(connection)
        reply.begin()
        assert reply.status == 400
        assert "Send each header once" in json.loads(reply.read())["error"]
