"""What does the code do?"""
