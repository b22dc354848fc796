"""The papers' algorithm written down straightforwardly: what a faster one is measured against.

Seeger & Nickisch 2008 (TR-175): the second class of double loops (section 4.2), Newton steps by unpreconditioned
conjugate gradients with a line search (4.3), variances (4.5) and design scores (6.1) from k Lanczos vectors with full
reorthogonalisation, one outer loop per design step. Double precision, NumPy's two-dimensional FFT, `np.roll`, one
vector at a time. One coil, Laplace sites on the moduli of pixels and of differences to both neighbours (the default
recipe).

Unknowns are complex; u in C^n stands for 2n real unknowns and every inner product is a real part, as in TR-175 with
real vectors of twice the length. A Newton step on moduli has 2 x 2 blocks in the place of the paper's diagonal rho.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class PaperSettings:
    """Sizes and tolerances.

    Parameters
    ----------
    lanczos_steps : int
        k.
    inner_tolerance : float
        A Newton iteration that lowers the criterion by less, per real unknown, is the last.
    newton_iterations, solver_iterations : int
        Limits.
    solver_tolerance : float
        Of the conjugate gradients in each Newton step, relative residual.
    """

    lanczos_steps: int = 500
    inner_tolerance: float = 1e-4
    newton_iterations: int = 30
    solver_iterations: int = 500
    solver_tolerance: float = 0.1


@dataclass(frozen=True)
class PaperModel:
    """y = X u + noise on some k-space lines, and Laplace sites with rates tau on s = B u.

    Parameters
    ----------
    lines : list of int
        Measured lines of the centred, orthonormal Fourier transform.
    data : complex array, shape (line, kx)
        y.
    noise_variance : float
        sigma^2 per real component.
    rates : float array, shape (3, 1, 1)
        tau of pixels, of differences along ky and of differences along kx.
    """

    lines: list[int]
    data: Array
    noise_variance: float
    rates: Array

    def X(self, u: Array) -> Array:
        """The measured lines of an image."""
        return fourier(u)[self.lines]

    def XH(self, y: Array) -> Array:
        """Adjoint of X."""
        kspace = np.zeros(self.shape, dtype=complex)
        kspace[self.lines] = y
        return np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(kspace), norm="ortho"))

    @property
    def shape(self) -> tuple[int, int]:
        """Image grid; square."""
        return self.data.shape[1], self.data.shape[1]

    def A(self, pi: Array, u: Array) -> Array:
        """(X^H X + B^H diag(pi) B) u."""
        return self.XH(self.X(u)) + BH(pi * B(u))


def fourier(u: Array) -> Array:
    """Centred orthonormal FFT."""
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


def conjugate_gradients(
    apply: Callable[[Array], Array], rhs: Array, tolerance: float, iterations: int
) -> tuple[Array, int]:
    """Plain conjugate gradients from zero; the solution and the products spent."""
    x, r = np.zeros_like(rhs), rhs.copy()
    p, rr = r.copy(), inner(r, r)
    goal = tolerance**2 * rr
    for spent in range(iterations):
        if rr <= goal:
            return x, spent
        Ap = apply(p)
        step = rr / inner(p, Ap)
        x += step * p
        r -= step * Ap
        rr, before = inner(r, r), rr
        p = r + rr / before * p
    return x, iterations


def minimise_inner(model: PaperModel, u: Array, z: Array, settings: PaperSettings) -> tuple[Array, Array, int]:
    """min over u of ||y - X u||^2 / sigma^2 + 2 sum tau p^(1/2), p = z + |s|^2 / sigma^2 (sections 4.2 and 4.3).

    Returns
    -------
    u, pi : arrays
        The minimiser and the site precisions 1 / gamma = tau p^(-1/2) that belong to it.
    products : int
        With A or with the Newton matrix.
    """
    tau, sigma2 = model.rates, model.noise_variance
    products = 0

    def criterion(residual: Array, s: Array) -> float:
        return inner(residual, residual) / sigma2 + 2 * float(np.sum(tau * np.sqrt(z + np.abs(s) ** 2 / sigma2)))

    r, s = model.data - model.X(u), B(u)
    value = criterion(r, s)
    for _ in range(settings.newton_iterations):
        p = z + np.abs(s) ** 2 / sigma2
        pi = tau / np.sqrt(p)
        bend = tau / p**1.5 / sigma2

        def newton_matrix(d: Array, s: Array = s, pi: Array = pi, bend: Array = bend) -> Array:
            Bd = B(d)
            rho_Bd = pi * Bd - bend * s * (s.real * Bd.real + s.imag * Bd.imag)
            return model.XH(model.X(d)) + BH(rho_Bd)

        downhill = model.XH(r) - BH(pi * s)
        d, spent = conjugate_gradients(newton_matrix, downhill, settings.solver_tolerance, settings.solver_iterations)
        products += spent + 2
        Xd, Bd = model.X(d), B(d)
        t = line_search(model, r, s, z, Xd, Bd)
        r, s, u = r - t * Xd, s + t * Bd, u + t * d
        value, before = criterion(r, s), value
        if before - value < settings.inner_tolerance * 2 * u.size:
            break
    return u, tau / np.sqrt(z + np.abs(s) ** 2 / sigma2), products


def line_search(model: PaperModel, r: Array, s: Array, z: Array, Xd: Array, Bd: Array) -> float:
    """Zero of f'(t) = -(X d)^H r + t ||X d||^2 + (B d)^H theta(t), bracketed from t = 1 and bisected (section 4.3)."""
    start, curvature = inner(Xd, r), inner(Xd, Xd)

    def slope(t: float) -> float:
        moved = s + t * Bd
        theta = model.rates * moved / np.sqrt(z + np.abs(moved) ** 2 / model.noise_variance)
        return t * curvature - start + inner(Bd, theta)

    low, high = 0.0, 1.0
    while slope(high) < 0 and high < 64:
        low, high = high, 2 * high
    for _ in range(8):
        middle = 0.5 * (low + high)
        if slope(middle) < 0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def lanczos(model: PaperModel, pi: Array, k: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Q (k, ky, kx) and the diagonals of L, T = L L^T (Algorithm 1 with full reorthogonalisation, appendix B)."""
    n = model.shape[0] * model.shape[1]
    k = min(k, n)
    start = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    Q = np.empty((k, n), dtype=complex)
    Q[0] = start / np.linalg.norm(start)
    e, d, beta = np.empty(k), np.empty(k - 1), 0.0
    for j in range(k):
        r = model.A(pi, Q[j].reshape(model.shape)).ravel()
        if j:
            r -= beta * Q[j - 1]
            d[j - 1] = beta / e[j - 1]
        alpha = inner(Q[j], r)
        e[j] = np.sqrt(alpha - (d[j - 1] ** 2 if j else 0.0))
        r -= alpha * Q[j]
        if j + 1 == k:
            break
        r -= np.conj(Q[: j + 1] @ np.conj(r)) @ Q[: j + 1]
        beta = float(np.linalg.norm(r))
        Q[j + 1] = r / beta
    return Q.reshape(k, *model.shape), e, d


def variances_and_root(Q: Array, e: Array, d: Array) -> tuple[Array, Array]:
    """z = 2 sum |v|^2 with v_k = (B q_k - d_(k-1) v_(k-1)) / e_k (section 4.5), and Q L^-T, which replaces Q."""
    z = np.zeros((3, *Q.shape[1:]))
    v = np.zeros_like(z, dtype=complex)
    for k in range(len(Q)):
        v = (B(Q[k]) - (d[k - 1] * v if k else 0.0)) / e[k]
        z += 2 * np.abs(v) ** 2
        Q[k] = (Q[k] - (d[k - 1] * Q[k - 1] if k else 0.0)) / e[k]
    return z, Q


def line_scores(root: Array, candidates: list[int]) -> Array:
    """log det(I + V_*^H V_*), V_* = X_* Q L^-T, for every candidate line (section 6.1); complex rows count twice."""
    spectra = np.stack([fourier(v)[candidates] for v in root])
    scores = []
    for i in range(len(candidates)):
        V = spectra[:, i]
        overlap = V.T @ np.conj(V) if V.shape[1] < V.shape[0] else V @ np.conj(V.T)
        scores.append(2 * np.linalg.slogdet(np.eye(len(overlap)) + overlap)[1])
    return np.array(scores)


@dataclass(frozen=True)
class PaperStep:
    """One design step: the line chosen, the state it leaves, and what it took."""

    line: int
    u: Array
    z: Array
    seconds: float
    products: int


def paper_step(
    model: PaperModel, u: Array, z: Array, settings: PaperSettings, rng: np.random.Generator, loops: int = 1
) -> PaperStep:
    """``loops`` outer loops from (u, z), then the remaining line with the largest score."""
    began, products = time.perf_counter(), 0
    for _ in range(loops):
        u, pi, spent = minimise_inner(model, u, z, settings)
        Q, e, d = lanczos(model, pi, settings.lanczos_steps, rng)
        z, root = variances_and_root(Q, e, d)
        products += spent + len(e)
    candidates = [line for line in range(model.shape[0]) if line not in set(model.lines)]
    scores = line_scores(root, candidates)
    return PaperStep(candidates[int(np.argmax(scores))], u, z, time.perf_counter() - began, products)
