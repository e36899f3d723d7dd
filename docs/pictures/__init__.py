"""Programs that draw the pictures of these pages, each from a store that it fills."""
