/* Object code brought into the process without LLVM, whose import costs more than all kernels of a warm
 * start: relocatable ELF objects for x86-64 whose sections are code and constants and whose only undefined
 * symbols are functions of the C library. Anything else is not for this file, and the caller asks LLVM's
 * linker.
 *
 * All objects of a call share one mapping: written, relocated, then made executable and read-only. It lives
 * as long as the process. */
#define _GNU_SOURCE
#include "runtime/graph.h"
#include <string.h>

#if defined(__x86_64__) && defined(__linux__)
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT 64
#define STUB 16 /* jmp *0(%rip); the address */
#define MAX_SECTIONS 64

typedef struct {
    const uint8_t *data;
    size_t size;
    const Elf64_Ehdr *head;
    const Elf64_Shdr *sections;
    const Elf64_Sym *symbols;
    size_t n_symbols;
    const char *names;
    size_t names_size;
    size_t at[MAX_SECTIONS]; /* offset of a loaded section in the mapping */
    char loaded[MAX_SECTIONS];
    size_t stubs;
} Object;

static size_t align(size_t n, size_t to) { return (n + to - 1) / to * to; }

static int inside(const Object *o, const Elf64_Shdr *s) {
    return s->sh_type == SHT_NOBITS || (s->sh_offset <= o->size && s->sh_size <= o->size - s->sh_offset);
}
/* Look an object over and lay its sections out from *end. 0: not for this file. */
static int lay_out(Object *o, size_t *end) {
    if (o->size < sizeof(Elf64_Ehdr)) return 0;
    const Elf64_Ehdr *h = o->head = (const Elf64_Ehdr *)o->data;
    if (memcmp(h->e_ident, "\177ELF\2\1\1", 7) || h->e_type != ET_REL || h->e_machine != EM_X86_64 ||
        h->e_shentsize != sizeof(Elf64_Shdr))
        return 0;
    if (h->e_shnum > MAX_SECTIONS || h->e_shoff > o->size ||
        h->e_shnum * sizeof(Elf64_Shdr) > o->size - h->e_shoff || h->e_shoff % 8)
        return 0;
    o->sections = (const Elf64_Shdr *)(o->data + h->e_shoff);
    for (int i = 0; i < h->e_shnum; i++) {
        const Elf64_Shdr *s = &o->sections[i];
        if (!inside(o, s)) return 0;
        if (s->sh_type == SHT_SYMTAB) {
            if (s->sh_entsize != sizeof(Elf64_Sym) || s->sh_offset % 8 || s->sh_link >= h->e_shnum ||
                !inside(o, &o->sections[s->sh_link]))
                return 0;
            o->symbols = (const Elf64_Sym *)(o->data + s->sh_offset);
            o->n_symbols = s->sh_size / sizeof(Elf64_Sym);
            const Elf64_Shdr *t = &o->sections[s->sh_link];
            o->names = (const char *)o->data + t->sh_offset;
            o->names_size = t->sh_size;
            if (t->sh_type != SHT_STRTAB || !t->sh_size || o->names[t->sh_size - 1]) return 0;
        }
        if (!(s->sh_flags & SHF_ALLOC) || s->sh_type == SHT_X86_64_UNWIND) continue;
        if (s->sh_type != SHT_PROGBITS || (s->sh_flags & (SHF_WRITE | SHF_TLS)) ||
            s->sh_addralign > ALIGNMENT)
            return 0;
        *end = align(*end, ALIGNMENT);
        o->at[i] = *end;
        o->loaded[i] = 1;
        *end += s->sh_size;
    }
    if (!o->symbols) return 0;
    for (size_t k = 0; k < o->n_symbols; k++)
        if (o->symbols[k].st_name >= o->names_size) return 0;
    *end = align(*end, ALIGNMENT);
    o->stubs = *end;
    for (size_t k = 1; k < o->n_symbols; k++)
        if (o->symbols[k].st_shndx == SHN_UNDEF) *end += STUB;
    return 1;
}
/* Where a symbol is; 0: nowhere. Functions from outside are reached through a stub, since they may be further
 * than a call goes. */
static uintptr_t address(const Object *o, uint8_t *base, size_t k) {
    if (!k || k >= o->n_symbols) return 0;
    const Elf64_Sym *s = &o->symbols[k];
    if (s->st_shndx != SHN_UNDEF)
        return s->st_shndx < o->head->e_shnum && o->loaded[s->st_shndx] &&
                s->st_value <= o->sections[s->st_shndx].sh_size
            ? (uintptr_t)(base + o->at[s->st_shndx] + s->st_value)
            : 0;
    void *found = dlsym(RTLD_DEFAULT, o->names + s->st_name);
    if (!found) return 0;
    size_t before = 0;
    for (size_t i = 1; i < k; i++) before += o->symbols[i].st_shndx == SHN_UNDEF;
    uint8_t *stub = base + o->stubs + before * STUB;
    memcpy(stub, "\xff\x25\0\0\0\0", 6);
    memcpy(stub + 6, &found, 8);
    return (uintptr_t)stub;
}
static int relocate(const Object *o, uint8_t *base) {
    for (int i = 0; i < o->head->e_shnum; i++)
        if (o->loaded[i]) memcpy(base + o->at[i], o->data + o->sections[i].sh_offset, o->sections[i].sh_size);
    for (int i = 0; i < o->head->e_shnum; i++) {
        const Elf64_Shdr *s = &o->sections[i];
        if (s->sh_type == SHT_REL) return 0;
        if (s->sh_type != SHT_RELA || s->sh_info >= o->head->e_shnum || !o->loaded[s->sh_info]) continue;
        if (s->sh_offset % 8 || s->sh_entsize != sizeof(Elf64_Rela)) return 0;
        const Elf64_Rela *r = (const Elf64_Rela *)(o->data + s->sh_offset);
        size_t room = o->sections[s->sh_info].sh_size;
        for (size_t k = 0; k < s->sh_size / sizeof *r; k++, r++) {
            uintptr_t to = address(o, base, ELF64_R_SYM(r->r_info));
            size_t width = ELF64_R_TYPE(r->r_info) == R_X86_64_64 ? 8 : 4;
            if (!to || room < width || r->r_offset > room - width) return 0;
            uint8_t *place = base + o->at[s->sh_info] + r->r_offset;
            int64_t value;
            switch (ELF64_R_TYPE(r->r_info)) {
            case R_X86_64_64: value = (int64_t)to + r->r_addend; break;
            case R_X86_64_PC32:
            case R_X86_64_PLT32:
                /* A value from outside, unlike a function, has no stub; only calls are known not to be one.
                 */
                if (o->symbols[ELF64_R_SYM(r->r_info)].st_shndx == SHN_UNDEF &&
                    ELF64_R_TYPE(r->r_info) != R_X86_64_PLT32)
                    return 0;
                value = (int64_t)to + r->r_addend - (int64_t)(uintptr_t)place;
                if (value != (int32_t)value) return 0;
                break;
            default: return 0;
            }
            memcpy(place, &value, width);
        }
    }
    return 1;
}
static PyObject *addresses_of(Object *objects, Py_ssize_t n, PyObject *names, uint8_t *base) {
    PyObject *out = PyList_New(0);
    if (!out) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *of_object = PyList_GET_ITEM(names, i);
        for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(of_object); j++) {
            const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(of_object, j));
            if (!name) return Py_DECREF(out), NULL;
            uintptr_t found = 0;
            for (size_t k = 1; k < objects[i].n_symbols && !found; k++)
                if (objects[i].symbols[k].st_shndx != SHN_UNDEF &&
                    !strcmp(objects[i].names + objects[i].symbols[k].st_name, name))
                    found = address(&objects[i], base, k);
            if (!found) return Py_DECREF(out), Py_NewRef(Py_None);
            PyObject *number = PyLong_FromUnsignedLongLong(found);
            if (!number || PyList_Append(out, number)) return Py_XDECREF(number), Py_DECREF(out), NULL;
            Py_DECREF(number);
        }
    }
    return out;
}
static PyObject *load(Object *objects, Py_ssize_t n, PyObject *names) {
    size_t end = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!lay_out(&objects[i], &end)) Py_RETURN_NONE;
    size_t size = align(end + 1, (size_t)sysconf(_SC_PAGESIZE));
    uint8_t *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return PyErr_NoMemory();
    int good = 1;
    for (Py_ssize_t i = 0; i < n && good; i++) good = relocate(&objects[i], base);
    PyObject *out = good ? addresses_of(objects, n, names, base) : Py_NewRef(Py_None);
    if (out && out != Py_None && mprotect(base, size, PROT_READ | PROT_EXEC))
        Py_SETREF(out, Py_NewRef(Py_None));
    if (!out || out == Py_None) munmap(base, size);
    return out;
}
#endif

PyObject *flb_load_objects(PyObject *m, PyObject *args) {
    PyObject *data, *names;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &data, &PyList_Type, &names)) return NULL;
    Py_ssize_t n = PyList_GET_SIZE(data);
    if (PyList_GET_SIZE(names) != n)
        return PyErr_SetString(PyExc_ValueError, "load_objects() takes a tuple of names for each object"),
               NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *of_object = PyList_GET_ITEM(names, i);
        int good = PyBytes_Check(PyList_GET_ITEM(data, i)) && PyTuple_Check(of_object);
        for (Py_ssize_t j = 0; good && j < PyTuple_GET_SIZE(of_object); j++)
            good = PyUnicode_Check(PyTuple_GET_ITEM(of_object, j));
        if (!good)
            return PyErr_SetString(PyExc_TypeError,
                                   "load_objects() takes a list of bytes and a list of tuples of names"),
                   NULL;
    }
#if defined(__x86_64__) && defined(__linux__)
    Object *objects = PyMem_Calloc(n ? n : 1, sizeof(Object));
    if (!objects) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        objects[i].data = (const uint8_t *)PyBytes_AS_STRING(PyList_GET_ITEM(data, i));
        objects[i].size = PyBytes_GET_SIZE(PyList_GET_ITEM(data, i));
    }
    PyObject *out = load(objects, n, names);
    PyMem_Free(objects);
    return out;
#else
    Py_RETURN_NONE;
#endif
}
