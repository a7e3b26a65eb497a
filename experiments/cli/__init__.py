"""What the programs share: flags, recipes, start."""
