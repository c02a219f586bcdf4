"""Transfer learning: a checkpoint on disk, its last layer replaced, fine-tuned; then with the features frozen."""

import copy
import os
import tempfile

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler

cudnn.benchmark = True


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class Backbone(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.features = nn.Sequential(conv_block(3, 8), nn.MaxPool2d(2), conv_block(8, 16), nn.AdaptiveAvgPool2d(1))
        self.fc = nn.Linear(16, num_classes)

    def forward(self, x):
        return self.fc(torch.flatten(self.features(x), 1))


def images(n, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 2, (n,), generator=generator)
    x = torch.randn(n, 3, 16, 16, generator=generator)
    x[:, 0] += 1.5 * labels.view(-1, 1, 1)
    return torch.utils.data.TensorDataset(x, labels)


device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
image_datasets = {"train": images(48, 1), "val": images(24, 2)}
dataloaders = {x: torch.utils.data.DataLoader(image_datasets[x], batch_size=8, shuffle=True) for x in ("train", "val")}
dataset_sizes = {x: len(image_datasets[x]) for x in ("train", "val")}


def train_model(model, criterion, optimizer, scheduler, num_epochs=2):
    with tempfile.TemporaryDirectory() as folder:
        best = os.path.join(folder, "best_model_params.pt")
        torch.save(model.state_dict(), best)
        best_acc = 0.0
        for epoch in range(num_epochs):
            for phase in ["train", "val"]:
                model.train() if phase == "train" else model.eval()
                running_loss, running_corrects = 0.0, 0
                for inputs, labels in dataloaders[phase]:
                    inputs, labels = inputs.to(device), labels.to(device)
                    optimizer.zero_grad()
                    with torch.set_grad_enabled(phase == "train"):
                        outputs = model(inputs)
                        _, preds = torch.max(outputs, 1)
                        loss = criterion(outputs, labels)
                        if phase == "train":
                            loss.backward()
                            optimizer.step()
                    running_loss += loss.item() * inputs.size(0)
                    running_corrects += torch.sum(preds == labels.data)
                if phase == "train":
                    scheduler.step()
                epoch_acc = running_corrects.double() / dataset_sizes[phase]
                print(f"{epoch} {phase} Loss: {running_loss / dataset_sizes[phase]:.4f} Acc: {epoch_acc:.4f}")
                if phase == "val" and epoch_acc > best_acc:
                    best_acc = epoch_acc
                    torch.save(model.state_dict(), best)
        print(f"Best val Acc: {best_acc:4f}")
        model.load_state_dict(torch.load(best, weights_only=True))
    return model


with tempfile.TemporaryDirectory() as folder:
    checkpoint = os.path.join(folder, "backbone.pth")
    torch.save({"state_dict": Backbone().state_dict(), "epoch": 3}, checkpoint)
    pretrained = Backbone()
    pretrained.load_state_dict(torch.load(checkpoint, map_location="cpu")["state_dict"])

model_ft = copy.deepcopy(pretrained)
model_ft.fc = nn.Linear(model_ft.fc.in_features, 2)
model_ft = model_ft.to(device)
criterion = nn.CrossEntropyLoss()
optimizer_ft = optim.SGD(model_ft.parameters(), lr=0.05, momentum=0.9)
train_model(model_ft, criterion, optimizer_ft, lr_scheduler.StepLR(optimizer_ft, step_size=1, gamma=0.1))

model_conv = copy.deepcopy(pretrained)
for param in model_conv.parameters():
    param.requires_grad = False
model_conv.fc = nn.Linear(model_conv.fc.in_features, 2)
optimizer_conv = optim.SGD(model_conv.fc.parameters(), lr=0.05, momentum=0.9)
train_model(model_conv, criterion, optimizer_conv, lr_scheduler.StepLR(optimizer_conv, step_size=1, gamma=0.1))
print(sum(p.grad is not None for p in model_conv.parameters()), "parameters were trained")
