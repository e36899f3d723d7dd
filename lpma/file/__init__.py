"""Files that are whole or absent, with every byte under a checksum."""
