"""Quotients of many numbers by one, to the last bit, without dividing: ``@quotient(double, double, double)``, of a, b and b's reciprocal.

Native loops call it where the divisor stays the same. With y, the quotient 1 / b rounded to nearest, ``q = a * y``, ``r = a - b * q``
and ``q + r * y`` with fused operations is a / b rounded to nearest, unless something is too large or too small on the way (P. Markstein,
"Computation of elementary functions on the IBM RISC System/6000 processor", IBM Journal of Research and Development 34, 1990). Vectors
in which that may be so are divided; zeros keep their sign. Divisors that aren't of usual size have NaN in the place of y, so that all is
divided. No flag is raised that a division doesn't raise.

The functions for vectors are known to LLVM's vectoriser (vector-function-abi-variant); their code is put in the place of the calls
afterwards. A processor without fused operations divides.
"""

from __future__ import annotations

__all__ = ["ATTRIBUTES", "CALLED", "SMALLEST", "functions"]

CALLED = "@quotient"
ATTRIBUTES = "#77"  # of the calls
SMALLEST = 2.0**-400  # of a usual divisor, and of a quotient that isn't looked at; 1 / SMALLEST is the largest
_LANES = {2: "b", 4: "d", 8: "e", 16: "e"}  # and the letter of an instruction set that has them
_LOW, _SPAN = (1023 - 400) << 53, 800 << 53  # bits of SMALLEST without the sign, and how far the largest is from there
# Moved so that SMALLEST is the least integer: AVX2 compares those with a sign in one instruction, and others in two.
_MOVED, _LARGEST = 2**63 - _LOW, _SPAN - 2**63


def functions(fused: bool) -> str:
    """The text that a module needs. ``fused``: whether the processor has fused operations."""
    if not fused:
        return _PLAIN
    names = [CALLED, *(f"@quotients{n}" for n in _LANES)]
    kept = ", ".join(f"ptr {name}" for name in names)
    variants = ",".join(f"_ZGV{isa}N{n}vvv_quotient(quotients{n})" for n, isa in _LANES.items())
    return "\n".join(
        [
            _function(1, "quotient", "noinline"),
            *(_function(n, f"quotients{n}", "alwaysinline") for n in _LANES),
            f'@llvm.compiler.used = appending global [{len(names)} x ptr] [{kept}], section "llvm.metadata"',
            f'attributes {ATTRIBUTES} = {{ nounwind willreturn memory(none) "vector-function-abi-variant"="{variants}" }}',
            '!900001 = !{!"branch_weights", i32 1, i32 2000}',
            "",
        ]
    )


_PLAIN = f"""
define internal double @quotient(double %a, double %b, double %y) alwaysinline nounwind willreturn memory(none) {{
  %d = fdiv double %a, %b
  ret double %d
}}
attributes {ATTRIBUTES} = {{ nounwind willreturn memory(none) }}
"""


def _function(n: int, name: str, inlined: str) -> str:
    number, whole, truth = (t if n == 1 else f"<{n} x {t}>" for t in ("double", "i64", "i1"))
    suffix = "f64" if n == 1 else f"v{n}f64"

    def all_(value: int) -> str:
        return str(value) if n == 1 else f"<{', '.join([f'i64 {value}'] * n)}>"

    def any_(of: str, to: str) -> str:
        if n == 1:
            return f"  %{to} = and i1 %{of}, true"
        return f"  %{to}.bits = bitcast {truth} %{of} to i{n}\n  %{to} = icmp ne i{n} %{to}.bits, 0"

    zero = "0.0" if n == 1 else "zeroinitializer"
    return f"""
define internal {number} @{name}({number} %a, {number} %b, {number} %y) {inlined} nounwind willreturn memory(none) {{
entry:
  %q = fmul {number} %a, %y
  %bits = bitcast {number} %q to {whole}
  %size = shl {whole} %bits, {all_(1)}
  %above = add {whole} %size, {all_(_MOVED)}
  %strange = icmp sgt {whole} %above, {all_(_LARGEST)}
{any_("strange", "some")}
  br i1 %some, label %rare, label %usual, !prof !900001
usual:
  %minus = fneg {number} %b
  %r = call {number} @llvm.fma.{suffix}({number} %minus, {number} %q, {number} %a)
  %z = call {number} @llvm.fma.{suffix}({number} %r, {number} %y, {number} %q)
  ret {number} %z
rare:
  %nonzero = fcmp une {number} %a, {zero}
  %unknown = fcmp uno {number} %y, {zero}
  %or = or {truth} %nonzero, %unknown
  %worse = and {truth} %or, %strange
{any_("worse", "divided")}
  br i1 %divided, label %divide, label %zeros
zeros:
  %m = fneg {number} %b
  %s = call {number} @llvm.fma.{suffix}({number} %m, {number} %q, {number} %a)
  %v = call {number} @llvm.fma.{suffix}({number} %s, {number} %y, {number} %q)
  %w = call {number} @llvm.copysign.{suffix}({number} %v, {number} %q)
  ret {number} %w
divide:
  %d = fdiv {number} %a, %b
  ret {number} %d
}}
declare {number} @llvm.fma.{suffix}({number}, {number}, {number})
declare {number} @llvm.copysign.{suffix}({number}, {number})"""
