"""What a record of the stream is: bytes in, validated operations out, and replies back."""
