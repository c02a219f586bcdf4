"""torch.utils.benchmark: what is measured, how it is shown (the tables are PyTorch's, letter by letter), and random inputs."""

import pytest

import flambeau as torch
from flambeau.utils import benchmark

TABLE = """[----------- Lab ------------]
             |   a    |    b  
1 threads: -------------------
      n=1    |   1.0  |    2.6
      n=100  |  34.7  |   86.7
2 threads: -------------------
      n=1    |   2.0  |    5.1
      n=100  |  69.4  |  173.4

Times are in microseconds (us).
"""
TRIMMED = """[--------- Lab ----------]
             |  a   |   b 
1 threads: ---------------
      n=1    |   1  |    3
      n=100  |  35  |   87
2 threads: ---------------
      n=1    |   2  |    5
      n=100  |  69  |  170

Times are in microseconds (us).
"""


def measurements():
    for n, s in ((1, 1e-6), (100, 3.4e-5)):
        for description, k in (("a", 1.0), ("b", 2.5)):
            for threads in (1, 2):
                spec = benchmark.TaskSpec(
                    "x+1", "", label="Lab", sub_label=f"n={n}", description=description, num_threads=threads, env=""
                )
                yield benchmark.Measurement(10, [s * k * 10 * (1 + i * 0.01) * threads for i in range(5)], spec)


def test_tables():
    compare = benchmark.Compare(list(measurements()))
    assert str(compare) == TABLE
    compare.highlight_warnings()
    assert str(compare) == TABLE  # nothing varied much
    compare.trim_significant_figures()
    assert str(compare) == TRIMMED
    compare.colorize()
    assert "\033[92m\033[1m 1\033[0m\033[0m" in str(compare) and "\033[31m\033[1m 87" in str(compare)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        compare.extend_results([3])


def test_measurement():
    first, *_, noisy = [*measurements(), benchmark.Measurement(1, [1.0, 2.0, 3.0, 4.0], benchmark.TaskSpec("y", ""))]
    assert (
        "Lab: n=1\na\n  Median: 1.02 us\n  IQR:    0.02 us (1.01 to 1.03)\n  5 measurements, 10 runs per measurement, 1 thread"
        in repr(first)
    )
    assert noisy.has_warnings and "significant environmental influence" in repr(noisy) and not first.has_warnings
    merged = benchmark.Measurement.merge([first, first])
    assert len(merged) == 1 and len(merged[0].times) == 10 and merged[0].number_per_run == 1
    assert benchmark.select_unit(3e-5) == ("us", 1e-6) and benchmark.trim_sigfig(12345, 3) == 12300.0
    with pytest.raises(AttributeError, match="nothing"):
        _ = first.nothing


def test_timer():
    calls = []
    timer = benchmark.Timer("f(x)", setup="x = 3", globals={"f": calls.append}, label="L")
    assert timer.timeit(5).number_per_run == 5 and calls == [3] * 7  # two to warm up
    seen = []
    found = timer.blocked_autorange(callback=lambda n, t: seen.append((n, t)), min_run_time=0.005)
    assert {n for n, _ in seen} == {found.number_per_run} and [t for _, t in seen] == found.raw_times
    assert sum(found.raw_times) >= 0.005 and found.label == "L"
    steady = timer.adaptive_autorange(10.0, min_run_time=0.002, max_run_time=0.5)
    assert len(steady.times) >= 4
    before = torch.get_num_threads()
    benchmark.Timer("pass", num_threads=1).timeit(2)
    assert torch.get_num_threads() == before
    assert benchmark.Timer("torch.ones(2) + 1").timeit(2).median > 0
    with pytest.raises(NotImplementedError, match="valgrind"):
        timer.collect_callgrind()
    with pytest.raises(NotImplementedError, match="Python"):
        benchmark.Timer("x", language="c++")


def test_fuzzer():
    def made(seed):
        fuzzer = benchmark.Fuzzer(
            [
                benchmark.FuzzedParameter("n", 1, 64, "loguniform"),
                benchmark.FuzzedParameter("m", distribution={1: 0.5, benchmark.ParameterAlias("n"): 0.5}),
            ],
            [
                benchmark.FuzzedTensor("x", ("n", "m"), steps=(2, 1), max_elements=400),
                benchmark.FuzzedTensor("y", ("n",), dtype=torch.int32),
            ],
            constraints=[lambda p: p["n"] != 2],
            seed=seed,
        )
        return [
            (t["x"].shape, t["x"].sum().item(), t["y"].tolist(), p) for t, _, p in fuzzer.take(8)
        ], fuzzer.rejection_rate

    rows, rejected = made(3)
    assert made(3)[0] == rows != made(4)[0] and 0 <= rejected < 1
    for shape, _, y, p in rows:
        assert shape == (p["n"], p["m"]) and len(y) == p["n"] != 2 and shape.numel() <= 400 and p["m"] in (1, p["n"])
