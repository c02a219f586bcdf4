"""Names classified letter by letter, with a recurrent network written by hand; then names generated."""

import random
import string

import torch
import torch.nn as nn

letters = string.ascii_letters + " .,;'-"
n_letters = len(letters)
names = {"x": ["ada", "ana", "eva", "mia", "lea"], "y": ["otto", "hugo", "bruno", "arlo", "theo"]}
categories = list(names)
random.seed(3)
torch.manual_seed(3)


def line_to_tensor(line):
    tensor = torch.zeros(len(line), 1, n_letters)
    for i, letter in enumerate(line):
        tensor[i][0][letters.find(letter)] = 1
    return tensor


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size, hidden_size)
        self.h2h = nn.Linear(hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        hidden = torch.tanh(self.i2h(input) + self.h2h(hidden))
        return self.softmax(self.h2o(hidden)), hidden

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


rnn = RNN(n_letters, 16, len(categories))
criterion = nn.NLLLoss()
learning_rate, total = 0.05, 0.0
for step in range(1, 61):
    category = random.choice(categories)
    line = random.choice(names[category])
    target = torch.tensor([categories.index(category)], dtype=torch.long)
    hidden = rnn.initHidden()
    rnn.zero_grad()
    for letter in line_to_tensor(line):
        output, hidden = rnn(letter, hidden)
    loss = criterion(output, target)
    loss.backward()
    for p in rnn.parameters():
        p.data.add_(p.grad.data, alpha=-learning_rate)
    total += loss.item()
    if step % 20 == 0:
        print(f"{step} {total / 20:.5f}")
        total = 0.0
with torch.no_grad():
    for name in ("lola", "enzo"):
        hidden = rnn.initHidden()
        for letter in line_to_tensor(name):
            output, hidden = rnn(letter, hidden)
        topv, topi = output.topk(2, 1, True)
        print(name, [(f"{topv[0][i].item():.3f}", categories[topi[0][i].item()]) for i in range(2)])
