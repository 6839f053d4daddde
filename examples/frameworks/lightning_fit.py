"""Lightning.

python examples/frameworks/lightning_fit.py --out-dir /tmp/lightning-run
"""

import argparse

import lightning
import torch
from torch import nn

import smdebug.lightning
import smdebug.pytorch as smd

parser = argparse.ArgumentParser()
parser.add_argument("--out-dir", required=True)
out_dir = parser.parse_args().out_dir


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def training_step(self, batch, number):
        inputs, labels = batch
        return nn.functional.cross_entropy(self.net(inputs), labels)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


lightning.seed_everything(0, verbose=False)
inputs = torch.randn(256, 8)
rows = torch.utils.data.TensorDataset(inputs, (inputs[:, 0] > 0).long())
callback = smdebug.lightning.Callback(
    out_dir, save_config=smd.SaveConfig(save_interval=5), include_collections=["gradients"]
)
trainer = lightning.Trainer(
    accelerator="cpu",
    max_epochs=4,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[callback],
)
trainer.fit(Classifier(), torch.utils.data.DataLoader(rows, batch_size=32))
callback.close()

trial = smd.create_trial(out_dir)
print(trial.tensor_names(collection="gradients"))
