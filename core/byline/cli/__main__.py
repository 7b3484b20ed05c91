from byline.cli import main

main()
