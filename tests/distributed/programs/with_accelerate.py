"""Hugging Face's accelerate: gradients accumulated, clipped, metrics gathered, the state saved and loaded. ``FOLDER``."""

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, set_seed
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
set_seed(0)
x = torch.randn(64, 8)
y = (x.sum(1) > 0).long()
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
train, test = (DataLoader(TensorDataset(x, y), batch_size=8, shuffle=shuffle) for shuffle in (True, False))
model, optimizer, train, test = accelerator.prepare(model, optimizer, train, test)
for _ in range(6):
    for a, b in train:
        with accelerator.accumulate(model):
            accelerator.backward(torch.nn.functional.cross_entropy(model(a), b))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
right = total = 0
for a, b in test:
    with torch.no_grad():
        found, b = accelerator.gather_for_metrics((model(a).argmax(-1), b))
    right, total = right + (found == b).sum().item(), total + len(b)
assert total == 64 and right > 50, (right, total)
assert type(model).__name__ == "DistributedDataParallel" and accelerator.num_processes == 2
assert gather_object([accelerator.process_index]) == [0, 1]
accelerator.save_state(sys.argv[1])
accelerator.wait_for_everyone()
accelerator.load_state(sys.argv[1])
accelerator.print("done")
accelerator.end_training()
