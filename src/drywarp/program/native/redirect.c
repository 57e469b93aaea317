/* Programs with the runtime linked in: each of its functions becomes a jump to ours of the same name.

   That works as long as the program has its symbols. It happens before the program's own constructors, which register
   its kernels. */
#define _GNU_SOURCE
#include "wire.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if !defined(__x86_64__)
void redirect_static_runtime(void) {}
#else

/* movabs $target, %rax; jmp *%rax */
enum { JUMP_BYTES = 12 };

static int first_object(struct dl_phdr_info *info, size_t size, void *base) {
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

static void put_jump(char *from, void *target) {
    long page = sysconf(_SC_PAGESIZE);
    char *start = (char *)((uintptr_t)from & ~(uintptr_t)(page - 1));
    size_t bytes = (size_t)(from + JUMP_BYTES - start);
    if (mprotect(start, bytes, PROT_READ | PROT_WRITE | PROT_EXEC))
        return;
    unsigned char jump[JUMP_BYTES] = {0x48, 0xb8, [10] = 0xff, 0xe0};
    memcpy(jump + 2, &target, sizeof target);
    memcpy(from, jump, sizeof jump);
    mprotect(start, bytes, PROT_READ | PROT_EXEC);
}

static int is_runtimes(const char *name) {
    return !strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6);
}

static void redirect_in(const char *file, size_t size, uintptr_t base, void *self) {
    const Elf64_Ehdr *head = (const void *)file;
    if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_shoff > size ||
        (size - head->e_shoff) / sizeof(Elf64_Shdr) < head->e_shnum)
        return;
    const Elf64_Shdr *section = (const void *)(file + head->e_shoff);
    for (int n = 0; n < head->e_shnum; n++) {
        if (section[n].sh_type != SHT_SYMTAB || section[n].sh_link >= head->e_shnum)
            continue;
        const Elf64_Shdr *names = &section[section[n].sh_link];
        if (section[n].sh_offset + section[n].sh_size > size || names->sh_offset + names->sh_size > size)
            continue;
        const Elf64_Sym *symbol = (const void *)(file + section[n].sh_offset);
        for (size_t k = 0; k < section[n].sh_size / sizeof *symbol; k++) {
            if (ELF64_ST_TYPE(symbol[k].st_info) != STT_FUNC || !symbol[k].st_value || symbol[k].st_name >= names->sh_size)
                continue;
            const char *name = file + names->sh_offset + symbol[k].st_name;
            void *ours = is_runtimes(name) && symbol[k].st_size >= JUMP_BYTES ? dlsym(self, name) : NULL;
            if (ours && ours != (void *)(base + symbol[k].st_value))
                put_jump((char *)(base + symbol[k].st_value), ours);
        }
    }
}

void redirect_static_runtime(void) {
    Dl_info here;
    uintptr_t base = 0;
    struct stat stat;
    if (!dladdr((void *)redirect_static_runtime, &here))
        return;
    void *self = dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (self && file >= 0 && !fstat(file, &stat) && stat.st_size) {
        dl_iterate_phdr(first_object, &base);
        void *content = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (content != MAP_FAILED) {
            redirect_in(content, (size_t)stat.st_size, base, self);
            munmap(content, (size_t)stat.st_size);
        }
    }
    if (file >= 0)
        close(file);
    if (self)
        dlclose(self);
}
#endif
