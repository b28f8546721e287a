"""Pictures of patterns and of what they matched. Needs the extra `viz` (matplotlib), loaded when a picture is drawn."""
