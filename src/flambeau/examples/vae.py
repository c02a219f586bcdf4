"""A variational autoencoder: two numbers describe pictures of crosses, of which it then draws new ones."""

import flambeau as torch
from flambeau import nn

SIZE = 12


def crosses(count: int) -> torch.Tensor:
    """Pictures with a horizontal and a vertical line at random places, (count, SIZE * SIZE)."""
    places = torch.rand(count, 2, 1, 1) * (SIZE - 1)
    grid = torch.arange(float(SIZE))
    rows = torch.exp(-((grid[:, None] - places[:, 0]) ** 2)).expand(count, SIZE, SIZE)
    columns = torch.exp(-((grid[None, :] - places[:, 1]) ** 2)).expand(count, SIZE, SIZE)
    return torch.maximum(rows, columns).reshape(count, -1)


class VAE(nn.Module):
    """Pictures to the mean and logarithm of the variance of two numbers, and back."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIZE * SIZE, 128), nn.GELU(), nn.Linear(128, 4))
        self.decoder = nn.Sequential(
            nn.Linear(2, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, SIZE * SIZE)
        )

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        z = mean + torch.randn_like(mean) * torch.exp(log_variance / 2)
        logits = self.decoder(z)
        error = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(-1)
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(-1)
        return (error + divergence).mean()


def show(picture: torch.Tensor) -> str:
    """A picture in characters."""
    marks = " .:*#"
    return "\n".join(
        "".join(marks[min(int(v * 5), 4)] * 2 for v in row) for row in picture.reshape(SIZE, SIZE).tolist()
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    model = VAE()
    loss_of = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(601):
        loss = loss_of(crosses(128))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(f"step {step:3d}  loss {loss.item():.1f}")
    with torch.no_grad():
        print(show(model.decoder(torch.tensor([[0.5, -0.5]])).sigmoid()[0]))
