"""What compare_events is made of: oracle runs, event sequences, their alignment, the printing."""
