"""What is a launch, and how does a user state its arguments?"""
