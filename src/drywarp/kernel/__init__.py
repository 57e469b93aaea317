"""What is an instruction, a kernel, a launch, a profile?"""
