"""Conversions of float16 that LLVM's code calls: all of them on processors without F16C, and on others that of one float64, which LLVM makes of a
conversion by float32.

A C runtime of a compiler has these functions; Python's process needn't have any. They are written in LLVM assembly, which passes a half as LLVM's
code for the same processor does. Rounding is to nearest, ties to even, and from float64 by float32, as PyTorch does.
"""

from __future__ import annotations

__all__ = ["FUNCTIONS", "TEXT"]

# Name in TEXT -> the name that LLVM calls.
FUNCTIONS = {"flb_extendhfsf2": "__extendhfsf2", "flb_truncsfhf2": "__truncsfhf2", "flb_truncdfhf2": "__truncdfhf2"}

TEXT = """
define float @flb_extendhfsf2(half %x) {
  %bits = bitcast half %x to i16
  %wide = zext i16 %bits to i32
  %sign = and i32 %wide, 32768
  %high = shl i32 %sign, 16
  %size = and i32 %wide, 32767
  %moved = shl i32 %size, 13
  %normal = add i32 %moved, 939524096
  %special = or i32 %moved, 2139095040
  %count = sitofp i32 %size to float
  %scaled = fmul float %count, 0x3E70000000000000
  %subnormal = bitcast float %scaled to i32
  %huge = icmp uge i32 %size, 31744
  %small = icmp ult i32 %size, 1024
  %finite = select i1 %small, i32 %subnormal, i32 %normal
  %any = select i1 %huge, i32 %special, i32 %finite
  %signed = or i32 %any, %high
  %result = bitcast i32 %signed to float
  ret float %result
}
define half @flb_truncsfhf2(float %x) {
  %bits = bitcast float %x to i32
  %size = and i32 %bits, 2147483647
  %top = lshr i32 %bits, 16
  %sign = and i32 %top, 32768
  %rebased = sub i32 %size, 939524096
  %last = lshr i32 %rebased, 13
  %odd = and i32 %last, 1
  %added = add i32 %rebased, 4095
  %rounded = add i32 %added, %odd
  %normal = lshr i32 %rounded, 13
  %magnitude = bitcast i32 %size to float
  %shifted = fadd float %magnitude, 5.000000e-01
  %moved = bitcast float %shifted to i32
  %subnormal = sub i32 %moved, 1056964608
  %payload = lshr i32 %size, 13
  %quiet = or i32 %payload, 32256
  %nan = and i32 %quiet, 32767
  %small = icmp ult i32 %size, 947912704
  %huge = icmp uge i32 %size, 1199570944
  %unordered = icmp ugt i32 %size, 2139095040
  %finite = select i1 %small, i32 %subnormal, i32 %normal
  %bounded = select i1 %huge, i32 31744, i32 %finite
  %any = select i1 %unordered, i32 %nan, i32 %bounded
  %signed = or i32 %any, %sign
  %short = trunc i32 %signed to i16
  %result = bitcast i16 %short to half
  ret half %result
}
define half @flb_truncdfhf2(double %x) {
  %single = fptrunc double %x to float
  %result = call half @flb_truncsfhf2(float %single)
  ret half %result
}
"""
