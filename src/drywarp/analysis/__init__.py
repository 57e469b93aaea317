"""How do the parts combine into one answer?"""
