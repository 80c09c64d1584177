"""
From a CSV file to a certified model
====================================

A table comes as a CSV file. We know the direction of some effects before we look at the data. We
fit a linear model that keeps these directions, read its certificate, draw it, save it and load it
again. The table is scikit-learn's diabetes data: 442 patients, ten measurements, and a score of
how far the disease went in a year.
"""

# %%
# The table
# ---------
# We write the file first, so that this page needs no download. Start with your own file at
# ``read_csv``.
import tempfile
from pathlib import Path

import joblib
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from extremal.sklearn import ConstrainedLinearRegression

folder = Path(tempfile.mkdtemp())
names = {
    "s1": "cholesterol",
    "s2": "ldl",
    "s3": "hdl",
    "s4": "ratio",
    "s5": "triglycerides",
    "s6": "glucose",
}
load_diabetes(as_frame=True, scaled=False).frame.rename(columns=names).to_csv(
    folder / "patients.csv", index=False
)

table = pd.read_csv(folder / "patients.csv")
X, y = table.drop(columns="target"), table["target"]
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
table.head()

# %%
# The fit that people make today
# ------------------------------
# Body mass, blood pressure and blood fats should not lower the score, and HDL, the "good"
# cholesterol, should not raise it. A plain linear regression does not know that.
free = make_pipeline(StandardScaler(), LinearRegression()).fit(X_train, y_train)
effects = pd.Series(free[-1].coef_, index=X.columns)
raises, lowers = ["bmi", "bp", "cholesterol", "ldl", "triglycerides", "glucose"], ["hdl"]
print(f"should not be negative:\n{effects[raises].round(1).to_string()}")
print(f"should not be positive:\n{effects[lowers].round(1).to_string()}")

# %%
# The same fit with signs
# -----------------------
# The constraint is a dictionary by column name. Columns without an entry are free.
signs = dict.fromkeys(raises, ">=0") | dict.fromkeys(lowers, "<=0")
model = make_pipeline(StandardScaler(), ConstrainedLinearRegression(signs))
model.set_output(transform="pandas").fit(X_train, y_train)  # names reach the last step
print(model[-1].certificate_)
print(f"R2 on new patients, free:       {free.score(X_test, y_test):.3f}")
print(f"R2 on new patients, with signs: {model.score(X_test, y_test):.3f}")

# %%
# The certificate has two numbers. The violation says how far a coefficient is outside its bounds.
# The gap says how much lower the loss of *any* other model with these signs could be.
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
at = range(len(X.columns))
ax.barh([i - 0.2 for i in at], effects, 0.38, color="0.7", label="free fit")
ax.barh([i + 0.2 for i in at], model[-1].coef_, 0.38, color="C0", label="with signs")
ax.set_yticks(at, X.columns)
ax.invert_yaxis()
ax.axvline(0, color="black", lw=0.8)
ax.set_xlabel("change of the score for one standard deviation")
fig.legend(loc="outside upper center", ncols=2, frameon=False)
plt.show()

# %%
# Keep it
# -------
# A fitted pipeline is an ordinary Python object. ``joblib`` saves it.
joblib.dump(model, folder / "model.joblib")
again = joblib.load(folder / "model.joblib")
print("The loaded model predicts the same:", (again.predict(X_test) == model.predict(X_test)).all())
