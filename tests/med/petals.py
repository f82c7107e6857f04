"""The petals of two overlapping kinds of iris, which displays of MED models show."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

IRIS, KIND = load_iris(return_X_y=True)
PETALS = IRIS[:, 2:]
X, Y = PETALS[50:], np.where(KIND[50:] == 1, "versicolor", "$virginica_")
NAMED = pd.DataFrame(X, columns=["length", "width"])
