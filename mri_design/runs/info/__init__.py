"""What a file or a folder holds, in words."""
