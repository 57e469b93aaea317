"""How does a file become a `Kernel`?"""
