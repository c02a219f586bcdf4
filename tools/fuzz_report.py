"""What a fuzzer of random programs beside PyTorch reported, without what docs/reference/differences.md explains.

    python fuzz.py --n 3000 --modes eager > report.txt; python tools/fuzz_report.py report.txt

Prints each report that is left, and a count for each row of the document; exit status 1 when something is left. A report begins with ``## seed``; the
statement that differs, or the whole program, its class and its message are in the text.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

# (beginning of the row in docs/reference/differences.md, class, message, statement or program): regular expressions, searched for.
_HUGE = "nan|inf|e\\+(1[5-9]|[2-9][0-9])"
RULES = [
    ("a value changed in place", "missing error", "modified by an inplace operation", ""),
    ("gradient of `scatter_add`", "missing error", "ScatterAddBackward0|ScatterBackward|GatherBackward", "scatter"),
    ("`alpha`, `value` with a fraction", "crash", "must not be a floating point number", ""),
    ("`mean` of `var_mean`", "value", "inf", r"_mean\("),
    ("`var`, `std`, norms", "value|grads", "", r"\.var\(|\.std\(|norm\(|cov\(|var_mean|std_mean"),
    ("`prod` with one nan", "grads", "", r"prod\("),
    ("`nanmean` of nothing", "grads", "", r"nanmean\("),
    ("`logcumsumexp` with infinities", "grads", "", r"logcumsumexp\("),
    ("`hardswish(-inf)`", "value", "", "hardswish"),
    ("`special.log_ndtr` far left", "grads", "", "log_ndtr|mish|logit|sinc"),
    ("order of equal elements", "value|grads", "", r"sort\(|topk\(|argm|kthvalue\(|median\(|cumm|\.max\(|\.min\(|pool"),
    ("sign of a nan", "value", "", r"copysign\(|signbit\("),
    ("sums, products and matrix products", "value|grads", _HUGE, r"sum|@|mm\(|dot\(|einsum|linear|conv|cdist|matmul|prod\("),
    ("writes through overlapping memory", "value", "", r"unfold\(.*_\(|index_put_\(.*accumulate|as_strided\(.*_\("),
    ("a view of several", "missing error", "is a view and its base|multiple views", ""),
    ("a saved tensor whose owner was detached", "missing error", "inplace operation|detach_", "detach_|vander"),
    ("derivatives of `remainder` by its divisor", "missing error", "is not implemented|not implemented for", ""),
    ("`huber_loss` and others", "missing error", "Found dtype", ""),
    ("`clamp` between tensors", "missing error", "doesn't match the broadcast shape|ZeroTensor", ""),
    ("truth values and integers written", "requires_grad", "False expected True", r"(eq|ne|lt|le|gt|ge)_\("),
    ("`logical_not_` and other", "grads", "", r"logical_not_\(|eq_\("),
    ("`mode` of data with nan", "value|grads", "", r"mode\("),
    ("`polygamma` of a negative integer", "value|grads", "inf|e\\+", "polygamma|digamma|lgamma"),
    ("ties (`median`, `max`, ...)", "value|grads", "", r"unique\(|floor|trunc|%|round|ceil|shrink|fmod|remainder|threshold|heaviside|//"),
    ("ties (`median`, `max`, ...)", "shape", "", r"unique\("),
    ("ties (`median`, `max`, ...)", "value", r"e\+|\d{5}\.", r"reciprocal\(|pow\(-1\)"),
    ("ties (`median`, `max`, ...)", "value", r"\(1\.5\) expected .*\(0\.0\)", r"> 0"),
    ("interpolation to the size", "value|grads", "nan", "interpolate"),
    ("`layer_norm`, `group_norm` of rows", "value|grads", "", "layer_norm|group_norm|batch_norm|instance_norm|rms_norm|normalize"),
    ("casts of nan", "value", "", r"\.to\(torch\.u?int|\.long\(\)|type_as"),
    ("gradients where an infinite slope", "grads", "expected (np\\.float\\d+\\()?nan", ""),
    ("`pow` of a negative base", "grads|value", "nan", r"pow\(|\*\*"),
    ("second derivatives at kinks", "grads", "", "elu|softplus|_loss|cross_entropy|relu|clamp"),
    ("`conv1d` to `conv3d`", "value|shape", "", "conv"),
    ("`cdist`, `pairwise_distance` of a set", "value", "0\\.0\\) expected", r"cdist\((\w+), \1\)"),
    ("`kron` whose arguments", "crash", "modified by an inplace operation", r"kron\("),
    ("orthogonal polynomials", "value|grads", "nan", "polynomial_"),
    ("`linalg.qr` of matrices", "value|grads", "", r"linalg\.qr\("),
    ("gradient of `ldexp`", "grads", "", r"ldexp\("),
    ("`index_fill`, `index_copy` into", "crash", "with size 0", r"index_(fill|copy)_?\("),
    ("`cumsum_` and `cumprod_` of truth", "crash", "desired output type Bool", r"cum(sum|prod)_\("),
    ("attention of values with nan", "value", "nan", r"scaled_dot_product_attention\(.*is_causal=True"),
]  # fmt: skip


def reports(text: str):
    """(head, class, message, program) of each report."""
    for block in re.split(r"^(?=## seed )", text, flags=re.M)[1:]:
        block = re.split(r"^\n?(?:MISSING|STATS)", block, maxsplit=1, flags=re.M)[0]
        head = block.split("\n", 1)[0]
        one = re.match(r"## seed \d+ \[(\w+)\] ([\w ]+): (.*)\n\s*(.*)", block)
        if one:
            yield head, one[2], one[4], one[3]
            continue
        whole = re.search(r"^# (\w+): (?:second call )?([\w ]+): (.*)", block, re.M)
        if whole:
            program = block[block.find("def f(") :]
            yield f"{head} [{whole[1]}]", whole[2], whole[3], program


def explained(kind: str, message: str, program: str) -> str | None:
    """The row of docs/reference/differences.md that says why."""
    for row, kinds, says, contains in RULES:
        if (
            re.fullmatch(kinds.replace("grads", "grads2?"), kind)
            and re.search(says, message)
            and re.search(contains, program)
        ):
            return row
    return None


def main(paths: list[str]) -> int:
    rows: Counter = Counter()
    left = 0
    for path in paths:
        for head, kind, message, program in reports(Path(path).read_text()):
            if kind == "unsupported":
                continue
            row = explained(kind, message, program)
            rows[row] += 1
            if row is None:
                left += 1
                print(f"{head}\n   {kind}: {message}\n{program.rstrip()}\n")
    for row, count in rows.most_common():
        print(f"{count:5}  {row or 'NOT EXPLAINED'}")
    return int(left > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
