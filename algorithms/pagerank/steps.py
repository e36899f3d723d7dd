"""Fewer rounds in an undirected graph: Chebyshev's semi-iteration.

Source: Golub and Varga, "Chebyshev semi-iterative methods, successive overrelaxation iterative
methods, and second order Richardson iterative methods", Numerische Mathematik 3, 1961.

A round of power iteration maps the ranks x to F(x), and multiplies their error by d · P, where P
moves rank along the edges. In an undirected graph P is similar to a symmetric matrix
(D^-1/2 A D^-1/2), so its eigenvalues are real, from −1 to 1; isolated vertices, whose rank goes
where the surfer jumps to, add only some from 0 to 1. So those of d · P lie in a known interval, and
the best polynomial for it is, with x' the ranks of the last round,

    next x = x' + ω · (F(x) − x'),  ω = 1, then 1 / (1 − d²/2), then 1 / (1 − d² ω/4) of the last

In the long run a round leaves d / (1 + √(1 − d²)) of the error, 0.56 for d = 0.85, whatever the
graph; power iteration leaves d times the second eigenvalue of P, 0.8 and more where communities are
loosely tied, but less at first. So a run begins with power iteration, and takes Chebyshev's steps
once the changes fall more slowly than by them.

Ranks x returned after such steps have |F(x) − x| < tol · d and an error of at most
|F(x) − x| / (1 − d): the bound of power iteration, whose last round multiplies the error by d.
"""

from __future__ import annotations

from math import sqrt

# What kind of step a round takes, by its ω: power iteration; Chebyshev's first; above 1, the rest.
POWER, FIRST = 0.0, 1.0


def next_omega(omega: float, change: float, last: float, damping: float, symmetric: bool) -> float:
    """The ω of the next round. change: of this round; last: of the one before, 0 if none was."""
    if omega == POWER:
        rate = damping / (1 + sqrt(1 - damping * damping))
        slow = symmetric and damping < 1 and 0 < rate * last < change
        return FIRST if slow else POWER
    return 1 / (1 - damping * damping * (2 if omega == FIRST else omega) / 4)
