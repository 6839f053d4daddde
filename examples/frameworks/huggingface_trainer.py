"""transformers' Trainer, on a language model of a few thousand parameters.

python examples/frameworks/huggingface_trainer.py --out-dir /tmp/trainer-run
"""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import smdebug.huggingface
import smdebug.pytorch as smd

parser = argparse.ArgumentParser()
parser.add_argument("--out-dir", required=True)
out_dir = parser.parse_args().out_dir

torch.manual_seed(0)
sizes = {"n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 16, "vocab_size": 32}
model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
texts = [torch.arange(start, start + 12) % 32 for start in range(32)]

callback = smdebug.huggingface.Callback(
    out_dir,
    save_config=smd.SaveConfig(save_interval=5),
    include_collections=["gradients"],
    reduction_config=smd.ReductionConfig(reductions=["mean"], norms=["l2"]),
)
arguments = TrainingArguments(
    output_dir=f"{out_dir}-checkpoints",
    num_train_epochs=3,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
    save_strategy="no",
)
Trainer(
    model=model,
    args=arguments,
    train_dataset=[{"input_ids": text, "labels": text} for text in texts],
    callbacks=[callback],
).train()
callback.close()

trial = smd.create_trial(out_dir)
loss = trial.tensor("loss_output_0")
print({step: round(float(loss.value(step)), 2) for step in loss.steps()})
