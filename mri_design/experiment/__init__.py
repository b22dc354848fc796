"""The composition root: recipes, inputs and names become models, engines and strategies."""
