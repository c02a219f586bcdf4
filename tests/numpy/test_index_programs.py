"""Programs of several NumPy writes and reads by index, beside NumPy: results, warnings, errors and what is left in each array, at three sizes, twice each."""

import warnings

import numpy as np
import pytest

import flambeau as torch

PROGRAMS = """
a[i]=v; a[j]=v*2 | a[i]+=1; a[::2]-=a[1::2][:a[::2].shape[0]] if a.shape[0]%2==0 else 0 | a[:,i]=0; a[i]=1 | t=a.T; t[i]=2.0 | b=a[1:]; b[i[:2]]=3.0; return a.sum()
a[i][0]=5 | a[i,j]=v[:,0]; a[j,i]+=1 | a[i,0],a[j,1]=a[j,1],a[i,0] | a[-1]=a[0]; a[0]=a[-2] | a[1:]=a[:-1] | a[:-1]=a[1:] | a[::-1]=a | a[:,::-1]=a*2
a[i]=a[j]; a[j]=a[i] | a[a>0.5]=0; a[i]=1 | m=a[:,0]>0.3; a[m]=a[m]+1 | a[a<0.1]*=2 | a[i]=np.nan; a[np.isnan(a)]=0 | np.put(a,i,[7]); np.put(a,j,8)
np.add.at(a,i,v); a[j]=0 | np.add.at(a,(i,j),1); np.add.at(a,(j,i),1) | np.put_along_axis(a,a.argmax(1)[:,None],0,1); return a.sum() | k[i]+=1; k[j]=k[i]
k[i]=v[:,:1] | k[a>0.5]=1; k[i]*=2 | a[k[0]%a.shape[0]]=1 | a[i]=k[i] | a[...,i]=1 | a[None][0][i]=1 | a.flat[i]=1.5; a.flat[0]=2 | a.reshape(-1)[i]=2
c=a.copy(); c[i]=1; a[j]=c[j] | c=np.zeros_like(a); c[i]=v; a+=c | a[i]=1; return a[i].mean() | a[i]=1; x=a[0]; a[j]=2; return x | x=a[i]; a[i]=0; return x
a[i[0]]=1; a[i[1],i[2]]=2 | a[1,2]=a[2,1]; a[2,1]=0 | a[0]+=a[1]; a[1]+=a[0] | a[i]=v; a[99]=1 | a[99,i]=1; a[i]=2 | a[i]=v[:2] | a[i,99]=1
a[2:4,i]=0 | a[i,2:4]=1 | a[[0,1],[1,0]]=3; a[[True]*a.shape[0]]*=1 | np.copyto(a,v[0]); a[i]=1 | np.fill_diagonal(a,3); a[i]=a.T[i] | a.sort(0); a[i]=0
a.partition(2); a[0]=1 | a.put(i,a[1,:3]) | np.place(a,a>.5,[1,2,3]); a[i]=0 | a.T[i]=v | a.real[i]=0 | a[:]=a[::-1] | a[i]=a.sum(0) | a[i]=a.max(); a-=a.min()
a[i]=v; np.maximum.at(a,j,v) | np.multiply.at(a,i,2.0); np.subtract.at(a,i,v) | a[i]*=a[j] | a[np.argsort(a[0])[:3]]=0 | a[:, 0][i]=9 | a[i]=True | a[i]=1j
"""


def told(f, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = f(*args)
        except Exception as e:
            result = repr(e)
    return result, [str(w.message) for w in caught]


@pytest.mark.parametrize("source", [s for row in PROGRAMS.strip().splitlines() for s in row.split(" | ")])
def test_as_numpy(source):
    scope = {"np": np}
    exec(f"def f(a, k, i, j, v):\n    {source}", scope)
    compiled = torch.compile(scope["f"])
    for n in (6, 9, 40):
        for shift in (0, 1):
            g = np.random.default_rng(n * 10 + shift)
            given = [
                g.random((n, n)),
                g.integers(0, n, (n, n)),
                g.permutation(n)[:3] - shift,
                g.permutation(n)[:3],
                g.random((3, n)),
            ]
            own = [x.copy() for x in given]
            (want, shown), (got, told_of) = told(scope["f"], *given), told(compiled, *own)
            assert shown == told_of
            if isinstance(want, str) or want is None:
                assert got == want
            else:
                np.testing.assert_allclose(got, want, rtol=1e-13)
            for x, y in zip(given, own):
                np.testing.assert_allclose(y, x, rtol=1e-14)
