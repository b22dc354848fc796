"""The algorithm of TR-175 written down as it stands there: what a faster one is measured against.

The second class of double loops (section 4.2), Newton steps by unpreconditioned conjugate gradients with a line search
(4.3), variances (4.5) and design scores (6.1) from k Lanczos vectors with complete re-orthogonalisation, one outer loop
a design step; double precision, one vector at a time. One coil, Laplace sites on the moduli of pixels and of
differences to both neighbours.

Unknowns are complex: u in C^n stands for 2n real unknowns and every inner product is a real part. A Newton step on
moduli has blocks of 2 x 2 in the place of the report's diagonal rho.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mri_design.model import GeneralizedLinearModel
from mri_design.operators.base import Array


@dataclass(frozen=True)
class ReportModel:
    """y = X u + noise on lines of k-space, and Laplace sites with rates tau on s = B u.

    Parameters
    ----------
    lines : list of int
        Of the centred, orthonormal Fourier transform of a square image.
    data : complex array, shape (line, kx)
        y.
    noise_variance : float
        sigma^2 of a real component.
    rates : float array, shape (3, 1, 1)
        tau of pixels, of differences along ky and along kx.
    """

    lines: list[int]
    data: Array
    noise_variance: float
    rates: Array

    @classmethod
    def of(cls, model: GeneralizedLinearModel) -> ReportModel:
        """The same model in plain terms."""
        pixels, differences = model.blocks
        rates = [float(np.asarray(block.potential.rate)) for block in (pixels, differences, differences)]  # type: ignore[attr-defined]
        lines = [int(line) for line in model.measurement.lines]  # type: ignore[attr-defined]
        data = np.asarray(model.data, dtype=complex).reshape(len(lines), -1)
        return cls(lines, data, model.noise_variance, np.reshape(rates, (3, 1, 1)))

    @property
    def shape(self) -> tuple[int, int]:
        """Image grid."""
        return self.data.shape[1], self.data.shape[1]

    def X(self, u: Array) -> Array:
        """The measured lines of an image."""
        return fourier(u)[self.lines]

    def XH(self, y: Array) -> Array:
        """Adjoint of X."""
        kspace = np.zeros(self.shape, dtype=complex)
        kspace[self.lines] = y
        return np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(kspace), norm="ortho"))


def fourier(u: Array) -> Array:
    """Centred orthonormal transform."""
    return np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(u), norm="ortho"))


def B(u: Array) -> Array:
    """Pixels, and periodic differences along both axes: (3, ky, kx)."""
    return np.stack([u, np.roll(u, -1, axis=0) - u, np.roll(u, -1, axis=1) - u])


def BH(s: Array) -> Array:
    """Adjoint of B."""
    return s[0] + np.roll(s[1], 1, axis=0) - s[1] + np.roll(s[2], 1, axis=1) - s[2]


def inner(a: Array, b: Array) -> float:
    """Re<a, b>."""
    return float(np.vdot(a, b).real)


def solve(apply: Callable[[Array], Array], rhs: Array, tolerance: float = 0.1, most: int = 500) -> tuple[Array, int]:
    """Plain conjugate gradients from zero: the solution, and the products that it took."""
    x, r = np.zeros_like(rhs), rhs.copy()
    p, rr = r.copy(), inner(r, r)
    goal = tolerance**2 * rr
    for spent in range(most):
        if rr <= goal:
            return x, spent
        Ap = apply(p)
        step = rr / inner(p, Ap)
        x, r = x + step * p, r - step * Ap
        rr, before = inner(r, r), rr
        p = r + rr / before * p
    return x, most


def minimise_inner(model: ReportModel, u: Array, z: Array, tolerance: float = 1e-4) -> tuple[Array, Array, int]:
    """min over u of ||y - X u||^2 / sigma^2 + 2 sum tau p^(1/2), p = z + |s|^2 / sigma^2 (sections 4.2 and 4.3).

    Returns
    -------
    u, pi : arrays
        The minimiser and the site precisions 1 / gamma = tau p^(-1/2) that belong to it.
    products : int
        With A or the Newton matrix. The last step is the one that lowers the criterion by less than ``tolerance`` for
        each real unknown.
    """
    tau, sigma2 = model.rates, model.noise_variance

    def criterion(r: Array, s: Array) -> float:
        return inner(r, r) / sigma2 + 2 * float(np.sum(tau * np.sqrt(z + np.abs(s) ** 2 / sigma2)))

    r, s, products = model.data - model.X(u), B(u), 0
    value = criterion(r, s)
    for _ in range(30):
        p = z + np.abs(s) ** 2 / sigma2
        pi, bend = tau / np.sqrt(p), tau / p**1.5 / sigma2

        def newton_matrix(d: Array, s: Array = s, pi: Array = pi, bend: Array = bend) -> Array:
            Bd = B(d)
            return model.XH(model.X(d)) + BH(pi * Bd - bend * s * (s.real * Bd.real + s.imag * Bd.imag))

        d, spent = solve(newton_matrix, model.XH(r) - BH(pi * s))
        products += spent + 2
        Xd, Bd = model.X(d), B(d)
        t = step_length(model, r, s, z, Xd, Bd)
        r, s, u = r - t * Xd, s + t * Bd, u + t * d
        value, before = criterion(r, s), value
        if before - value < tolerance * 2 * u.size:
            break
    return u, tau / np.sqrt(z + np.abs(s) ** 2 / sigma2), products


def step_length(model: ReportModel, r: Array, s: Array, z: Array, Xd: Array, Bd: Array) -> float:
    """Zero of f'(t) = -(X d)^H r + t ||X d||^2 + (B d)^H theta(t), bracketed from t = 1 and bisected (section 4.3)."""

    def slope(t: float) -> float:
        moved = s + t * Bd
        theta = model.rates * moved / np.sqrt(z + np.abs(moved) ** 2 / model.noise_variance)
        return t * inner(Xd, Xd) - inner(Xd, r) + inner(Bd, theta)

    low, high = 0.0, 1.0
    while slope(high) < 0 and high < 64:
        low, high = high, 2 * high
    for _ in range(8):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 0.5 * (low + high)


def lanczos_root(model: ReportModel, pi: Array, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """z = 2 sum |v|^2, v_k = (B q_k - d_(k-1) v_(k-1)) / e_k, and Q L^-T (section 4.5, algorithm 1, appendix B)."""
    n = model.shape[0] * model.shape[1]
    start = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    Q, root = np.empty((k, n), dtype=complex), np.empty((k, *model.shape), dtype=complex)
    Q[0] = start / np.linalg.norm(start)
    z, v, e, d, beta = np.zeros((3, *model.shape)), 0.0, 1.0, 0.0, 0.0
    for j in range(k):
        q = Q[j].reshape(model.shape)
        r = (model.XH(model.X(q)) + BH(pi * B(q))).ravel()
        if j:
            r, d = r - beta * Q[j - 1], beta / e
        alpha = inner(Q[j], r)
        e = float(np.sqrt(alpha - d**2))
        v = (B(q) - d * v) / e
        z += 2 * np.abs(v) ** 2
        root[j] = (q - (d * root[j - 1] if j else 0.0)) / e
        if j + 1 < k:
            r = r - alpha * Q[j]
            r -= np.conj(Q[: j + 1] @ np.conj(r)) @ Q[: j + 1]
            beta = float(np.linalg.norm(r))
            Q[j + 1] = r / beta
    return z, root


def line_scores(root: Array, candidates: list[int]) -> Array:
    """log det(I + V^H V), V = X_* Q L^-T, of every candidate line (section 6.1); complex rows count twice."""
    spectra = np.stack([fourier(v)[candidates] for v in root])
    scores = []
    for i in range(len(candidates)):
        V = spectra[:, i]
        overlap = V.T @ np.conj(V) if V.shape[1] < V.shape[0] else V @ np.conj(V.T)
        scores.append(2 * np.linalg.slogdet(np.eye(len(overlap)) + overlap)[1])
    return np.array(scores)


@dataclass(frozen=True)
class ReportStep:
    """A design step: the line with the largest score, the state that it leaves, and its products."""

    line: int
    u: Array
    z: Array
    products: int


def report_step(model: ReportModel, u: Array, z: Array, k: int, rng: np.random.Generator) -> ReportStep:
    """One outer loop from (u, z), then the remaining line with the largest score."""
    u, pi, spent = minimise_inner(model, u, z)
    z, root = lanczos_root(model, pi, k, rng)
    candidates = [line for line in range(model.shape[0]) if line not in set(model.lines)]
    scores = line_scores(root, candidates)
    return ReportStep(candidates[int(np.argmax(scores))], u, z, spent + k)
