"""An LSTM that tags words as nouns, verbs, articles and adjectives, in sentences that a small grammar makes."""

import random

import flambeau as torch
from flambeau import nn

WORDS = {
    "article": "the a this every".split(),
    "adjective": "small old green quick fair".split(),
    "noun": "dog cat house book run walk play".split(),
    "verb": "sees likes finds run walk play".split(),
}
TAGS = list(WORDS)
VOCABULARY = {word: i for i, word in enumerate(sorted({w for words in WORDS.values() for w in words}))}
PATTERN = ["article", "adjective", "noun", "verb", "article", "noun"]  # "run" is a noun or a verb: its place tells


def sentences(count: int, draw: random.Random) -> tuple[list[list[str]], torch.Tensor, torch.Tensor]:
    """(words, their numbers, their tags) of sentences of equal length."""
    words = [[draw.choice(WORDS[tag]) for tag in PATTERN] for _ in range(count)]
    numbers = torch.tensor([[VOCABULARY[w] for w in sentence] for sentence in words])
    tags = torch.tensor([TAGS.index(tag) for tag in PATTERN]).expand(count, -1)
    return words, numbers, tags


class Tagger(nn.Module):
    """Words (batch, length) to scores of tags (batch, length, tags)."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.scores = nn.Linear(2 * width, len(TAGS))

    def forward(self, words):
        hidden, _ = self.lstm(self.embedding(words))
        return self.scores(hidden)


if __name__ == "__main__":
    torch.manual_seed(0)
    draw = random.Random(0)
    model = Tagger()
    scores_of = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(61):
        _, words, tags = sentences(32, draw)
        loss = nn.functional.cross_entropy(scores_of(words).flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d}  loss {loss.item():.3f}")
    texts, words, tags = sentences(200, draw)
    found = model(words).argmax(-1)
    for word, tag in zip(texts[0], found[0].tolist(), strict=True):
        print(f"  {word:8s}{TAGS[tag]}")
    print(f"{(found == tags).float().mean().item():.1%} of the words are tagged right")
