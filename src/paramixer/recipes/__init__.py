"""Recipes: which settings a model is built, initialized and trained with."""

from paramixer.recipes.presets import preset, resolve_links
from paramixer.recipes.reader import PRESETS, Recipe, read_recipe, recipe_names

__all__ = ["PRESETS", "Recipe", "preset", "read_recipe", "recipe_names", "resolve_links"]
