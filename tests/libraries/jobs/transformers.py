"""transformers: language, speech and translation models of small sizes; generation; the Trainer."""

import tempfile

import torch
from harness import both, gradients, on_flambeau, summary

SMALL = dict(vocab_size=64, bos_token_id=0, eos_token_id=1, pad_token_id=2)


def _ids(*shape):
    return torch.randint(3, 64, shape)


def _gpt2(**options):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, n_positions=32, **SMALL, **options))


def gpt2_forward():
    model, ids = _gpt2(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0), _ids(2, 12)
    return both(model, dict(input_ids=ids, labels=ids))


def gpt2_train():
    """Three steps of AdamW with dropout on, plain; the compiled step must run and lower the loss."""
    model, ids = _gpt2(), _ids(4, 16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        loss = model(ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    if on_flambeau():
        step, before = torch.compile(model), losses[-1]
        for _ in range(3):
            loss = step(ids, labels=ids).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        assert loss.item() < before
    return {"losses": losses}


def gpt2_generate():
    model, ids = _gpt2().eval(), _ids(2, 5)
    mask = torch.ones_like(ids)
    options = dict(attention_mask=mask, max_new_tokens=8, pad_token_id=2)
    greedy = model.generate(ids, do_sample=False, **options)
    beams = model.generate(ids, do_sample=False, num_beams=3, **options)
    torch.manual_seed(1)
    sampled = model.generate(ids, do_sample=True, top_k=10, top_p=0.9, temperature=0.8, **options)
    return {"greedy": greedy.tolist(), "beams": beams.tolist(), "sampled": sampled.tolist()}


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, **SMALL
    )
    model, ids = LlamaForCausalLM(config), _ids(2, 10)
    out = both(model, dict(input_ids=ids, labels=ids))
    out["generated"] = model.eval().generate(ids[:, :4], max_new_tokens=6, do_sample=False, pad_token_id=2).tolist()
    return out


def bert():
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
        vocab_size=64,
    )
    model, ids = BertForMaskedLM(config).eval(), _ids(2, 10)
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    return both(model, dict(input_ids=ids, attention_mask=mask, labels=ids))


def bert_classifies():
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=64, num_labels=3
    )
    model = BertForSequenceClassification(config).eval()
    return both(model, dict(input_ids=_ids(3, 7), labels=torch.tensor([0, 2, 1])))


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=64,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
        dropout_rate=0.0,
    )
    model, ids = T5ForConditionalGeneration(config), _ids(2, 9)
    out = both(model, dict(input_ids=ids, labels=_ids(2, 6)))
    out["generated"] = model.eval().generate(ids, max_new_tokens=6, do_sample=False).tolist()
    return out


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=64, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=20, max_target_positions=16, num_mel_bins=16,
        pad_token_id=2, bos_token_id=0, eos_token_id=1, decoder_start_token_id=3, suppress_tokens=[], begin_suppress_tokens=[],
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config).eval()
    features = torch.randn(2, 16, 40)
    out = both(model, dict(input_features=features, labels=_ids(2, 6)))
    out["generated"] = model.generate(features, max_new_tokens=5, do_sample=False).tolist()
    return out


def vit():
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=32,
        patch_size=8,
        num_labels=5,
    )
    return both(ViTForImageClassification(config).eval(), dict(pixel_values=torch.randn(2, 3, 32, 32)))


class _Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.ids = _ids(8, 10)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


def trainer():
    """Two optimizer steps of the Trainer, then evaluation."""
    from transformers import Trainer, TrainingArguments

    model = _gpt2(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, max_steps=2, per_device_train_batch_size=4, learning_rate=1e-2, report_to=[], logging_steps=1, save_steps=2,
            use_cpu=True, disable_tqdm=True, seed=3,
        )  # fmt: skip
        rows = _Rows()
        work = Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows)
        done = work.train()
        found = work.evaluate()
        again = type(model).from_pretrained(f"{folder}/checkpoint-2")
        same = all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values()))
    return {"loss": [done.training_loss, found["eval_loss"]], "saved and read": [float(same)]}


def saved_and_loaded():
    """save_pretrained and from_pretrained, through safetensors."""
    model, ids = _gpt2().eval(), _ids(1, 6)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = type(model).from_pretrained(folder).eval()
    return {"logits": summary(again(ids).logits), "same": [float(torch.equal(model(ids).logits, again(ids).logits))]}


def gradient_checkpointing():
    model, ids = _gpt2(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0), _ids(2, 12)
    model.gradient_checkpointing_enable()
    model(ids, labels=ids).loss.backward()
    found = gradients(model)
    return {"total": [found["total"]], "first": found["first"]}
