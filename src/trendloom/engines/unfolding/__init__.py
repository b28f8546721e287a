"""From a row of collapsed trends back to the matches that it stands for."""
