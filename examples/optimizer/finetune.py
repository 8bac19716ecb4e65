#!/usr/bin/env python3
"""120 steps of a small network on a GPU. The one line that matters is the optimizer's."""
import torch

model = torch.nn.Sequential(*[layer for _ in range(12) for layer in (torch.nn.Linear(4096, 4096), torch.nn.GELU())]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(120):
    batch = torch.randn(256, 4096, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()
print(f"loss {loss.item():.4f}")
