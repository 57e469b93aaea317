"""Machine code: ELF, cubins, fat binaries, and the listing of nvdisasm."""
