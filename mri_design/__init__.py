"""Bayesian design of MRI k-space measurements, and reconstruction with error bars.

>>> import mri_design as md
>>> scan = md.load("phantom:t2w")           # a phantom, a file of k-space or images, or an array
>>> design = scan.design(lines=64)          # which 64 phase encodes to measure, in order
>>> image = scan.reconstruct(design.mask)   # an image with error bars
>>> image.array, image.std                  # complex pixels and their standard deviations, shape (ky, kx)

`load` describes what it reads, `LoadedScan` what can be done with a scan. The parts stand in subpackages by subject:

===============  ===================================================================================
``scan``         k-space and images in memory, noise, coil maps, simulation, trajectories
``formats``      reading files, and readers of your own
``exchange``     BART, mri-nufft, NIfTI, DICOM, MRD files and streams, Pulseq sequences
``experiment``   options and results of the functions that take recipes
``model``        likelihood, prior blocks and posterior of a sparse linear model
``operators``    Fourier transforms, wavelets, finite differences, coil sensitivities, dense matrices
``sites``        factors of priors and likelihoods: Laplace, Student-t, logistic, Poisson, ...
``inference``    the double loop, the evidence, hyperparameters
``variances``    estimators of marginal variances: exact, Lanczos, Monte Carlo, control variates
``estimation``   MAP and least-squares images and their solvers
``signals``      models of echoes, as T2 decay, and their maximum-likelihood fit
``readouts``     k-space lines, samples of a plane, shots, and constraints on them
``design``       strategies that choose the next readouts, and stop rules
``glm``          generalized linear models: labels, optimal queries, variational and Laplace engines
===============  ===================================================================================

Names are imported when they are first used. `__init__.pyi` lists them for editors and for this file.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
