"""Waiting loops of modules, however they are spelled, and what is assumed of the threads that they wait for."""
