"""The kinds of files that a search can be limited to, by the patterns of their names. The names are ripgrep's."""

from __future__ import annotations

from toolcrib.glob_patterns import GlobPattern

FILE_TYPES: dict[str, tuple[str, ...]] = {
    "c": ("*.c", "*.h"),
    "cmake": ("*.cmake", "CMakeLists.txt"),
    "cpp": ("*.cpp", "*.cc", "*.cxx", "*.c++", "*.hpp", "*.hh", "*.hxx", "*.h", "*.inl"),
    "cs": ("*.cs",),
    "css": ("*.css", "*.scss", "*.sass", "*.less"),
    "csv": ("*.csv", "*.tsv"),
    "dart": ("*.dart",),
    "docker": ("Dockerfile", "Dockerfile.*", "*.dockerfile", "Containerfile"),
    "elixir": ("*.ex", "*.exs", "*.eex", "*.heex"),
    "erlang": ("*.erl", "*.hrl"),
    "go": ("*.go",),
    "graphql": ("*.graphql", "*.graphqls"),
    "haskell": ("*.hs", "*.lhs"),
    "html": ("*.html", "*.htm"),
    "java": ("*.java", "*.jsp", "*.properties"),
    "js": ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"),
    "json": ("*.json", "*.jsonl", "*.jsonc"),
    "kotlin": ("*.kt", "*.kts"),
    "lua": ("*.lua",),
    "make": ("Makefile", "makefile", "GNUmakefile", "*.mk", "*.mak"),
    "md": ("*.md", "*.markdown", "*.mdx"),
    "php": ("*.php", "*.phtml"),
    "proto": ("*.proto",),
    "py": ("*.py", "*.pyi", "*.pyw"),
    "r": ("*.r", "*.R", "*.Rmd"),
    "rb": ("*.rb", "*.gemspec", "Gemfile", "Rakefile", "*.rake"),
    "rst": ("*.rst",),
    "rust": ("*.rs",),
    "scala": ("*.scala", "*.sbt"),
    "sh": ("*.sh", "*.bash", "*.zsh", "*.ksh", "*.fish"),
    "sql": ("*.sql", "*.psql"),
    "svelte": ("*.svelte",),
    "swift": ("*.swift",),
    "tf": ("*.tf", "*.tfvars", "*.hcl"),
    "toml": ("*.toml", "Cargo.lock"),
    "ts": ("*.ts", "*.tsx", "*.mts", "*.cts"),
    "txt": ("*.txt",),
    "vue": ("*.vue",),
    "xml": ("*.xml", "*.xsd", "*.xsl", "*.xslt", "*.svg"),
    "yaml": ("*.yaml", "*.yml"),
    "zig": ("*.zig",),
}
OTHER_NAMES = {
    "bash": "sh", "c++": "cpp", "csharp": "cs", "golang": "go", "javascript": "js", "jsx": "js", "kt": "kotlin",
    "markdown": "md", "python": "py", "rs": "rust", "ruby": "rb", "scss": "css", "terraform": "tf",
    "tsx": "ts", "typescript": "ts", "yml": "yaml",
}  # fmt: skip


def patterns_of_type(name: str) -> list[GlobPattern] | None:
    """The patterns of a type's file names; None for a type that is not known."""
    name = name.strip().lower().removeprefix(".")
    found = FILE_TYPES.get(OTHER_NAMES.get(name, name))
    return None if found is None else [GlobPattern(pattern) for pattern in found]
