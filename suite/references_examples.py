"""References of those examples whose functions in tests/examples are too slow at the examples' own sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def collatz(given: Arrays) -> Arrays:
    value = np.arange(1, given["n"] + 1, dtype=np.uint64)
    steps = np.zeros(given["n"], np.int32)
    left = np.flatnonzero(value != 1)
    while left.size:
        held = value[left]
        value[left] = np.where(held & 1, 3 * held + 1, held >> 1)
        steps[left] += 1
        left = left[value[left] != 1]
    return {"steps": np.concatenate([steps, given["steps"][given["n"] :]])}


def integer_division(given: Arrays) -> Arrays:
    n, sums, mirrors = given["n"], given["sums"].copy(), given["mirrors"].copy()
    base, wide = np.uint64(given["base"]), np.uint64(given["wide_base"])
    rest = np.arange(n, dtype=np.uint64)
    total = np.zeros(n, np.uint64)
    while rest.any():
        rest, digit = np.divmod(rest, base)
        total += digit
    rest = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mirror = np.zeros(n, np.uint64)
    while (some := rest != 0).any():
        rest, digit = np.divmod(rest, wide)
        mirror = np.where(some, mirror * wide + digit, mirror)
    sums[:n], mirrors[:n] = total, mirror
    return {"sums": sums, "mirrors": mirrors}


def matmul(given: Arrays) -> Arrays:
    return {"C": given["A"].astype(np.float64) @ given["B"].astype(np.float64)}


def vabs(given: Arrays) -> Arrays:
    shifted = given["a"] - np.float32(given["SHIFT"].rstrip("f"))
    return {"a": np.where(shifted < 0, -shifted, given["a"])}


def permutation(given: Arrays) -> Arrays:
    at = given["c"].astype(np.uint32)
    if "MULTIPLIER" in given:
        at = at * np.uint32(given["MULTIPLIER"].rstrip("u")) & np.uint32(given["n"] - 1)
    return {"a": given["b"][at]}


def black_scholes(given: Arrays) -> Arrays:
    """Where the price, the strike or the time is nothing the formula has no value, and nothing is compared."""
    price, strike, years = (given[name].astype(np.float64) for name in ("price", "strike", "years"))
    rate, volatility = float(given["rate"]), float(given["volatility"])
    with np.errstate(all="ignore"):
        deviation = volatility * np.sqrt(years)
        d1 = (np.log(price / strike) + (rate + 0.5 * volatility**2) * years) / deviation
        due = strike * np.exp(-rate * years)
        call = price * _normal(d1) - due * _normal(d1 - deviation)
        put = due * _normal(deviation - d1) - price * _normal(-d1)
    nothing = (price == 0) | (strike == 0) | (years == 0)
    return {"call": np.where(nothing, np.nan, call), "put": np.where(nothing, np.nan, put)}


def _normal(x: Any) -> Any:
    """The normal distribution function by the expansion of Abramowitz and Stegun 26.2.17, off by 7.5e-8 at most."""
    t = 1 / (1 + 0.2316419 * np.abs(x))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi) * series
    return np.where(x < 0, tail, 1 - tail)
