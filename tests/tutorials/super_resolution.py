"""Super-resolution by sub-pixel convolution."""

from math import log10

import torch
import torch.nn as nn
import torch.nn.init as init
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(16, 16, (3, 3), (1, 1), (1, 1))
        self.conv3 = nn.Conv2d(16, 8, (3, 3), (1, 1), (1, 1))
        self.conv4 = nn.Conv2d(8, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv4.weight)

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        x = self.relu(self.conv3(x))
        return self.pixel_shuffle(self.conv4(x))


class Patches(Dataset):
    def __init__(self, n, seed):
        generator = torch.Generator().manual_seed(seed)
        small = torch.rand(n, 1, 4, 4, generator=generator)
        self.target = nn.functional.interpolate(small, size=(16, 16), mode="bicubic", align_corners=False).clamp(0, 1)
        self.input = nn.functional.interpolate(self.target, scale_factor=0.5, mode="bilinear", antialias=False)

    def __getitem__(self, index):
        return self.input[index], self.target[index]

    def __len__(self):
        return len(self.input)


torch.manual_seed(123)
model, criterion = Net(upscale_factor=2), nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.01)
training = DataLoader(Patches(24, 0), batch_size=8, shuffle=True)
testing = DataLoader(Patches(8, 1), batch_size=4)
for epoch in range(1, 4):
    epoch_loss = 0
    for batch in training:
        optimizer.zero_grad()
        loss = criterion(model(batch[0]), batch[1])
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
    avg_psnr = 0
    with torch.no_grad():
        for input, target in testing:
            avg_psnr += 10 * log10(1 / criterion(model(input), target).item())
    print(f"Epoch {epoch}: Avg. Loss: {epoch_loss / len(training):.5f} Avg. PSNR: {avg_psnr / len(testing):.4f} dB")
