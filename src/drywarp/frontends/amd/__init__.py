"""AMD machine code: compiled with clang or read from an LLVM object's disassembly."""
