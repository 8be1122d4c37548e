"""Many layers that ask the same of what they computed, at one line: each gets the answer of the first."""
import torch


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        x = self.linear(x)
        if (torch.tanh(x) > 0.9).any():
            raise AssertionError("a layer that saturates")
        return x


model = torch.nn.ModuleList(Layer() for _ in range(150)).to("cuda")
x = torch.randn(2, 8, device="cuda")
for layer in model:
    x = layer(x)
x.sum().backward()
checked = 0
for parameter in model.parameters():
    checked += 1
    assert bool((parameter.grad.abs() < 10).all()) and not bool((parameter.grad.abs() > 0.5).any()), checked
assert checked == 300
rounds = 0
while not bool((torch.tanh(torch.randn(4, device="cuda")) > 0.9).all()):  # it waits for the other answer
    rounds += 1
assert rounds < 1000
