"""What a user may hand over: labels, examples, features in many forms."""
