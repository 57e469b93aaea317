"""What depends on what, and what does each node cost on a GPU?"""
