"""What a release must pass: sanity, molecule, the importer's own check of the tarball, and its docs when installed elsewhere."""
