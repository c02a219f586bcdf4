"""What the workers of test_rpc.py's jobs run: ``rpc_job.py WHAT``, three of them unless told."""

import copy
import gc
import os
import pickle
import re
import sys
import threading
import time

from flambeau.distributed.nn import RemoteModule

import flambeau as torch
import flambeau.distributed.autograd as dist_autograd
import flambeau.distributed.rpc as rpc
from flambeau import nn
from flambeau.distributed.rpc._agent import current
from flambeau.distributed.rpc.optimizer import DistributedOptimizer

# ---- what workers call of each other


def add(a, b=1):
    return a + b


def fails(message):
    raise ValueError(message)


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def fails_oddly():
    raise TwoArguments(1, 2)


RELEASED = threading.Event()


def waits():
    """Answered when everybody who asked for it has given up."""
    RELEASED.wait()


def release():
    RELEASED.set()


def slow(seconds):
    time.sleep(seconds)
    return seconds


def who():
    return rpc.get_worker_info().name


def hop(names):
    """Through all these workers."""
    return [who(), *(rpc.rpc_sync(names[0], hop, (names[1:],)) if names else [])]


def unpicklable():
    return threading.Lock()


class Counter:
    def __init__(self, value=0):
        self.value = value

    def add(self, n):
        self.value += n
        return self.value

    @rpc.functions.async_execution
    def add_elsewhere(self, to, n):
        return rpc.rpc_async(to, add, (self.value, n)).then(lambda future: self.add(future.wait() - self.value))


@rpc.functions.async_execution
def add_on(to, a, b):
    return rpc.rpc_async(to, add, (a, b)).then(lambda future: future.wait() + 1)


@rpc.functions.async_execution
def no_future():
    return 3


def value_of(rref):
    return rref.to_here() if not rref.is_owner() else rref.local_value()


KEPT = []


def keep(rref):
    KEPT.append(rref)


def drop():
    KEPT.clear()
    gc.collect()


def hand_on(rref, to):
    """To a third worker, without keeping it here."""
    rpc.rpc_sync(to, keep, (rref,))


def owned():
    return current().references.owned()


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited for 60 s"
        time.sleep(0.01)


def raised(error, text, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except error as found:
        assert re.search(text, str(found)), str(found)
        assert type(found) is error
        return
    raise AssertionError(f"no {error.__name__}")


# ---- jobs


def calls():
    assert rpc.get_worker_info() == ("w0", 0) and str(rpc.get_worker_info("w1")) == "WorkerInfo(id=1, name=w1)"
    assert rpc.rpc_sync("w1", add, (3,), {"b": 4}) == 7 and rpc.rpc_sync(2, who) == "w2"
    assert rpc.rpc_sync(rpc.get_worker_info("w1"), who) == "w1" and rpc.rpc_sync("w0", who) == "w0"
    assert hop(["w1", "w2", "w0", "w1"]) == ["w0", "w1", "w2", "w0", "w1"]
    futures = [rpc.rpc_async(f"w{k % 3}", add, (k,)) for k in range(60)]
    assert torch.futures.wait_all(futures) == [k + 1 for k in range(60)]
    assert rpc.rpc_async("w1", add, (1,)).then(lambda f: rpc.rpc_sync("w2", add, (f.wait(),))).wait() == 3
    assert rpc.rpc_sync("w1", add_on, ("w2", 1, 2)) == 4
    for dtype in (torch.float32, torch.bfloat16, torch.bool, torch.complex64):
        x = torch.arange(6).reshape(2, 3).to(dtype)
        got = rpc.rpc_sync("w1", torch.clone, (x.t(),))
        assert got.dtype is dtype and torch.equal(got, x.t())
    big = torch.arange(2_000_000.0).reshape(1000, 2000)
    assert torch.equal(rpc.rpc_sync("w1", torch.add, (big, 1)), big + 1)
    got = rpc.rpc_sync("w1", add, (torch.ones(2, requires_grad=True), 0))
    assert got.requires_grad and got.is_leaf
    empty, scalar, parameter, sparse = rpc.rpc_sync(
        "w1", tuple, ([torch.ones(0, 3), torch.tensor(2.0), nn.Parameter(torch.ones(2)), torch.eye(2).to_sparse()],)
    )
    assert empty.shape == (0, 3) and scalar.item() == 2 and type(parameter) is nn.Parameter
    assert torch.equal(sparse.to_dense(), torch.eye(2))
    layer = rpc.rpc_sync("w1", nn.Linear, (3, 2))
    assert layer(torch.ones(1, 3)).shape == (1, 2)
    x = torch.zeros(3)
    copy = rpc.rpc_sync("w0", add, (x, 0))
    copy += 1
    assert x.tolist() == [0, 0, 0]


def errors():
    raised(RuntimeError, "RPC is already initialized", rpc.init_rpc, "w0", rank=0, world_size=3)
    trace = r"On WorkerInfo\(id=1, name=w1\):\nValueError\('mine'\)\nTraceback(.|\n)*in fails\n"
    raised(ValueError, trace, rpc.rpc_sync, "w1", fails, ("mine",))
    raised(ValueError, trace, rpc.remote("w1", fails, ("mine",)).to_here)
    raised(RuntimeError, r"Failed to create original exception type.*TwoArguments", rpc.rpc_sync, "w1", fails_oddly)
    raised(RuntimeError, r"RPC ran for more than set timeout \(200 ms\)", rpc.rpc_sync, "w1", waits, timeout=0.2)
    raised(RuntimeError, "more than set timeout", rpc.remote("w1", waits).to_here, 0.1)
    rpc.rpc_sync("w1", release)
    assert rpc.rpc_sync("w1", slow, (0.1,), timeout=0) == 0.1
    raised(RuntimeError, "could not find destination name w9", rpc.rpc_sync, "w9", who)
    raised(RuntimeError, "could not find destination id 3", rpc.rpc_async, 3, who)
    raised(TypeError, "function should be callable", rpc.rpc_sync, "w1", 5)
    raised(AttributeError, "local object", rpc.rpc_sync, "w1", lambda: 5)
    raised(TypeError, "cannot pickle '_thread.lock'", rpc.rpc_sync, "w1", unpicklable)
    raised(
        RuntimeError, "must return a torch.futures.Future object, but got builtins.int", rpc.rpc_sync, "w1", no_future
    )
    raised(AttributeError, "Only", rpc.rpc_sync, "w1", add, (Only(),))
    raised(AttributeError, "Only", rpc.remote("w1", add, (Only(),)).to_here)
    raised(RuntimeError, "rref can only be pickled when using RPC", pickle.dumps, rpc.RRef(1))
    assert rpc.get_rpc_timeout() == 30


class Only:
    """A class that the other workers don't have."""


if int(os.environ.get("RANK", 0)):
    del Only


def overtaken():
    """A third worker asks for a value before the call that makes it reaches the owner."""
    channel = current()._channel_to(1)
    send = channel.send
    channel.send = lambda *message: threading.Timer(0.3, send, message).start()
    early = rpc.remote("w1", add, (6,))
    channel.send = send
    assert rpc.rpc_sync("w2", value_of, (early,)) == 7


def references():
    r = rpc.remote("w1", Counter, (5,))
    assert not r.is_owner() and r.owner() == ("w1", 1) and r.owner_name() == "w1"
    raised(RuntimeError, r"can't call localValue\(\) on user WorkerInfo\(id=0, name=w0\)", r.local_value)
    assert r.rpc_sync().add(2) == 7 and r.rpc_async().add(1).wait() == 8 and r.remote().add(1).to_here() == 9
    assert r.rpc_sync().add_elsewhere("w2", 1) == 10 and r.to_here().value == 10
    until(r.confirmed_by_owner)
    raised(AttributeError, "nothing", r.rpc_sync().nothing)
    own, here = rpc.RRef(torch.ones(2)), rpc.remote("w0", add, (1,))
    assert own.is_owner() and own.to_here() is own.local_value() and own.confirmed_by_owner()
    assert here.is_owner() and here.local_value() == 2
    for one, value in ((own, [1.0, 1.0]), (rpc.remote("w1", torch.zeros, (2,)), [0.0, 0.0])):
        for to in ("w0", "w1", "w2"):
            assert rpc.rpc_sync(to, value_of, (one,)).tolist() == value
    nested = rpc.remote("w1", rpc.remote, ("w2", add, (4,)))
    assert nested.to_here().to_here() == 5
    overtaken()
    # Values are freed with their last reference, wherever that is.
    del r, one, nested, own, here
    for to in range(3):
        until(lambda to=to: gc.collect() >= 0 and rpc.rpc_sync(to, owned) == 0)
    r = rpc.remote("w1", Counter, (1,))
    for _ in range(20):  # a user hands it to a third worker and forgets it at once
        other = rpc.remote("w1", Counter, (1,))
        rpc.rpc_sync("w2", hand_on, (other, "w0"))
        del other
    hand_on(r, "w2")
    del r
    assert len(KEPT) == 20 and [k.to_here().value for k in KEPT] == [1] * 20
    until(lambda: rpc.rpc_sync("w1", owned) == 21)
    drop()
    until(lambda: rpc.rpc_sync("w1", owned) == 1)
    rpc.rpc_sync("w2", drop)
    until(lambda: rpc.rpc_sync("w1", owned) == 0)


def gradients():
    with dist_autograd.context() as context:
        x = torch.rand(3, requires_grad=True)
        w = torch.rand(3, requires_grad=True)
        y = rpc.rpc_sync("w1", torch.mul, (x, w))  # both inputs need gradients
        z = rpc.rpc_sync("w2", torch.sin, (y * x,)) + y  # y is used twice, once elsewhere
        dist_autograd.backward(context, [z.sum(), (2 * x).sum()])
        got = dist_autograd.get_gradients(context)
        wanted = torch.autograd.grad((torch.sin(x * w * x) + x * w).sum() + (2 * x).sum(), [x, w])
        torch.testing.assert_close([got[x], got[w]], list(wanted))
        assert x.grad is None and len(got) == 2
        dist_autograd.backward(context, [z.sum(), (2 * x).sum()], retain_graph=True)
        torch.testing.assert_close(dist_autograd.get_gradients(context)[x], 2 * wanted[0])
        raised(RuntimeError, "requires_grad not set on root", dist_autograd.backward, context, [torch.ones(1)])
        raised(RuntimeError, "scalar", dist_autograd.backward, context, [z])
        raised(RuntimeError, "Already have an autograd context", dist_autograd.context().__enter__)
    raised(RuntimeError, "Could not find autograd context", dist_autograd.backward, context, [z.sum()])
    until(lambda: all(rpc.rpc_sync(k, contexts) == 0 for k in range(3)))
    trained()


def contexts():
    return len(current().contexts._known)


def parameters_of(module):
    return [rpc.RRef(p) for p in module.local_value().parameters()]


def layer(seed, rows, columns):
    torch.manual_seed(seed)
    return nn.Linear(rows, columns)


def trained():
    """Two layers on two workers learn as they do in one process."""
    x, target = torch.rand(4, 3), torch.rand(4, 2)
    whole = nn.Sequential(layer(0, 3, 5), nn.Tanh(), layer(1, 5, 2))
    reference = torch.optim.AdamW(whole.parameters(), lr=0.1)
    first, last = rpc.remote("w1", layer, (0, 3, 5)), rpc.remote("w2", layer, (1, 5, 2))
    owned = [p for r in (first, last) for p in rpc.rpc_sync(r.owner(), parameters_of, (r,))]
    optimizer = DistributedOptimizer(torch.optim.AdamW, owned, lr=0.1)
    for _ in range(3):
        reference.zero_grad()
        wanted = nn.functional.mse_loss(whole(x), target)
        wanted.backward()
        reference.step()
        with dist_autograd.context() as context:
            out = last.rpc_sync().forward(torch.tanh(first.rpc_sync().forward(x)))
            loss = nn.functional.mse_loss(out, target)
            dist_autograd.backward(context, [loss])
            optimizer.step(context)
        torch.testing.assert_close(loss, wanted)
    torch.testing.assert_close([p.to_here() for p in owned], list(whole.parameters()))
    raised(TypeError, "On WorkerInfo(.|\n)*unexpected keyword", DistributedOptimizer, torch.optim.SGD, owned, rate=1)


class Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(float(factor)))
        self.inner = nn.Linear(2, 2)

    def forward(self, x, *, shift=0):
        if x is None:
            raise OverflowError("nothing")
        return x * self.factor + shift, self.training, rpc.get_worker_info().name


def used(module, x):
    """A remote module as an argument."""
    return (*module(x), rpc.get_worker_info().name, module.on, module.module_rref.is_owner())


def remote_modules():
    x = torch.arange(3.0)
    for where in ("w1", "w1/cpu", "rank:1", "rank:1/cpu"):
        module = RemoteModule(where, Scaled, (2,))
        out, training, worker = module(x, shift=1)
        assert torch.equal(out, 2 * x + 1) and training and worker == "w1", where
    assert repr(module) == "RemoteModule(on=1, device='cpu')"
    assert RemoteModule("cpu", Scaled, kwargs={"factor": 3})(x)[2] == "w0"
    assert module.forward_async(x).wait()[2] == "w1"
    assert module.eval() is module and module(x)[1] is False and module.train()(x)[1] is True
    again = RemoteModule.init_from_module_rref("w1", module.get_module_rref())
    assert torch.equal(again(x)[0], 2 * x)
    for to in ("w1", "w2"):
        out, _, worker, user, on, owner = rpc.rpc_sync(to, used, (module, x))
        assert torch.equal(out, 2 * x) and (worker, user, on, owner) == ("w1", to, "w1", to == "w1")
    with_own = nn.ModuleDict({"here": nn.Linear(1, 1), "there": module})
    assert torch.equal(with_own["there"](x)[0], 2 * x)
    assert [len(module.remote_parameters(r)) for r in (True, False)] == [3, 1]

    optimizer = DistributedOptimizer(torch.optim.SGD, module.remote_parameters(False), lr=0.5)
    y = torch.ones(3, requires_grad=True)
    with dist_autograd.context() as context:
        loss = module(y)[0].sum()
        dist_autograd.backward(context, [loss])
        assert dist_autograd.get_gradients(context)[y].tolist() == [2, 2, 2]
        optimizer.step(context)
    assert module(torch.ones(1))[0].item() == 0.5

    trace = r"On WorkerInfo\(id=1, name=w1\)(.|\n)*in forward\n"
    raised(OverflowError, trace, module, None)
    raised(ValueError, "returns an instance of <class nn.Module>, but it returns", RemoteModule("w1", Counter, (1,)), x)
    raised(RuntimeError, "could not find destination name w9", RemoteModule, "w9", Scaled, (2,))
    raised(RuntimeError, "could not find destination id 7", RemoteModule, "rank:7", Scaled, (2,))
    raised(ValueError, "Could not parse remote_device: a:b/cpu", RemoteModule, "a:b/cpu", Scaled, (2,))
    raised(NotImplementedError, "RemoteModule on meta isn't built", RemoteModule, "w1/meta", Scaled, (2,))
    raised(NotImplementedError, "TorchScript", RemoteModule.init_from_module_rref, "w1", module.module_rref, int)
    raised(ValueError, "``parameters`` not supported for RemoteModule. Please use ``remote_param", module.parameters)
    raised(ValueError, "Method ``to`` not supported for RemoteModule$", module.to, "cpu")
    raised(RuntimeError, "Cannot pickle RemoteModule in python pickler", pickle.dumps, module)
    raised(RuntimeError, "Cannot pickle RemoteModule in python pickler", copy.deepcopy, module)


def everything():
    calls()
    errors()
    references()
    gradients()
    remote_modules()


def chain(n):
    """Calls that go on when everybody has called shutdown."""
    if n:
        time.sleep(0.02)
        CHAIN.append(rpc.rpc_async(f"w{n % 2}", chain, (n - 1,)))


CHAIN = []


def goes_on():
    rpc.rpc_async("w1", chain, (10,))


def killed():
    """A worker that ends without shutdown."""
    future = rpc.rpc_async("w1", os._exit, (0,), timeout=0)
    raised(RuntimeError, r"WorkerInfo\(id=1, name=w1\) can't be reached", future.wait)
    raised(RuntimeError, "can't be reached", rpc.rpc_sync, "w1", who)
    raised(RuntimeError, "has left without it", rpc.shutdown)
    print("left alone", flush=True)
    os._exit(0)


if __name__ == "__main__":
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=30)
    again = sys.argv[1] == "goes_on"
    for _ in range(2 if again else 1):
        rpc.init_rpc(f"w{rank}", rank=rank, world_size=size, rpc_backend_options=options)
        if rank == 0:
            globals()[sys.argv[1]]()
            print("done", flush=True)
        rpc.shutdown()
    if again:
        assert len(CHAIN) == (10 if rank < 2 else 0), len(CHAIN)
        raised(RuntimeError, "RPC has not been initialized", rpc.rpc_sync, "w0", who)
        print("chains ended", flush=True)
