"""What a person does with the findings: page, decisions, exports."""
