"""What NumPy says that each kernel of the suite computes.

A function takes the launch's arguments by name, buffers as arrays, and the macros of the variant; it returns what each
output holds afterwards. Floats are worked out in float64: the kernel's own roundings are what the tolerance is for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def fan2(given: Arrays) -> Arrays:
    a, b, factors = _double(given, "a", "b", "factors")
    t = given["t"]
    factor = factors[t + 1 :, t]
    a[t + 1 :, t:] -= factor[:, None] * a[t, t:]
    b[t + 1 :] -= factor * b[t]
    return {"a": a, "b": b}


def nw(given: Arrays) -> Arrays:
    score, block, tiles = given["score"], given["BLOCK"], given["n"] // given["BLOCK"]
    for number in range(tiles):
        left, top = number * block, (tiles - 1 - number) * block
        alike = given["similarity"][top : top + block, left : left + block].tolist()
        tile = score[top : top + block + 1, left : left + block + 1].tolist()
        for y in range(block):
            for x in range(block):
                gap = max(tile[y][x + 1], tile[y + 1][x]) - given["penalty"]
                tile[y + 1][x + 1] = max(tile[y][x] + alike[y][x], gap)
        score[top : top + block + 1, left : left + block + 1] = tile
    return {"score": score}


def kmeans(given: Arrays) -> Arrays:
    features, centres = _double(given, "features", "centres")
    distances = [((features - centre[:, None]) ** 2).sum(axis=0) for centre in centres]
    return {"member": np.argmin(distances, axis=0)}


def kmeans_swap(given: Arrays) -> Arrays:
    return {"out": given["in"].T}


def lud_perimeter(given: Arrays) -> Arrays:
    m, offset, tile = given["m"], given["offset"], given["TILE"]
    here, after = slice(offset, offset + tile), slice(offset + tile, None)
    diagonal = m[here, here].astype(np.float64) + np.eye(tile)
    right, below = m[here, after].astype(np.float64), m[after, here].astype(np.float64)
    for y in range(1, tile):
        right[y] -= diagonal[y, :y] @ right[:y]
    for x in range(tile):
        below[:, x] = (below[:, x] - below[:, :x] @ diagonal[:x, x]) / diagonal[x, x]
    m[here, after], m[after, here] = right, below
    return {"m": m}


def lud_internal(given: Arrays) -> Arrays:
    (m,) = _double(given, "m")
    offset, tile = given["offset"], given["TILE"]
    here, after = slice(offset, offset + tile), slice(offset + tile, None)
    m[after, after] -= m[after, here] @ m[here, after]
    return {"m": m}


def hotspot(given: Arrays) -> Arrays:
    power, before = _double(given, "power", "before")
    around = np.pad(before, 1, mode="edge")
    sides = around[1:-1, 1:-1, :-2] + around[1:-1, 1:-1, 2:] + around[1:-1, :-2, 1:-1] + around[1:-1, 2:, 1:-1]
    layers = around[:-2, 1:-1, 1:-1] + around[2:, 1:-1, 1:-1]
    along, up, ambient = 1 / 16, 1 / 32, 1 / 128
    own = 1 - (4 * along + 2 * up + ambient)
    return {"after": own * before + along * sides + up * layers + 0.25 * power + ambient * 80}


def srad1(given: Arrays) -> Arrays:
    (image,) = _double(given, "image")
    image += 1
    around = np.pad(image, 1, mode="edge")
    north, south = around[:-2, 1:-1] - image, around[2:, 1:-1] - image
    west, east = around[1:-1, :-2] - image, around[1:-1, 2:] - image
    gradient = (north**2 + south**2 + west**2 + east**2) / image**2
    laplacian = (north + south + west + east) / image
    q = (0.5 * gradient - laplacian**2 / 16) / (1 + 0.25 * laplacian) ** 2
    q0 = float(given["q0"])
    c = np.clip(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0, 1)
    return {"c": c, "dn": north, "ds": south, "dw": west, "de": east}


def srad2(given: Arrays) -> Arrays:
    image, c, dn, ds, dw, de = _double(given, "image", "c", "dn", "ds", "dw", "de")
    south = np.vstack([c[1:], c[-1:]])
    east = np.hstack([c[:, 1:], c[:, -1:]])
    divergence = c * dn + south * ds + c * dw + east * de
    return {"image": image + 0.25 * float(given["lambda"]) * divergence}


def bpnn_layerforward(given: Arrays) -> Arrays:
    inputs, weights = _double(given, "input", "weights")
    height = given["HEIGHT"]
    product = (weights[1:, 1:] * inputs[1:, None]).reshape(-1, height, given["hidden"])
    # The tree leaves in each row the sum of those rows that it took in.
    step = 2
    while step <= height:
        product[:, ::step] += product[:, step // 2 :: step]
        step *= 2
    weighted = given["weighted"].astype(np.float64)
    weighted[1:, 1:] = product.reshape(-1, given["hidden"])
    return {"weighted": weighted, "partial": product[:, 0]}


def bpnn_adjust_weights(given: Arrays) -> Arrays:
    delta, inputs, weights, moves = _double(given, "delta", "input", "weights", "moves")
    inputs[0] = 1
    moves[:, 1:] = 0.3 * inputs[:, None] * delta[1:] + 0.3 * moves[:, 1:]
    weights[:, 1:] += moves[:, 1:]
    return {"weights": weights, "moves": moves}


def step_factor(given: Arrays) -> Arrays:
    _, _, velocity, _, sound = _gas(given["variables"].astype(np.float64))
    speed = np.sqrt((velocity**2).sum(axis=0))
    return {"factors": 0.5 / (np.sqrt(1 + given["areas"].astype(np.float64)) * (speed + sound))}


def time_step(given: Arrays) -> Arrays:
    old, factors, fluxes = _double(given, "old", "factors", "fluxes")
    return {"variables": old + factors / (4 - given["stage"]) * fluxes}


def flux(given: Arrays) -> Arrays:
    normals, variables = _double(given, "normals", "variables")
    nearby, count = given["nearby"].astype(np.int64), variables.shape[1]
    momentum, energy, velocity, pressure, sound = _gas(variables)
    speed = np.sqrt((velocity**2).sum(axis=0))
    # What lies outside of the list of elements is one more element: the free stream.
    outside = np.zeros((5, 1))
    outside[1] = 1
    at = np.arange(count) + nearby - 50
    at[(at < 0) | (at >= count)] = count
    total = np.zeros((5, count))
    everywhere = np.hstack([variables, outside])
    for normal, distance, j in zip(normals, nearby, at, strict=True):
        other = everywhere[:, j]
        m, e, v, p, s = _gas(other)
        size = np.where(j < count, -0.5 * 0.2 * np.sqrt((normal**2).sum(axis=0)), 0)
        viscosity = size * (speed + np.sqrt((v**2).sum(axis=0)) + sound + s)
        flow = np.empty((5, count))
        flow[0] = 0.5 * (normal * (momentum + m)).sum(axis=0)
        for axis in range(3):
            tensor = velocity * momentum[axis] + v * m[axis]
            tensor[axis] += pressure + p
            flow[1 + axis] = 0.5 * (normal * tensor).sum(axis=0)
        flow[4] = 0.5 * (normal * (velocity * (energy + pressure) + v * (e + p))).sum(axis=0)
        flow += viscosity * (variables - other)
        wall = np.vstack([np.zeros(count), normal * pressure, np.zeros(count)])
        total += np.where(distance == 0, wall, flow)
    return {"fluxes": total}


def _gas(variables: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Momentum, energy, velocity, pressure and speed of sound of elements given as deviations from the free stream."""
    density, momentum, energy = 1.4 + variables[0], variables[1:4], 4 + variables[4]
    velocity = momentum / density
    pressure = 0.4 * (energy - 0.5 * density * (velocity**2).sum(axis=0))
    return momentum, energy, velocity, pressure, np.sqrt(1.4 * pressure / density)


def _double(given: Arrays, *names: str) -> list[Any]:
    return [given[name].astype(np.float64) for name in names]
