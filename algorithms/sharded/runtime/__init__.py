"""What runs programs at the shards: the package above is its map."""
