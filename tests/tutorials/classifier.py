"""An image classifier on files in a folder: a Dataset of one's own, transforms, worker processes, accuracy by class."""

import os
import pickle
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

CLASSES = ("plane", "car", "bird", "cat")


def write_files(root, n):
    """Batches as the well-known data set has them: pickled dictionaries of uint8 rows."""
    rng = np.random.RandomState(0)
    for name, count in (("data_batch_1", n), ("data_batch_2", n), ("test_batch", n)):
        labels = rng.randint(0, len(CLASSES), count)
        images = rng.randint(0, 90, (count, 3, 32, 32)).astype(np.uint8)
        for image, label in zip(images, labels):
            image[label % 3, 8 * (label // 2) : 8 * (label // 2) + 16] += 140
        with open(os.path.join(root, name), "wb") as f:
            pickle.dump({"data": images.reshape(count, -1), "labels": labels.tolist()}, f)


class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, x):
        for step in self.steps:
            x = step(x)
        return x


def to_tensor(image):
    return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))).float().div(255)


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = torch.tensor(mean).view(-1, 1, 1), torch.tensor(std).view(-1, 1, 1)

    def __call__(self, x):
        return x.sub_(self.mean).div_(self.std)


class Images(Dataset):
    def __init__(self, root, train, transform=None):
        data, self.targets = [], []
        for name in ("data_batch_1", "data_batch_2") if train else ("test_batch",):
            with open(os.path.join(root, name), "rb") as f:
                entry = pickle.load(f, encoding="latin1")
            data.append(entry["data"])
            self.targets.extend(entry["labels"])
        self.data = np.vstack(data).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self.transform = transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image, target = self.data[index], self.targets[index]
        return self.transform(image) if self.transform else image, target


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, len(CLASSES))

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return self.fc3(F.relu(self.fc2(x)))


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as root:
        write_files(root, 48)
        transform = Compose([to_tensor, Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))])
        trainset, testset = Images(root, True, transform), Images(root, False, transform)
        trainloader = DataLoader(trainset, batch_size=8, shuffle=True, num_workers=2)
        testloader = DataLoader(testset, batch_size=8, shuffle=False, num_workers=2)
        net = Net()
        criterion = nn.CrossEntropyLoss()
        optimizer = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
        for epoch in range(2):
            running_loss = 0.0
            for i, (inputs, labels) in enumerate(trainloader, 0):
                optimizer.zero_grad()
                loss = criterion(net(inputs), labels)
                loss.backward()
                optimizer.step()
                running_loss += loss.item()
                if i % 4 == 3:
                    print(f"[{epoch + 1}, {i + 1:5d}] loss: {running_loss / 4:.4f}")
                    running_loss = 0.0
        print("Finished Training")
        path = os.path.join(root, "net.pth")
        torch.save(net.state_dict(), path)
        net = Net()
        net.load_state_dict(torch.load(path, weights_only=True))
        correct = dict.fromkeys(CLASSES, 0)
        total = dict.fromkeys(CLASSES, 0)
        with torch.no_grad():
            for images, labels in testloader:
                _, predictions = torch.max(net(images), 1)
                for label, prediction in zip(labels, predictions):
                    correct[CLASSES[label]] += int(label == prediction)
                    total[CLASSES[label]] += 1
        for name, count in correct.items():
            print(f"Accuracy for class: {name:5s} is {100 * float(count) / total[name]:.1f} %")


if __name__ == "__main__":
    main()
