"""Small untrained surrogates behind a server on a free port, and a client for it."""

import base64
import http.client
import json
from threading import Thread

import numpy as np
import pytest
import torch

from vcnef.data import Trajectories
from vcnef.explorer import ExplorerServer, Workbench
from vcnef.grid import cell_centres
from vcnef.problem import Problem
from vcnef.surrogate import Surrogate

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": ()}
PROBLEMS = {
    "burgers": Problem("burgers", ("u",), ("nu",)),
    "cns2d": Problem("cns2d", ("density", "pressure", "vx", "vy"), ("eta", "zeta"), ((0.0, 1.0),) * 2),
    "heat": Problem("heat", ("u",), ("kappa",), units={"t": "s"}),
    "cns3d": Problem("cns3d", ("density", "pressure", "vx", "vy", "vz"), ("eta", "zeta"), ((0.0, 1.0),) * 3),
}


@pytest.fixture(autouse=True, scope="session")
def few_cores(one_thread):
    """Every test here."""


def build(name: str) -> Surrogate:
    """A surrogate of fields between 0.5 and 1.5 and parameters between 0.01 and 0.5, up to time 0.5."""
    problem = PROBLEMS[name]
    shape = (6, 5, *(8,) * problem.ndim, len(problem.channels))
    generator = torch.Generator().manual_seed(1)
    parts = torch.linspace(0.0, 1.0, 6)[:, None].expand(-1, len(problem.parameters))
    data = Trajectories(
        u=torch.rand(shape, generator=generator) + 0.5,
        t=torch.linspace(0.0, 0.5, 5),
        grid=cell_centres(problem.domain, 8),
        params=0.01 + 0.49 * parts,
        problem=problem,
    )
    return Surrogate.build("vcnef", TINY, data, seed=0)


@pytest.fixture(scope="session")
def surrogates():
    return {name: build(name) for name in PROBLEMS}


@pytest.fixture(scope="session")
def server(surrogates):
    with ExplorerServer(Workbench(surrogates), port=0) as server:
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


class Client:
    """Requests as a page makes them, or otherwise."""

    def __init__(self, server: ExplorerServer) -> None:
        self.port = server.server_address[1]

    def request(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host="Host" in headers)
        if body is not None and "Content-Length" not in headers:
            headers["Content-Length"] = str(len(body))
        for name, value in headers.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        return reply.status, reply.headers, content

    def ask(self, path, **question):
        body = json.dumps(question).encode()
        status, _, content = self.request("POST", path, body, **{"Content-Type": "application/json"})
        return status, json.loads(content)


@pytest.fixture
def client(server):
    return Client(server)


@pytest.fixture
def unpack():
    def read(answer):
        return np.frombuffer(base64.b64decode(answer["u"]), "<f4").reshape(answer["shape"])

    return read
