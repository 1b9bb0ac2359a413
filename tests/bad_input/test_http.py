"""Questions and requests to the explorer that are none: each is answered with a status and one sentence."""

import contextlib
import http.client
import json
import socket
import time
from threading import Thread

import pytest

from vcnef.explorer import ExplorerServer, Workbench

RIGHT = {"params": {"a": 1.0, "b": 0.1}, "times": 3, "points": 32}
KINDS = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def port(world):
    workbench = Workbench({"hq": world.model, "burgers": world.burgers})
    with ExplorerServer(workbench, port=0) as server:
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def post(port, body, path="/api/predict", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, text, KINDS | headers)
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, json.loads(content)


# On what is asked, by /api/predict: what is said of it.
QUESTIONS = {
    "another model": ({"model": 7}, "model is 7; expected a whole number from 0 to 1"),
    "a model before the first": ({"model": -1}, "model is -1; expected a whole number from 0 to 1"),
    "half a model": ({"model": 0.5}, "model is 0.5; expected a whole number"),
    "a model by name": ({"model": "hq"}, "model is 'hq'; expected a finite number"),
    "a model that is true": ({"model": True}, "model is True; expected a finite number"),
    "an unknown parameter": ({"params": {"nu": 1}}, "There is no parameter 'nu' of custom"),
    "a parameter of another case": ({"params": {"A": 1}}, "There is no parameter 'A' of custom"),
    "parameters in a list": ({"params": [1, 2]}, "params is [1, 2]; expected names with their values"),
    "a parameter in words": ({"params": {"a": "1"}}, "a is '1'; expected a finite number"),
    "a parameter of NaN": ({"params": {"a": float("nan")}}, "a is nan; expected a finite number"),
    "an infinite parameter": ({"params": {"a": float("inf")}}, "a is inf; expected a finite number"),
    "a parameter in a list": ({"params": {"a": [1]}}, "a is [1]; expected a finite number"),
    "a parameter without a value": ({"params": {"a": None}}, "a is None; expected a finite number"),
    "a parameter far away": ({"params": {"a": 1e9}}, "a is 1e+09; expected -15 to 15, not too far from training"),
    "a parameter that works nowhere": ({"model": 1, "params": {"nu": -1}}, "expected 0 to 20, where the solver works"),
    "an unknown channel": ({"state": {"modes": {"p": [1]}}}, "There is no channel 'p'"),
    "a drawn channel": ({"state": {"drawn": {"u": [1] * 8}}}, "There is no channel 'u'"),
    "modes in a number": ({"state": {"modes": {"h": 1}}}, "modes of h is not a list"),
    "modes in words": ({"state": {"modes": {"h": ["a"]}}}, "modes of h is 'a'; expected a finite number"),
    "too many modes": ({"state": {"modes": {"h": [1] * 99}}}, "modes of h is not a list of 0 to 16 numbers"),
    "modes beyond all fields": ({"state": {"modes": {"h": [1e9]}}}, "modes of h goes beyond"),
    "a line of two points": ({"state": {"drawn": {"h": [1, 2]}}}, "drawn of h is not a list of 4 to"),
    "an unknown state": ({"state": {"preset": "storm"}}, "There is no initial state 'storm'"),
    "a state in words": ({"state": "sine"}, "state is 'sine'; expected names with their values"),
    "a seed below zero": ({"state": {"seed": -1}}, "seed is -1; expected a whole number from 0"),
    "units": ({"units": {"t": "ms"}}, "A question has no 'units'"),
    "times before the first": ({"last": -1}, "The last time is -1; expected more than 0"),
    "a time in milliseconds": ({"last": 1000}, "The last time is 1000; expected more than 0 and at most 4"),
    "a time of NaN": ({"last": float("nan")}, "last is nan; expected a finite number"),
    "a time in words": ({"last": "1 s"}, "last is '1 s'; expected a finite number"),
    "a single time": ({"times": 1}, "times is 1; expected a whole number from 2 to 512"),
    "times without end": ({"times": 10**9}, "times is 1000000000; expected a whole number"),
    "a time beyond numbers": ({"last": 10**400}, "expected a finite number"),
    "points below zero": ({"points": -8}, "points is -8; expected a whole number from"),
    "half a point": ({"points": 64.5}, "points is 64.5; expected a whole number from"),
    "points without end": ({"points": 10**9}, "points is 1000000000; expected a whole number"),
    "a list": ([1], "The question is not a JSON object"),
    "a text": ("hq", "The question is not a JSON object"),
    "no JSON": (b"{", "The question is not a JSON object"),
    "deep JSON": (b"[" * 10**5, "The question is not a JSON object"),
    "no text": (b"\xff\xfe{}", "The question is not a JSON object"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions(port, name):
    asked, said = QUESTIONS[name]
    status, answer = post(port, asked)
    assert status == 400
    assert said in answer["error"]
    assert "\n" not in answer["error"]


@pytest.mark.parametrize(
    ("path", "asked", "status", "said"),
    [
        ("/api/export", {"format": "exe"}, 400, "There is no format 'exe'"),
        ("/api/export", {}, 400, "There is no format 'None'"),
        ("/api/solve", {}, 400, "There is no solver for custom here"),
        ("/api/models", {}, 404, "There is nothing at this address"),
        ("/api/../../etc/passwd", {}, 404, "There is nothing at this address"),
        ("/", {}, 404, "There is nothing at this address"),
    ],
)
def test_addresses(port, path, asked, status, said):
    got, answer = post(port, asked, path)
    assert (got, said in answer["error"]) == (status, True)


HEADS = {
    "another type": ({"Content-Type": "text/plain"}, 415, "must be sent as application/json"),
    "another site": ({"Origin": "https://example.org"}, 403, "This address is not the explorer's"),
    "no site": ({"Origin": "null"}, 403, "This address is not the explorer's"),
    "another host": ({"Host": "example.org"}, 403, "This address is not the explorer's"),
    "a host that is none": ({"Host": "["}, 403, "This address is not the explorer's"),
    "pieces": ({"Transfer-Encoding": "chunked"}, 400, "Send each header once"),
}


@pytest.mark.parametrize("name", HEADS)
def test_heads(port, name):
    headers, status, said = HEADS[name]
    got, answer = post(port, {}, **headers)
    assert (got, said in answer["error"]) == (status, True)


RAW = {
    "two hosts": (b"Host: 127.0.0.1\r\nHost: example.org\r\nContent-Length: 2\r\n", 400),
    "two lengths": (b"Host: 127.0.0.1\r\nContent-Length: 2\r\nContent-Length: 4\r\n", 400),
    "a length and pieces": (b"Host: 127.0.0.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n", 400),
    "no host": (b"Content-Length: 2\r\n", 403),
    "no length": (b"Host: 127.0.0.1\r\n", 411),
    "a length below zero": (b"Host: 127.0.0.1\r\nContent-Length: -1\r\n", 411),
    "a length in words": (b"Host: 127.0.0.1\r\nContent-Length: two\r\n", 411),
    "too long": (b"Host: 127.0.0.1\r\nContent-Length: 99999999\r\n", 413),
}


@pytest.mark.parametrize("name", RAW)
def test_requests_that_no_library_makes(port, name):
    head, status = RAW[name]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"POST /api/predict HTTP/1.1\r\nContent-Type: application/json\r\n" + head + b"\r\n{}")
        reply = connection.makefile("rb").read()
    assert reply.startswith(b"HTTP/1.1 %d " % status)
    assert json.loads(reply.partition(b"\r\n\r\n")[2])["error"]


def test_connections_without_end_are_closed(world, monkeypatch):
    """Those beyond the limit; when one ends, there is room again."""
    monkeypatch.setattr("vcnef.explorer.server.MOST_CONNECTIONS", 2)
    with ExplorerServer(Workbench({"hq": world.model}), port=0) as server:
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        address = ("127.0.0.1", server.server_address[1])
        idle = [socket.create_connection(address, timeout=10) for _ in range(2)]
        with socket.create_connection(address, timeout=10) as third:
            assert third.recv(1) == b""
        idle[0].close()
        for _ in range(100):
            with contextlib.suppress(OSError, http.client.HTTPException):
                assert post(address[1], RIGHT)[0] == 200
                break
            time.sleep(0.05)
        else:
            pytest.fail("there is no room again")
        idle[1].close()
        server.shutdown()


def test_what_is_right_is_answered_after_all(port):
    status, answer = post(port, RIGHT)
    assert (status, answer["shape"]) == (200, [3, 32, 2])
