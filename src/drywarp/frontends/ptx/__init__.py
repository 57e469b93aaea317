"""PTX: read it and assemble it with ptxas."""
