"""Fewer rounds in an undirected graph: Chebyshev's semi-iteration.

Source: Golub and Varga, "Chebyshev semi-iterative methods, successive overrelaxation iterative
methods, and second order Richardson iterative methods", Numerische Mathematik 3, 1961.

A round of power iteration makes F(x) of the ranks x. What is missing from them it multiplies by
d · P, where P moves rank along the edges. In an undirected graph P is similar to a symmetric matrix
(D^-1/2 A D^-1/2), so its eigenvalues are real, from −1 to 1. Also those of isolated vertices are,
whose rank goes where the surfer jumps to. So we know the interval that d · P has them in, and the
best polynomial for it: with x' the ranks of the round before,

    next x = x' + ω · (F(x) − x'),  ω = 1, then 1 / (1 − d²/2), then 1 / (1 − d² ω/4) of the last

Each round takes what is missing down to d / (1 + √(1 − d²)) of it in the long run, 0.56 for d =
0.85, whatever the graph; power iteration to d times its second eigenvalue, which is 0.8 and more
where communities are loosely tied. It is the faster one while what mixes well is mixed. So a run
begins with power iteration, and takes Chebyshev's steps once the changes fall more slowly than
that.

The ranks x that are returned after such steps have |F(x) − x| < tol · d, which is what power
iteration's bound takes: |F(x) − x| / (1 − d) is missing at most.
"""

from __future__ import annotations

from math import sqrt

from lpma.cpu.jit import compiled

# What kind of step a round takes, by its ω: power iteration; Chebyshev's first; above 1, the rest.
POWER, FIRST = 0.0, 1.0


@compiled
def next_omega(omega: float, change: float, last: float, damping: float, symmetric: bool) -> float:
    """The ω of the next round. change: of this round; last: of the one before, 0 if none was."""
    if omega == POWER:
        rate = damping / (1 + sqrt(1 - damping * damping))
        slow = symmetric and damping < 1 and 0 < rate * last < change
        return FIRST if slow else POWER
    return 1 / (1 - damping * damping * (2 if omega == FIRST else omega) / 4)
