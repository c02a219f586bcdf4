"""Programs as people write them for Numba, and what makes their arguments for a size."""

import numpy as np
from classics_graphs import (
    bellman_ford,
    bfs,
    dijkstra_heap,
    fenwick,
    gray_codes,
    hash_count,
    insertion_argsort,
    kd_build_query,
    kruskal,
    merge_sort,
    n_queens,
    pascal_modulo,
    permutations_by_heap,
    prim,
    radix_sort,
    sudoku,
    topological,
    triangles,
)
from classics_numbers import (
    bilinear_resize,
    burgers,
    collatz_longest,
    fft_recursive_order,
    flood_fill,
    floyd_steinberg,
    hough,
    integral_and_box,
    jacobi_eigenvalues,
    langtons_ant,
    lu_pivoted,
    matrix_factorisation_sgd,
    median_filter,
    newton_fractal,
    nmf,
    power_method,
    qr_householder,
    rgb_to_hsv,
    rule_110,
    runge_kutta_fehlberg,
    sandpile,
    shallow_water,
    simpson_adaptive,
    sor_red_black,
    wave_1d,
)
from classics_samples import (
    decision_stump,
    ewm,
    gibbs,
    gillespie,
    group_by_sum,
    metropolis,
    pairs_within,
    point_in_polygon,
    reservoir,
    rolling_min,
    simulated_annealing,
    welford,
)
from classics_text import (
    base64_encode,
    brackets,
    coin_change,
    dtw,
    jaro,
    kmp,
    levenshtein_two_rows,
    longest_increasing,
    lz77,
    needleman_wunsch,
    parse_numbers,
    utf8_length,
    word_count,
)


def _random(seed=0):
    return np.random.default_rng(seed)


def _graph(n, degree):
    """starts, neighbours and weights of a graph by rows."""
    r = _random(1)
    edges = np.sort(r.integers(0, n, n * degree))
    starts = np.searchsorted(edges, np.arange(n + 1))
    return starts, r.integers(0, n, n * degree), r.random(n * degree)


def _dag(n, degree):
    r = _random(2)
    a, b = r.integers(0, n, n * degree), r.integers(0, n, n * degree)
    low, high = np.minimum(a, b), np.maximum(a, b)
    low, high = low[low < high], high[low < high]
    order = np.argsort(low, kind="stable")
    return np.searchsorted(low[order], np.arange(n + 1)), high[order]


def _edges(n, m):
    r = _random(3)
    return r.integers(0, n, m), r.integers(0, n, m), r.random(m), n


def _text(n, letters=b"ab (c)[d] 12.5\n"):
    return _random(4).choice(np.frombuffer(letters, np.uint8), n)


def _numbers(n):
    return np.frombuffer(" ".join(f"{v:.3f}" for v in _random(5).normal(size=n)).encode(), np.uint8), np.zeros(n)


def _sudoku():
    text = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
    return (np.array(list(map(int, text))).reshape(9, 9),)


def _symmetric(n):
    a = _random(6).random((n, n))
    return a + a.T


PROGRAMS = {
    # function: (arguments for a size, small size, large size)
    levenshtein_two_rows: (lambda n: (_text(n), _text(n + 7)[7:]), 30, 1000),
    needleman_wunsch: (lambda n: (_text(n, b"ACGT"), _text(n + 5, b"ACGT")[5:], 2, -1, -2), 30, 800),
    dtw: (lambda n: (_random(1).random(n), _random(2).random(n), n // 4), 30, 1000),
    longest_increasing: (lambda n: (_random().permutation(n),), 100, 100000),
    coin_change: (lambda n: (np.array([1, 5, 10, 25, 50]), n), 100, 100000),
    kmp: (lambda n: (_text(n, b"ab"), np.frombuffer(b"abaabab", np.uint8)), 200, 300000),
    jaro: (lambda n: (_text(n), _text(n + 3)[3:]), 30, 3000),
    parse_numbers: (_numbers, 30, 30000),
    word_count: (lambda n: (_text(n),), 200, 300000),
    utf8_length: (lambda n: (np.frombuffer("aé漢😀".encode() * n, np.uint8),), 30, 50000),
    base64_encode: (lambda n: (_random().integers(0, 256, 3 * n).astype(np.uint8), np.arange(64, 128).astype(np.uint8)), 30, 60000),
    lz77: (lambda n: (_text(n, b"abc"), np.zeros((n, 2), np.int64), 64), 100, 4000),
    brackets: (lambda n: (np.frombuffer(b"([x]y)" * n, np.uint8),), 30, 50000),
    bellman_ford: (lambda n: _edges(n, 5 * n), 20, 2000),
    bfs: (lambda n: (*_graph(n, 4)[:2], 0), 50, 100000),
    dijkstra_heap: (lambda n: (*_graph(n, 4), 0), 50, 30000),
    kruskal: (lambda n: _edges(n, 4 * n), 50, 30000),
    prim: (lambda n: (_symmetric(n),), 20, 500),
    topological: (lambda n: _dag(n, 4), 50, 100000),
    triangles: (lambda n: (_symmetric(n) > 1.2,), 25, 300),
    merge_sort: (lambda n: (_random().random(n),), 100, 100000),
    radix_sort: (lambda n: (_random().integers(0, 2**32, n).astype(np.uint32),), 100, 100000),
    insertion_argsort: (lambda n: (_random().random(n),), 50, 2000),
    hash_count: (lambda n: (_random().integers(0, n // 3, n), 2 * n), 100, 100000),
    kd_build_query: (lambda n: (_random().random((n, 2)), _random(1).random((n // 4, 2))), 60, 20000),
    fenwick: (lambda n: (_random().random(n), _random(1).integers(0, n, n)), 60, 50000),
    n_queens: (lambda n: (n,), 5, 8),
    permutations_by_heap: (lambda n: (n,), 5, 9),
    sudoku: (lambda n: _sudoku(), 1, 1),
    pascal_modulo: (lambda n: (n, 7), 30, 1500),
    gray_codes: (lambda n: (n,), 5, 16),
    median_filter: (lambda n: (_random().integers(0, 256, (n, n + 1)).astype(np.uint8),), 8, 200),
    floyd_steinberg: (lambda n: (_random().integers(0, 256, (n, n + 1)).astype(np.uint8),), 8, 300),
    flood_fill: (lambda n: ((_random().random((n, n)) < 0.3).astype(np.int32), 0, 0, 7), 8, 300),
    bilinear_resize: (lambda n: (_random().random((n, n)).astype(np.float32), 2 * n, 3 * n), 6, 150),
    integral_and_box: (lambda n: (_random().random((n, n)), 3), 10, 400),
    hough: (lambda n: (_random().random((n, n)) < 0.1, 2 * n), 8, 90),
    rgb_to_hsv: (lambda n: (_random().random((n, n, 3)),), 6, 300),
    power_method: (lambda n: (_symmetric(n), 50), 6, 200),
    jacobi_eigenvalues: (lambda n: (_symmetric(n), 5), 6, 50),
    qr_householder: (lambda n: (_random().random((n + 4, n)),), 5, 120),
    lu_pivoted: (lambda n: (_random().random((n, n)), _random(1).random(n)), 6, 200),
    nmf: (lambda n: (_random().random((n, n)), _random(1).random((n, 4)), _random(2).random((4, n)), 20), 8, 150),
    matrix_factorisation_sgd: (lambda n: (_random().integers(0, 20, n), _random(1).integers(0, 30, n), _random(2).random(n), _random(3).random((20, 8)), _random(4).random((30, 8)), 0.01, 0.02, 3), 40, 20000),
    fft_recursive_order: (lambda n: (_random().random(n) + 0j,), 16, 16384),
    simpson_adaptive: (lambda n: (0.0, float(n), 1e-8), 2, 12),
    newton_fractal: (lambda n: (n, 30), 6, 120),
    runge_kutta_fehlberg: (lambda n: (2.0, 0.0, float(n), 1e-6), 1, 20),
    collatz_longest: (lambda n: (n,), 50, 100000),
    wave_1d: (lambda n: (_random().random(n), _random(1).random(n), 0.5, 40), 12, 10000),
    burgers: (lambda n: (_random().random(n), 0.001, 0.1, 0.07, 100), 12, 2000),
    shallow_water: (lambda n: (1 + _random().random((n, n)), np.zeros((n, n)), np.zeros((n, n)), 0.001, 10), 8, 150),
    sor_red_black: (lambda n: (_random().random((n, n)), np.zeros((n, n)), 1.5, 20), 8, 150),
    rule_110: (lambda n: ((_random().random(n) < 0.5).astype(np.uint8), n), 16, 500),
    sandpile: (lambda n: (_random().integers(0, 7, (n, n)),), 8, 60),
    langtons_ant: (lambda n: (n, 100 * n), 10, 1000),
    metropolis: (lambda n: (n, 1.0, 3), 50, 50000),
    gibbs: (lambda n: (n, 0.6, _random()), 50, 30000),
    gillespie: (lambda n: (n, 1.0, 1.01, 3.0, _random()), 10, 5000),
    reservoir: (lambda n: (np.arange(n), 10, _random()), 60, 100000),
    simulated_annealing: (lambda n: (_symmetric(n), np.arange(n), 50 * n, _random()), 12, 300),
    rolling_min: (lambda n: (_random().random(n), 10), 60, 200000),
    group_by_sum: (lambda n: (_random().integers(0, 9, n), _random().random(n), 9), 60, 100000),
    ewm: (lambda n: (np.where(_random().random(n) < 0.1, np.nan, 1.5), 0.3), 60, 200000),
    welford: (lambda n: (_random().random(n),), 60, 200000),
    pairs_within: (lambda n: (_random().random((n, 3)), 0.2), 20, 1000),
    point_in_polygon: (lambda n: (_random().random(n), _random(1).random(n), _random(2).random(12), _random(3).random(12)), 30, 20000),
    decision_stump: (lambda n: (_random().random((n, 4)), _random(1).random(n)), 30, 3000),
}  # fmt: skip
