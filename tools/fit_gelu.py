"""Derives the coefficients in src/paramixer/ops/csrc/gelu.h: minimax fits by reweighted least squares (Lawson)."""

import math

import numpy as np


def minimax(columns, target, weight, rounds=300):
    """Coefficients whose weighted error is levelled over the grid, and that error."""
    emphasis, best = np.ones(len(target)), (np.inf, None)
    for _ in range(rounds):
        scale = np.sqrt(emphasis) * weight
        solution = np.linalg.lstsq(columns * scale[:, None], target * scale, rcond=None)[0]
        error = np.abs(columns @ solution - target) * weight
        best = min(best, (error.max(), solution), key=lambda pair: pair[0])
        emphasis *= error / error.max() + 1e-12
        emphasis /= emphasis.mean()
    return best


def upper_tail(terms, slant):
    """Phi(-a) = exp(-a^2/2) * z * polynomial(z), z = 1 / (1 + slant a); error as it shows in a * Phi(-a)."""
    a = np.linspace(0, 6, 1500)
    gauss = np.exp(-a * a / 2)
    tail = np.array([math.erfc(x / math.sqrt(2)) / 2 for x in a])
    z = 1 / (1 + slant * a)
    columns = np.stack([gauss * z ** (power + 1) for power in range(terms)], 1)
    return minimax(columns, tail, np.maximum(a, 1))


def root_of_tail(degree, power, bound=5.6):
    """Phi(-a) = 1 / polynomial(a)^power; error as it shows in a * Phi(-a)."""
    u = np.cos((np.arange(3000) + 0.5) / 3000 * np.pi)
    a = bound * (u + 1) / 2
    tail = np.array([math.erfc(x / math.sqrt(2)) / 2 for x in a])
    root = tail ** (-1 / power)
    error, solution = minimax(
        np.polynomial.chebyshev.chebvander(u, degree), root, np.maximum(a, 1) * tail * power / root
    )
    in_u = np.polynomial.Polynomial(np.polynomial.chebyshev.cheb2poly(solution))
    return error, in_u(np.polynomial.Polynomial([-1, 2 / bound])).coef


def power_of_two(degree):
    """2^r on [-1/2, 1/2]; relative error."""
    r = np.cos(np.linspace(0, np.pi, 1500)) / 2
    return minimax(np.stack([r**power for power in range(degree + 1)], 1), 2**r, 2**-r)


if __name__ == "__main__":
    for name, (error, solution) in {
        "gelu: polynomial, lowest power first": root_of_tail(9, 8),
        "gelu_and_slope: tail, lowest power first": upper_tail(6, 0.275),
        "gauss: 2^r, lowest power first": power_of_two(5),
    }.items():
        print(f"{name}; error {error:.1e}\n ", ", ".join(f"{c:.9g}f" for c in solution))
