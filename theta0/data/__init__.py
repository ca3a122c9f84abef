"""Images and labels as tensors on one device: data sets, splits, augmentation, readers and downloads.

data = theta0.data.load()                                # scikit-learn's digits: no file, no network
data = theta0.data.load("photos/")                       # one folder per class
data = theta0.data.load("cifar10", root="/datasets")     # after theta0.data.get("cifar10", root="/datasets")
x, y = data.train.batch(64, seed=0)                      # (64, C, H, W) float32 and (64,) int64
"""

from __future__ import annotations

from theta0.data.augment import Augmentation
from theta0.data.dataset import Data, ImageDataset
from theta0.data.loading import load
from theta0.data.sources import get, names
from theta0.data.splitting import split

__all__ = ["Augmentation", "Data", "ImageDataset", "get", "load", "names", "split"]
