"""What scripts/accuracy is made of: measured rows and oracle cases as jobs, the tool's answers, the statistics."""
