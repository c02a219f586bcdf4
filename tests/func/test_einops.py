"""``functorch.einops.rearrange``: against reshape and permute written out, plain, under vmap and compiled."""

import pytest

import flambeau as torch
from flambeau.func.einops import rearrange

X = torch.arange(2 * 6 * 5 * 1.0).reshape(2, 6, 5)

PATTERNS = {
    ("a b c -> c a b", ()): lambda x: x.permute(2, 0, 1),
    ("a (h w) c -> a h w c", (("h", 2),)): lambda x: x.reshape(2, 2, 3, 5),
    ("a (h w) c -> (w a) c h", (("w", 3),)): lambda x: x.reshape(2, 2, 3, 5).permute(2, 0, 3, 1).reshape(6, 5, 2),
    ("a ... -> ... a", ()): lambda x: x.permute(1, 2, 0),
    ("... c -> c (...)", ()): lambda x: x.reshape(12, 5).t(),
    ("a b c -> a 1 (b c) ()", ()): lambda x: x.reshape(2, 1, 30, 1),
    (" ->", ()): None,
}


@pytest.mark.parametrize("case", PATTERNS, ids=lambda c: c[0])
def test_rearrange(case):
    pattern, lengths = case
    x, want = (X, PATTERNS[case](X)) if PATTERNS[case] else (torch.tensor(3.0), torch.tensor(3.0))
    fn = lambda x: rearrange(x, pattern, **dict(lengths))  # noqa: E731
    assert torch.equal(fn(x), want)
    assert torch.equal(torch.compile(fn, fullgraph=True)(x), want)
    assert torch.equal(torch.vmap(fn)(torch.stack([x, x + 1]))[0], want)


def test_several_tensors_are_stacked():
    assert torch.equal(rearrange([X, X], "n a b c -> a n b c"), torch.stack([X, X], 1))


ERRORS = {
    "a b -> a b": "for 2 axes",
    "a b c d ... -> a b c d ...": "for 4 axes at least",
    "a b c -> a b": "on one side",
    "a b c": "one '->'",
    "a b c -> a b ...": "ellipsis on the right side",
    "a (b ...) -> a b ...": "parentheses on the left",
    "a a c -> a c": "twice",
    "a b c -> a ((b) c)": "parentheses in parentheses",
    "a b c -> a (b c": "isn't closed",
    "a b) c -> a b c": "without an opening",
    "a _b c -> a _b c": "no name of an axis",
    "a b 5 -> a b 5": "without names",
    "a (b d) c -> a b d c": "can't be told apart",
    "a b c -> a .. b c": "no other dots",
    "0 b c -> b c": "at least 2",
}


@pytest.mark.parametrize("pattern", ERRORS)
def test_errors(pattern):
    with pytest.raises(ValueError, match=ERRORS[pattern]):
        rearrange(X, pattern)


def test_lengths():
    with pytest.raises(TypeError, match="must be an int, got str"):
        rearrange(X, "a b c -> a b c", a="2")
    with pytest.raises(ValueError, match="aren't in the pattern: d"):
        rearrange(X, "a b c -> a b c", d=2)
    for wrong in ({"h": 4}, {"h": 2, "w": 2}):
        with pytest.raises(ValueError, match="isn't made of"):
            rearrange(X, "a (h w) c -> a h w c", **wrong)
