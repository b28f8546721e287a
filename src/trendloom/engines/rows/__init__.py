"""What kernels give out becomes rows: of matches, of groups, and parts of groups that are added up."""
