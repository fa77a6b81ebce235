#!/usr/bin/env python3
"""Makes core/vecmath_fit.h: the numbers in core/vecmath.h.

    python3 tests/reference/vecmath.py > core/vecmath_fit.h

Only developers who change a fit need it (Python 3.11, mpmath 1.3.0 from PyPI; half a minute). Its output is
committed, and has the same bytes wherever it is made: all arithmetic is mpmath's, with 50 digits. Formulas and
ranges are core/vecmath.h's; after a change, test_vec says the new error and the new digests.

A fit is a polynomial with the smallest largest error relative to the *function's result* (Lawson's reweighted
least squares on Chebyshev points). Coefficients are then rounded to the type one after the other, the lowest
power first; after each rounding the higher ones are fitted again, so that they take up what the rounding lost.
"""

from mpmath import cos, erf, erfc, exp, floor, frexp, ldexp, log, lu_solve, matrix, mp, mpf, pi, sqrt, tanh

mp.dps = 50


class Type:
    def __init__(self, name, c, suffix, digits, emin, emax):
        self.name, self.c, self.suffix = name, c, suffix
        self.digits = digits    # of the significand
        self.smallest = mpf(2) ** emin    # normal number
        self.above = mpf(2) ** emax    # where overflow starts, before rounding

    def round(self, x, digits=None):
        """To nearest; ties do not happen to transcendental numbers."""
        significand, exponent = frexp(x)
        digits = digits or self.digits
        return ldexp(floor(ldexp(significand, digits) + mpf(1) / 2), exponent - digits)

    def ulp(self, x):
        return mpf(2) ** (frexp(x)[1] - self.digits)

    def literal(self, x):
        assert mpf(float(x)) == x and self.round(x) == x
        digits, _, power = float(x).hex().partition("p")
        return f"{digits.rstrip('0').rstrip('.')}p{power}{self.suffix}"


F32 = Type("f", "float", "f", 24, -126, 128)
F64 = Type("d", "double", "", 53, -1022, 1024)

# ---- fits ----


def least_squares(points, values, weights, powers):
    n = len(powers)
    a, b = matrix(n, n), matrix(n, 1)
    for t, y, w in zip(points, values, weights):
        row = [t**p for p in powers]
        for i in range(n):
            b[i] += w * row[i] * y
            for j in range(i + 1):
                a[i, j] += w * row[i] * row[j]
    for i in range(n):
        for j in range(i):
            a[j, i] = a[i, j]
    return list(lu_solve(a, b))


def polynomial(coefficients, t):
    return sum(c * t**p for p, c in enumerate(coefficients))


def fit(kind, f, effect, n_term, lo, hi, rounds=10):
    """n_term coefficients of type kind, lowest power first, for f on [lo, hi]; effect(t): how much an error of 1
    in the polynomial weighs in the result. Returns them and the largest weighted error."""
    n_point = 8 * n_term
    points = [(lo + hi) / 2 + (hi - lo) / 2 * cos(pi * (2 * i + 1) / (2 * n_point)) for i in range(n_point)]
    values = [f(t) for t in points]
    effects = [abs(effect(t)) for t in points]
    lawson = [mpf(1)] * n_point
    best = None
    for _ in range(rounds):
        weights = [u * e**2 for u, e in zip(lawson, effects)]
        c = least_squares(points, values, weights, range(n_term))
        error = [abs(polynomial(c, t) - y) * e for t, y, e in zip(points, values, effects)]
        if best is None or max(error) < best[0]:
            best = (max(error), weights)
        total = sum(u * e for u, e in zip(lawson, error))
        lawson = [u * e / total * n_point for u, e in zip(lawson, error)]
    rounded = []
    while len(rounded) < n_term:
        rest = [y - polynomial(rounded, t) for t, y in zip(points, values)]
        c = least_squares(points, rest, best[1], range(len(rounded), n_term))
        rounded.append(kind.round(c[0]))
    return rounded, max(abs(polynomial(rounded, t) - y) * e for t, y, e in zip(points, values, effects))


# ---- output ----


def define(kind, name, value, comment):
    print(f"#define {'TTN_FIT_' + name + kind.name.upper():22}{kind.literal(value):28}/* {comment} */")


def function(kind, name, what, coefficients, error):
    """Horner's rule in t; from eight terms on, two chains in t^2 (half the latency)."""
    print(f"/* {what}\n * {len(coefficients)} terms, largest error 2^{mp.nstr(log(error, 2), 4)} of the result. */")
    print(f"TTN_HD {kind.c} ttn_fit_{name}{kind.name}({kind.c} t)\n{{")
    fma = f"ttn_fma{kind.name}"
    literals = [kind.literal(c) for c in coefficients]
    if len(literals) < 8:
        print(f"    {kind.c} p = {literals[-1]};")
        for c in reversed(literals[:-1]):
            print(f"    p = {fma}(p, t, {c});")
        print("    return p;\n}\n")
        return
    print(f"    {kind.c} t2 = t * t;")
    for chain, terms in (("even", literals[0::2]), ("odd", literals[1::2])):
        print(f"    {kind.c} {chain} = {terms[-1]};")
        for c in reversed(terms[:-1]):
            print(f"    {chain} = {fma}({chain}, t2, {c});")
    print(f"    return {fma}(odd, t, even);\n}}\n")


def constants(kind):
    ln2 = log(mpf(2))
    exponent_digits = 9 if kind is F32 else 12
    hi = kind.round(ln2, kind.digits - exponent_digits)
    define(kind, "LOG2E_", kind.round(1 / ln2), "log2 e")
    define(kind, "LN2_HI_", hi, f"ln 2 in {kind.digits - exponent_digits} bits: times an exponent it is exact")
    define(kind, "LN2_LO_", kind.round(ln2 - hi), "ln 2 - hi")
    x = kind.round(log(kind.smallest))
    while exp(x) < kind.smallest:
        x += kind.ulp(x)
    while exp(x - kind.ulp(x)) >= kind.smallest:
        x -= kind.ulp(x)
    define(kind, "EXP_LEAST_", x, "of anything less exp is denormal or 0")
    x = kind.round(log(kind.above))
    largest = kind.above * (1 - mpf(2) ** (-kind.digits - 1))
    while exp(x) >= largest:
        x -= kind.ulp(x)
    while exp(x + kind.ulp(x)) < largest:
        x += kind.ulp(x)
    define(kind, "EXP_MOST_", x, "of anything greater exp overflows")
    print()


def fits(kind, exp_terms, log_terms, tanh_terms, erf_terms, erfc_terms, erfc_end):
    half_ln2 = log(mpf(2)) / 2 * mpf("1.0001")    # the multiple of ln 2 is chosen by a rounded product
    function(kind, "exp", "(e^t - 1 - t) / t^2 on +-ln 2 / 2",
             *fit(kind, lambda t: (exp(t) - 1 - t) / t**2, lambda t: t**2 / exp(t), exp_terms, -half_ln2, half_ln2))
    third = mpf(1) / 3
    function(kind, "log", "(ln(1 + t) - t) / t^2 on +-1/3",
             *fit(kind, lambda t: (log(1 + t) - t) / t**2, lambda t: t**2 / log(1 + t), log_terms, -third, third))
    zero = mpf(10) ** -6
    cut = mpf("0.625")
    function(kind, "tanh", "(tanh(a) - a) / a^3 of t = a^2, a up to 0.625",
             *fit(kind, lambda t: (tanh(sqrt(t)) / sqrt(t) - 1) / t, lambda t: t * sqrt(t) / tanh(sqrt(t)),
                  tanh_terms, zero, cut**2))
    function(kind, "erf", "erf(a) / a - 1 of t = a^2, a up to 1",
             *fit(kind, lambda t: erf(sqrt(t)) / sqrt(t) - 1, lambda t: sqrt(t) / erf(sqrt(t)),
                  erf_terms, zero, mpf(1)))
    function(kind, "erfc", f"ln(1 - erf(t)) on 1 to {erfc_end}",
             *fit(kind, lambda t: log(erfc(t)), lambda t: erfc(t) / erf(t), erfc_terms, mpf(1), mpf(erfc_end)))


print("""/* Made by tests/reference/vecmath.py, which says how; do not edit. The numbers of core/vecmath.h. */
#ifndef TTN_VECMATH_FIT_H
#define TTN_VECMATH_FIT_H

#include "core/real.h"

/* clang-format off */
""")
constants(F32)
constants(F64)
fits(F32, exp_terms=5, log_terms=9, tanh_terms=5, erf_terms=7, erfc_terms=7, erfc_end=4)
fits(F64, exp_terms=10, log_terms=20, tanh_terms=11, erf_terms=12, erfc_terms=18, erfc_end=6)
print("/* clang-format on */\n#endif")
