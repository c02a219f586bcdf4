"""tools/fuzz_report.py: every rule names a row of docs/reference/differences.md, and tells reports apart."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("fuzz_report", ROOT / "tools" / "fuzz_report.py")
fuzz_report = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz_report)

REPORTS = """
   program: a=make(...)
## seed 7 [eager] requires_grad: v1 = a.eq_(b)
   v1: False expected True
## seed 8 [eager] value: v1 = a.exp()
   v1: values: 1 of 2, at (0,): 1.0 expected 2.0
## seed 9
# eager: missing error: expected RuntimeError: Found dtype Float but expected BFloat16 (in backward)
def f(a):
    v3 = F.huber_loss(a, a)
    return [v3]

STATS
   eager value 1
"""


def test_rules_are_rows_of_the_document():
    rows = [
        line[2:] for line in (ROOT / "docs/reference/differences.md").read_text().splitlines() if line.startswith("| ")
    ]
    for rule in fuzz_report.RULES:
        assert any(row.startswith(rule[0]) for row in rows), rule[0]


def test_what_is_left(tmp_path, capsys):
    path = tmp_path / "report.txt"
    path.write_text(REPORTS)
    assert fuzz_report.main([str(path)]) == 1
    out = capsys.readouterr().out
    assert "seed 8" in out and "seed 7" not in out and "seed 9" not in out and "STATS" not in out
    path.write_text(
        REPORTS.replace("a.exp()", "a.eq_(b)")
        .replace("value:", "requires_grad:")
        .replace("1.0 expected 2.0", "False expected True")
    )
    assert fuzz_report.main([str(path)]) == 0
