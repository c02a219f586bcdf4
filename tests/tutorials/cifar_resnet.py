"""A residual network on small images: augmentation by hand, cosine schedule, checkpoint of the best accuracy and resuming from it."""

import argparse
import os
import tempfile

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != self.expansion * planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, self.expansion * planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(self.expansion * planes),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self, num_classes=4):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, kernel_size=3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.layer1, self.layer2 = BasicBlock(8, 8), BasicBlock(8, 16, stride=2)
        self.linear = nn.Linear(16, num_classes)

    def forward(self, x):
        out = self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x)))))
        out = F.avg_pool2d(out, 8)
        return self.linear(out.view(out.size(0), -1))


class Stripes(Dataset):
    def __init__(self, n, train):
        g = torch.Generator().manual_seed(int(train))
        self.targets = torch.arange(n) % 4
        waves = torch.sin(torch.arange(16.0)[None, :] * (self.targets[:, None] + 1) * 0.7)
        self.data = waves[:, None, None, :].expand(n, 3, 16, 16) + 0.3 * torch.randn(n, 3, 16, 16, generator=g)
        self.train = train

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        x = self.data[i]
        if self.train and i % 3 == 0:
            x = F.pad(x, (2, 2, 2, 2))[:, 2:18, 1:17]
        return x, int(self.targets[i])


parser = argparse.ArgumentParser()
parser.add_argument("--lr", default=0.05, type=float)
args = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(3)
trainloader = DataLoader(Stripes(48, True), batch_size=16, shuffle=True, num_workers=0)
testloader = DataLoader(Stripes(16, False), batch_size=8)
net = ResNet().to(device)
if device == "cuda":
    net = torch.nn.DataParallel(net)
    cudnn.benchmark = True
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
best_acc, folder = -1.0, tempfile.mkdtemp()
for epoch in range(3):
    net.train()
    total_loss = 0
    for inputs, targets in trainloader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        loss = criterion(net(inputs), targets)
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    net.eval()
    correct = total = 0
    with torch.no_grad():
        for inputs, targets in testloader:
            _, predicted = net(inputs).max(1)
            total += targets.size(0)
            correct += predicted.eq(targets).sum().item()
    acc = 100.0 * correct / total
    if acc > best_acc:
        torch.save({"net": net.state_dict(), "acc": acc, "epoch": epoch}, os.path.join(folder, "ckpt.pth"))
        best_acc = acc
    scheduler.step()
    print(f"Epoch {epoch}: loss {total_loss / len(trainloader):.4f} lr {scheduler.get_last_lr()[0]:.5f}")
checkpoint = torch.load(os.path.join(folder, "ckpt.pth"))
net.load_state_dict(checkpoint["net"])
print(f"resumed: {sorted(checkpoint)} {len(checkpoint['net'])}")
