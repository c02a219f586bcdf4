"""Random programs of what is built on the library: autograd functions, hooks, parametrizations, tensor subclasses, optimizers and schedulers, modules with
parameters, distributions, views that are written to. ``python tests/dynamo/fuzz.py objects FIRST COUNT BACKENDS`` runs many. Called three times, the
first results go backward, and what was handed out is changed between the calls. What graphs show in a way of their own isn't asked for, with PyTorch's
compilers either: versions, bases and names of backward nodes of values made inside, how often saved tensors are packed; and no gradient that a
backward adds to is saved for it."""

from fuzz_library import Grammar
from fuzz_library import run as run_grammar

HEADER = """\
import collections, contextlib, copy, functools
nn = torch.nn
F = torch.nn.functional
P = torch.nn.utils.parametrize
D = torch.distributions
class Own:
    made = 0
    def __init__(self, v): self.v = v; Own.made += 1
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x); ctx.k = k
        return x * x * k
    @staticmethod
    def backward(ctx, g):
        log.append("back")
        x, = ctx.saved_tensors
        return 2 * g * x * ctx.k, None
class Split(torch.autograd.Function):
    @staticmethod
    def forward(x, y): return x + y, (x > y).long()
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1]); ctx.set_materialize_grads(False); ctx.save_for_backward(*inputs)
    @staticmethod
    def backward(ctx, g, _):
        x, y = ctx.saved_tensors
        return (None, None) if g is None else (g * y, g * x)
class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1)
    @staticmethod
    def backward(ctx, g): return g * 3
class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        log.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs or {})
class Named(torch.Tensor):
    tag = "none"
    def doubled(self): return self * 2
class Sym(nn.Module):
    def forward(self, w): return (w + w.t()) / 2
    def right_inverse(self, w): return w
class Net(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.w = nn.Parameter(torch.full((2, 2), 0.5) * k)
        self.register_buffer("b", torch.full((2,), float(k)))
    def forward(self, x, times=1):
        self.b.add_(1)
        return F.linear(x, self.w) * times + self.b
outer = nn.Linear(2, 2)
net = Net(2)
p = nn.Parameter(torch.ones(2))
given = [torch.tensor([k + 1.0, 0.5], requires_grad=k < 2) for k in range(3)]
def back(out):
    try: sum(t.sum() for t in out[0] if t.requires_grad).backward()
    except (RuntimeError, AttributeError) as e: out[1].append("modified" if "modified by an inplace" in str(e) else str(e))
"""

MAKE = """module|Net({n})
module|net
module|outer
module|nn.Linear(2, 2)
module|nn.Sequential(nn.Linear(2, 2), nn.Tanh())
module|copy.deepcopy(net)
module|nn.ModuleList([Net({n}), outer])[{n} % 2]
module|P.register_parametrization(nn.Linear(2, 2), "weight", Sym())
module|torch.nn.utils.parametrizations.weight_norm(copy.deepcopy(outer))
module|nn.LayerNorm(2)
module|nn.Embedding(3, 2)
params|nn.ParameterList([nn.Parameter({x}.detach() * 1), p])
params|nn.ParameterDict({"a": p, "b": nn.Parameter(torch.ones(2))})
tensor|{x}.clone()
tensor|({x} * 1).reshape(2, 1).expand(2, 3).contiguous()
tensor|torch.arange(6.0).reshape(2, 3) * 1
tensor|torch.zeros(2, 2)
view|({x} * 1)[:]
view|torch.stack([{x}, {x} * 2])[:, {n} % 2]
view|torch.cat([{x}, {x}]).view(2, 2).t()[0]
view|torch.zeros(3, 2).index_select(0, torch.tensor([0, 2]))[1]
view|torch.stack([{x}, {x}]).diagonal()
view|torch.cat([{x}, {x}]).unfold(0, 2, 1)[1]
view|torch.cat([{x}, {x}]).chunk(2)[{n} % 2]
view|torch.cat([{x}, {x}]).as_strided((2,), (2,), {n} % 2)
tagged|({x} * 1).as_subclass(Tagged)
named|({x} * 1).as_subclass(Named)
named|torch.Tensor._make_subclass(Named, {x}.detach() * 1)
sgd|torch.optim.SGD([p], lr=0.1, momentum=0.5, nesterov=True)
sgd|torch.optim.Adam([{"params": [p], "lr": 0.01}], betas=(0.5, 0.9))
sgd|torch.optim.AdamW(net.parameters(), lr=0.01 * {n})
sgd|torch.optim.RMSprop([p, *outer.parameters()])
sched|torch.optim.lr_scheduler.StepLR(torch.optim.SGD([p], lr=0.1), {n} + 1)
sched|torch.optim.lr_scheduler.LambdaLR(torch.optim.SGD([p], lr=1.0), lambda e: 0.5 ** e)
dist|D.Categorical(logits={x})
dist|D.Bernoulli(logits={x})
dist|D.MultivariateNormal({x}, torch.eye(2))
dist|D.TransformedDistribution(D.Normal({x}, torch.ones(2)), [D.transforms.TanhTransform()])
dist|D.Beta({x}.abs() + 1, torch.ones(2))
dist|D.Dirichlet({x}.abs() + 0.5)
dist|D.Uniform({x} - 1, {x} + 1)""".split("\n")

USE = {
    "module": "{v} = {o}({x}) if not isinstance({o}, nn.Embedding) else {o}(torch.tensor({n} % 3))|h = {o}.register_forward_pre_hook(lambda m, a: (a[0] * 2,) if a[0].is_floating_point() else None); {v} = {o}({x}) if not isinstance({o}, nn.Embedding) else {x}; h.remove()|r.append(sorted(n for n, _ in {o}.named_parameters()))|r.append([q.requires_grad for q in {o}.parameters()])|{o}.requires_grad_({n} > 1)|{o}.zero_grad({n} > 2)|{o}.train({n} > 2); r.append({o}.training)|r.append(sorted({o}.state_dict()))|{o}.load_state_dict({k: q * 0.5 for k, q in {o}.state_dict().items()})|{o}.extra = {x}.detach(); {v} = {o}.extra + 1|{o}.to(torch.float64); {o}.float()|{o}.apply(lambda m: log.append(type(m).__name__))|r.append([type(m).__name__ for m in {o}.modules()])|r.append(P.is_parametrized({o}))|{v} = torch.func.functional_call(net, {'w': torch.ones(2, 2)}, ({x},))|h = {o}.register_forward_hook(lambda m, a, t, **k: log.append('hook')); r.append(len({o}._forward_hooks)); h.remove()|r.append(len(list({o}.buffers())))|q = next({o}.parameters()); q.data.mul_(0.5); {v} = q.sum() * {x}",
    "params": "{v} = sum(q.sum() if isinstance(q, torch.Tensor) else 0 for q in {o}.parameters()) * {x}|r.append(len({o}))|r.append([tuple(q.shape) for q in {o}.parameters()])|r.append(sorted({o}.state_dict()))",
    "tensor": "{v} = {o}.sum() * {x}|{o}.mul_(2)|{o}[0] = {n}|{o}[{o} > {n}] = 0|{o}.add_({x}.sum().detach())|{o}.zero_()|{v} = {o}.t().sum(0).sum() + {x}|{o}.copy_({o}.flip(0))|{o}.clamp_(max={n})|r.append(({o}.shape, {o}.stride(), {o}.is_contiguous()))|q = {o}.view(-1); q[0] = {n}; {v} = {o}.sum() + {x}|q = {o}.t(); q.add_(1); {v} = {o}.mean() * {x}|{o}.fill_({n}); q = {o}.unsqueeze(0); q.mul_(2)|{o}.index_fill_(0, torch.tensor([0]), {n})|{o}.masked_fill_({o} > 1, 7.0)|{o}.squeeze_(); r.append({o}.dim())|{o}.detach_(); r.append({o}.requires_grad)|q = {o}.detach(); q.add_(1); {v} = {o}.sum() * {x}|r.append({o}.tolist())|{o}.resize_(2, 2) if {o}.is_leaf and {o}.numel() == 4 else 0|q = {o}.split(1); q[0].mul_(3) if {n} > 2 else 0; {v} = {o}.sum() + {x}|w = {o}.unbind(0); {v} = w[0].sum() * {x}",
    "view": "{o}.mul_(2); {v} = {o} * {x}|{o}[0] = {n}|{o}[:1].add_(1); {v} = {o} + 0|{v} = {o} * {x}|q = {o}.detach(); q.add_(1); {v} = {o} * 2|r.append({o}.tolist())|{o}.copy_({x})|{o}.zero_(); {v} = {o} + {x}|q = {o}.view(2); q.sub_(1); {v} = q * {o}|{o}.clamp_(min={n})|{o}[torch.tensor([1])] = {x}[:1]|{o}.index_add_(0, torch.tensor([0, 0]), {x})|{o}.sigmoid_().mul_({n}); {v} = {o} * 1|{o}.set_({x}.detach()) if not {o}.requires_grad and {n} > 4 else 0",
    "tagged": "{v} = ({o} * 2).as_subclass(torch.Tensor)|q = {o} + {x}; r.append(type(q).__name__); {v} = q.as_subclass(torch.Tensor)|{o}.add_(1)|r.append(isinstance({o}[0], Tagged))|{v} = torch.stack([{o}, {o}]).sum(0).as_subclass(torch.Tensor)|r.append({o}.shape)|{v} = F.relu({o}).as_subclass(torch.Tensor)|r.append({o}.tolist())",
    "named": "{o}.tag = 'k{n}'; r.append({o}.tag)|{v} = {o}.doubled() * {x}|r.append(type({o} * 2).__name__)|r.append({o}.tag)|{v} = torch.as_tensor({o}).as_subclass(torch.Tensor)|r.append(hasattr({o}.clone(), 'tag'))|q = copy.deepcopy({o}) if {o}.is_leaf else {o}; r.append(type(q).__name__)|{o}.mul_(2); {v} = {o} * {x}",
    "sgd": "{o}.zero_grad(set_to_none={n} > 2)|(p * {x}.detach()).sum().backward(); {o}.step(); {v} = p * 1|{o}.param_groups[0]['lr'] *= 0.5|r.append(len({o}.state))|r.append({o}.param_groups[0]['lr'])|{o}.add_param_group({'params': [nn.Parameter(torch.ones(2))], 'lr': 1.0}); r.append(len({o}.param_groups))|r.append(sorted({o}.state_dict()['param_groups'][0])[:3])|{o}.load_state_dict({o}.state_dict())|net({x}.detach()).sum().backward(); {o}.step(); {v} = net.w.sum() * {x}|h = {o}.register_step_pre_hook(lambda *a: log.append('pre')); {o}.step(); h.remove()|r.append([len(g['params']) for g in {o}.param_groups])",
    "sched": "{o}.optimizer.step(); {o}.step(); r.append({o}.get_last_lr())|r.append({o}.last_epoch)|r.append(sorted({o}.state_dict())[:3])|{v} = {x} * {o}.get_last_lr()[0]",
    "dist": "{v} = {x} + {o}.sample().sum()|r.append(({o}.batch_shape, {o}.event_shape))|{v} = {x} * {o}.log_prob({o}.sample()).sum()|{v} = {o}.entropy().sum() * {x} if not isinstance({o}, D.TransformedDistribution) else {x}|r.append({o}.has_rsample)|{v} = {o}.mean.sum() + {x} if not isinstance({o}, (D.TransformedDistribution, D.Categorical)) else {x}|r.append(type({o}.expand((3,) + tuple({o}.batch_shape))).__name__)|{v} = {o}.rsample((2,)).sum() * {x} if {o}.has_rsample else {x}|{v} = D.kl_divergence({o}, {o}).sum() + {x} if not isinstance({o}, D.TransformedDistribution) else {x}",
}  # fmt: skip
USE = {kind: text.split("|") for kind, text in USE.items()}

STATEMENTS = """{v} = Twice.apply({x}, {n})
{v}, q = Split.apply({x}, {x} * 2); r.append(q)
{v} = InPlace.apply({x} * 1)
q = {x} * 1; InPlace.apply(q); {v} = q * 2
y = {x} * 2; h = y.register_hook(lambda g: g * 3) if y.requires_grad else None; {v} = y + 1
y = {x} * 2; y.retain_grad() if y.requires_grad else None; {v} = y * y
y = {x}.detach().requires_grad_(); g, = torch.autograd.grad((y * y).sum(), y); {v} = g * {x}
y = {x}.detach().requires_grad_(); z = (y ** 3).sum(); g, = torch.autograd.grad(z, y, create_graph=True); h, = torch.autograd.grad(g.sum(), y); {v} = h + {x}
y = {x}.detach().requires_grad_(); (y * {n}).sum().backward(); r.append(y.grad); {v} = y.grad * {x}
with torch.no_grad(): {v} = {x} * 2
with torch.no_grad(): p.mul_(0.5)
with torch.enable_grad(): {v} = {x} * p
with torch.inference_mode(): y = {x} + 1|r.append(y.is_inference())
with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t): {v} = {x} * {x}
with P.cached(): {v} = outer({x}) + outer({x})
{v} = torch.utils.checkpoint.checkpoint(lambda t: Twice.apply(t, {n}), {x}, use_reentrant=False)
{v} = torch.func.vmap(lambda t: t * {n})({x})
{v} = torch.func.grad(lambda t: Twice.apply(t, 2).sum())({x})
{v} = torch.func.jvp(torch.sin, ({x},), (torch.ones(2),))[1]
r.append(torch.func.jacrev(lambda t: t * t)({x}.detach()))
p.grad = None; (p * {x}.detach()).sum().backward(); {v} = p.grad.clone() * {x}
p.register_hook(lambda g: g * 2) if {n} > 4 else 0
r.append((p.requires_grad, p.is_leaf, p.grad is None))
r.append({x}.grad_fn is None)
r.append({x}.requires_grad)
q = {x} * 1; q.add_(1); q[0] = {n}; {v} = q
{v} = F.dropout({x}, 0.5, training={n} > 2)
{v} = F.gelu({x}) + torch.where({x} > {n}, {x}, 0.0)
graph_break()
if {x}.sum() > {n}: {v} = {x} - 1|else: {v} = {x} + 1
for i in range({n}): {v} = {x} * i
try: torch.zeros(2)[{n}]|except IndexError as e: r.append(str(e))
try: torch.ones(2) + torch.ones(3)|except RuntimeError as e: r.append(str(e))
try: torch.ones(2, requires_grad=True).add_(1)|except RuntimeError as e: r.append(str(e))
r.append(torch.is_grad_enabled())
{v} = torch.cat([{x}, {x}]).view(2, 2)[1]
x, {v} = {x} * 1, x
{v} = torch.einsum("i,j->i", {x}, {x})""".split("\n")

GRAMMAR = Grammar(
    HEADER,
    MAKE,
    USE,
    STATEMENTS,
    frozenset(("module", "params", "tensor", "view", "named", "sgd", "sched")),
    {
        "module": "{k}.eval(); {k}.extra = 3",
        "params": "{k}.requires_grad_(False)",
        "tensor": "{k}.detach().add_(1)",
        "view": "{k}.detach().mul_(2)",
        "named": "{k}.tag = 'changed'",
        "sgd": "{k}.param_groups[0]['lr'] = 5.0",
        "sched": "{k}.last_epoch += 1",
    },
    "p, p.grad, net.w, net.w.grad, net.b, outer.weight, outer.weight.grad, Own.made, [a.grad for a in given]",
    "given[{k} - 1]",
    "back(out[-1])",
)


def run(seed: int, backend: str = "eager") -> None:
    run_grammar(seed, backend, GRAMMAR)
