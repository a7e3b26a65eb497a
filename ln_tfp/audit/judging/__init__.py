"""From predictions to "this label is wrong", and how many to flag."""
