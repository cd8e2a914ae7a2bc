"""What a release must pass: sanity, molecule, the importer's check of the tarball, docs when installed elsewhere."""
