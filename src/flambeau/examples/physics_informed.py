"""A physics-informed network: u'' = -u with u(0) = 0 and u'(0) = 1, whose solution is the sine, learnt from the equation alone.

The second derivative of the network by its input is a ``torch.func.grad`` of a ``grad``; the loss is differentiated a third time.
"""

import math

import flambeau as torch
from flambeau import nn
from flambeau.func import functional_call, grad, vmap

if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    points = torch.linspace(0, math.pi, 40)

    def network(parameters, x):
        return functional_call(model, parameters, x.reshape(1, 1)).squeeze()

    def u(parameters, x):
        """Fulfils both conditions at 0, whatever the network says."""
        return x + x**2 * network(parameters, x)

    def loss_of(parameters):
        second = vmap(grad(grad(u, argnums=1), argnums=1), in_dims=(None, 0))(parameters, points)
        value = vmap(u, in_dims=(None, 0))(parameters, points)
        return ((second + value) ** 2).mean()

    step_of = torch.compile(loss_of)
    parameters = dict(model.named_parameters())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1501):
        loss = step_of(parameters)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            print(f"step {step:4d}  residual {loss.item():.2e}")
    with torch.no_grad():
        error = (vmap(u, in_dims=(None, 0))(parameters, points) - points.sin()).abs().max().item()
    print(f"greatest distance from the sine {error:.4f}")
