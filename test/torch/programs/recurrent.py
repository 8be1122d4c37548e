"""cuDNN's recurrent layers, whose weights lie in one buffer; sequences of several lengths, projections, two directions."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 64)
        self.both_ways = nn.LSTM(64, 96, num_layers=2, bidirectional=True, dropout=0.1, batch_first=True)
        self.projected = nn.LSTM(192, 96, proj_size=32, batch_first=True)
        self.gated = nn.GRU(32, 48, batch_first=True)
        self.plain = nn.RNN(48, 16, batch_first=True)

    def forward(self, tokens, lengths):
        x = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        x, unpacked = pad_packed_sequence(self.both_ways(x)[0], batch_first=True)
        assert unpacked.tolist() == lengths.tolist(), unpacked  # through an inverse permutation on the device
        for layer in (self.projected, self.gated, self.plain):
            x = layer(x)[0]
        return x


model = Reader().cuda()
for layer in (model.both_ways, model.projected, model.gated, model.plain):
    buffers = {parameter.untyped_storage().data_ptr() for parameter in layer.parameters()}
    assert len(buffers) == 1, layer
    held = next(layer.parameters()).untyped_storage().nbytes()
    assert held == sum(parameter.numel() * 4 for parameter in layer.parameters()), (layer, held)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    out = model(torch.randint(0, 100, (3, 10)).cuda(), torch.tensor([10, 4, 7]))
    assert out.shape == (3, 10, 16)
    out.pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
