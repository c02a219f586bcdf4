"""Outputs of compiled code that lie in the same memory share it behind the call, whatever was written last, and through what."""

import pytest

import flambeau as torch

PROGRAMS = {
    "base reshaped, view written": "a = y[1:]; y.unsqueeze_(0); a += 1; return y, a",
    "base reshaped": "a = y[1:]; y.unsqueeze_(0); return y, a",
    "view written, base reshaped": "a = y[1:]; a += 1; y.unsqueeze_(0); return y, a",
    "base transposed": "a = y[1:]; y.t_(); a += 1; return y, a",
    "view transposed": "a = y[1:]; a.t_(); a += 1; return y, a",
    "base written": "a = y[1:]; a.t_(); y += 1; return y, a",
    "base squeezed": "a = y[1:]; y.squeeze_(); a += 1; return y, a",
    "through a flat view": "a = y.view(-1)[2:]; y.transpose_(0, 1); y[0] = 7; a += 1; return y, a",
    "without the base": "a = y[1:]; b = y.diagonal(); a += 1; b *= 2; return a, b",
    "overlapping, without the base": "a = y[1:]; b = y[:2]; y.mul_(3); b.sub_(1); return a, b",
    "views of views": "a = y[1:]; b = a.t(); b.mul_(2); c = y.diagonal(); c.fill_(5); y.unsqueeze_(0); a += 1; return y, a, b, c",
    "equal views": "a = y.unbind(0)[0]; b = y.unbind(0)[0]; y += 1; return y, b, a[1:], a",
    "data of a view that is transposed": "v = y.view_as(y); d = y.data; v.transpose_(0, -1); return d, v",
    "flat data of a base that is transposed": "d = y.data; y.t_(); d = d.flatten(); y.copy_(y.sum()); return y, d",
    "the same view": "v = y[1:]; w = y.view_as(y); y.relu_(); v[0] = 1; return w, y",
    "in another order of memory": "v = y.t(); y.unsqueeze_(0); v[0] = 5; return y, v, y.reshape(-1)",
    "detached": "y = x.T.clone(); v = y.detach(); v[0] = 4; return v, y.detach()",
    "parts in another order": "v = y.swapaxes(0, -1); y.fill_(3); v[0] = -2; return v, y.narrow(0, 0, 1).diagonal()",
    "with a gradient": "y = y * w; a = y[1:]; y.unsqueeze_(0); a += 1; return y, a",
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_outputs_share_memory_behind_the_call(program, backend):
    space: dict = {}
    exec(f"def f(x, w):\n    y = x.clone()\n    {program}", space)
    shown = []
    for f in (space["f"], torch.compile(space["f"], backend=backend, fullgraph=True)):
        outs = f(torch.arange(9.0).view(3, 3), torch.ones(3, requires_grad="w" in program.split()))
        steps = [[(o.tolist(), o.stride(), o.storage_offset()) for o in outs]]
        with torch.no_grad():
            for i, o in enumerate(outs):
                o.detach().fill_(10 * i)
                steps.append([p.tolist() for p in outs])
        shown.append(steps)
    assert shown[0] == shown[1]
