"""`python -m vcnef` is the command `vcnef`, where its script is not on the path."""

from vcnef.cli import main

if __name__ == "__main__":
    main()
