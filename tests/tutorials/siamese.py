"""A siamese network: one body, two images, are they of one class?"""

import random

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.fc = nn.Sequential(nn.Linear(2 * 8 * 25, 16), nn.ReLU(inplace=True), nn.Linear(16, 1))
        self.sigmoid = nn.Sigmoid()
        self.body.apply(self.init_weights)
        self.fc.apply(self.init_weights)

    def init_weights(self, m):
        if isinstance(m, nn.Linear):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward(self, input1, input2):
        output = torch.cat((self.body(input1), self.body(input2)), 1)
        return self.sigmoid(self.fc(output))


class Matcher(Dataset):
    def __init__(self, n):
        self.targets = torch.randint(0, 3, (n,))
        self.data = torch.rand(n, 1, 16, 16) * 0.2
        for i, t in enumerate(self.targets):
            self.data[i, 0, :, 5 * t : 5 * t + 3] += 1
        self.grouped = {i: torch.where(self.targets == i)[0] for i in range(3)}

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        chosen = random.randint(0, 2)
        one = self.grouped[chosen][random.randint(0, len(self.grouped[chosen]) - 1)].item()
        other_class = chosen if index % 2 == 0 else (chosen + 1) % 3
        two = self.grouped[other_class][random.randint(0, len(self.grouped[other_class]) - 1)].item()
        target = torch.tensor(float(index % 2 == 0), dtype=torch.float)
        return self.data[one].clone().float(), self.data[two].clone().float(), target


random.seed(5)
torch.manual_seed(5)
train = DataLoader(Matcher(48), batch_size=12, shuffle=True)
model, criterion = SiameseNetwork(), nn.BCELoss()
optimizer = optim.Adadelta(model.parameters(), lr=1.0)
for epoch in range(1, 4):
    model.train()
    for images_1, images_2, targets in train:
        optimizer.zero_grad()
        outputs = model(images_1, images_2).squeeze()
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        correct = torch.where(model(images_1, images_2).squeeze() > 0.5, 1, 0).eq(targets).sum().item()
    print(f"Epoch {epoch} Loss: {loss.item():.5f} right: {correct}/{len(targets)}")
