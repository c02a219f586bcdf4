"""Graph convolution and graph attention on a small graph of two communities, adjacency sparse and dense."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="gcn", choices=["gcn", "gat"])
parser.add_argument("--epochs", type=int, default=8)
args = parser.parse_args()
torch.manual_seed(42)


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        self.bias = Parameter(torch.FloatTensor(out_features))
        stdv = 1.0 / self.weight.size(1) ** 0.5
        self.weight.data.uniform_(-stdv, stdv)
        self.bias.data.uniform_(-stdv, stdv)

    def forward(self, x, adj):
        return torch.spmm(adj, torch.mm(x, self.weight)) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass):
        super().__init__()
        self.gc1, self.gc2 = GraphConvolution(nfeat, nhid), GraphConvolution(nhid, nclass)

    def forward(self, x, adj):
        x = F.dropout(F.relu(self.gc1(x, adj)), 0.3, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


class GraphAttention(nn.Module):
    def __init__(self, in_features, n_hidden, n_heads, concat=True):
        super().__init__()
        self.n_heads, self.n_hidden, self.concat = n_heads, n_hidden, concat
        self.linear = nn.Linear(in_features, n_hidden * n_heads, bias=False)
        self.attn = nn.Linear(n_hidden * 2, 1, bias=False)

    def forward(self, h, adj):
        n = h.shape[0]
        g = self.linear(h).view(n, self.n_heads, self.n_hidden)
        pairs = torch.cat([g.repeat_interleave(n, dim=0), g.repeat(n, 1, 1)], dim=-1).view(n, n, self.n_heads, -1)
        e = F.leaky_relu(self.attn(pairs), 0.2).squeeze(-1)
        a = F.softmax(e.masked_fill(adj.unsqueeze(-1) == 0, float("-inf")), dim=1)
        out = torch.einsum("ijh,jhf->ihf", a, g)
        return out.reshape(n, -1) if self.concat else out.mean(dim=1)


class GAT(nn.Module):
    def __init__(self, nfeat, nhid, nclass):
        super().__init__()
        self.layer1, self.output = GraphAttention(nfeat, nhid, 2), GraphAttention(2 * nhid, nclass, 1, concat=False)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x, adj):
        return F.log_softmax(self.output(self.dropout(F.elu(self.layer1(x, adj))), adj), dim=1)


n = 24
labels = torch.arange(n) % 2
same = labels[:, None] == labels[None, :]
adj = ((torch.rand(n, n) < torch.where(same, 0.4, 0.05)) | torch.eye(n, dtype=torch.bool)).float()
adj = ((adj + adj.t()) > 0).float()
features = torch.randn(n, 8) + labels[:, None]
idx_train, idx_val = torch.arange(0, 12), torch.arange(12, n)
if args.model == "gcn":
    degree = adj.sum(1).rsqrt().diag()
    adj = (degree @ adj @ degree).to_sparse()
model = (GCN if args.model == "gcn" else GAT)(8, 8, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
for epoch in range(1, args.epochs + 1):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss = F.nll_loss(output[idx_train], labels[idx_train])
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        output = model(features, adj)
    val = F.nll_loss(output[idx_val], labels[idx_val])
    acc = (output.argmax(1)[idx_val] == labels[idx_val]).double().mean()
    print(f"Epoch: {epoch:04d} loss_train: {loss.item():.4f} loss_val: {val.item():.4f} acc_val: {acc.item():.2f}")
