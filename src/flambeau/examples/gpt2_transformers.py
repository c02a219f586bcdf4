"""GPT-2 of the library transformers, with random weights: a training step and a few tokens, by an unmodified library.

Needs `pip install transformers`. Run it with `flambeau run`, or as it is: the import of torch below means flambeau.
"""

import flambeau.compat.hook

flambeau.compat.hook.install()

import torch  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402

if __name__ == "__main__":
    torch.manual_seed(0)
    sizes = {"vocab_size": 100, "n_positions": 32, "n_embd": 64, "n_layer": 2, "n_head": 4}
    config = GPT2Config(**sizes, bos_token_id=0, eos_token_id=None, loss_type="ForCausalLM")
    model = GPT2LMHeadModel(config)
    tokens = torch.arange(16).repeat(4, 2) % 10
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(41):
        loss = model(tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step:2d}  loss {loss.item():.3f}")
    model.eval()
    made = model.generate(tokens[:1, :4], max_new_tokens=8, do_sample=False, pad_token_id=0)
    print("after 0 1 2 3:", made[0, 4:].tolist())
