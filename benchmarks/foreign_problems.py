"""Development problems for surrogates: trajectories of equations that the package has no solver for.

    python benchmarks/foreign_problems.py [--names ks shear_flow] [--samples 8] [--seed 0] [--device cpu]

makes them and says how long that took; in a script, they are given as users give data of their own:

    data = foreign_problems.make("ks")
    vcnef.fit(data.u, t=data.t, x=data.x, params=data.params, channels=data.channels, periodic=data.periodic)

Nothing is used but torch. On periodic boxes the equations are solved with Fourier series in space (products are
dealiased by the 2/3 rule) and ETDRK4 in time, in double precision. All that is random comes from one generator on the
CPU, so that a seed gives the same states and parameters on every device.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

Params = dict[str, Tensor]
DOUBLE = torch.float64
POINTS_AT_ONCE = {"cpu": 2**16, "cuda": 2**22}  # of all samples that are solved together; a CPU's cache holds so many
CONTOUR = 32  # points of the contour integrals, as many as Kassam and Trefethen take


@dataclass(frozen=True)
class Data:
    """What a user would have, in single precision on the CPU."""

    u: Tensor  # [n t *x c]
    t: Tensor  # [t]
    x: tuple[Tensor, ...]  # the coordinates along each axis
    params: Params  # by name, one value per sample; empty where none vary
    channels: tuple[str, ...]
    periodic: bool


def make(name: str, samples: int | None = None, seed: int = 0, device: str | torch.device = "cpu") -> Data:
    """The data of a problem, by default as many samples as it suggests. The equation is solved on `device`."""
    if name not in PROBLEMS:
        raise ValueError(f"name is {name!r}; expected one of {', '.join(PROBLEMS)}.")
    problem = PROBLEMS[name]
    start, params = problem.draw(problem.samples if samples is None else samples, seed, device)
    u = problem.solve(start, params)
    return Data(
        u=u.movedim(2, -1).contiguous(),
        t=problem.times().float(),
        x=tuple(axis.float() for axis in problem.axes()),
        params={name: value.float().cpu() for name, value in params.items()},
        channels=problem.channels,
        periodic=problem.periodic,
    )


class Waves:
    """Waves of a periodic box that the data's grid can tell apart, and the way to them from values at points and back.

    Spectra `[n c *k]` hold no others. Products are taken at 3/2 times as many points along each axis: what two of these
    waves give beyond them is then left out, and not mistaken for one of them (the 2/3 rule).
    """

    def __init__(self, points: tuple[int, ...], lengths: tuple[float, ...], device: str | torch.device = "cpu"):
        self.points, self.finer = points, tuple(3 * count // 2 for count in points)
        self.axes = tuple(range(-len(points), 0))
        self.k: list[Tensor] = []  # the wave numbers along each axis, in shapes that broadcast against a spectrum
        keep = torch.ones((), dtype=torch.bool, device=device)
        for axis, count, length in zip(self.axes, points, lengths, strict=True):
            frequencies = torch.fft.rfftfreq if axis == -1 else torch.fft.fftfreq
            shape = [-1 if other == axis else 1 for other in self.axes]
            number = frequencies(count, 1 / count, dtype=DOUBLE, device=device).reshape(shape)
            keep = keep & (number.abs() < count / 2)  # the last one has no direction
            self.k.append(2 * math.pi / length * number)
        self.keep = keep.to(DOUBLE)
        self.square = sum(k.square() for k in self.k)
        self.inverse_square = torch.where(self.square > 0, 1 / self.square, 0.0)

    def to_spectrum(self, u: Tensor) -> Tensor:
        """From values at the points of the data, or at the finer ones."""
        spectrum = torch.fft.rfftn(u, dim=self.axes, norm="forward")
        for axis, count in zip(self.axes[:-1], self.points[:-1], strict=True):
            half = count // 2
            spectrum = torch.cat([spectrum.narrow(axis, 0, half), spectrum.narrow(axis, -half, half)], dim=axis)
        return spectrum[..., : self.points[-1] // 2 + 1] * self.keep

    def to_points(self, spectrum: Tensor) -> Tensor:
        return torch.fft.irfftn(spectrum, s=self.points, dim=self.axes, norm="forward")

    def to_finer_points(self, spectrum: Tensor) -> Tensor:
        for axis, count in zip(self.axes[:-1], self.points[:-1], strict=True):
            positive, negative = spectrum.split(count // 2, dim=axis)
            spectrum = torch.cat([positive, torch.zeros_like(positive), negative], dim=axis)
        return torch.fft.irfftn(spectrum, s=self.finer, dim=self.axes, norm="forward")


class ETDRK4:
    """Steps of v' = linear v + nonlinear(v), the linear part exactly (Cox and Matthews 2002).

    Its coefficients are differences that cancel where `dt linear` is small. Following Kassam and Trefethen (2005), they
    are means over a circle around each value, of which no point comes near zero.
    """

    def __init__(self, linear: Tensor, nonlinear: Callable[[Tensor], Tensor], dt: float):
        self.nonlinear = nonlinear
        z = dt * linear
        self.whole, self.half = torch.exp(z), torch.exp(z / 2)
        sums = [torch.zeros_like(z, dtype=torch.complex128) for _ in range(4)]
        for point in range(CONTOUR):
            angle = 2 * math.pi * (point + 0.5) / CONTOUR
            r = z + complex(math.cos(angle), math.sin(angle))
            exp = torch.exp(r)
            sums[0] += (torch.exp(r / 2) - 1) / r
            sums[1] += (-4 - r + exp * (4 - 3 * r + r**2)) / r**3
            sums[2] += (2 + r + exp * (r - 2)) / r**3
            sums[3] += (-4 - 3 * r - r**2 + exp * (4 - r)) / r**3
        means = [dt / CONTOUR * (value if z.is_complex() else value.real) for value in sums]
        self.stage, self.first, self.middle, self.last = means

    def __call__(self, v: Tensor) -> Tensor:
        change = self.nonlinear(v)
        decayed = self.half * v
        a = decayed + self.stage * change
        change_a = self.nonlinear(a)
        change_b = self.nonlinear(decayed + self.stage * change_a)
        change_c = self.nonlinear(self.half * a + self.stage * (2 * change_b - change))
        return self.whole * v + self.first * change + 2 * self.middle * (change_a + change_b) + self.last * change_c


class Problem:
    """An equation, its sizes, and the states and parameters that it starts from."""

    samples: int
    frames: int
    horizon: float
    points: tuple[int, ...]
    lengths: tuple[float, ...]
    channels: tuple[str, ...] = ("u",)
    periodic = True

    def draw_params(self, samples: int, generator: Generator) -> Params:
        return {}

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        """Random states `[n c *x]`."""
        raise NotImplementedError

    def draw(self, samples: int, seed: int, device: str | torch.device) -> tuple[Tensor, Params]:
        """The states at time zero and the parameters, in double precision on the device."""
        generator = torch.Generator().manual_seed(seed)
        params = {name: value.to(device) for name, value in self.draw_params(samples, generator).items()}
        return self.draw_start(samples, generator).to(device), params

    def solve(self, start: Tensor, params: Params, refine: int = 1) -> Tensor:
        """Trajectories `[n t c *x]` in single precision, on the CPU; with `refine` times as many steps."""
        raise NotImplementedError

    def times(self) -> Tensor:
        return torch.linspace(0, self.horizon, self.frames, dtype=DOUBLE)

    def axes(self) -> tuple[Tensor, ...]:
        """Coordinates along each axis; the end of a periodic one is its beginning, and left out."""
        pairs = zip(self.points, self.lengths, strict=True)
        return tuple(torch.arange(count, dtype=DOUBLE) * (length / count) for count, length in pairs)


class Periodic(Problem):
    """Equations `u_t = linear u + nonlinear(u)` on periodic boxes.

    The random states are followed for the time `spin_up` before the first frame. Its steps are twice as long as
    those between frames: where exactly it ends does not matter.
    """

    steps: int  # from a frame to the next
    spin_up = 0.0

    def linear(self, waves: Waves, params: Params) -> Tensor:
        """What each wave is multiplied by, `[n c *k]` or `[*k]`; parameters come as `[n 1 *1]`."""
        raise NotImplementedError

    def nonlinear(self, waves: Waves, params: Params) -> Callable[[Tensor], Tensor]:
        """The function from the spectrum of a state to that of its change, `[n c *k]` both."""
        raise NotImplementedError

    def draw(self, samples: int, seed: int, device: str | torch.device) -> tuple[Tensor, Params]:
        start, params = super().draw(samples, seed, device)
        dt = 2 * self.step()
        parts = self.parts(start, params)
        return torch.cat([self.follow(*part, 1, round(self.spin_up / dt), dt)[:, -1] for part in parts]), params

    def solve(self, start: Tensor, params: Params, refine: int = 1) -> Tensor:
        dt, steps = self.step() / refine, self.steps * refine
        parts = self.parts(start, params)
        return torch.cat([self.follow(*part, self.frames - 1, steps, dt).float().cpu() for part in parts])

    def step(self) -> float:
        return self.horizon / (self.frames - 1) / self.steps

    def parts(self, start: Tensor, params: Params) -> list[tuple[Tensor, Params]]:
        """Groups of samples that are small enough to be solved together."""
        size = max(1, POINTS_AT_ONCE[start.device.type] // math.prod(self.points))
        states = start.split(size)
        columns = {name: value.split(size) for name, value in params.items()}
        return [(state, {name: column[i] for name, column in columns.items()}) for i, state in enumerate(states)]

    def follow(self, start: Tensor, params: Params, frames: int, steps: int, dt: float) -> Tensor:
        """The states `[n t c *x]` at the start and after each of `frames` times as many `steps`."""
        waves = Waves(self.points, self.lengths, start.device)
        shaped = {name: value.reshape(-1, 1, *(1 for _ in self.points)) for name, value in params.items()}
        advance = ETDRK4(self.linear(waves, shaped), self.nonlinear(waves, shaped), dt)
        spectrum = waves.to_spectrum(start)
        states = [waves.to_points(spectrum)]
        for _ in range(frames):
            for _ in range(steps):
                spectrum = advance(spectrum)
            states.append(waves.to_points(spectrum))
        return torch.stack(states, dim=1)

    def random_field(self, samples: int, generator: Generator, strength: Callable[[Tensor], Tensor]) -> Tensor:
        """Smooth fields `[n 1 *x]` of mean 0 and mean square 1; a wave is about as strong as `strength(|k|)`."""
        waves = Waves(self.points, self.lengths)
        noise = torch.randn(samples, 1, *self.points, generator=generator, dtype=DOUBLE)
        wanted = torch.where(waves.square > 0, strength(waves.square.sqrt()), 0.0)
        field = waves.to_points(waves.to_spectrum(noise) * wanted)
        return field / field.square().mean(dim=waves.axes, keepdim=True).sqrt()


def uniform(samples: int, low: float, high: float, generator: Generator) -> Tensor:
    return low + (high - low) * torch.rand(samples, generator=generator, dtype=DOUBLE)


def log_uniform(samples: int, low: float, high: float, generator: Generator) -> Tensor:
    return torch.exp(uniform(samples, math.log(low), math.log(high), generator))


def carried(waves: Waves, spectrum: Tensor) -> Tensor:
    """-velocity . grad of each channel; the first one is the vorticity w that the velocity comes from.

    The velocity is (psi_y, -psi_x) of a stream function with lap psi = -w.
    """
    kx, ky = waves.k
    stream = spectrum[:, :1] * waves.inverse_square
    along_x = waves.to_finer_points(1j * ky * stream) * waves.to_finer_points(1j * kx * spectrum)
    along_y = waves.to_finer_points(1j * kx * stream) * waves.to_finer_points(1j * ky * spectrum)
    return waves.to_spectrum(along_y - along_x)


class KuramotoSivashinsky(Periodic):
    """u_t = -u u_x - u_xx - u_xxxx on [0, 36): chaos, of which the data begin on the attractor.

    Random long waves are followed for 100 units of time before the first frame. The mean of u is 0. The length matters:
    at 32, most states soon come to rest as four equal waves.
    """

    samples, frames, horizon, steps = 600, 21, 20.0, 20
    points, lengths = (96,), (36.0,)
    spin_up = 100.0

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        return self.random_field(samples, generator, lambda k: torch.exp(-k.square()))

    def linear(self, waves: Waves, params: Params) -> Tensor:
        return waves.square - waves.square**2

    def nonlinear(self, waves: Waves, params: Params) -> Callable[[Tensor], Tensor]:
        return lambda v: -0.5j * waves.k[0] * waves.to_spectrum(waves.to_finer_points(v).square())


class WideKuramotoSivashinsky(KuramotoSivashinsky):
    """u_t = -u u_x - u_xx - k u_xxxx on [0, 64) with k in [0.5, 1.5]: the smaller k, the faster errors grow."""

    samples, frames, horizon, steps = 1000, 41, 20.0, 20
    points, lengths = (256,), (64.0,)

    def draw_params(self, samples: int, generator: Generator) -> Params:
        return {"k": uniform(samples, 0.5, 1.5, generator)}

    def linear(self, waves: Waves, params: Params) -> Tensor:
        return waves.square - params["k"] * waves.square**2


class KortewegDeVries(Periodic):
    """u_t = -6 u u_x - u_xxx on [0, 20): waves that steepen and come apart into solitons.

    Random states of a few long waves, of mean 0 and a root mean square in [0.4, 1].
    """

    samples, frames, horizon, steps = 600, 21, 2.0, 60
    points, lengths = (128,), (20.0,)

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        amplitude = uniform(samples, 0.4, 1.0, generator).reshape(-1, 1, 1)
        return amplitude * self.random_field(samples, generator, lambda k: torch.exp(-k.square()))

    def linear(self, waves: Waves, params: Params) -> Tensor:
        return 1j * waves.k[0] ** 3

    def nonlinear(self, waves: Waves, params: Params) -> Callable[[Tensor], Tensor]:
        return lambda v: -3j * waves.k[0] * waves.to_spectrum(waves.to_finer_points(v).square())


class FisherKPP(Periodic):
    """u_t = D u_xx + r u (1 - u) on [0, 1): populations that grow and spread as fronts.

    D in [1e-3, 1e-2], on a logarithmic scale, and r in [2, 10]. Random states of three bumps, with values in [0, 1].
    """

    samples, frames, horizon, steps = 400, 21, 1.0, 5
    points, lengths = (128,), (1.0,)

    def draw_params(self, samples: int, generator: Generator) -> Params:
        return {"D": log_uniform(samples, 1e-3, 1e-2, generator), "r": uniform(samples, 2.0, 10.0, generator)}

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        return bumps(self, samples, 3, (0.2, 1.0), (0.06, 0.15), generator)

    def linear(self, waves: Waves, params: Params) -> Tensor:
        return params["r"] - params["D"] * waves.square

    def nonlinear(self, waves: Waves, params: Params) -> Callable[[Tensor], Tensor]:
        return lambda v: -params["r"] * waves.to_spectrum(waves.to_finer_points(v).square())


class HeatWalls(Problem):
    """u_t = k u_xx on [0, 1] with u = 0 at both ends, which are points of the grid.

    k in [0.005, 0.05], on a logarithmic scale. The states are random series of eight sines sin(m pi x), each of which
    decays as exp(-k (m pi)^2 t): the solution is exact.
    """

    samples, frames, horizon = 400, 21, 1.0
    points, lengths = (101,), (1.0,)
    periodic = False
    sines = 8

    def draw_params(self, samples: int, generator: Generator) -> Params:
        return {"k": log_uniform(samples, 0.005, 0.05, generator)}

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        """The amplitudes `[n 1 m]` of the sines, the shorter ones weaker."""
        number = torch.arange(1, self.sines + 1, dtype=DOUBLE)
        return torch.randn(samples, 1, self.sines, generator=generator, dtype=DOUBLE) / number

    def axes(self) -> tuple[Tensor, ...]:
        return (torch.linspace(0, 1, self.points[0], dtype=DOUBLE),)

    def solve(self, start: Tensor, params: Params, refine: int = 1) -> Tensor:
        frequency = math.pi * torch.arange(1, self.sines + 1, dtype=DOUBLE, device=start.device)
        shapes = torch.sin(frequency[:, None] * self.axes()[0].to(start.device))
        shapes[:, [0, -1]] = 0.0  # sin(m pi) is no exact zero on a computer
        rate = params["k"].reshape(-1, 1, 1, 1) * frequency.square()
        amplitudes = start[:, None] * torch.exp(-rate * self.times().to(start.device).reshape(-1, 1, 1))
        return (amplitudes @ shapes).float().cpu()


class Kolmogorov(Periodic):
    """w_t = -velocity . grad w + nu lap w - 0.1 w - 4 cos(4 y) on [0, 2 pi)^2: forced turbulence.

    nu in [1e-3, 1e-2], on a logarithmic scale. The vorticity w of random eddies is followed for 4 units of time before
    the first frame. Where nu is small, waves that the grid does not hold would matter too: on twice as many points, the
    last frame differs by 20 % at nu = 1.2e-3, and by 1 % at 8e-3.
    """

    samples, frames, horizon, steps = 150, 11, 2.0, 30
    points, lengths = (64, 64), (2 * math.pi, 2 * math.pi)
    spin_up = 4.0
    channels = ("w",)
    drag, wave = 0.1, 4

    def draw_params(self, samples: int, generator: Generator) -> Params:
        return {"nu": log_uniform(samples, 1e-3, 1e-2, generator)}

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        return 5.0 * self.random_field(samples, generator, eddies)

    def linear(self, waves: Waves, params: Params) -> Tensor:
        return -params["nu"] * waves.square - self.drag

    def nonlinear(self, waves: Waves, params: Params) -> Callable[[Tensor], Tensor]:
        y = torch.arange(waves.points[1], dtype=DOUBLE, device=waves.keep.device) * (2 * math.pi / waves.points[1])
        forcing = waves.to_spectrum(-self.wave * torch.cos(self.wave * y).expand(waves.points))
        return lambda v: carried(waves, v) + forcing


class Forced(Periodic):
    """w_t = -velocity . grad w + nu lap w + f on [0, 1)^2 with f = 0.1 (sin 2 pi (x + y) + cos 2 pi (x + y)).

    nu in [1e-4, 1e-2], on a logarithmic scale, and states from the prior of Li et al. (2021). Where nu is small, waves
    that the grid does not hold would matter too.
    """

    samples, frames, horizon, steps = 800, 21, 10.0, 25
    points, lengths = (64, 64), (1.0, 1.0)
    channels = ("w",)

    def draw_params(self, samples: int, generator: Generator) -> Params:
        return {"nu": log_uniform(samples, 1e-4, 1e-2, generator)}

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        # Values at a point have this standard deviation, of all samples and as the authors' generator makes them.
        return 0.185 * self.random_field(samples, generator, lambda k: (k.square() + 49) ** -1.25)

    def linear(self, waves: Waves, params: Params) -> Tensor:
        return -params["nu"] * waves.square

    def nonlinear(self, waves: Waves, params: Params) -> Callable[[Tensor], Tensor]:
        x, y = (axis.to(waves.keep.device) for axis in self.axes())
        angle = 2 * math.pi * (x[:, None] + y)
        forcing = waves.to_spectrum(0.1 * (angle.sin() + angle.cos()))
        return lambda v: carried(waves, v) + forcing


class Decaying(Periodic):
    """w_t = -velocity . grad w + 1e-3 lap w on [0, 2 pi)^2: eddies that merge and fade.

    The random vorticity w has its strongest waves near |k| = 4, and a root mean square in [1, 2]. On twice as many
    points, the last frame differs by 4 to 10 %.
    """

    samples, frames, horizon, steps = 150, 11, 5.0, 30
    points, lengths = (64, 64), (2 * math.pi, 2 * math.pi)
    channels = ("w",)

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        amplitude = uniform(samples, 1.0, 2.0, generator).reshape(-1, 1, 1, 1)
        return amplitude * self.random_field(samples, generator, eddies)

    def linear(self, waves: Waves, params: Params) -> Tensor:
        return -1e-3 * waves.square

    def nonlinear(self, waves: Waves, params: Params) -> Callable[[Tensor], Tensor]:
        return lambda v: carried(waves, v)


class GrayScott(Periodic):
    """u_t = 2e-5 lap u - u v^2 + F (1 - u), v_t = 1e-5 lap v + u v^2 - (F + k) v on [0, 0.6)^2.

    F in [0.03, 0.04] and k in [0.058, 0.062]. Four random bumps of v, where u is partly used up, grow into spots and
    stripes.
    """

    samples, frames, horizon, steps = 160, 11, 1000.0, 70
    points, lengths = (48, 48), (0.6, 0.6)
    channels = ("u", "v")
    diffusivities = (2e-5, 1e-5)

    def draw_params(self, samples: int, generator: Generator) -> Params:
        return {"F": uniform(samples, 0.03, 0.04, generator), "k": uniform(samples, 0.058, 0.062, generator)}

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        used = bumps(self, samples, 4, (0.8, 1.0), (0.08, 0.12), generator)
        return torch.cat([1 - 0.5 * used, 0.25 * used], dim=1)

    def linear(self, waves: Waves, params: Params) -> Tensor:
        of_u, of_v = self.diffusivities
        feed, kill = params["F"], params["k"]
        return torch.cat([-of_u * waves.square - feed, -of_v * waves.square - feed - kill], dim=1)

    def nonlinear(self, waves: Waves, params: Params) -> Callable[[Tensor], Tensor]:
        def change(spectrum: Tensor) -> Tensor:
            u, v = waves.to_finer_points(spectrum).chunk(2, dim=1)
            reaction = u * v.square()
            return waves.to_spectrum(torch.cat([params["F"] - reaction, reaction], dim=1))

        return change


class SwiftHohenberg(Periodic):
    """u_t = r u - (1 + lap)^2 u - u^3 on [0, 12 pi)^2: stripes of wave length 2 pi, r in [0.1, 0.5].

    Random fields with waves of many lengths, of root mean square 0.3.
    """

    samples, frames, horizon, steps = 160, 11, 20.0, 12
    points, lengths = (48, 48), (12 * math.pi, 12 * math.pi)

    def draw_params(self, samples: int, generator: Generator) -> Params:
        return {"r": uniform(samples, 0.1, 0.5, generator)}

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        return 0.3 * self.random_field(samples, generator, lambda k: torch.exp(-k.square()))

    def linear(self, waves: Waves, params: Params) -> Tensor:
        return params["r"] - (1 - waves.square).square()

    def nonlinear(self, waves: Waves, params: Params) -> Callable[[Tensor], Tensor]:
        return lambda v: -waves.to_spectrum(waves.to_finer_points(v) ** 3)


class ShearFlow(Periodic):
    """w_t = -velocity . grad w + nu lap w, c_t = -velocity . grad c + D lap c on [0, 2 pi)^2: layers that roll up.

    nu and D in [1e-3, 1e-2], on a logarithmic scale. There are two layers, where the velocity along x goes from -1 to 1
    and back, and the tracer c from 0 to 1 and back. They have random places and widths, and are bent by random waves.
    """

    samples, frames, horizon, steps = 120, 11, 6.0, 35
    points, lengths = (64, 64), (2 * math.pi, 2 * math.pi)
    channels = ("w", "c")

    def draw_params(self, samples: int, generator: Generator) -> Params:
        return {"nu": log_uniform(samples, 1e-3, 1e-2, generator), "D": log_uniform(samples, 1e-3, 1e-2, generator)}

    def draw_start(self, samples: int, generator: Generator) -> Tensor:
        width = uniform(samples, 0.2, 0.4, generator).reshape(-1, 1, 1, 1)
        shift = uniform(samples, 0.0, 2 * math.pi, generator).reshape(-1, 1, 1, 1)
        waves = Waves(self.points, self.lengths)
        y = torch.arange(waves.points[1], dtype=DOUBLE) * (2 * math.pi / waves.points[1])
        bend = 0.1 * self.random_field(samples, generator, lambda k: torch.exp(-k.square() / 4))
        speed = torch.tanh(torch.sin(y - shift + bend) / width)
        vorticity = waves.to_points(-1j * waves.k[1] * waves.to_spectrum(speed))
        return torch.cat([vorticity, (1 + speed) / 2], dim=1)

    def linear(self, waves: Waves, params: Params) -> Tensor:
        return -torch.cat([params["nu"], params["D"]], dim=1) * waves.square

    def nonlinear(self, waves: Waves, params: Params) -> Callable[[Tensor], Tensor]:
        return lambda v: carried(waves, v)


def eddies(k: Tensor) -> Tensor:
    """How strong waves of vorticity are: most near |k| = 4."""
    return k**2 * torch.exp(-k.square() / 16)


def bumps(
    problem: Periodic,
    samples: int,
    count: int,
    heights: tuple[float, float],
    widths: tuple[float, float],
    generator: Generator,
) -> Tensor:
    """Fields `[n 1 *x]` with `count` round bumps at random places, which overlap without getting higher than 1.

    Widths are in units of the box.
    """
    room = torch.ones(samples, 1, *problem.points, dtype=DOUBLE)
    ones = (1,) * len(problem.points)
    for _ in range(count):
        height = uniform(samples, *heights, generator).reshape(-1, 1, *ones)
        width = uniform(samples, *widths, generator).reshape(-1, 1, *ones)
        distance = torch.zeros_like(room)
        for axis, (x, length) in enumerate(zip(problem.axes(), problem.lengths, strict=True)):
            centre = uniform(samples, 0.0, 1.0, generator).reshape(-1, 1, *ones)
            line = (x / length).reshape(-1, *ones[axis + 1 :])
            distance += (torch.sin(math.pi * (line - centre)) / math.pi).square()
        room *= 1 - height * torch.exp(-distance / width.square())
    return 1 - room


PROBLEMS: dict[str, Problem] = {
    "ks": KuramotoSivashinsky(),
    "ks_wide": WideKuramotoSivashinsky(),
    "kdv": KortewegDeVries(),
    "fisher_kpp": FisherKPP(),
    "heat_walls": HeatWalls(),
    "kolmogorov": Kolmogorov(),
    "forced": Forced(),
    "decaying": Decaying(),
    "gray_scott": GrayScott(),
    "swift_hohenberg": SwiftHohenberg(),
    "shear_flow": ShearFlow(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--samples", type=int, help="of each problem; by default as many as it suggests")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()

    for name in args.names:
        start = time.perf_counter()
        data = make(name, args.samples, args.seed, args.device)
        taken = time.perf_counter() - start
        first, last = data.u[:, 0], data.u[:, -1]
        change = float((last - first).norm() / first.norm())
        print(f"{name:16s} {taken:6.1f} s  u {list(data.u.shape)}, params {list(data.params)}, change {change:.2f}")


if __name__ == "__main__":
    main()
