"""`python -m byline.cli`, where the script is not installed."""

from byline.cli import main

main()
