"""The main job: a year of flights, from an airline's transactions to figures that add up."""
