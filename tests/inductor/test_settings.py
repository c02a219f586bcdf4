"""PyTorch's settings of its compiler: each has PyTorch's default, and says so where another value has no meaning here."""

import pytest

import flambeau
from flambeau.inductor.settings import KNOBS, config

# Built, with another default: the debug directory says more.
OWN_DEFAULTS = {"trace.debug_log"}
OF_MACHINE = {"compile_threads"}


def test_a_setting_without_meaning_has_one_value():
    assert config.triton.descriptive_names == "original_aten" and config.cpp_wrapper is False
    config.cpp_wrapper = False
    with pytest.raises(NotImplementedError, match="config.cpp_wrapper = True is not built: only False is"):
        config.cpp_wrapper = True
    with (
        config.patch({"aot_inductor.package": False}),
        pytest.raises(NotImplementedError, match="aot_inductor.package = True"),
    ):
        config.aot_inductor.package = True


@pytest.mark.parametrize("name", ["coordinate_descent_tuning", "shape_padding", "force_fuse_int_mm_with_mul"])
def test_hints_that_programs_set_are_taken(name):
    other = not config.get(name)
    with config.patch({name: other}):
        assert config.get(name) is other


def test_options_of_compile_pass_over_them():
    f = flambeau.compile(lambda x: x + 1, options={"max-autotune-gemm": True, "triton.multi_kernel": 1})
    assert f(flambeau.ones(2)).tolist() == [2, 2]
    with pytest.raises(
        RuntimeError, match="Unexpected optimization option shape_paddin; the nearest is 'shape_padding'"
    ):
        flambeau.compile(lambda x: x, options={"shape_paddin": True})


@pytest.mark.parametrize(("name", "value"), [("max_autotune", "x"), ("freezing", 1), ("max-autotune", 1.0)])
def test_options_have_the_type_of_the_setting(name, value):
    with pytest.raises(
        RuntimeError, match=f"Unexpected type of attr {name}, got {type(value).__name__} should be bool"
    ):
        flambeau.compile(lambda x: x, options={name: value})


@pytest.mark.parity
def test_defaults_are_pytorchs():
    theirs = pytest.importorskip("torch._inductor.config")
    names = [n for n in theirs._config if n in config]
    assert len(names) >= len(theirs._config) - 3
    other = {n for n in names if config.get(n) != getattr(theirs, n) and not n.endswith("cutlass_dir")}
    assert other - OF_MACHINE == OWN_DEFAULTS and other <= KNOBS.keys()
