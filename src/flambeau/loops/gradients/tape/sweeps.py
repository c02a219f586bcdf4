"""Kernels that go over a tape: cotangents from the last note to the first, tangents from the first to the last."""

from __future__ import annotations

__all__ = ["FORWARD", "REVERSE"]

_SWEEP = """
define i64 @KERNEL(ptr %notes, i64 %first, i64 %count, ptr %d) {{
entry:
  %any = icmp sgt i64 %count, %first
  br i1 %any, label %turn, label %end
turn:
  %k = phi i64 [ {start}, %entry ], [ %next, %on ]
  %at = getelementptr {{ i32, i32, double, double }}, ptr %notes, i64 %k
  %a32 = load i32, ptr %at
  %b.p = getelementptr i8, ptr %at, i64 4
  %b32 = load i32, ptr %b.p
  %wa.p = getelementptr i8, ptr %at, i64 8
  %wa = load double, ptr %wa.p
  %wb.p = getelementptr i8, ptr %at, i64 16
  %wb = load double, ptr %wb.p
  %a = zext i32 %a32 to i64
  %b = zext i32 %b32 to i64
  %this = getelementptr double, ptr %d, i64 %k
  %da = getelementptr double, ptr %d, i64 %a
  %db = getelementptr double, ptr %d, i64 %b
{body}
on:
  %next = add i64 %k, {step}
  %more = icmp {test}
  br i1 %more, label %turn, label %end
end:
  ret i64 0
}}
"""


# A cotangent of zero is not multiplied: what wasn't selected never meets an infinity.
REVERSE = "; cotangents over a tape" + _SWEEP.format(
    start="%last",
    step="-1",
    test="sge i64 %next, %first",
    body="""  %g = load double, ptr %this
  %zero = fcmp oeq double %g, 0.0
  br i1 %zero, label %on, label %add
add:
  %xa = load double, ptr %da
  %pa = fmul double %wa, %g
  %sa = fadd double %xa, %pa
  store double %sa, ptr %da
  %second = icmp ne i32 %b32, 0
  br i1 %second, label %both, label %on
both:
  %xb = load double, ptr %db
  %pb = fmul double %wb, %g
  %sb = fadd double %xb, %pb
  store double %sb, ptr %db
  br label %on""",
).replace("entry:\n", "entry:\n  %last = add i64 %count, -1\n")
FORWARD = "; tangents over a tape" + _SWEEP.format(
    start="%first",
    step="1",
    test="slt i64 %next, %count",
    body="""  %xa = load double, ptr %da
  %na = fcmp une double %xa, 0.0
  %pa = fmul double %wa, %xa
  %va = select i1 %na, double %pa, double 0.0
  %xb = load double, ptr %db
  %nb = fcmp une double %xb, 0.0
  %pb = fmul double %wb, %xb
  %vb = select i1 %nb, double %pb, double 0.0
  %sum = fadd double %va, %vb
  store double %sum, ptr %this
  br label %on""",
)
