"""What the README and the example programs show, run."""

import importlib.util
import re
import runpy
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)


@pytest.mark.parametrize("code", BLOCKS, ids=[f"block{i}" for i in range(len(BLOCKS))])
def test_readme_block_runs(code, capsys):
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert "TorchDispatchMode" not in code or "aten.mul.Tensor" in capsys.readouterr().out


EXAMPLES = {
    "numpy_function": r"first call .* s, result ndarray \(1024,\) float64\ngreatest difference from NumPy \d\.\de-1\d",
    "interpose": r"aten\.mul\.Tensor\(\[3\], \[3\]\)(.|\n)*a LoggingTensor saw: aten\.mul\.Tensor, aten\.sum\.default",
    "gpt": r"step  90  loss [12]\.\d+",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name, capsys):
    spec = importlib.util.find_spec(f"flambeau.examples.{name}")
    runpy.run_path(spec.origin, run_name="__main__")
    assert re.search(EXAMPLES[name], capsys.readouterr().out)
