"""The paper as data: its numbers, grids, protocols and claims."""
