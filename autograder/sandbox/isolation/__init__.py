"""What a worker may ask of the kernel: which system calls, and of the paths in them which."""
