# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What to ask next
#
# Active learning outside of MRI: an experiment asks one question after another, and the posterior says which question
# tells most. Either the question can be made freely (a stimulus within a power), or it is one of a pool (a case to be
# labelled).

# %%
# %matplotlib inline
import os

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit

import mri_design as md

SMALL = os.environ.get("MRI_DESIGN_NOTEBOOK_SIZE") == "small"
TRIALS, POOL, LABELS, SEEDS = (40, 300, 24, 2) if SMALL else (200, 2000, 120, 8)

# %% [markdown]
# ## A stimulus within a power
# A neuron answers a stimulus x with a Poisson count of rate exp(x' w). Its receptive field w is one period of a sine,
# and nothing is known of it but w ~ N(0, I). `LaplaceFilter` renews the posterior after every count; `InfomaxQuery`
# looks for the stimulus whose count tells most about w (Lewi, Butera & Paninski 2007).

# %%
UNKNOWNS, POWER = 20, 3.0
field = np.sin(2 * np.pi * np.arange(UNKNOWNS) / UNKNOWNS)
field /= np.linalg.norm(field)
response = md.sites.PoissonResponse()
search, renew = md.glm.InfomaxQuery(POWER, response=response), md.glm.LaplaceFilter()


def infomax(state, rng):
    return search.propose(state).x


def at_random(state, rng):
    x = rng.standard_normal(UNKNOWNS)
    return POWER * x / np.linalg.norm(x)


def errors(ask, seed):
    """Distance from the true field after every count, and what the posterior expects it to be."""
    rng, state = np.random.default_rng(seed), md.glm.FilterState(np.zeros(UNKNOWNS), np.eye(UNKNOWNS))
    found = []
    for _ in range(TRIALS):
        x = ask(state, rng)
        state = renew.update(state, x, response.site(response.draw(x @ field, rng)))
        found.append((np.linalg.norm(state.mean - field), np.sqrt(np.trace(state.covariance))))
    return np.array(found), state


curves = {ask.__name__: np.mean([errors(ask, s)[0] for s in range(SEEDS)], axis=0) for ask in (infomax, at_random)}
for name, curve in curves.items():
    print(f"{name:10s} error after {TRIALS} stimuli {curve[-1, 0]:.2f}, expected {curve[-1, 1]:.2f}")

# %%
left, right = (figure := Figure(figsize=(9, 3), layout="constrained")).subplots(1, 2)
for number, (name, curve) in enumerate(curves.items()):
    left.semilogy(curve[:, 0], f"C{number}", label=name)
    left.semilogy(curve[:, 1], f"C{number}--", label=f"{name}, expected")
left.set(xlabel="stimuli", ylabel="error")
left.legend()
for number, ask in enumerate((infomax, at_random)):
    _, state = errors(ask, 0)
    right.errorbar(
        np.arange(UNKNOWNS), state.mean, np.sqrt(np.diag(state.covariance)), fmt=f"C{number}.-", label=ask.__name__
    )
right.plot(field, "k", label="truth")
right.set(xlabel="component of the receptive field")
right.legend()
figure

# %% [markdown]
# ## A case of a pool
# Labels are logistic in thirty features, which are there or not, some of them rarely; ten of them matter.
# `PoolDesign` asks for one label at a time: of the case whose label it is least sure of, of largest information gain,
# or at random (Nickisch & Seeger 2009). The weights have a Laplace prior. Whoever asked, the judge is the same:
# `md.logistic_regression` on the labels so far, and the probability that it gives to the labels of other cases.

# %%
FEATURES, RATE, FIRST = 30, 1.0, 12
weights = np.zeros(FEATURES)
weights[::3] = [2.5, -2.5] * 5
frequencies = np.geomspace(0.03, 0.5, FEATURES)
prior = md.SiteBlock("weights", md.operators.Identity((FEATURES,), is_complex=False), md.sites.Laplace(rate=RATE))
COUNTS = np.unique(np.linspace(FIRST, FIRST + LABELS, 5).astype(int))


def judged(score, seed):
    """Mean log probability of labels outside the pool, after so many labels as `COUNTS` has."""
    rng = np.random.default_rng(seed)
    cases, others = 1.0 * (rng.random((2, POOL, FEATURES)) < frequencies)
    labels, unseen = (np.where(rng.random(POOL) < expit(some @ weights), 1.0, -1.0) for some in (cases, others))
    design = md.glm.PoolDesign(score)
    state = design.begin(md.glm.LabelPool(cases, (prior,)), np.arange(FIRST), labels[:FIRST], rng)
    found = []
    for count in COUNTS:
        state = design.ask(state, lambda case: labels[case], int(count) - len(state.indices), rng)
        fit = md.logistic_regression(cases[state.indices], state.labels, prior=md.sites.Laplace(rate=RATE))
        p = fit.predict(others)
        found.append(np.mean(np.log(np.where(unseen > 0, p, 1 - p))))
    return found, fit


scores = ("random", "uncertainty", "information_gain", "bald")
judgements = {score: np.mean([judged(score, seed)[0] for seed in range(SEEDS)], axis=0) for score in scores}
print(f"{'labels':18s}" + "".join(f"{count:8d}" for count in COUNTS))
for score, found in judgements.items():
    print(f"{score:18s}" + "".join(f"{value:8.3f}" for value in found))

# %%
left, right = (figure := Figure(figsize=(9, 3), layout="constrained")).subplots(1, 2)
for score, found in judgements.items():
    left.plot(COUNTS, found, ".-", label=score)
left.set(xlabel="labels", ylabel="log probability of a new label")
left.legend()
_, fit = judged("information_gain", 0)
low, high = fit.interval(0.95)
right.vlines(np.arange(FEATURES), low, high, color="C0")
right.plot(fit.mean, "C0.", label="mean and 95 % interval")
right.plot(weights, "kx", label="truth")
right.set(xlabel="feature", ylabel="weight")
right.legend()
figure

# %% [markdown]
# ## Which to use
# - Stimuli that can be made: `InfomaxQuery`. It gains most at high power, where responses are far from linear.
# - Cases that are there: `PoolDesign`. It gains where cases differ in what they tell, as those with rare features do.
# - The same idea chooses lines of k-space in the other notebooks. There the strategy corrects what the posterior
#   expects, because the prior of an image is a coarse one.
#
# Studies of both are in the repository's `docs/papers.md`.
