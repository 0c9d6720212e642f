"""Which file endings and media types are text."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


TEXT_SUFFIXES = word_set(
    """
    .txt .text .log .rst .adoc .asciidoc .org .textile .wiki .tex .bib .srt .vtt .csv .tsv .diff .patch
    """
)

CODE_SUFFIXES = word_set(
    """
    .asm .awk .bash .bat .c .cc .cfg .clj .cljs .cmake .cmd .conf .cpp .cs .css .cxx .d .dart .el .elm .erl .ex
    .exs .f .f90 .fish .fs .fsx .gd .glsl .go .gql .gradle .graphql .groovy .h .hcl .hh .hpp .hrl .hs .hxx .ini .java
    .jl .js .json .json5 .jsonc .jsonl .jsx .kt .kts .less .lisp .lua .m .mjs .mk .ml .mli .mm .ndjson .nim .nix .pas
    .php .pl .pm .properties .proto .ps1 .purs .py .pyi .pyx .r .rb .rkt .rs .sass .scala .scm .scss .sh .sol .sql .sv
    .svelte .swift .tcl .tf .tfvars .thrift .toml .ts .tsx .v .vb .vhd .vhdl .vim .vue .wgsl .xml .xsd .xsl .xslt .yaml
    .yml .zig .zsh
    """
)

TEXT_NAMES = word_set(
    """
    authors changelog containerfile contributing copying dockerfile gemfile gnumakefile jenkinsfile justfile license
    makefile notice procfile rakefile readme todo vagrantfile
    """
)

TEXT_MEDIA_TYPES = word_set(
    """
    text/plain application/json application/x-ndjson application/xml application/yaml application/x-yaml
    application/toml application/javascript application/x-javascript application/ecmascript application/typescript
    application/sql application/x-sh application/graphql
    """
)

CODE_MEDIA_TYPES = word_set(
    """
    text/javascript text/css text/xml text/x-python text/x-c text/x-c++ text/x-java text/x-java-source
    text/x-script.python text/x-sh text/x-shellscript text/x-rust text/x-go text/yaml text/x-yaml
    """
)
