"""Translation with a recurrent encoder, a decoder with attention, and teacher forcing."""

import random
import re
import unicodedata

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SOS_token, EOS_token, MAX_LENGTH = 0, 1, 6
PAIRS = """je suis froid\ti am cold
je suis grand\ti am tall
tu es grand\tyou are tall
tu es petit\tyou are small
il est la\the is here
elle est la\tshe is here
nous sommes prets\twe are ready
vous etes en retard\tyou are late"""


class Lang:
    def __init__(self, name):
        self.name, self.word2index, self.index2word, self.n_words = name, {}, {0: "SOS", 1: "EOS"}, 2

    def addSentence(self, sentence):
        for word in sentence.split(" "):
            if word not in self.word2index:
                self.word2index[word] = self.n_words
                self.index2word[self.n_words] = word
                self.n_words += 1


def normalizeString(s):
    s = "".join(c for c in unicodedata.normalize("NFD", s.lower().strip()) if unicodedata.category(c) != "Mn")
    return re.sub(r"[^a-zA-Z!?]+", r" ", s).strip()


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)))


class Attention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        weights = F.softmax(scores.squeeze(2).unsqueeze(1), dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = Attention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, encoder_outputs, encoder_hidden, target_tensor=None):
        batch_size = encoder_outputs.size(0)
        decoder_input = torch.empty(batch_size, 1, dtype=torch.long, device=device).fill_(SOS_token)
        decoder_hidden, outputs, attentions = encoder_hidden, [], []
        for i in range(MAX_LENGTH):
            output, decoder_hidden, weights = self.forward_step(decoder_input, decoder_hidden, encoder_outputs)
            outputs.append(output)
            attentions.append(weights)
            if target_tensor is not None:
                decoder_input = target_tensor[:, i].unsqueeze(1)
            else:
                _, topi = output.topk(1)
                decoder_input = topi.squeeze(-1).detach()
        outputs = F.log_softmax(torch.cat(outputs, dim=1), dim=-1)
        return outputs, decoder_hidden, torch.cat(attentions, dim=1)

    def forward_step(self, input, hidden, encoder_outputs):
        embedded = self.dropout(self.embedding(input))
        context, weights = self.attention(hidden.permute(1, 0, 2), encoder_outputs)
        output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden)
        return self.out(output), hidden, weights


def ids(lang, sentence):
    found = [lang.word2index[word] for word in sentence.split(" ")] + [EOS_token]
    return found + [0] * (MAX_LENGTH - len(found))


def main():
    random.seed(0)
    torch.manual_seed(0)
    pairs = [[normalizeString(s) for s in line.split("\t")] for line in PAIRS.split("\n")]
    source, target = Lang("fra"), Lang("eng")
    for a, b in pairs:
        source.addSentence(a)
        target.addSentence(b)
    data = TensorDataset(
        torch.LongTensor([ids(source, a) for a, _ in pairs]).to(device),
        torch.LongTensor([ids(target, b) for _, b in pairs]).to(device),
    )
    loader = DataLoader(data, sampler=RandomSampler(data), batch_size=4)
    encoder = EncoderRNN(source.n_words, 16).to(device)
    decoder = AttnDecoderRNN(16, target.n_words).to(device)
    optimizers = [optim.Adam(m.parameters(), lr=0.02) for m in (encoder, decoder)]
    criterion = nn.NLLLoss()
    for epoch in range(1, 9):
        total = 0
        for x, y in loader:
            for optimizer in optimizers:
                optimizer.zero_grad()
            outputs, _, _ = decoder(*encoder(x), y)
            loss = criterion(outputs.view(-1, outputs.size(-1)), y.view(-1))
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            total += loss.item()
        if epoch % 2 == 0:
            print(f"{epoch} ({epoch / 8 * 100:.0f}%) {total / len(loader):.4f}")
    encoder.eval()
    decoder.eval()
    with torch.no_grad():
        outputs, _, attentions = decoder(*encoder(data[:2][0]))
    _, topi = outputs.topk(1)
    for row in topi.squeeze(-1):
        words = []
        for idx in row:
            if idx.item() == EOS_token:
                break
            words.append(target.index2word[idx.item()])
        print(">", " ".join(words))
    print("attention", tuple(attentions.shape), f"{attentions.sum().item():.4f}")


if __name__ == "__main__":
    main()
