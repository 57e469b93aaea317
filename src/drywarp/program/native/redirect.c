/* Programs and libraries with the runtime linked in: each of its functions becomes a jump to ours of the same name.

   That works as long as they have their symbols. For the program and what it is linked to it happens before their own
   constructors, which register kernels; for libraries that are loaded later (Python's modules), right after, and the
   function by which nvcc has them register is then called once more. */
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

static void *self;

static int late;

static void redirect_in(const char *file, size_t size, uintptr_t base) {
    enum { MOST_UNITS = 512 };
    void (*registers[MOST_UNITS])(void);
    int units = 0;
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
            if (late && units < MOST_UNITS && strstr(name, "__sti____cudaRegisterAll"))
                registers[units++] = (void (*)(void))(base + symbol[k].st_value);
            void *ours = is_runtimes(name) && symbol[k].st_size >= JUMP_BYTES ? dlsym(self, name) : NULL;
            if (ours && ours != (void *)(base + symbol[k].st_value))
                put_jump((char *)(base + symbol[k].st_value), ours);
        }
    }
    for (int n = 0; n < units; n++)
        registers[n]();
}

static const char *own_name;

static void redirect_object(const char *name, uintptr_t base) {
    struct stat stat;
    int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && !fstat(file, &stat) && stat.st_size) {
        void *content = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (content != MAP_FAILED) {
            redirect_in(content, (size_t)stat.st_size, base);
            munmap(content, (size_t)stat.st_size);
        }
    }
    if (file >= 0)
        close(file);
}

static int look_at(struct dl_phdr_info *info, size_t size, void *data) {
    enum { MOST = 4096 };
    static uintptr_t seen[MOST];
    static int count;
    (void)size, (void)data;
    for (int n = 0; n < count; n++)
        if (seen[n] == info->dlpi_addr)
            return 0;
    if (count == MOST)
        return 1;
    /* The program itself comes first and has no name. */
    const char *name = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : count ? NULL : "/proc/self/exe";
    seen[count++] = info->dlpi_addr;
    if (name && strcmp(name, own_name))
        redirect_object(name, info->dlpi_addr);
    return 0;
}

void redirect_static_runtime(void) {
    Dl_info here;
    if (!self && dladdr((void *)redirect_static_runtime, &here)) {
        own_name = here.dli_fname;
        self = dlopen(own_name, RTLD_LAZY | RTLD_NOLOAD);
    }
    if (self)
        dl_iterate_phdr(look_at, NULL);
    late = 1;
}

/* What a program loads later is looked at, too. Without a folder in its name, the loader searches where the caller
   says: then the call is passed on as it is. */
API void *dlopen(const char *name, int mode) {
    static void *(*real)(const char *, int);
    if (!real)
        real = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    if (!self || !name || !strchr(name, '/'))
        return real(name, mode);
    void *made = real(name, mode);
    if (made)
        redirect_static_runtime();
    return made;
}
#endif
