"""Vectors that are read and written back in part: no masked stores on processors with AVX but not AVX-512."""

import os
import re
import subprocess
import sys

import pytest

from flambeau.inductor.machine import llvm
from flambeau.inductor.machine.blends import blended

KERNEL = """
define void @keep(ptr %p, <4 x double> %new) {
entry:
  %old = load <4 x double>, ptr %p, align 8
  %c = fcmp ole <4 x double> %new, %old
  %0 = select <4 x i1> %c, <4 x double> CHOICE
  store <4 x double> %0, ptr %p, align 8
  ret void
}
"""
CHOICES = [
    "%new, <4 x double> %old",
    "%old, <4 x double> zeroinitializer",
    "splat (double 1.0), <4 x double> %old",
    "<double 1.0, double 2.0, double 3.0, double 4.0>, <4 x double> %old",
    "%old, <4 x double> %new",
]
LOOP = """
define void @most(ptr noalias %p, ptr noalias %q, i64 %n) {
entry:
  br label %turn
turn:
  %i = phi i64 [0, %entry], [%j, %turn]
  %a = getelementptr double, ptr %p, i64 %i
  %b = getelementptr double, ptr %q, i64 %i
  %old = load double, ptr %a
  %new = load double, ptr %b
  %c = fcmp oge double %old, %new
  %d = fcmp uno double %old, %old
  %e = or i1 %c, %d
  %most = select i1 %e, double %old, double %new
  store double %most, ptr %a
  %j = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %turn, label %end
end:
  ret void
}
"""
CONDITIONAL = """
define void @clip(ptr noalias %p, i64 %n) {
entry:
  br label %turn
turn:
  %i = phi i64 [0, %entry], [%j, %on]
  %a = getelementptr double, ptr %p, i64 %i
  %old = load double, ptr %a
  %c = fcmp ogt double %old, 5.0
  br i1 %c, label %clip, label %on
clip:
  %new = fmul double %old, 0.5
  store double %new, ptr %a
  br label %on
on:
  %j = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %turn, label %end
end:
  ret void
}
"""
MASKED_STORE = """
define void @keep(ptr %p, ptr %q, <4 x double> %new, <4 x i1> %mask) {
entry:
  %old = load <4 x double>, ptr %p, align 8
  store <4 x double> %old, ptr %q, align 8
  NEXT
  call void @llvm.masked.store.v4f64.p0(<4 x double> splat (double 1.0), ptr align 8 %PLACE, <4 x i1> %mask)
  ret void
}
declare void @llvm.masked.store.v4f64.p0(<4 x double>, ptr, <4 x i1>)
"""
COMPILED = """
import sys
from flambeau.inductor.machine import llvm
print(llvm.compile_text(sys.argv[1]).hex())
for text in sys.argv[2:]:
    print(llvm.compile_text(text, True).hex())
"""
# vmaskmovpd to memory: VEX, the map of 0F38, 256 bits and 66, 2F
MASKED = re.compile(rb"\xc4[\x02-\xe2][\x05-\x7d]\x2f")


def assembly(text: str) -> str:
    return llvm.assembly_for(text, "x86_64-unknown-linux-gnu", "haswell")


@pytest.mark.parametrize("choice", CHOICES)
def test_choices(choice):
    text = KERNEL.replace("CHOICE", choice)
    assert "vmaskmov" in assembly(text)
    assert "vmaskmov" not in assembly(blended(text))


def test_others_are_left():
    """A vector that isn't written back, and one of which nothing is kept."""
    elsewhere = KERNEL.replace("CHOICE", CHOICES[0]).replace("store <4 x double> %0", "store <4 x double> %c2")
    text = elsewhere.replace("store", "%c2 = fneg <4 x double> %0\n  store")
    assert blended(text) == text
    text = KERNEL.replace("CHOICE", "%new, <4 x double> zeroinitializer")
    assert blended(text) == text


@pytest.mark.parametrize(
    ("following", "place", "masked"), [("", "p", False), ("", "q", True), ("br label %b\nb:", "p", True)]
)
def test_masked_stores(following, place, masked):
    """Of what was read in the same block; elsewhere it isn't known whether there is anything to read."""
    text = MASKED_STORE.replace("NEXT", following).replace("PLACE", place)
    assert "vmaskmov" in assembly(text)
    assert ("vmaskmov" in assembly(blended(text))) == masked


@pytest.mark.skipif(llvm.platform.machine() != "x86_64", reason="asks for the code of another kind of processor")
def test_compiled_code():
    """Vectors of the kernel, and those that LLVM makes of a loop."""
    command = [sys.executable, "-c", COMPILED, KERNEL.replace("CHOICE", CHOICES[0]), LOOP, CONDITIONAL]
    run = subprocess.run(
        command, check=True, timeout=100, env={**os.environ, "FLAMBEAU_CPU": "avx2"}, stdout=subprocess.PIPE, text=True
    )
    for code in map(bytes.fromhex, run.stdout.split()):
        assert not MASKED.search(code)
