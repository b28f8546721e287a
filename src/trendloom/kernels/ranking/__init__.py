"""The best matches of each window and partition: ranked without listing them all, where the preference allows it."""
