"""Digits: a small convolutional network, trained on pictures of digits that are drawn here, shifted and noisy."""

import flambeau as torch
from flambeau import nn

# Five rows of three pixels a digit.
SHAPES = """
###  #  ### ### # # ### ### ### ### ###
# # ##    #   # # # #   #     # # # # #
# #  #  ### ### ### ### ###   # ### ###
# #  #  #     #   #   # # #   # # #   #
### ### ### ###   # ### ###   # ### ###
""".strip().splitlines()


def pictures() -> torch.Tensor:
    """The ten digits, (10, 1, 12, 12)."""
    digits = torch.zeros(10, 1, 12, 12)
    for row, line in enumerate(SHAPES):
        for column, mark in enumerate(line):
            if mark == "#":
                digits[column // 4, 0, 3 + row, 4 + column % 4] = 1.0
    return digits


def batch(digits: torch.Tensor, size: int, noise: float = 0.15) -> tuple[torch.Tensor, torch.Tensor]:
    """Random digits, each shifted by up to three pixels, with noise."""
    labels = torch.randint(0, 10, (size,))
    shifts = torch.randint(-3, 4, (size, 2)).tolist()
    moved = [digits[k].roll(tuple(shift), (1, 2)) for k, shift in zip(labels.tolist(), shifts, strict=True)]
    return torch.stack(moved) + noise * torch.randn(size, 1, 12, 12), labels


if __name__ == "__main__":
    torch.manual_seed(0)
    digits = pictures()
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(288, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    compiled = torch.compile(model)
    for step in range(401):
        images, labels = batch(digits, 64)
        loss = nn.functional.cross_entropy(compiled(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:3d}  loss {loss.item():.3f}")
    with torch.no_grad():
        images, labels = batch(digits, 500)
        right = (model(images).argmax(1) == labels).float().mean().item()
    print(f"{right:.1%} of 500 new pictures are told right")
