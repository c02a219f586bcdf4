"""Which dtypes out= may have: PyTorch takes and refuses the same, over the first call of each row of the sample table."""

import warnings

import pytest
from tests.ops.test_parity import ROWS, as_torch, theirs, torch

import flambeau
from flambeau.testing.checks import flat
from flambeau.testing.samples import to_tensors

pytestmark = [pytest.mark.parity, pytest.mark.skipif(torch is None, reason="PyTorch is not installed")]

DTYPES = ("float64", "float16", "int64", "complex64", "bool")
# Rows whose answers differ, and why.
LEFT_OUT = {
    "sum": "all elements: written like those of a dimension (docs/reference/differences.md)",
    "prod": "all elements: written like those of a dimension (docs/reference/differences.md)",
    "ldexp.Tensor": "PyTorch fails in an assertion of its own",
    "_to_copy": "converts fractions to integers only where its argument says so",
    "_chunk_cat": "PyTorch's error is that of the concatenation that it is made of",
    "smooth_l1_loss": "refused: the error says more than a loss that was rounded",
    "huber_loss": "refused: the error says more than a loss that was rounded",
    "_fft_c2c": "refused: a part of each number would be lost",
    "_fft_r2c": "refused: a part of each number would be lost",
    "_fft_c2r": "refused: what it is made of is a loop of one dtype",
}
# A number in front: the packet takes another overload here.
LEFT_OUT |= {n: "taken like a tensor without dimensions" for n in ROWS if n.endswith(".Scalar_Tensor")}
# Operators whose out= PyTorch generates for its own use, and which have none here: no public function takes it.
WITHOUT_OUT = set(
    """
    isnan isinf zero _conj_physical hardswish_backward nanmedian embedding index.Tensor index_put masked_scatter bincount tril_indices triu_indices
    rand_like randn_like empty_strided new_empty_strided rand_like.generator randn_like.generator randint_like.generator
    randint_like.low_generator_dtype randint_like.Tensor randint_like.Tensor_generator randint_like randint_like.low_dtype uniform exponential
    random log_normal cauchy geometric random.to random.from bernoulli.Tensor bernoulli.p _standard_gamma _sample_dirichlet poisson binomial
    _standard_gamma_grad _dirichlet_grad linalg_matrix_exp _cdist_forward median _unsafe_view repeat_interleave.Tensor diagonal_backward
    unfold_backward slice_backward
    """.split()
)


def answer(module, packet, args, kwargs, dtype):
    """Written, refused, or no kernel: PyTorch has none that computes in the dtype of ``out``."""
    try:
        packet(*args, **kwargs, out=module.empty(0, dtype=getattr(module, dtype)))
    except NotImplementedError:
        return "no kernel"
    except (RuntimeError, TypeError):
        return "refused"
    return "written"


@pytest.mark.parametrize("name", [n for n in ROWS if n not in LEFT_OUT and ROWS[n].calls and torch and theirs(n)])
def test_dtypes(name):
    row, sample = ROWS[name], ROWS[name].calls[0]
    other = getattr(torch.ops.aten, (row.torch or name).partition(".")[0])
    ours = getattr(flambeau.ops.aten, name.partition(".")[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args = as_torch(sample.args), {k: as_torch(v) for k, v in sample.kwargs.items()}
        mine = to_tensors(sample.args), to_tensors(sample.kwargs)
        results = flat(row.op(*mine[0], **mine[1]))
        own = str(results[0].dtype).removeprefix("torch.") if isinstance(results[0], flambeau.Tensor) else None
        if len(results) != 1 or own is None or "written" != answer(torch, other, *args, own):
            pytest.skip("PyTorch's has no out= of this call")
        if name in WITHOUT_OUT:
            with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
                ours(*mine[0], **mine[1], out=flambeau.empty(0, dtype=getattr(flambeau, own)))
            return
        assert answer(flambeau, ours, *mine, own) == "written"
        for dtype in DTYPES:
            want = answer(torch, other, *args, dtype)
            if want != "no kernel":
                assert (dtype, answer(flambeau, ours, *mine, dtype)) == (dtype, want)
