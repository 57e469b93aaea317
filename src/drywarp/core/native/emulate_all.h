// The emulator's loop once more, for the VARIANT that the including file names: the same sources, the same bits.
#include "emulate.c"
#include "emulate_access.c"
#include "emulate_ends.c"
#include "emulate_floats.c"
#include "emulate_groups.c"
#include "emulate_log.c"
#include "emulate_predicates.c"
#include "emulate_words.c"
