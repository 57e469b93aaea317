// Host side only, but that declarations on the host name the type of files; printf is built into the compiler.
#pragma once
typedef struct _IO_FILE FILE;
