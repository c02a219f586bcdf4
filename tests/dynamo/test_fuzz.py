"""A few random programs at each run; `python tests/dynamo/fuzz.py programs FIRST COUNT BACKENDS` runs many. A failure prints its seed and source."""

import fuzz_alias
import fuzz_containers
import fuzz_language
import fuzz_library
import fuzz_objects
import fuzz_programs
import fuzz_sets
import fuzz_world
import pytest


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed):
    fuzz_programs.run(seed, ("eager", "aot_eager", "inductor")[seed % 3])


@pytest.mark.parametrize("seed", range(45))
def test_random_program_of_the_whole_language(seed):
    fuzz_language.run(seed, ("eager", "aot_eager", "inductor")[seed % 3])


@pytest.mark.parametrize("seed", range(21))
def test_objects_of_the_library(seed):
    fuzz_library.run(seed, ("eager", "aot_eager", "inductor")[seed % 3])


@pytest.mark.parametrize("seed", range(15))
def test_containers(seed):
    fuzz_containers.run(seed, ("eager", "aot_eager", "inductor")[seed % 3])


@pytest.mark.parametrize("seed", range(40))
def test_sets(seed):
    fuzz_sets.run(seed)


@pytest.mark.parametrize("seed", range(15))
def test_what_is_built_on_the_library(seed):
    fuzz_objects.run(seed)


@pytest.mark.parametrize("seed", range(60))
def test_the_world_changes(seed):
    fuzz_world.run(seed)


@pytest.mark.parametrize("seed", range(30))
def test_inputs_that_share_memory(seed):
    fuzz_alias.run(seed, ("eager", "aot_eager")[seed % 2])


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("seed", [910_042])
def test_what_differed_once(seed, backend):
    """910042: `.data` comes out of a graph."""
    fuzz_alias.run(seed, backend)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_inputs_that_share_memory_for_long(backend):
    for seed in range(1000, 1300):
        fuzz_alias.run(seed, backend)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_the_world_changes_for_long(backend):
    for seed in range(1000, 1600):
        fuzz_world.run(seed, backend)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_many_random_programs(backend):
    for seed in range(10_000, 11_000):
        fuzz_programs.run(seed, backend)
        fuzz_language.run(seed, backend)
