"""The numerics fuzzer of the shared folder, with templates for Fourier transforms, linear algebra, special functions, complex numbers and sparse
tensors: programs that mix them with its own, run by PyTorch, eager and compiled.

    python tools/fuzz_families.py ../shared/adversarial/numerics/fuzz.py --n 300 [--families fft,linalg] [the fuzzer's other options]

Needs PyTorch. What a template makes is real: the fuzzer compares real tensors, so complex results are looked at through their parts.
"""

from __future__ import annotations

import importlib.util
import sys

UNARY = (
    "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammaln i0 i0e i1 i1e log1p log_ndtr "
    "logit modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr ndtri psi round scaled_modified_bessel_k0 "
    "scaled_modified_bessel_k1 sinc spherical_bessel_j0"
).split()
BINARY = "gammainc gammaincc xlog1py xlogy zeta".split()
POLYNOMIALS = (
    "chebyshev_polynomial_t chebyshev_polynomial_u hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l "
    "legendre_polynomial_p"
).split()
NORMS = ("'fro'", "'nuc'", "1", "-1", "2", "-2", "float('inf')")


def wide(t) -> bool:
    """Fourier transforms and LAPACK have float32 and float64."""
    return str(t.dtype) in ("torch.float32", "torch.float64")


def families(fuzz):
    class Families(fuzz.Gen):
        def part(self, text: str) -> str:
            """A real tensor that tells what the complex one is."""
            return self.r.choice(
                [
                    "{}.real",
                    "{}.imag",
                    "{}.abs()",
                    "torch.view_as_real({}.resolve_conj())",
                    "torch.view_as_real({} * 1)",
                ]
            ).format(text)

        def k_fft(self):
            x = self.any(lambda t: wide(t) and t.ndim and t.numel())
            if x is None:
                return None
            t, r = self.t[x], self.r
            d, n = self.dim(t), r.choice(["None", "None", "4", "7"])
            norm = r.choice(["'backward'", "'ortho'", "'forward'"])
            how = f"n={n}, dim={d}, norm={norm}"
            y = self.same(x)
            z = f"torch.complex({x}, {y})"
            given, back = r.choice([x, z]), r.choice([f"torch.fft.fft({x}, dim={d})", z])
            two = f"dim=({d}, 0), norm={norm}" if t.ndim > 1 and d % t.ndim else f"dim=({d},)"
            return r.choice(
                [
                    self.part(f"torch.fft.fft({given}, {how})"),
                    self.part(f"torch.fft.ifft({given}, {how})"),
                    self.part(f"torch.fft.rfft({x}, {how})"),
                    f"torch.fft.irfft({back}, {how})",
                    f"torch.fft.hfft({back}, {how})",
                    self.part(f"torch.fft.ihfft({x}, {how})"),
                    self.part(f"torch.fft.fftn({given}, {two})"),
                    self.part(f"torch.fft.rfftn({x}, {two})"),
                    f"torch.fft.irfftn({back}, {two})",
                    self.part(f"torch.fft.ifft2({given}, {two})"),
                    f"torch.fft.fftshift({x}, {d})",
                    f"torch.fft.ifftshift({x})",
                    f"torch.fft.irfft(torch.fft.rfft({x}, dim={d}), {t.shape[d]}, {d})",
                    f"torch.fft.fftfreq({t.shape[d]}, dtype={x}.dtype)",
                    f"torch.stft({x}.flatten()[:16], 4, 2, return_complex=True).abs()",
                ]
            )

        def k_linalg(self):
            x = self.any(lambda t: wide(t) and t.ndim >= 2 and 0 < t.numel() < 600)
            if x is None:
                return None
            t, r = self.t[x], self.r
            n = t.shape[-2]
            symmetric = f"({x}.nan_to_num().clamp(-5, 5) @ {x}.nan_to_num().clamp(-5, 5).mT / 10 + 3 * torch.eye({n}, dtype={x}.dtype))"
            m = r.choice([symmetric, f"({symmetric} + {symmetric}.tril(-1))", f"{symmetric}.mT"])
            b = f"{x}.nan_to_num()"
            upper = r.choice(["True", "False"])
            factor = f"torch.linalg.cholesky({symmetric}, upper={upper})"
            return r.choice(
                [
                    f"torch.linalg.inv({m})",
                    f"torch.linalg.det({m})",
                    f"torch.linalg.slogdet({m})[1]",
                    f"torch.logdet({m})",
                    f"torch.linalg.solve({m}, {b})",
                    f"torch.linalg.solve({m}, {b}.mT, left=False)",
                    f"torch.linalg.solve_ex({m}, {b})[0]",
                    factor,
                    f"torch.cholesky_solve({b}, {factor}, upper={upper})",
                    f"torch.cholesky_inverse({factor}, upper={upper})",
                    f"torch.linalg.solve_triangular({factor}, {b}, upper={upper})",
                    f"torch.linalg.qr({b})[1].abs()",
                    f"torch.linalg.qr({b}, mode='complete')[0].abs()",
                    f"torch.linalg.svdvals({b})",
                    f"torch.linalg.svd({b}, full_matrices=False)[1]",
                    f"torch.linalg.eigvalsh({symmetric})",
                    f"torch.linalg.eigh({symmetric})[0]",
                    f"torch.linalg.eigvals({m}).abs().sort(-1)[0]",
                    f"torch.linalg.lstsq({m}, {b}).solution",
                    f"torch.linalg.pinv({b})",
                    f"torch.linalg.pinv({symmetric}, hermitian=True)",
                    f"torch.linalg.matrix_exp({m} / 10)",
                    f"torch.linalg.matrix_power({m}, {r.choice([-2, -1, 0, 1, 3])})",
                    f"torch.linalg.matrix_norm({b}, {r.choice(NORMS)})",
                    f"torch.linalg.cond({m}, {r.choice(NORMS)})",
                    f"torch.linalg.matrix_rank({m})",
                    f"torch.linalg.lu_solve(*torch.linalg.lu_factor({m}), {b})",
                    f"torch.linalg.lu({m})[2]",
                    f"torch.linalg.ldl_solve(*torch.linalg.ldl_factor({symmetric}), {b})",
                    f"torch.linalg.multi_dot([{m}, {m}, {m}])" if t.ndim == 2 else f"torch.linalg.vecdot({b}, {b})",
                    f"torch.linalg.vander({b}.flatten()[:4])",
                    f"torch.linalg.diagonal({b})",
                    f"torch.linalg.tensorinv({m}, 1)" if t.ndim == 2 else f"torch.linalg.norm({b}, dim=(-2, -1))",
                ]
            )

        def k_special(self):
            x = self.fl()
            if x is None:
                return None
            r = self.r
            inside = r.choice(["{x}", "{x}", "({x}.abs() + 0.5)", "{x}.sigmoid()"]).format(x=x)
            return r.choice(
                [
                    f"torch.special.{r.choice(UNARY)}({inside})",
                    f"torch.special.{r.choice(UNARY)}({inside})",
                    f"torch.special.{r.choice(BINARY)}({x}.abs() + 1.1, {self.same(x)}.abs() + 0.3)",
                    f"torch.special.{r.choice(POLYNOMIALS)}({x}.clamp(-2, 2), {r.choice([0, 1, 3, 5])})",
                    f"torch.special.multigammaln({x}.abs() + 3, 2)",
                    f"torch.special.polygamma({r.choice([0, 1, 2])}, {x}.abs() + 0.2)",
                    f"torch.special.logsumexp({x}, {self.dim(self.t[x])})",
                    f"torch.special.log_softmax({x}, {self.dim(self.t[x])})",
                ]
            )

        def k_complex(self):
            x = self.any(wide)
            if x is None:
                return None
            t, r, y = self.t[x], self.r, self.same(x)
            z, w = f"torch.complex({x}, {y})", f"torch.polar({x}.abs(), {y})"
            v = r.choice([z, w, f"{z}.conj()", f"{z}.mH" if t.ndim >= 2 else z])
            made = [
                f"({z} * {w})",
                f"({z} + 2j)",
                f"({z} - {w}.conj())",
                f"({z} / ({w} + 3))",
                f"({v}).exp()",
                f"({v} + 3).log()",
                f"({v}).sqrt()",
                f"({v}).sin()",
                f"({v}).tanh()",
                f"({v} * 0.3) ** 2",
                f"({v}).conj().mul(1j)",
                f"({v}).sgn()",
                f"({v}).reciprocal()",
                f"({v}).cumsum({self.dim(t)})",
                f"({v}).sum({self.dim(t)})",
                f"({v}).mean()",
                f"({v}).prod()",
                f"torch.where({x} > 0, {z}, {w})",
                f"({z}.to(torch.complex64) + {x})",
                f"({z} @ {z}.mH)" if t.ndim >= 2 else f"({z} * {x})",
            ]
            return r.choice(
                [
                    self.part(r.choice(made)),
                    self.part(r.choice(made)),
                    f"({v}).angle()",
                    f"({v} == {z})",
                    f"torch.isnan({v})",
                    f"torch.view_as_complex(torch.stack([{x}, {y}], -1)).imag",
                ]
            )

        def k_sparse(self):
            x = self.any(lambda t: wide(t) and t.ndim == 2)
            if x is None:
                return None
            r, few = self.r, f"({x} * ({x} > 0))"
            s = r.choice(
                [
                    f"{few}.to_sparse()",
                    f"{few}.to_sparse_csr()",
                    f"{few}.to_sparse_csc()",
                    f"{few}.to_sparse().coalesce()",
                ]
            )
            coo = f"{few}.to_sparse()"
            return r.choice(
                [
                    f"({s}).to_dense()",
                    f"({s}) @ {x}.mT",
                    f"torch.sparse.mm({s}, {x}.mT)",
                    f"({coo} + {coo}).to_dense()",
                    f"({coo} * 2).to_dense()",
                    f"({coo} * {coo}).to_dense()",
                    f"torch.sparse.sum({coo})",
                    f"torch.sparse.sum({coo}, {r.choice([0, 1])}).to_dense()",
                    f"torch.sparse.softmax({coo}, {r.choice([0, 1])}).to_dense()",
                    f"{coo}.t().to_dense()",
                    f"torch.sparse.addmm({x} @ {x}.mT, {coo}, {x}.mT, beta=0.5)",
                    f"({coo}.coalesce().values() * 2).sum()",
                    f"{coo}.coalesce().indices()",
                    f"{x}.sparse_mask({coo}.coalesce()).to_dense()",
                    f"({coo} @ {coo}.t()).to_dense()",
                    f"torch.cat([{coo}, {coo}]).to_dense()",
                    f"{coo}.neg().to_dense()",
                    f"torch.sparse.sampled_addmm({few}.to_sparse_csr(), {x}, {x}.mT @ {x}).to_dense()",
                ]
            )

    return Families


def main(argv: list[str]) -> None:
    path, *rest = argv
    spec = importlib.util.spec_from_file_location("fuzz", path)
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    chosen = ["fft", "linalg", "special", "complex", "sparse"]
    if "--families" in rest:
        at = rest.index("--families")
        chosen = rest[at + 1].split(",")
        del rest[at : at + 2]
    fuzz.Gen = families(fuzz)
    fuzz.KINDS = fuzz.KINDS + chosen * 6
    sys.argv = [path, *rest]
    fuzz.main()


if __name__ == "__main__":
    main(sys.argv[1:])
