"""Estimators with scikit-learn's interface: fit, predict, score, inside pipelines and cross-validation.

Samples are texts, sequences of numbers of any length, or the rows of a 2-D array, each a sequence of one channel:
lists, numpy arrays, and columns of pandas, polars or Arrow.
"""

from paramixer.sklearn.estimators import ParamixerClassifier, ParamixerEmbedder, ParamixerRegressor

__all__ = ["ParamixerClassifier", "ParamixerEmbedder", "ParamixerRegressor"]
