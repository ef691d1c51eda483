"""The examples that are not run as they are, with the reasons. A line of an example is matched by its beginning. An entry that
matches nothing is an error."""

# Lines that are not run.
NOT_RUN = {
    "README.md": {
        "make ": "builds and tests everything; the tests run this program from such a build",
        "export PATH=": "the sandbox has the built program in its PATH",
        "cmake --install": "needs root; tests/install installs the library",
        "g++ ": "tests/install runs this line with the installed library",
        "fairlead tools stdio:./calc": "tests/install runs this line, too",
    },
    "docs/cli.md": {
        "fairlead servers list --context work": "the gateway of the context does not exist",
    },
    "docs/clients.md": {
        "fairlead serve --stdio --attach https:": "the gateway does not exist",
        "fairlead serve --stdio --attach unix:": "the gateway does not exist",
    },
    "docs/conformance.md": {
        "cmake ": "the tests of the label conformance do this",
        "ctest ": "is such a test itself",
    },
    "docs/contributing.md": {
        "make ": "builds and tests everything",
        "ctest ": "runs this test itself",
        "build/release/tests/": "needs the test programs, which `make check` runs",
    },
    "docs/performance.md": {
        "bench/": "measures for minutes, and needs the programs of `make bench`",
    },
    "docs/secrets.md": {
        "fairlead secrets set MAIL_TOKEN  ": "asks for the value on a terminal; the examples have none",
        "sqlite3 ": "is for a database whose key is lost",
    },
    "docs/registry.md": {
        "fairlead serve --db sqlite:/var/lib": "the directory belongs to the package (tests/install)",
        "fairlead serve --db 'postgresql:": "needs PostgreSQL; tests/sql and tests/registry_program use one",
        "sqlite3 ": "needs the sqlite3 program and /backup",
        "curl -s -X POST": "nothing has drifted in a new database; tests/registry_program approves and rejects",
    },
}

# Blocks of TOML or JSON that are not complete configurations: the place of a value is marked by … in them.
NOT_CONFIGURATIONS = {}

# Examples of configuration for other programs.
FOREIGN = {}
