"""What `byline serve team:team` serves: the team of `byline demo`, whose models are scripted.  Put your own app here."""

from byline.hooks import Plugins

demos = {demo.name: demo for demo in Plugins().collect("byline_demos")}
team = demos["langgraph"].build(0.05)
